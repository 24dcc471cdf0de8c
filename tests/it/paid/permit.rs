//! Payments by Permit2, `exact` and `upto`, at a scripted facilitator and beside a chain in memory: what is checked before anybody is
//! asked, what is charged, and what the chain proves.

use std::sync::Arc;
use std::time::Duration;

use jim::config::Rails;
use jim::evm::{Address, SecretKey, U256, lower};
use jim::money::Atomic;
use jim::paywall::port::chain::AuthorizationKey;
use jim::x402::{Authorization, Method, OutgoingPayment, PeerOffer, Receipt, Version, read_required};
use serde_json::{Value, json};

use crate::support::buyer::{Ask, Buyer, Reply, now_s, pack, reason_of, unpack};
use crate::support::chain::FakeChain;
use crate::support::facilitator::{Answer, StubFacilitator, TX};
use crate::support::refusal::{assert_pending, assert_refusal};
use crate::support::rows::{assert_invariants, column};
use crate::support::service::{MEMO, Service};

const PRICE: u128 = 50_000;

/// Who may settle for `upto` at the scripted facilitator.
const SETTLER: Address = Address::repeat_byte(0xfa);

/// How long recovery may take to find what the chain has.
const PATIENCE: Duration = Duration::from_secs(30);

/// The two rails by Permit2.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum By {
    Exact,
    Upto,
}

const BOTH: [By; 2] = [By::Exact, By::Upto];

struct Case {
    service: Service,
    stub: StubFacilitator,
    chain: Arc<FakeChain>,
    by: By,
}

impl By {
    fn rail(self) -> &'static str {
        match self {
            Self::Exact => "exact-permit2",
            Self::Upto => "upto",
        }
    }
}

impl Case {
    async fn start(by: By) -> Self {
        let (stub, chain) = (StubFacilitator::start().await, FakeChain::new());
        let service = Service::start_with(|settings, parts| {
            settings.payments.facilitator_urls = vec![stub.url()];
            settings.payments.rails = Rails { exact_permit2: true, upto: true, client_broadcast: false };
            settings.payments.upto_facilitator = Some(SETTLER);
            parts.chain = Some(Arc::clone(&chain) as _);
            parts.recovery_pause = Some(Duration::from_millis(200));
        })
        .await;
        Self { service, stub, chain, by }
    }

    fn buyer(&self) -> Buyer {
        Buyer::new(&self.service, 1)
    }

    async fn offer(&self) -> PeerOffer {
        let reply = self.buyer().send(&Ask::memo(), None).await;
        let read = read_required(reply.header("payment-required").expect("terms")).expect("readable");
        let methods: Vec<Method> = read.offers.iter().map(|offer| offer.method).collect();
        assert_eq!((methods, read.unusable), (vec![Method::Eip3009, Method::Permit2, Method::Upto(SETTLER)], 0));
        read.offers[if self.by == By::Exact { 1 } else { 2 }].clone()
    }

    async fn sign(&self) -> OutgoingPayment {
        self.buyer().sign_for(&self.offer().await, now_s())
    }

    /// A payment for terms that were changed before they were signed, with the offer's own terms as what is accepted.
    async fn sign_other(&self, change: impl FnOnce(&mut PeerOffer)) -> OutgoingPayment {
        let mut terms = self.offer().await;
        change(&mut terms);
        self.buyer().sign_for(&terms, now_s())
    }

    async fn send(&self, payment: &OutgoingPayment) -> Reply {
        self.buyer().send(&Ask::memo(), Some(payment)).await
    }

    async fn send_header(&self, header: &str) -> Reply {
        self.buyer().send(&Ask::memo().header(Version::V2.payment_header(), header), None).await
    }

    async fn column(&self, select: &'static str) -> Vec<String> {
        column(&self.service.world.database.pool, select).await
    }

    /// The transfer that the proxy makes for a payment, in a block.
    fn land(&self, payment: &OutgoingPayment, value: u128) {
        let Authorization::Permit2(permit) = &payment.authorization else { panic!("no permit") };
        let key = AuthorizationKey { asset: permit.token, authorizer: permit.from, nonce: permit.nonce.into() };
        self.chain.transfer(key, permit.to, value);
        self.chain.mine();
    }

