//! Only what the gate accepted can be billed.
use jim::ledger::Account;
use jim::memo::gate::Rejected;
use jim::paywall::Verified;
use jim::paywall::verified::Answer;

async fn bill(verified: Verified, rejected: &Rejected, answer: Answer, account: &Account) {
    verified.commit(rejected, answer, account).await;
}

fn main() {}
