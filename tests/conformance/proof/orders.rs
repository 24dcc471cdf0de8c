//! The chain of one sale: what stands on it, what a stranger verifies, and what it may not say.

use jim::memo::gate::{self, Report};
use jim::memo::{Coverage, Draft, Fact, Section, Snapshot, Subject, case};
use jim::proof::anchor::Anchor;
use jim::proof::bundle::{CheckpointSignature, Mode, Parts, pack, verify};
use jim::proof::chain::{Broken, Segment};
use jim::proof::key::Keys;
use jim::proof::order::{
    self, Desk, Finding, Inputs, Judged, NoDesk, Opened, Outcome, RULES, Work, check_answer, workspace_key,
};
use jim::proof::vocabulary::Grade;
use serde_json::{Value, json};
use time::OffsetDateTime;

use super::TestKey;

pub(super) const ORDER: &str = "ord_0197";
pub(super) const AT: &str = "2026-11-30T09:15:00.120Z";
pub(super) const LATER: &str = "2026-11-30T09:15:02.340Z";
const FACTS: &str = r#"[
    {"id":"C1","label":"Revenue","value":"6564000000","unit":"USD","period_start":"2024-01-01","period_end":"2024-12-31"},
    {"id":"C2","label":"Net income","value":"2579000000","unit":"USD","period_start":"2024-01-01","period_end":"2024-12-31"}
]"#;

fn facts() -> Vec<Fact> {
    case::facts(FACTS).expect("facts")
}

fn draft(summary: &str) -> Draft {
    Draft {
        title: "Example Corp".into(),
        summary: summary.into(),
        sections: vec![Section { heading: "Result".into(), markdown: "Net income was $2.58 billion [C2].".into() }],
    }
}

fn judge(draft: &Draft) -> Report {
    let subject = Subject { ticker: "EXMP".into(), cik: 1, name: "Example Corp".into() };
    let snapshot = Snapshot::new(subject, OffsetDateTime::UNIX_EPOCH, facts(), Coverage::Complete, Vec::new());
    match gate::judge(snapshot.expect("a snapshot"), draft.clone()) {
        Ok(accepted) => accepted.report().clone(),
        Err(rejected) => rejected.report().clone(),
    }
}

/// One order with everything that a bundle of it needs.
pub(super) struct Sale {
    pub(super) desk: Desk,
    pub(super) opened: Opened,
    pub(super) ended: Segment,
    pub(super) body: Vec<u8>,
}

impl Sale {
    pub(super) fn bundle(&self) -> Vec<u8> {
        let anchor = self.ended.checkpoint.to_file();
        let mut bytes = Vec::new();
        let parts = Parts {
            workspace_key: &workspace_key(ORDER),
            segments: &[&self.opened.segment.bytes, &self.ended.bytes],
            baseline: Some(self.desk.file()),
            anchor: Some(&anchor),
            transparency: None,
        };
        pack(&parts, &mut bytes).expect("a bundle");
        bytes
    }

    pub(super) fn log(&self) -> String {
        String::from_utf8([self.opened.segment.bytes.clone(), self.ended.bytes.clone()].concat()).expect("text")
    }
}

pub(super) fn desk() -> Desk {
    let draft = draft("Revenue was $6.56 billion [C1].");
    Desk::establish("2026-11-01T00:00:00.000Z", &Inputs::of(&facts(), Some(&draft)), &judge(&draft)).expect("a desk")
}

fn open(draft: &Draft, desk: &Desk, key: &TestKey) -> Opened {
    let report = judge(draft);
    let inputs = Inputs::of(&facts(), Some(draft));
    let judged = Judged::Report(&report);
    order::open(&Work { order_id: ORDER, at: AT, duration_ms: 1.3, inputs: &inputs, judged }, desk, key)
}

pub(super) fn sale(key: &TestKey) -> Sale {
    let draft = draft("Revenue was $6.56 billion [C1].");
    let desk = desk();
    let opened = open(&draft, &desk, key);
    let body = body(&draft);
    let sha256 = jim::canonical::sha256_hex(&body);
    let outcome = Outcome::Delivered { body_sha256: &sha256, tx: Some("0x12") };
    let ended = order::end(opened.segment.tail.clone(), Some(opened.grade), outcome, LATER, key).expect("delivered");
    Sale { desk, opened, ended, body }
}

/// The members of an answer that are judged.
fn body(draft: &Draft) -> Vec<u8> {
    let facts = serde_json::to_value(facts()).expect("facts");
    json!({
        "order_id": ORDER,
        "subject": {"ticker": "EXMP", "cik": 1, "name": "Example Corp"},
        "memo": {"title": draft.title, "summary": draft.summary, "sections": draft.sections, "markdown": draft.markdown()},
        "facts": facts,
    })
    .to_string()
    .into_bytes()
}

