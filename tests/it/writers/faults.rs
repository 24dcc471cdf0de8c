//! APIs that fail: what can be repeated is, what cannot is our fault, and the buyer is not charged for either.

use std::time::{Duration, Instant, SystemTime};

use jim::synth::model::Api;

use super::{Desk, booked, honest};
use crate::support::model::Said;
use crate::support::rows::Rows;

fn error(status: u16) -> Said {
    Said::Error(status, "the upstream says zanzibar", Vec::new())
}

#[tokio::test]
async fn a_busy_api_is_asked_again_when_it_says() {
    // made where it is used: a date that has passed asks for nothing
    let date = || httpdate::fmt_http_date(SystemTime::now() + Duration::from_secs(8));
    for (api, first) in [
        (Api::Anthropic, Said::Error(429, "slow down", vec![("retry-after", date())])),
        (Api::OpenAi, Said::Error(429, "slow down", vec![("retry-after", "1".into())])),
        (Api::Anthropic, error(529)),
        (Api::OpenAi, error(500)),
        (Api::OpenAi, Said::Raw(503, "<html>busy</html>")),
    ] {
        let desk = Desk::open(api, [first.clone(), Said::Text(honest)]).await;
        let begun = Instant::now();
        let reply = desk.buy(1).await;
        assert_eq!(reply.status, 200, "{first:?}: {}", reply.text());
        if matches!(&first, Said::Error(429, _, _)) {
            assert!(begun.elapsed() >= Duration::from_millis(900), "{first:?}: it waits as long as it is told");
        }
        assert_eq!(desk.model.calls().len(), 2);
        assert_eq!(desk.runs().await, [booked(api.name(), "accepted", 1, 1, 50_000)]);
    }
}

#[tokio::test]
async fn what_cannot_be_repeated_is_our_fault_and_not_charged() {
    for (said, calls) in [
        (error(401), 1),
        (error(404), 1),
        (error(400), 1),
        (error(500), 3),
        (error(529), 3),
        (Said::Error(429, "come back tomorrow", vec![("retry-after", "86400".into())]), 1),
        (Said::Raw(200, "<html>welcome</html>"), 1),
        (Said::Raw(200, ""), 1),
        (Said::Raw(200, "{\"id\": \"x\", \"id\": \"y\"}"), 1),
        (Said::Redirect, 1),
        (Said::Endless, 1),
        (Said::Hangs, 1),
    ] {
        let desk = Desk::open(Api::OpenAi, [said.clone()]).await;
        let reply = desk.buy(1).await;
        desk.assert_refused(&reply, "execution_failed", calls).await;
        assert_eq!(desk.runs().await, [booked("openai", "none", 0, 0, 0)], "{said:?}");
    }
}

#[tokio::test]
async fn an_answer_of_no_shape_at_all_is_no_memo() {
    let desk = Desk::open(Api::Anthropic, [Said::Raw(200, "{}")]).await;
    let reply = desk.buy(1).await;
    desk.assert_refused(&reply, "research_rejected", 2).await;
    assert_eq!(desk.runs().await, [booked("anthropic", "rejected", 2, 0, 0)], "what no API counted is not booked");
}

#[tokio::test]
async fn a_second_attempt_that_fails_keeps_the_cost_of_the_first() {
    let lie = |_: &[serde_json::Value]| super::memo("Revenue was $9.9 billion [C1].");
    let desk = Desk::open(Api::OpenAi, [Said::Text(lie), error(401)]).await;
    let reply = desk.buy(1).await;
    desk.assert_refused(&reply, "execution_failed", 2).await;
    assert_eq!(desk.runs().await, [booked("openai", "rejected", 1, 1, 0)]);
}

#[tokio::test]
async fn the_renderer_stands_in_for_an_api_that_is_gone() {
    for said in [error(401), Said::Hangs] {
        let desk = Desk::open_with(Api::Anthropic, [said], |model| model.fallback = true).await;
        let reply = desk.buy(1).await;
        assert_eq!(reply.status, 200, "{}", reply.text());
        assert_eq!(desk.service.rows().await, Rows::SOLD);
        assert_eq!(desk.runs().await, [booked("renderer", "accepted", 1, 0, 50_000)]);
    }
}
