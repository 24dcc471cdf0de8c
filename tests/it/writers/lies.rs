//! Models that say what their facts do not: refused with feedback, not charged, and booked.

use jim::synth::model::Api;
use serde_json::{Value, json};

use super::{Desk, booked, honest, memo};
use crate::support::model::{Said, Writes};
use crate::support::rows::Rows;

/// What a model gets wrong, and a word of what it is told.
const LIES: [(Writes, &str); 9] = [
    (|_| memo("Revenue was $1.2 billion [C1]. Its margin was 61 percent, said zanzibar."), "uncited"),
    (|_| memo("Revenue was $1.9 billion [C1], said zanzibar."), "value mismatch"),
    (|_| memo("Revenue was $1.2 billion [C7], said zanzibar."), "phantom citation"),
    (|_| memo("Revenue was $1.2 billion, said zanzibar."), "uncited"),
    (|_| memo("Revenue was \u{20ac}1.2 billion [C1], said zanzibar."), "currency mismatch"),
    (|_| memo("Revenue fell 12 percent [C1], said zanzibar."), "mismatch"),
    (|_| memo("Revenue in fiscal 2019 was $1.2 billion [C1], said zanzibar."), "period mismatch"),
    (|_| memo("Net income was $1.2 billion [C1], said zanzibar."), "label mismatch"),
    (|_| memo("Revenue was $1.2 billion [C1], so you should buy zanzibar."), "advice"),
];

#[tokio::test]
async fn a_lie_is_refused_with_feedback_and_costs_only_us() {
    for (place, (lie, word)) in LIES.into_iter().enumerate() {
        let api = if place % 2 == 0 { Api::OpenAi } else { Api::Anthropic };
        let desk = Desk::open(api, [Said::Text(lie)]).await;
        let reply = desk.buy(1).await;
        let body = desk.assert_refused(&reply, "research_rejected", 2).await;
        assert_eq!(body["attempts"], 2);
        let calls = desk.model.calls();
        let (_, first) = calls[0].texts();
        let (_, second) = calls[1].texts();
        assert!(!first.contains("refused") && second.contains(word), "{word}: {second}");
        assert!(second.contains("zanzibar"), "it is shown what it wrote");
        assert_eq!(desk.runs().await, [booked(api.name(), "rejected", 2, 2, 0)], "{word}");
    }
}

#[tokio::test]
async fn two_values_exchanged_are_refused() {
    fn exchanged(facts: &[Value]) -> String {
        let money = |fact: &&Value| fact["unit"] == "USD";
        let mut two = facts.iter().filter(money);
        let (one, other) = (two.next().expect("a fact"), two.next().expect("another"));
        let text = |fact: &Value, name: &str| fact[name].as_str().expect("text").to_owned();
        memo(&format!(
            "{} was ${} [{}] and {} was ${} [{}].",
            text(one, "label"),
            text(other, "value"),
            text(one, "id"),
            text(other, "label"),
            text(one, "value"),
            text(other, "id"),
        ))
    }
    let stub = crate::support::model::StubModel::start(Api::OpenAi, [Said::Text(exchanged)]).await;
    let service = crate::support::service::Service::start_with(|settings, parts| {
        settings.model = Some(super::model_of(&stub, Api::OpenAi, None));
        parts.synthesizer = None;
        parts.source = None;
    })
    .await;
    let ask = crate::support::buyer::Ask::get("/research/fundamentals?ticker=AAPL");
    let reply = crate::support::buyer::Buyer::new(&service, 1).buy_there(&ask).await;
    let body = reply.json();
    assert_eq!((reply.status, &body["code"]), (502, &"research_rejected".into()), "{body}");
    assert_eq!(body["sourcing"]["violations"][0]["reason"], "value mismatch", "{body}");
    assert_eq!((service.rows().await, service.settle_calls()), (Rows::REFUSED, 0));
}

