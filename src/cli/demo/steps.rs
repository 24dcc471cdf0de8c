//! The steps of the story. Each one acts over HTTP as a buyer or an operator would and fails unless what it says is true.

use anyhow::{Context, ensure};
use http::{HeaderMap, HeaderValue, Method};
use serde_json::{Value, json};

use crate::app::App;
use crate::cli::buyer::{Ask, Buyer, Reply, choose};
use crate::evm::{SecretKey, U256, checksummed, parse_address};
use crate::limits;
use crate::money::UsdMicros;
use crate::x402::OutgoingPayment;

/// What the demo's buyers pay at most.
const MAX_PRICE: UsdMicros = UsdMicros(100_000);

/// A step of the story.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    Terms,
    Memo,
    Replay,
    Lie,
    Loop,
    Cut,
    Ledger,
    Addresses,
}

/// The story in its order.
pub(super) const STORY: [Step; 8] =
    [Step::Terms, Step::Memo, Step::Replay, Step::Lie, Step::Loop, Step::Cut, Step::Ledger, Step::Addresses];

impl Step {
    /// Its letter in the contract.
    pub(super) fn letter(self) -> &'static str {
        match self {
            Self::Terms => "a",
            Self::Memo => "b",
            Self::Replay => "c",
            Self::Lie => "d",
            Self::Loop => "e",
            Self::Cut => "f",
            Self::Ledger => "g",
            Self::Addresses => "i",
        }
    }

    /// What it shows.
    pub(super) fn title(self) -> &'static str {
        match self {
            Self::Terms => "the terms, before any payment",
            Self::Memo => "a paid memo with its sources",
            Self::Replay => "the same payment again: same bytes, nothing charged",
            Self::Lie => "a synthesizer that lies: rejected, not charged",
            Self::Loop => "a call chain that would loop: refused before any payment",
            Self::Cut => "a settlement cut off in the middle: recovered without a second charge",
            Self::Ledger => "the margin ledger, losses included",
            Self::Addresses => "where everything is",
        }
    }
}

/// Where the story plays.
pub(super) struct Stage<'a> {
    app: &'a App,
    token: String,
    buyer: Buyer,
    payer: String,
    sale: Option<(OutgoingPayment, Reply)>,
}

impl<'a> Stage<'a> {
    /// Waits until the service can sell.
    pub(super) async fn new(app: &'a App, token: String) -> anyhow::Result<Self> {
        ensure!(app.wait_until_supported(limits::DATABASE_WAIT).await, "the simulated facilitator is not ready");
        let (buyer, payer) = new_buyer()?;
        Ok(Self { app, token, buyer, payer, sale: None })
    }

    /// Plays one step; the error says what did not hold.
    pub(super) async fn play(&mut self, step: Step) -> anyhow::Result<Value> {
        match step {
            Step::Terms => self.terms().await,
            Step::Memo => self.memo().await,
            Step::Replay => self.replay().await,
            Step::Lie => self.lie().await,
            Step::Loop => self.call_loop().await,
            Step::Cut => self.cut().await,
            Step::Ledger => self.ledger().await,
            Step::Addresses => Ok(self.addresses()),
        }
    }

    async fn terms(&self) -> anyhow::Result<Value> {
        let reply = self.buyer.send(&self.ask("COIN"), None).await?;
        ensure!(reply.status == 402, "expected 402, got {}", reply.status);
        let (offer, price) = choose(&reply, None)?;
        let contract = crate::x402::read_required(reply.header(crate::x402::REQUIRED_HEADER).context("no header")?)?;
        Ok(json!({
            "status": 402,
            "price_usd": price.to_string(),
            "amount_atomic": offer.amount.to_string(),
            "network": offer.network.to_string(),
            "asset": checksummed(&offer.asset),
            "pay_to": checksummed(&offer.pay_to),
            "max_timeout_s": offer.max_timeout_s,
            "contract_id": contract.extensions["refusal-contract"]["info"]["contract_id"],
            "signable_by": ["x402 version 2 (header)", "x402 version 1 (body)"],
        }))
    }