#[test]
fn a_delivered_order_verifies_and_says_no_word_of_the_memo() {
    let key = TestKey::new(1);
    let sale = sale(&key);
    assert_eq!(sale.opened.grade, Grade::Proven);
    let bundle = sale.bundle();
    let result = verify(bundle.as_slice(), &key.held()).expect("read");
    assert_eq!(result.problems, []);
    assert!(result.is_clean() && result.is_proven());
    assert_eq!((result.records, result.tail_records), (RULES.len() as u64 + 4, 0));
    assert_eq!(result.workspace_key, Some(workspace_key(ORDER)));
    assert_eq!(result.baseline_id.as_deref(), Some(sale.desk.baseline().id()));
    let text = String::from_utf8(bundle).expect("text");
    for word in ["6.56", "Example", "income", "6564000000"] {
        assert!(!text.contains(word), "{word}");
    }
    assert!(text.contains(&jim::canonical::sha256_hex(&sale.body)));

    let strange = verify(text.as_bytes(), &TestKey::new(2).held()).expect("read");
    assert_eq!(strange.chain_mode, Mode::SignedUnverified);
    assert_eq!(strange.checkpoint_signature, Some(CheckpointSignature::Unverified));
    assert!(strange.is_clean() && !strange.is_proven());
    assert!(!verify(text.as_bytes(), &Keys::default()).expect("read").is_proven());
}

#[test]
fn the_same_order_makes_the_same_bytes() {
    let key = TestKey::new(1);
    assert_eq!(sale(&key).bundle(), sale(&key).bundle());
    let sale = sale(&key);
    let loaded = Desk::load(sale.desk.file()).expect("the desk again");
    let again = open(&draft("Revenue was $6.56 billion [C1]."), &loaded, &key);
    assert_eq!(again.segment, sale.opened.segment);
}

#[test]
fn an_answer_is_judged_again() {
    let key = TestKey::new(1);
    let sale = sale(&key);
    let (log, desk) = (sale.log(), sale.desk.file());
    let answered = check_answer(&log, Some(desk), &sale.body);
    assert_eq!(answered.findings, []);
    assert!(answered.gate_rerun && answered.figures_checked == 2);

    let body = String::from_utf8(sale.body.clone()).expect("text");
    let lie = body.replace("$6.56 billion", "$6.65 billion");
    assert_ne!(lie, body);
    let findings = check_answer(&log, Some(desk), lie.as_bytes()).findings;
    assert!(matches!(findings[0], Finding::Body { .. }), "{findings:?}");
    assert!(findings.iter().any(|f| matches!(f, Finding::Memo { .. })), "{findings:?}");
    assert!(findings.iter().any(|f| matches!(f, Finding::RuleDiffers { rule, .. } if rule == "gate:value-mismatch")));

    let other = body.replace("6564000000", "6564000001");
    let findings = check_answer(&log, Some(desk), other.as_bytes()).findings;
    assert!(findings.iter().any(|f| matches!(f, Finding::Facts { .. })), "{findings:?}");

    // members that carry no figure of the memo belong to the body all the same
    let spaced = format!("{body} ");
    assert_eq!(check_answer(&log, Some(desk), spaced.as_bytes()).findings.len(), 1);
    assert!(check_answer(&log, None, &sale.body).findings.contains(&Finding::NoBaseline));
    let unread = check_answer(&log, Some(desk), b"# a memo in Markdown").findings;
    assert!(matches!(unread.as_slice(), [Finding::Body { .. }, Finding::NotAnAnswer { .. }]), "{unread:?}");
    let first = String::from_utf8(sale.opened.segment.bytes).expect("text");
    assert_eq!(check_answer(&first, Some(desk), &sale.body).findings, [Finding::NotDelivered]);
}

#[test]
fn a_rejected_memo_regresses_and_is_never_delivered() {
    let (key, desk) = (TestKey::new(1), desk());
    let opened = open(&draft("Revenue was $9.99 billion [C1]."), &desk, &key);
    assert_eq!(opened.grade, Grade::Regressed);
    let tail = opened.segment.tail.clone();
    let delivered = Outcome::Delivered { body_sha256: "00", tx: None };
    let refused = Outcome::Refused { code: "research_rejected", body_sha256: "00" };
    assert_eq!(
        order::end(tail.clone(), Some(opened.grade), delivered, LATER, &key),
        Err(order::NotProven { grade: Grade::Regressed })
    );
    assert!(order::end(tail.clone(), None, delivered, LATER, &key).is_err());
    let segment = order::end(tail, Some(opened.grade), refused, LATER, &key).expect("refused");
    let line = String::from_utf8(segment.bytes).expect("text");
    assert!(
        line.contains(
            r#""label":"order/refused","bodySha256":"00","charged":false,"code":"research_rejected","headRef":"#
        ),
        "{line}"
    );
    let text = String::from_utf8(opened.segment.bytes).expect("text");
    assert_eq!(text.matches("\"status\":\"fail\"").count(), 1);
    assert_eq!(text.matches("\"status\":\"pass\"").count(), RULES.len() - 1);
}