#[tokio::test]
async fn junk_is_refused_and_told_what_a_memo_is() {
    let junk: [Said; 6] = [
        Said::Text(|_| "Certainly! Here is your memo about zanzibar.".into()),
        Said::Text(|_| "{\"title\": \"zanzibar\"}".into()),
        Said::Text(|_| "[]".into()),
        Said::Text(|_| String::new()),
        Said::CutOff("{\"title\": \"zanzi"),
        Said::Declines,
    ];
    for (place, said) in junk.into_iter().enumerate() {
        let api = if place % 2 == 0 { Api::Anthropic } else { Api::OpenAi };
        let desk = Desk::open(api, [said.clone()]).await;
        let reply = desk.buy(1).await;
        desk.assert_refused(&reply, "research_rejected", 2).await;
        let (_, second) = desk.model.calls()[1].texts();
        assert!(second.contains("the answer was no memo"), "{said:?}: {second}");
        assert_eq!(desk.runs().await, [booked(api.name(), "rejected", 2, 2, 0)], "{said:?}");
    }
}

#[tokio::test]
async fn a_model_that_repairs_its_memo_is_sold_on_its_second_attempt() {
    let (lie, _) = LIES[1];
    let desk = Desk::open(Api::Anthropic, [Said::Text(lie), Said::Text(honest)]).await;
    let reply = desk.buy(1).await;
    assert_eq!((reply.status, &reply.json()["sourcing"]["attempts"]), (200, &2.into()), "{}", reply.text());
    assert_eq!(desk.service.rows().await, Rows::SOLD);
    assert_eq!(desk.runs().await, [booked("anthropic", "accepted", 2, 2, 50_000)]);
}

#[tokio::test]
async fn the_renderer_stands_in_where_the_settings_let_it_and_is_never_kept_as_the_models_memo() {
    let (lie, _) = LIES[0];
    let desk = Desk::open_with(Api::OpenAi, [Said::Text(lie)], |model| model.fallback = true).await;
    for buyer in [1, 2] {
        let reply = desk.buy(buyer).await;
        assert_eq!(reply.status, 200, "{}", reply.text());
        let body = reply.json();
        assert!(!body.to_string().contains("zanzibar"));
        assert!(
            body["limits"]
                .as_array()
                .expect("a list")
                .iter()
                .any(|limit| { limit.as_str().is_some_and(|limit| limit.contains("jim's own rendering")) })
        );
        assert_eq!(body["sourcing"]["attempts"], 3);
    }
    assert_eq!(desk.model.calls().len(), 4, "the model is asked anew for each");
    assert_eq!(desk.runs().await, vec![booked("renderer", "accepted", 3, 2, 50_000); 2]);
}

#[tokio::test]
async fn a_second_reading_may_only_refuse_and_fails_closed() {
    let yes: Writes = |_| json!({"faithful": true, "reasons": []}).to_string();
    let verdicts: [(Said, u16); 5] = [
        (Said::Text(yes), 200),
        (Said::Text(|_| json!({"faithful": false, "reasons": ["no"]}).to_string()), 502),
        (Said::Text(|_| "It is faithful.".into()), 502),
        (Said::CutOff("{\"faithful\": true"), 502),
        (Said::Error(400, "bad request", Vec::new()), 502),
    ];
    for (verdict, status) in verdicts {
        let said = [Said::Text(honest), verdict.clone(), Said::Text(honest), verdict.clone()];
        let desk = Desk::open_with(Api::OpenAi, said, |model| model.judge = true).await;
        let reply = desk.buy(1).await;
        assert_eq!(reply.status, status, "{verdict:?}: {}", reply.text());
        if status == 200 {
            assert_eq!(reply.json()["sourcing"]["judge"], "passed");
            assert_eq!(desk.runs().await, [booked("openai", "accepted", 1, 2, 50_000)]);
        } else {
            let body = desk.assert_refused(&reply, "research_rejected", 4).await;
            assert_eq!(body["judge"], "refused");
        }
    }
}