    async fn memo(&mut self) -> anyhow::Result<Value> {
        let before = self.balance(&self.payer).await?;
        let ask = self.ask("COIN");
        let terms = self.buyer.send(&ask, None).await?;
        let payment = self.buyer.sign(&terms, MAX_PRICE, None)?;
        let reply = self.buyer.send(&ask, Some(&payment)).await?;
        ensure!(reply.status == 200, "expected 200, got {}: {}", reply.status, String::from_utf8_lossy(&reply.body));
        let body = reply.json().context("the answer is not JSON")?;
        let sourcing = &body["sourcing"];
        ensure!(sourcing["passed"] == true, "the gate did not pass: {sourcing}");
        ensure!(sourcing["figures_checked"].as_u64() > Some(0), "no figure was checked");
        ensure!(sourcing["figures_checked"] == sourcing["figures_covered"], "a figure is not covered: {sourcing}");
        let facts: Vec<&Value> =
            body["facts"].as_array().into_iter().flatten().filter(|f| f["accession"].is_string()).take(5).collect();
        ensure!(facts.len() == 5, "fewer than five facts with an accession");
        let after = self.balance(&self.payer).await?;
        let price = U256::from(payment.authorization.value());
        ensure!(before - after == price, "the balance moved by {} instead of {price}", before - after);
        let value = json!({
            "title": body["memo"]["title"],
            "summary": body["memo"]["summary"],
            "facts": facts,
            "figures_checked": sourcing["figures_checked"],
            "figures_covered": sourcing["figures_covered"],
            "order_id": body["order_id"],
            "charged_atomic": price.to_string(),
            "receipt": reply.header(payment.version.receipt_header()),
            "limits": body["limits"],
        });
        self.sale = Some((payment, reply));
        Ok(value)
    }

    async fn replay(&self) -> anyhow::Result<Value> {
        let (payment, first) = self.sale.as_ref().context("nothing was sold before")?;
        let (before, settles) = (self.balance(&self.payer).await?, self.settle_calls());
        let again = self.buyer.send(&self.ask("COIN"), Some(payment)).await?;
        ensure!(again.status == 200, "expected 200, got {}", again.status);
        ensure!(again.body == first.body, "the bytes differ");
        ensure!(self.balance(&self.payer).await? == before, "the balance moved");
        ensure!(self.settle_calls() == settles, "settle was called again");
        Ok(json!({
            "same_bytes": true,
            "sha256": crate::canonical::sha256_hex(&again.body),
            "charged": false,
            "idempotent_replay": again.header("idempotent-replay"),
        }))
    }

    async fn lie(&self) -> anyhow::Result<Value> {
        let faulty = self.app.faulty.as_ref().context("the demo's switches are off")?;
        let (buyer, payer) = new_buyer()?;
        let (before, settles) = (self.balance(&payer).await?, self.settle_calls());
        faulty.set_lying(true);
        let reply = pay(&buyer, &self.ask("COIN")).await;
        faulty.set_lying(false);
        let (_, reply) = reply?;
        let body = reply.json().context("the refusal is not JSON")?;
        ensure!(reply.status == 502 && body["code"] == "research_rejected", "got {} {}", reply.status, body["code"]);
        ensure!(body["charged"] == false, "charged is {}", body["charged"]);
        ensure!(self.balance(&payer).await? == before, "the balance moved");
        ensure!(self.settle_calls() == settles, "settle was called");
        let loss = self.newest_row().await?;
        ensure!(
            loss["refusal_code"] == "research_rejected" && loss["margin_micros"].as_i64() < Some(0),
            "the ledger shows {loss}"
        );
        Ok(json!({
            "status": 502,
            "code": body["code"],
            "charged": body["charged"],
            "violation": body["sourcing"]["violations"][0],
            "attempts": body["attempts"],
            "balance_unchanged": true,
            "loss_micros": loss["margin_micros"],
        }))
    }

    async fn call_loop(&self) -> anyhow::Result<Value> {
        let (buyer, _) = new_buyer()?;
        let settles = self.settle_calls();
        let terms = buyer.send(&self.ask("COIN"), None).await?;
        let payment = buyer.sign(&terms, MAX_PRICE, None)?;
        let mut ask = self.ask("COIN");
        let chain = format!("0x00000000000000000000000000000000000000aa, {}", checksummed(&self.app.pay_to));
        ask.headers.insert(crate::call_chain::HEADER, HeaderValue::try_from(chain)?);
        let reply = buyer.send(&ask, Some(&payment)).await?;
        let body = reply.json().context("the refusal is not JSON")?;
        ensure!(reply.status == 409 && body["code"] == "call_chain_loop", "got {} {}", reply.status, body["code"]);
        ensure!(body["charged"] == false, "charged is {}", body["charged"]);
        ensure!(self.settle_calls() == settles, "settle was called");
        Ok(json!({"status": 409, "code": body["code"], "charged": false, "call_chain": body["call_chain"]}))
    }