    async fn wait_for(&self, state: &str) {
        let begun = std::time::Instant::now();
        loop {
            let found = self.column("select state from payment_states").await;
            if found == [state] {
                return;
            }
            assert!(begun.elapsed() < PATIENCE, "{found:?} instead of {state}");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    /// Nothing was claimed, nobody was asked, and the invariants hold.
    async fn assert_untouched(&self) {
        assert_eq!(self.column("select payment_id::text from payments").await, Vec::<String>::new());
        assert_eq!((self.stub.calls("verify").len(), self.stub.settles()), (0, 0));
        assert_invariants(&self.service.world.database.pool).await;
    }

    async fn close(self, settles: usize) {
        assert_eq!(self.stub.settles(), settles);
        assert_invariants(&self.service.world.database.pool).await;
    }
}

fn receipt_of(reply: &Reply) -> Receipt {
    Receipt::decode(reply.header("payment-response").expect("a receipt"), Address::ZERO).expect("readable")
}

#[tokio::test]
async fn a_permit_is_sold_to_once_and_leaves_its_rows() {
    for by in BOTH {
        let case = Case::start(by).await;
        let payment = case.sign().await;
        let reply = case.send(&payment).await;
        assert_eq!(reply.status, 200, "{}", reply.text());
        let receipt = receipt_of(&reply);
        assert_eq!((receipt.success, receipt.amount, receipt.transaction.as_str()), (true, Some(Atomic(PRICE)), TX));
        let key = format!("eip155:84532/permit2/{}/{:#x}", case.buyer().address(), payment.authorization.nonce());
        let stored = "select concat_ws(' ', rail, state, amount, auth_key) from payment_states";
        assert_eq!(case.column(stored).await, [format!("{} settled 50000 {key}", by.rail())]);
        assert_eq!(case.column("select concat_ws(' ', kind, amount_micros) from ledger").await, ["revenue 50000"]);
        let [verify] = case.stub.calls("verify").try_into().expect("one");
        let terms = &verify["paymentRequirements"];
        assert_eq!((&terms["amount"], &terms["extra"]["assetTransferMethod"]), (&json!("50000"), &json!("permit2")));
        let again = case.send(&payment).await;
        assert_eq!((again.status, &again.body), (200, &reply.body));
        assert_eq!(again.header("idempotent-replay"), Some("true"));
        assert_eq!(receipt_of(&again).amount, Some(Atomic(PRICE)));
        case.close(1).await;
    }
}

#[tokio::test]
async fn of_a_cap_above_the_price_the_price_is_charged() {
    let case = Case::start(By::Upto).await;
    // what is accepted stays our offer; the permit allows more
    let mut terms = case.offer().await;
    terms.amount = Atomic(90_000);
    let payment = case.buyer().sign_for(&terms, now_s());
    let reply = case.send(&payment).await;
    assert_eq!(reply.status, 200, "{}", reply.text());
    assert_eq!(receipt_of(&reply).amount, Some(Atomic(PRICE)));
    let asked = |call: &str| case.stub.calls(call)[0]["paymentRequirements"]["amount"].clone();
    assert_eq!((asked("verify"), asked("settle")), (json!("90000"), json!("50000")));
    assert_eq!(case.column("select amount::text from payments").await, ["50000"]);
    assert_eq!(case.column("select concat_ws(' ', kind, amount_micros) from ledger").await, ["revenue 50000"]);
    case.close(1).await;
}

#[tokio::test]
async fn what_does_not_fit_is_turned_away_before_anybody_is_asked() {
    for by in BOTH {
        let case = Case::start(by).await;
        let other = Address::repeat_byte(9);
        let wrong_method = match by {
            By::Exact => Method::Upto(SETTLER),
            By::Upto => Method::Upto(other),
        };
        let wrong_reason = match by {
            By::Exact => "invalid_permit2_spender: permit2Authorization.spender",
            By::Upto => "upto_facilitator_mismatch: permit2Authorization.witness.facilitator",
        };
        for (payment, reason) in [
            (case.sign_other(|terms| terms.method = wrong_method).await, wrong_reason),
            (
                case.sign_other(|terms| terms.pay_to = other).await,
                "invalid_permit2_recipient_mismatch: permit2Authorization.witness.to",
            ),
            (
                case.sign_other(|terms| terms.asset = other).await,
                "permit2_token_mismatch: permit2Authorization.permitted.token",
            ),
            (
                case.sign_other(|terms| terms.amount = Atomic(PRICE - 1)).await,
                "permit2_amount_mismatch: permit2Authorization.permitted.amount",
            ),
            (
                case.buyer().sign_for(&case.offer().await, now_s() - 3_000),
                "permit2_deadline_expired: at least 30 more seconds are needed",
            ),
        ] {
            let reply = case.send(&payment).await;
            assert_eq!((reply.status, reason_of(&reply).as_str()), (402, reason), "{by:?}");
        }
        let mut forged = unpack(&case.sign().await);
        forged["payload"]["permit2Authorization"]["nonce"] = json!("1");
        let forged = case.send_header(&pack(forged.to_string())).await;
        assert_eq!(reason_of(&forged), "invalid_permit2_signature");
        let mut odd = unpack(&case.sign().await);
        odd["payload"]["permit2Authorization"]["witness"]["more"] = json!("1");
        let odd = case.send_header(&pack(odd.to_string())).await;
        assert_refusal(&case.service, &odd, 400, "payment_malformed").await;
        case.assert_untouched().await;
    }
}

#[tokio::test]
async fn a_permit_that_was_used_is_not_taken_for_another_request() {
    for by in BOTH {
        let case = Case::start(by).await;
        let payment = case.sign().await;
        assert_eq!(case.send(&payment).await.status, 200);
        let other = Ask::get(&format!("{MEMO}&mode=human"));
        let reply = case.buyer().send(&other, Some(&payment)).await;
        assert_refusal(&case.service, &reply, 409, "payment_reused").await;
        case.close(1).await;
    }
}

#[tokio::test]
async fn a_missing_allowance_is_412_and_says_what_to_approve() {
    for by in BOTH {
        let case = Case::start(by).await;
        let no = json!({"isValid": false, "invalidReason": "permit2_allowance_required"});
        case.stub.on_verify([Answer::Json(412, no)]);
        let payment = case.sign().await;
        let first = case.send(&payment).await;
        assert_eq!(first.status, 412);
        let reason = reason_of(&first);
        let wanted = "permit2_allowance_required: approve 0x000000000022D473030F116dDEE9F6B43aC78BA3 to move at least 50000 units";
        assert!(reason.starts_with(wanted), "{reason}");
        let again = case.send(&payment).await;
        assert_eq!((again.status, reason_of(&again)), (412, reason), "it is final for this signature");
        let kept =
            "select concat_ws(' ', p.state, a.kind, a.status) from answers a join payment_states p using (payment_id)";
        assert_eq!(case.column(kept).await, ["refused verify_failed 412"]);
        assert_eq!(case.stub.calls("verify").len(), 1);
        // approved, and signed anew
        assert_eq!(case.send(&case.sign().await).await.status, 200);
        case.close(1).await;
    }
}

#[tokio::test]
async fn a_lying_facilitator_leaves_the_outcome_open_and_the_chain_decides() {
    for lie in [
        json!({"success": true, "transaction": TX, "network": "eip155:84532", "amount": "49999"}),
        json!({"success": true, "transaction": "", "network": "eip155:84532", "amount": "0"}),
        json!({"success": false, "errorReason": "permit2_invalid_nonce"}),
        json!({"success": false, "errorReason": "invalid_upto_evm_transaction_failed"}),
    ] {
        tokio::join!(is_lied_to(By::Exact, &lie), is_lied_to(By::Upto, &lie));
    }
}

async fn is_lied_to(by: By, lie: &Value) {
    let case = Case::start(by).await;
    case.stub.on_settle([Answer::Json(200, lie.clone())]);
    let payment = case.sign().await;
    assert_pending(&case.send(&payment).await);
    assert_eq!(case.column("select state from payment_states").await, ["unknown"], "{by:?} {lie}");
    case.land(&payment, PRICE);
    case.wait_for("settled").await;
    assert_eq!(case.send(&payment).await.status, 200);
    assert_eq!(case.column("select concat_ws(' ', kind, amount_micros) from ledger").await, ["revenue 50000"]);
    case.close(1).await;
}

#[tokio::test]
async fn a_lost_answer_is_proven_by_the_transfer_and_another_amount_goes_back() {
    for by in BOTH {
        let case = Case::start(by).await;
        case.stub.on_settle([Answer::Drop]);
        let payment = case.sign().await;
        assert_pending(&case.send(&payment).await);
        case.land(&payment, PRICE - 1);
        case.wait_for("refund_owed").await;
        let owed = "select concat_ws(' ', amount, to_addr) from refunds";
        assert_eq!(case.column(owed).await, [format!("49999 {}", case.buyer().address())]);
        assert_eq!(case.column("select kind from ledger").await, Vec::<String>::new());
        case.close(1).await;
    }
}

#[tokio::test]
async fn a_bit_that_is_set_without_a_transfer_is_no_payment() {
    for by in BOTH {
        let case = Case::start(by).await;
        case.stub.on_settle([Answer::Drop]);
        let payment = case.sign().await;
        assert_pending(&case.send(&payment).await);
        let Authorization::Permit2(permit) = &payment.authorization else { panic!("no permit") };
        let key = AuthorizationKey { asset: permit.token, authorizer: permit.from, nonce: permit.nonce.into() };
        case.chain.cancel(key);
        case.chain.mine();
        case.wait_for("dead").await;
        assert_eq!(case.send(&payment).await.status, 402);
        assert_eq!(case.column("select kind from ledger").await, Vec::<String>::new());
        case.close(1).await;
    }
}

#[tokio::test]
async fn an_unused_permit_is_dead_after_its_deadline() {
    for by in BOTH {
        let case = Case::start(by).await;
        case.stub.on_settle([Answer::Drop]);
        let payment = case.sign().await;
        assert_pending(&case.send(&payment).await);
        let deadline: u64 = payment.authorization.valid_before().to();
        case.chain.mine_at(deadline + 5);
        tokio::time::sleep(Duration::from_secs(1)).await;
        assert_eq!(case.column("select state from payment_states").await, ["unknown"], "within the margin of finality");
        case.chain.mine_at(deadline + 600);
        case.wait_for("dead").await;
        case.close(1).await;
    }
}

#[tokio::test]
async fn who_signs_anew_by_another_rail_is_charged_once() {
    let case = Case::start(By::Upto).await;
    let first = case.sign().await;
    assert_eq!(case.send(&first).await.status, 200);
    let exact = Case { by: By::Exact, ..case };
    let second = exact.sign().await;
    assert_eq!(exact.send(&second).await.status, 200);
    let states = exact.column("select concat_ws(' ', rail, state) from payment_states order by created_at").await;
    assert_eq!(states, ["upto settled", "exact-permit2 free"]);
    exact.close(1).await;
}

#[tokio::test]
async fn play_money_moves_by_permit_too() {
    let service = Service::start_with(|settings, _| {
        settings.payments.rails = Rails { exact_permit2: true, upto: true, client_broadcast: false };
    })
    .await;
    for (entry, key) in [(1, 1), (2, 2)] {
        let buyer = Buyer::new(&service, key);
        let reply = buyer.send(&Ask::memo(), None).await;
        let offers = read_required(reply.header("payment-required").expect("terms")).expect("readable").offers;
        let payment = buyer.sign_for(&offers[entry], now_s());
        assert_eq!(buyer.send(&Ask::memo(), Some(&payment)).await.status, 200);
        let payer = SecretKey::from_bytes([key; 32]).expect("a test key").address();
        let simulated = service.app.simulated.as_ref().expect("simulated");
        assert_eq!(simulated.load_balance(&payer).await, Ok(U256::from(1_000_000_000 - 50_000)), "{}", lower(&payer));
    }
    let manifest: Value = service.get("/api/meta/refusal-contract").await.json();
    assert_eq!(manifest["rails"], json!(["exact", "exact-permit2", "upto"]));
    let api = service.get("/openapi.json").await.json();
    let get = &api["paths"]["/research/fundamentals"]["get"];
    assert_eq!(get["x-payment-info"]["accepts"][2]["scheme"], "upto");
    assert!(get["responses"]["412"].is_object(), "{get}");
    assert!(service.get("/llms.txt").await.text().contains("Permit2"));
    assert_invariants(&service.world.database.pool).await;
}
