//! The handlers of what is sold.

use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;
use serde_json::json;

use super::paid::{Counter, Paid};
use super::{answer, problem};
use crate::limits;
use crate::memo::gate::Report;
use crate::pipeline::{Failure, Rejection, Run};
use crate::refusal::{Refusal, RefusalCode};

/// A memo on a company's latest annual filing.
pub(super) async fn fundamentals(State(counter): State<Counter>, paid: Paid) -> Response {
    let shop = Arc::clone(&counter.shop);
    let Paid { verified, asked, version } = paid;
    let Run { outcome, account } = shop.pipeline.run(&asked).await;
    let ending = match outcome {
        Ok(memo) => {
            let sale = answer::Sale {
                product: &counter.shelf.product.id,
                order_id: verified.order_id(),
                contract_id: shop.paywall.contract().id(),
                attempts: account.attempts,
                asked: &asked,
            };
            let body = answer::render(&memo, &sale);
            verified.commit(&memo.accepted, body, &account).await
        }
        Err(failure) => verified.refuse(refusal_of(failure, account.attempts), Some(&account)).await,
    };
    problem::outcome(&shop, &counter.shelf, version, ending)
}

fn refusal_of(failure: Failure, attempts: u32) -> Refusal {
    match failure {
        Failure::Insufficient(public) => Refusal::new(RefusalCode::InsufficientSubject, public),
        Failure::Unavailable(public) => Refusal::new(RefusalCode::DataUnavailable, public),
        Failure::Rejected(rejection) => rejected(rejection).with("attempts", attempts.into()),
        Failure::Broken(cause) => {
            tracing::error!(%cause, "a run failed");
            Refusal::new(RefusalCode::ExecutionFailed, "The memo could not be written.")
        }
    }
}

/// Why no draft was sold, without the memo.
fn rejected(rejection: Rejection) -> Refusal {
    let refusal = |detail: &str| Refusal::new(RefusalCode::ResearchRejected, detail);
    match rejection {
        Rejection::Sourcing(rejected) => refusal("The sourcing gate rejected every draft of this memo.")
            .with("sourcing", sourcing(rejected.report())),
        Rejection::Advice(advice) => {
            refusal("Every draft of this memo gave advice, which is not sold.").with("advice", json!(advice))
        }
        Rejection::Unfaithful => {
            refusal("A second reading refused every draft of this memo.").with("judge", "refused".into())
        }
        Rejection::Unusable(cause) => {
            tracing::warn!(cause, "the writer's answers were no memos");
            refusal("The writer gave no memo that could be judged.")
        }
    }
}

/// What the gate found, without the memo: reasons and figures, a bounded number of them.
fn sourcing(report: &Report) -> serde_json::Value {
    let violations: Vec<_> = report
        .violations
        .iter()
        .take(limits::VIOLATIONS_LISTED_MAX)
        .map(|v| json!({"reason": v.reason, "figure": v.figure, "cited": v.cited}))
        .collect();
    json!({
        "passed": report.passed,
        "figures_checked": report.figures_checked,
        "figures_covered": report.figures_covered,
        "violations_total": report.violations.len(),
        "violations": violations,
    })
}
