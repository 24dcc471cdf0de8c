//! A payment that was refused cannot be settled.
use jim::ledger::Account;
use jim::memo::gate::Accepted;
use jim::paywall::Verified;
use jim::paywall::verified::Answer;
use jim::refusal::Refusal;

async fn both(verified: Verified, refusal: Refusal, accepted: &Accepted, answer: Answer, account: &Account) {
    verified.refuse(refusal, Some(account)).await;
    verified.commit(accepted, answer, account).await;
}

fn main() {}
