//! A payment that was committed is gone.
use jim::ledger::Account;
use jim::memo::gate::Accepted;
use jim::paywall::Verified;
use jim::paywall::verified::Answer;

async fn twice(verified: Verified, accepted: &Accepted, answer: Answer, account: &Account) {
    verified.commit(accepted, answer.clone(), account).await;
    verified.commit(accepted, answer, account).await;
}

fn main() {}
