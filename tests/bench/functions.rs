//! Functions that every sale goes through: who signed, whether a payment fits, and the gate over a long memo.
//!
//! `cargo bench --bench functions`. Beside the gate stands the pass that a quick script would make over the same memo: one
//! regular expression for figures, each looked up under the citation that follows. It knows no units, scales by words, no
//! shown precision, no spelled-out numbers and no dates; it is there for scale only.

use std::collections::HashMap;
use std::hint::black_box;
use std::time::Duration;

use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};
use jim::evm::{self, Address, B256, Network, SecretKey, TokenDomain, TransferAuthorization, U256};
use jim::memo::gate;
use jim::memo::{Coverage, Currency, Draft, Fact, Provenance, Section, Snapshot, Subject, Unit};
use jim::money::Atomic;
use jim::x402::{self, Challenge, ChallengeTemplate, Offer, OfferSecret, SignatureCheck};
use regex::Regex;
use rust_decimal::Decimal;
use time::OffsetDateTime;

/// Bytes of the memo: several times the longest that the renderer writes.
const MEMO_BYTES: usize = 20 * 1024;

/// Facts that it cites.
const FACTS: u32 = 40;

/// A moment within the payment's window.
const NOW_S: u64 = 1_750_000_000;

fn signer(c: &mut Criterion) {
    let key = SecretKey::from_bytes([7; 32]).expect("a key");
    let authorization = TransferAuthorization {
        from: key.address(),
        to: Address::repeat_byte(2),
        value: U256::from(50_000),
        valid_after: U256::ZERO,
        valid_before: U256::from(NOW_S),
        nonce: B256::repeat_byte(9),
    };
    let domain =
        TokenDomain { name: "USDC".into(), version: "2".into(), chain_id: 84_532, contract: Address::repeat_byte(3) };
    let digest = evm::digest(&authorization, &domain);
    let signature = key.sign(&digest);
    c.bench_function("signer_recovery", |b| {
        b.iter(|| assert_eq!(black_box(&signature).recover(black_box(&digest)), Ok(authorization.from)));
    });
}

fn payment(c: &mut Criterion) {
    let key = SecretKey::from_bytes([7; 32]).expect("a key");
    let offer = offer();
    let challenge = Challenge::render(&offer, "Payment required", &serde_json::Map::new()).expect("terms");
    let terms = x402::read_required(&challenge.header).expect("readable terms");
    let paid = x402::pay(&terms.offers[0], &key, B256::repeat_byte(9), NOW_S);
    c.bench_function("payment_read_and_checked", |b| {
        b.iter(|| {
            let payment = x402::decode(paid.version, black_box(&paid.header_value)).expect("a payment");
            assert!(x402::match_offer(&payment, &offer).is_ok());
            assert_eq!(x402::verify_signature(&payment, &offer), SignatureCheck::Eoa);
            black_box(payment.payload_sha256())
        });
    });
}

/// What the client-broadcast rail adds to a 402: a nonce of ours, put into terms that are rendered but for it.
fn terms(c: &mut Criterion) {
    let offer = offer();
    let secret = OfferSecret::from_bytes([7; 32]);
    let template = ChallengeTemplate::new(&offer, "Payment required", &serde_json::Map::new()).expect("terms");
    c.bench_function("terms_with_a_new_nonce", |b| {
        let mut count = 0u64;
        b.iter(|| {
            count += 1;
            let nonce = secret.issue("research:fundamentals", &offer, NOW_S, count.to_be_bytes()).expect("an offer");
            black_box(template.header(&nonce))
        });
    });
}

fn offer() -> Offer {
    Offer {
        network: Network::new(84_532),
        asset: Address::repeat_byte(3),
        amount: Atomic(50_000),
        pay_to: Address::repeat_byte(2),
        max_timeout_s: 180,
        token_name: "USDC".into(),
        token_version: "2".into(),
        resource_url: "http://127.0.0.1/research".into(),
        description: "A cited memo".into(),
        mime_type: "application/json".into(),
        service_name: None,
        tags: Vec::new(),
        output_schema: None,
        permit2: Default::default(),
    }
}