    async fn cut(&self) -> anyhow::Result<Value> {
        let simulated = self.app.simulated.as_ref().context("the facilitator is not simulated")?;
        let (buyer, payer) = new_buyer()?;
        let before = self.balance(&payer).await?;
        simulated.cut_next_settle();
        let ask = self.ask("COIN");
        let (payment, first) = pay(&buyer, &ask).await?;
        let body = first.json().context("the answer is not JSON")?;
        ensure!(first.status == 503 && body["code"] == "settlement_pending", "got {} {}", first.status, body["code"]);
        ensure!(body["charged"] == "unknown", "charged is {}", body["charged"]);
        let second = buyer.send(&ask, Some(&payment)).await?;
        ensure!(second.status == 200, "the same payment again brought {}", second.status);
        let spent = before - self.balance(&payer).await?;
        ensure!(
            spent == payment.authorization.value(),
            "the buyer paid {spent} instead of {}",
            payment.authorization.value()
        );
        Ok(json!({
            "first": {"status": 503, "code": body["code"], "charged": body["charged"], "hint": body["hint"]},
            "second": {"status": 200, "order_id": second.header("x-order-id")},
            "charged_once_atomic": spent.to_string(),
        }))
    }

    async fn ledger(&self) -> anyhow::Result<Value> {
        let ledger = self.operator("/api/ledger/margin?limit=5").await?;
        let summary = &ledger["summary"];
        let (revenue, cost) = (summary["revenue_micros"].as_i64(), summary["inference_cost_micros"].as_i64());
        ensure!(revenue > Some(0), "no revenue is booked: {summary}");
        ensure!(cost > Some(0), "the cost of the rejected run is missing: {summary}");
        let settled = summary["settled"].as_i64().unwrap_or(0);
        let rows = ledger["rows"].as_array().context("no rows")?;
        let earned: Vec<_> = rows.iter().filter(|r| r["revenue_micros"].as_i64() > Some(0)).collect();
        ensure!(earned.iter().all(|r| r["charged"] == true), "revenue without a settlement");
        ensure!(settled > 0, "nothing is settled");
        Ok(json!({"summary": summary, "rows": rows}))
    }

    fn addresses(&self) -> Value {
        json!({
            "service": self.app.public_url,
            "catalogue": format!("{}/api/v1/services", self.app.public_url),
            "openapi": format!("{}/openapi.json", self.app.public_url),
            "refusal_contract": format!("{}/api/meta/refusal-contract", self.app.public_url),
            "operator_ledger": format!("http://{}/api/ledger/margin", self.app.operator_addr),
            "operator_token": self.token,
            "try": format!("jim buy '{}/research/fundamentals?ticker=COIN'", self.app.public_url),
        })
    }

    fn ask(&self, ticker: &str) -> Ask {
        let url = format!("{}/research/fundamentals?ticker={ticker}", self.app.public_url);
        Ask { method: Method::GET, url, body: None, headers: HeaderMap::new() }
    }

    async fn balance(&self, payer: &str) -> anyhow::Result<U256> {
        let simulated = self.app.simulated.as_ref().context("the facilitator is not simulated")?;
        Ok(simulated.load_balance(&parse_address(payer)?).await?)
    }

    fn settle_calls(&self) -> u64 {
        self.app.simulated.as_ref().map_or(0, |s| s.calls().settle)
    }

    async fn newest_row(&self) -> anyhow::Result<Value> {
        Ok(self.operator("/api/ledger/margin?limit=1").await?["rows"][0].clone())
    }

    async fn operator(&self, path: &str) -> anyhow::Result<Value> {
        let mut headers = HeaderMap::new();
        headers.insert(http::header::AUTHORIZATION, HeaderValue::try_from(format!("Bearer {}", self.token))?);
        let url = format!("http://{}{path}", self.app.operator_addr);
        let reply = self.buyer.send(&Ask { method: Method::GET, url, body: None, headers }, None).await?;
        ensure!(reply.status == 200, "the operator's route answered {}", reply.status);
        reply.json().context("the operator's route did not answer JSON")
    }
}

/// A buyer with a new wallet: a purchase that is repeated by one payer is answered from the first.
fn new_buyer() -> anyhow::Result<(Buyer, String)> {
    let mut bytes = [0u8; 32];
    getrandom::fill(&mut bytes)?;
    let buyer = Buyer::new(SecretKey::from_bytes(bytes)?)?;
    let payer = buyer.address();
    Ok((buyer, payer))
}

async fn pay(buyer: &Buyer, ask: &Ask) -> anyhow::Result<(OutgoingPayment, Reply)> {
    let terms = buyer.send(ask, None).await?;
    let payment = buyer.sign(&terms, MAX_PRICE, None)?;
    let reply = buyer.send(ask, Some(&payment)).await?;
    Ok((payment, reply))
}
