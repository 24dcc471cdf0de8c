//! The handlers of what is sold.

use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;
use serde_json::json;

use super::paid::{Counter, Paid};
use super::{answer, problem};
use crate::limits;
use crate::memo::gate::Report;
use crate::pipeline::{Failure, Run};
use crate::refusal::{Refusal, RefusalCode};

/// A memo on a company's latest annual filing.
pub(super) async fn fundamentals(State(counter): State<Counter>, paid: Paid) -> Response {
    let shop = Arc::clone(&counter.shop);
    let Paid { verified, asked, version } = paid;
    let Run { outcome, account } = shop.pipeline.run(&asked).await;
    let ending = match outcome {
        Ok(accepted) => {
            let sale = answer::Sale {
                product: &counter.shelf.product.id,
                order_id: verified.order_id(),
                contract_id: shop.paywall.contract().id(),
                attempts: account.attempts,
                asked: &asked,
            };
            let body = answer::render(&accepted, &sale);
            verified.commit(&accepted, body, &account).await
        }
        Err(failure) => verified.refuse(refusal_of(failure, account.attempts), Some(&account)).await,
    };
    problem::outcome(&shop, &counter.shelf, version, ending)
}

fn refusal_of(failure: Failure, attempts: u32) -> Refusal {
    match failure {
        Failure::Insufficient(public) => Refusal::new(RefusalCode::InsufficientSubject, public),
        Failure::Unavailable(public) => Refusal::new(RefusalCode::DataUnavailable, public),
        Failure::Rejected(report) => {
            Refusal::new(RefusalCode::ResearchRejected, "The sourcing gate rejected every draft of this memo.")
                .with("sourcing", sourcing(&report))
                .with("attempts", attempts.into())
        }
        Failure::Broken(cause) => {
            tracing::error!(%cause, "a run failed");
            Refusal::new(RefusalCode::ExecutionFailed, "The memo could not be written.")
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
