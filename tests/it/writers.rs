//! Language models behind the paid route: what they write is judged, what they get wrong goes back to them, and whatever happens a
//! buyer is either delivered a memo that every check accepted or refused and not charged. Real HTTP in the shapes of both APIs.

mod faults;
mod lies;

use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::time::Duration;

use jim::app::writer;
use jim::config::{Model, Settings};
use jim::money::UsdMicros;
use jim::synth::model::{Api, Price};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::support::buyer::{Ask, Buyer, Reply};
use crate::support::model::{INPUT, OUTPUT, Said, StubModel};
use crate::support::rows::{Rows, assert_invariants, column};
use crate::support::service::Service;

/// The key that is sent, and that may stand nowhere else.
const KEY: &str = "sk-test-0123456789";

/// Dollar micros that one answered call costs: 3 and 15 dollars a million tokens.
const CALL_COST: i64 = 3 * INPUT + 15 * OUTPUT;

/// A service whose memos the stub writes, over two facts of one company (`research::Shelves`).
struct Desk {
    service: Service,
    model: StubModel,
    _keys: TempDir,
}

fn key_file(mode: u32) -> (TempDir, PathBuf) {
    let folder = TempDir::new().expect("a folder");
    let path = folder.path().join("api.key");
    std::fs::write(&path, format!("{KEY}\n")).expect("written");
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).expect("a mode");
    (folder, path)
}

fn model_of(stub: &StubModel, api: Api, api_key_file: Option<PathBuf>) -> Model {
    Model {
        api,
        url: stub.url(),
        name: "writer-1".into(),
        api_key_file,
        timeout: Duration::from_secs(3),
        price: Price { input: UsdMicros(3_000_000), output: UsdMicros(15_000_000) },
        judge: false,
        fallback: false,
    }
}

impl Desk {
    async fn open(api: Api, said: impl IntoIterator<Item = Said>) -> Self {
        Self::open_with(api, said, |_| {}).await
    }

    async fn open_with(api: Api, said: impl IntoIterator<Item = Said>, change: impl FnOnce(&mut Model)) -> Self {
        let stub = StubModel::start(api, said).await;
        let (keys, path) = key_file(0o600);
        let mut model = model_of(&stub, api, Some(path));
        change(&mut model);
        let service = Service::start_with(|settings: &mut Settings, parts| {
            settings.model = Some(model);
            parts.synthesizer = None;
        })
        .await;
        Self { service, model: stub, _keys: keys }
    }

    /// Buys the memo with the money of a buyer.
    async fn buy(&self, buyer: u8) -> Reply {
        Buyer::new(&self.service, buyer).buy(&Ask::memo()).await.1
    }

    /// One line of the ledger for each run, oldest first.
    async fn runs(&self) -> Vec<String> {
        let line = "select concat_ws(' ', synthesizer, gate_verdict, attempts, inference_cost_micros, coalesce(input_tokens::text, '-'), \
                    coalesce(output_tokens::text, '-'), revenue_micros) from margins order by started_at, run_id";
        column(&self.service.world.database.pool, line).await
    }

    /// Nothing was charged, everything is booked, and the key has left by the one door that it is for.
    async fn assert_refused(&self, reply: &Reply, code: &str, calls: usize) -> Value {
        let body = reply.json();
        assert_eq!((reply.status, &body["code"], &body["charged"]), (502, &code.into(), &false.into()), "{body}");
        assert!(!body.to_string().contains(KEY) && !body.to_string().contains("zanzibar"), "{body}");
        assert_eq!(self.model.calls().len(), calls);
        assert_eq!(self.service.rows().await, Rows::REFUSED);
        assert_eq!(self.service.settle_calls(), 0);
        assert_invariants(&self.service.world.database.pool).await;
        body
    }
}

