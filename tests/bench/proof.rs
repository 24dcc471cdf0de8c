//! Proofs: a long bundle verified in full, a chain that grows, and what one order costs.
//!
//! `cargo bench --no-default-features --bench proof`. The long bundle has 100,000 records under 1,000 signed checkpoints, about 91 MB of log, and
//! is read as a stream: every file digest, link, record address, count, head and signature is recomputed.

use std::hint::black_box;
use std::time::Duration;

use criterion::{BatchSize, BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use ed25519_dalek::{Signer, SigningKey};
use jim::memo::case;
use jim::memo::gate;
use jim::memo::{Coverage, Draft, Section, Snapshot, Subject};
use jim::proof::bundle::{Parts, pack, verify};
use jim::proof::chain::Chain;
use jim::proof::evidence::{Evidence, Observation, Workspace};
use jim::proof::key::{Keys, Sign, key_id};
use jim::proof::order::{self, Desk, Inputs, Judged, Outcome, Work};
use jim::proof::vocabulary::{CheckKind, Source, Status};
use time::OffsetDateTime;

/// Records of the long bundle.
const RECORDS: usize = 100_000;

/// Records under one checkpoint.
const CADENCE: usize = 100;

const AT: &str = "2026-11-30T09:15:00.120Z";
const WORKSPACE: &str = "0123456789abcdef0123456789abcdef";

struct BenchKey {
    key: SigningKey,
    id: String,
}

impl BenchKey {
    fn new() -> Self {
        let key = SigningKey::from_bytes(&[7; 32]);
        Self { id: key_id(&key.verifying_key()), key }
    }

    fn held(&self) -> Keys {
        let mut keys = Keys::default();
        keys.add(self.key.verifying_key());
        keys
    }
}

impl Sign for BenchKey {
    fn key_id(&self) -> &str {
        &self.id
    }

    fn sign(&self, message: &[u8]) -> [u8; 64] {
        self.key.sign(message).to_bytes()
    }
}

fn record(number: usize) -> Evidence {
    let mut observed = Observation {
        check_id: format!("gate:rule-{}", number % 13),
        label: "a rule of the gate".into(),
        kind: CheckKind::Test,
        command: vec!["jim".into(), "gate".into(), "1".into()],
        source: Some(Source::Config),
        status: Status::Pass,
        exit_code: Some(0),
        duration_ms: (number % 97) as f64 + 0.5,
        output_digest: String::new(),
        output_head: String::new(),
        output_truncated: None,
        output_omitted_chars: None,
        synthetic: None,
        coverage: None,
        recorded_at: AT.into(),
        workspace: Workspace::new("0".repeat(64), Vec::new()),
    };
    observed.set_output(&format!("run {number}\n{}", "checked 12 \"figures\"\n".repeat(7)));
    Evidence::seal(observed).expect("a record")
}

fn long_log(key: &BenchKey) -> Vec<u8> {
    let mut chain = Chain::begin(WORKSPACE);
    for number in 1..RECORDS {
        chain.evidence(AT, &record(number));
        if number % CADENCE == 0 {
            chain.checkpoint(AT, key);
        }
    }
    chain.evidence(AT, &record(0));
    chain.seal(AT, key).bytes
}

fn long_bundle(c: &mut Criterion) {
    let key = BenchKey::new();
    let log = long_log(&key);
    let mut bundle = Vec::new();
    let parts = Parts { workspace_key: WORKSPACE, segments: &[&log], baseline: None, anchor: None, transparency: None };
    pack(&parts, &mut bundle).expect("a bundle");
    if let Ok(path) = std::env::var("JIM_BENCH_BUNDLE") {
        std::fs::write(path, &bundle).expect("the bundle is kept");
    }
    let mut group = c.benchmark_group("bundle");
    group.sample_size(10).throughput(Throughput::Bytes(bundle.len() as u64));
    let held = key.held();
    group.bench_function("verify_100000_records_with_key", |b| {
        b.iter(|| assert!(verify(black_box(bundle.as_slice()), &held).expect("read").is_proven()));
    });
    group.bench_function("verify_100000_records_without_key", |b| {
        b.iter(|| assert!(verify(black_box(bundle.as_slice()), &Keys::default()).expect("read").is_clean()));
    });
    group.finish();
}

fn growing_chain(c: &mut Criterion) {
    let key = BenchKey::new();
    let one = record(1);
    let mut group = c.benchmark_group("append_and_checkpoint_after");
    for length in [10, 10_000] {
        let mut chain = Chain::begin(WORKSPACE);
        for _ in 0..length {
            chain.evidence(AT, &one);
        }
        let tail = chain.seal(AT, &key).tail;
        group.bench_with_input(BenchmarkId::from_parameter(length), &tail, |b, tail| {
            b.iter(|| {
                let mut chain = Chain::resume(tail.clone());
                chain.evidence(AT, black_box(&one));
                chain.seal(AT, &key)
            });
        });
    }
    group.finish();
}

fn one_order(c: &mut Criterion) {
    let key = BenchKey::new();
    let facts =
        case::facts(r#"[{"id":"C1","label":"Revenue","value":"6564000000","unit":"USD","period_end":"2024-12-31"}]"#)
            .expect("facts");
    let draft = Draft {
        title: "Example Corp".into(),
        summary: "Revenue was $6.56 billion [C1].".into(),
        sections: vec![Section { heading: "Result".into(), markdown: "Revenue was $6.6 billion [C1].".into() }],
    };
    let subject = Subject { ticker: "EXMP".into(), cik: 1, name: "Example Corp".into() };
    let snapshot = Snapshot::new(subject, OffsetDateTime::UNIX_EPOCH, facts.clone(), Coverage::Complete, Vec::new());
    let accepted = gate::judge(snapshot.expect("a snapshot"), draft.clone()).expect("an accepted memo");
    let inputs = Inputs::of(&facts, Some(&draft));
    let desk = Desk::establish(AT, &inputs, accepted.report()).expect("a desk");
    let work = Work {
        order_id: "ord_1",
        at: AT,
        duration_ms: 1.3,
        inputs: &inputs,
        judged: Judged::Report(accepted.report()),
    };
    let outcome = Outcome::Delivered { body_sha256: &"0".repeat(64), tx: None };
    let mut group = c.benchmark_group("order");
    group.measurement_time(Duration::from_secs(3));
    group.bench_function("both_segments", |b| {
        b.iter(|| {
            let opened = order::open(black_box(&work), &desk, &key);
            order::end(opened.segment.tail, Some(opened.grade), outcome, AT, &key).expect("delivered")
        });
    });
    group.bench_function("two_signatures_alone", |b| b.iter(|| (key.sign(&[0; 200]), key.sign(&[1; 200]))));
    let opened = order::open(&work, &desk, &key);
    group.bench_function("reopened_from_its_bytes", |b| {
        b.iter_batched(
            || opened.segment.bytes.clone(),
            |bytes| order::reopen("ord_1", &bytes).expect("the order again"),
            BatchSize::SmallInput,
        );
    });
    group.finish();
}

criterion_group!(benches, long_bundle, growing_chain, one_order);
criterion_main!(benches);