fn memo_gate(c: &mut Criterion) {
    let (snapshot, draft) = (snapshot(), draft());
    let text = draft.markdown();
    let found = match gate::judge(snapshot.clone(), draft.clone()) {
        Ok(accepted) => accepted.report().clone(),
        Err(rejected) => panic!("the gate refuses the memo of the benchmark: {}", rejected.feedback()),
    };
    let mut group = c.benchmark_group(format!("memo_of_{}_bytes_{}_figures", text.len(), found.figures_checked));
    group.throughput(Throughput::Bytes(text.len() as u64)).measurement_time(Duration::from_secs(5));
    group.bench_function("gate", |b| {
        b.iter_batched(
            || (snapshot.clone(), draft.clone()),
            |(snapshot, draft)| black_box(gate::judge(snapshot, draft)).is_ok(),
            BatchSize::SmallInput,
        );
    });
    let naive = Naive::new(snapshot.facts());
    assert_eq!(naive.count(&text), (found.figures_checked, found.figures_checked), "both read the same figures");
    group.bench_function("naive_regex", |b| b.iter(|| black_box(naive.count(black_box(&text)))));
    group.finish();
}

/// A pass with one regular expression.
struct Naive {
    figure: Regex,
    values: HashMap<String, Decimal>,
}

impl Naive {
    fn new(facts: &[Fact]) -> Self {
        let figure = r"\$([0-9][0-9,]*(?:\.[0-9]+)?) (thousand|million|billion)[^.\[]*\[(C[0-9]+)\]";
        Self {
            figure: Regex::new(figure).expect("a regular expression"),
            values: facts.iter().map(|fact| (fact.id.clone(), fact.value)).collect(),
        }
    }

    /// Figures found, and those that are the value of the fact they cite.
    fn count(&self, text: &str) -> (usize, usize) {
        let mut counts = (0, 0);
        for found in self.figure.captures_iter(text) {
            counts.0 += 1;
            let scale = match &found[2] {
                "thousand" => Decimal::from(1_000),
                "million" => Decimal::from(1_000_000),
                _ => Decimal::from(1_000_000_000),
            };
            let shown: Option<Decimal> = found[1].replace(',', "").parse().ok();
            if shown.map(|shown| shown * scale) == self.values.get(&found[3]).copied() {
                counts.1 += 1;
            }
        }
        counts
    }
}

/// Tenths of a million dollars of the fact of that number.
fn tenths(number: u32) -> u32 {
    480 + 137 * number
}

fn snapshot() -> Snapshot {
    let facts = (1..=FACTS).map(|number| Fact {
        id: format!("C{number}"),
        label: "Revenue".into(),
        value: Decimal::from(tenths(number)) * Decimal::from(100_000),
        unit: Unit::Money(Currency::USD),
        currency: Some(Currency::USD),
        entity: None,
        period_start: None,
        period_end: None,
        fiscal_year: None,
        fiscal_period: None,
        provenance: Provenance {
            source: "sec-edgar".into(),
            origin: "primary".into(),
            form: Some("10-K".into()),
            accession: Some("0000000000-25-000001".into()),
            filing_url: None,
            filed: None,
            concept: Some("us-gaap:Revenues".into()),
        },
        derived_from: Vec::new(),
        formula: None,
        restated: None,
    });
    let subject = Subject { ticker: "ACME".into(), cik: 1, name: "Acme Corporation".into() };
    Snapshot::new(subject, OffsetDateTime::UNIX_EPOCH, facts.collect(), Coverage::Complete, Vec::new()).expect("facts")
}

fn draft() -> Draft {
    let mut sections = Vec::new();
    let (mut bytes, mut number) = (0, 0);
    while bytes < MEMO_BYTES {
        let mut markdown = String::new();
        for _ in 0..4 {
            let fact = number % FACTS + 1;
            number += 1;
            markdown.push_str(&format!(
                "Revenue was ${}.{} million [C{fact}], which management attributes to demand from existing customers and \
                 to the products that were launched before. ",
                tenths(fact) / 10,
                tenths(fact) % 10,
            ));
        }
        bytes += markdown.len();
        sections.push(Section { heading: "Revenue".into(), markdown });
    }
    Draft { title: "Acme Corporation".into(), summary: "The company sells products to customers.".into(), sections }
}

criterion_group!(benches, signer, payment, terms, memo_gate);
criterion_main!(benches);