#[test]
fn a_source_that_was_down_is_stale() {
    let (key, desk) = (TestKey::new(1), desk());
    let inputs = Inputs::of(&[], None);
    let work = Work { order_id: ORDER, at: AT, duration_ms: f64::NAN, inputs: &inputs, judged: Judged::NotRun };
    let opened = order::open(&work, &desk, &key);
    assert_eq!(opened.grade, Grade::Stale);
    let text = String::from_utf8(opened.segment.bytes).expect("text");
    assert_eq!(text.matches("\"status\":\"error\"").count(), RULES.len());
    assert!(!text.contains("skipped"));
}

#[test]
fn every_outcome_is_covered_and_a_later_one_follows_it() {
    let (key, sale) = (TestKey::new(1), sale(&TestKey::new(1)));
    let stored = sale.log().into_bytes();
    let reopened = order::reopen(ORDER, &stored).expect("the order again");
    assert_eq!(reopened.grade, Some(Grade::Proven));
    assert_eq!(reopened.tail, sale.ended.tail);
    let refunded =
        order::end(reopened.tail, reopened.grade, Outcome::Refunded { tx: None }, LATER, &key).expect("refunded");
    let whole = [stored.as_slice(), &refunded.bytes].concat();
    let unknown = order::end(sale.opened.segment.tail.clone(), None, Outcome::Unknown, LATER, &key).expect("unknown");
    for (log, anchor) in [
        (whole, refunded.checkpoint),
        ([sale.opened.segment.bytes.as_slice(), &unknown.bytes].concat(), unknown.checkpoint),
    ] {
        let mut bundle = Vec::new();
        let anchor: Anchor = anchor;
        let file = anchor.to_file();
        let key_of = workspace_key(ORDER);
        let parts = Parts {
            workspace_key: &key_of,
            segments: &[&log],
            baseline: Some(sale.desk.file()),
            anchor: Some(&file),
            transparency: None,
        };
        pack(&parts, &mut bundle).expect("a bundle");
        assert!(verify(bundle.as_slice(), &key.held()).expect("read").is_proven());
    }
}

#[test]
fn a_changed_chain_is_not_extended() {
    let sale = sale(&TestKey::new(1));
    let log = sale.log();
    assert!(order::reopen("another order", log.as_bytes()).is_err());
    let lines: Vec<&str> = log.lines().collect();
    let without = |skip: usize| -> String {
        lines.iter().enumerate().filter(|(at, _)| *at != skip).map(|(_, line)| format!("{line}\n")).collect()
    };
    for at in 0..lines.len() {
        let broken = order::reopen(ORDER, without(at).as_bytes());
        let is_last = at == lines.len() - 1;
        match broken {
            Err(Broken::Uncovered { records: 1 }) => assert!(is_last),
            Err(_) => assert!(!is_last, "line {at}"),
            Ok(_) => panic!("line {at} was missing"),
        }
    }
    assert!(matches!(order::reopen(ORDER, &log.as_bytes()[..log.len() - 40]), Err(Broken::Corrupt { .. })));
}

#[test]
fn a_desk_holds_or_is_none() {
    let desk = desk();
    let bad = draft("Revenue was $9.99 billion [C1].");
    let refused = Desk::establish(AT, &Inputs::of(&facts(), Some(&bad)), &judge(&bad));
    assert_eq!(refused.err(), Some(NoDesk::Rejected));
    let file: Value = serde_json::from_str(desk.file()).expect("JSON");
    let mut fewer = file.clone();
    fewer["checks"].as_array_mut().expect("checks").pop();
    assert!(matches!(Desk::load(&fewer.to_string()), Err(NoDesk::Flawed(_))));
    let edited = desk.file().replacen("\"exitCode\": 0", "\"exitCode\": 1", 1);
    assert!(matches!(Desk::load(&edited), Err(NoDesk::Flawed(_))));
    assert!(matches!(Desk::load("[]"), Err(NoDesk::Flawed(_))));
}