/// A line of the ledger: who wrote, what was said of it, after how many attempts, and how many calls were paid for.
fn booked(writer: &str, verdict: &str, attempts: i64, calls: i64, revenue: i64) -> String {
    let used = if calls == 0 { "- -".to_owned() } else { format!("{} {}", calls * INPUT, calls * OUTPUT) };
    format!("{writer} {verdict} {attempts} {} {used} {revenue}", calls * CALL_COST)
}

/// A memo of one sentence.
fn memo(sentence: &str) -> String {
    json!({"title": "Acme", "summary": sentence, "sections": [{"heading": "Income", "markdown": sentence}]}).to_string()
}

/// What a good writer says.
fn honest(facts: &[Value]) -> String {
    assert_eq!(facts[0]["value"], "1200000000", "the model is shown the facts");
    memo("Revenue was $1.2 billion [C1].")
}

#[tokio::test]
async fn an_honest_model_is_sold_over_both_apis() {
    for (api, path, key) in
        [(Api::OpenAi, "/v1/chat/completions", "authorization"), (Api::Anthropic, "/v1/messages", "x-api-key")]
    {
        let desk = Desk::open(api, [Said::Text(honest)]).await;
        let reply = desk.buy(1).await;
        assert_eq!(reply.status, 200, "{}", reply.text());
        let body = reply.json();
        assert_eq!(body["memo"]["summary"], "Revenue was $1.2 billion [C1].");
        let sourcing =
            json!({"passed": true, "figures_checked": 2, "figures_covered": 2, "attempts": 1, "judge": "skipped"});
        assert_eq!((&body["sourcing"], &body["limits"]), (&sourcing, &json!(["a limit"])));
        assert_eq!(desk.service.rows().await, Rows::SOLD);
        assert_eq!(desk.runs().await, [booked(api.name(), "accepted", 1, 1, 50_000)]);
        let calls = desk.model.calls();
        assert_eq!((calls.len(), calls[0].path.as_str(), &calls[0].body["model"]), (1, path, &"writer-1".into()));
        assert!(calls[0].headers[key].to_str().expect("text").ends_with(KEY));
        let (rules, question) = calls[0].texts();
        assert!(rules.contains("Never compute") && !question.contains(KEY));
        assert_invariants(&desk.service.world.database.pool).await;
    }
}

#[tokio::test]
async fn a_kept_memo_is_sold_again_without_a_call() {
    let desk = Desk::open(Api::OpenAi, [Said::Text(honest)]).await;
    let (first, second) = (desk.buy(1).await, desk.buy(2).await);
    assert_eq!((first.status, second.status), (200, 200));
    assert_eq!(first.json()["memo"], second.json()["memo"]);
    assert_eq!(desk.model.calls().len(), 1);
    let expected = [booked("openai", "accepted", 1, 1, 50_000), booked("openai", "accepted", 1, 0, 50_000)];
    assert_eq!(desk.runs().await, expected);
}

#[tokio::test]
async fn a_key_that_others_may_read_stops_the_start_and_doctor_tells_a_good_model_from_a_bad_one() {
    let stub = StubModel::start(Api::Anthropic, [Said::Text(honest)]).await;
    let (_folder, exposed) = key_file(0o640);
    let error =
        writer(&model_of(&stub, Api::Anthropic, Some(exposed))).expect_err("it can be read by others").to_string();
    assert!(error.contains("api.key") && !error.contains(KEY), "{error}");
    let (_folder, path) = key_file(0o600);
    let model = model_of(&stub, Api::Anthropic, Some(path));
    let good = writer(&model).expect("a writer").check().await.expect("it answers");
    assert!(good.contains("writer-1") && !good.contains(KEY), "{good}");
    let other = Model { name: "writer-9".into(), ..model.clone() };
    let unlisted = writer(&other).expect("a writer").check().await.expect_err("not listed");
    assert!(unlisted.contains("does not list"), "{unlisted}");
    let keyless = Model { api_key_file: None, ..model };
    let refused = writer(&keyless).expect("a writer").check().await.expect_err("no key");
    assert!(refused.contains("HTTP 401"), "{refused}");
    assert!(stub.calls().is_empty(), "asking for models is no call of the model");
}
