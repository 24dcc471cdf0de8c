//! `jim buy`. Exit status: 0 delivered, 4 refused and not charged, 5 outcome unknown; 2 when it could not be tried.
//!
//! One signed payment a purchase. It is in the data folder before it is sent and removed when its end is known, so that the same
//! command after a crash or Ctrl-C sends the same payment and never a second one.

mod slot;

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use http::{HeaderMap, HeaderName, HeaderValue, Method};
use serde_json::{Value, json};
use tokio::signal::unix::{Signal, SignalKind, signal};

use super::buyer::{Ask, Buyer, Course, Ending, Error, Reply, choose, receipt_header};
use super::{Place, fail};
use crate::app::load_or_create_key;
use crate::clock::{Clock, SystemClock};
use crate::config;
use crate::evm::checksummed;
use crate::limits;
use crate::machine::Rail;
use crate::money::UsdMicros;
use crate::x402::OutgoingPayment;
use slot::{Purchase, Slot};

/// Buy one URL over x402; pays at most once a call.
#[derive(Debug, Args)]
pub(super) struct Buy {
    /// What to buy.
    url: String,
    /// File with the payer's secp256k1 key, 64 hex digits, mode 0600 [default: generated in the data folder].
    #[arg(long, value_name = "FILE")]
    key_file: Option<PathBuf>,
    /// Most to pay, in dollars.
    #[arg(long, value_name = "USD", default_value = "0.10")]
    max_price: UsdMicros,
    /// How to pay: exact, exact-permit2 or upto. The last two need an allowance for Permit2; --max-price bounds the cap of upto
    /// [default: the cheapest, without an allowance if that can be].
    #[arg(long, value_parser = signed_rail)]
    rail: Option<Rail>,
    /// Method of the request [default: GET, or POST with --body].
    #[arg(long)]
    method: Option<Method>,
    /// JSON body of the request.
    #[arg(long, value_name = "JSON")]
    body: Option<String>,
    /// Further header, as "name: value"; may be repeated.
    #[arg(long, value_name = "HEADER")]
    header: Vec<String>,
    /// Print one JSON object instead of the answer.
    #[arg(long)]
    json: bool,
    /// Seconds in which the same payment is sent again while its outcome is unknown.
    #[arg(long, value_name = "SECONDS", default_value_t = limits::BUY_RETRY_BUDGET.as_secs())]
    wait: u64,
    /// Put an open payment for the same request aside and sign a new one. If the old one was charged, or is charged yet, this
    /// pays a second time.
    #[arg(long)]
    abandon: bool,
    /// Folder for the generated key and payments under way [default: jim in the user's cache folder].
    #[arg(long, value_name = "DIR")]
    data_dir: Option<PathBuf>,
}

/// A payment that is on disk, and whether it was before this run.
struct Standing {
    purchase: Purchase,
    payment: OutgoingPayment,
    resumed: bool,
}

impl Buy {
    pub(super) async fn run(self) -> ExitCode {
        match self.purchase().await {
            Ok(status) => status,
            Err(error) => fail(2, error),
        }
    }

    async fn purchase(&self) -> anyhow::Result<ExitCode> {
        let place = Place {
            config: None,
            listen: None,
            data_dir: self.data_dir.clone(),
            database_url: None,
            no_download: true,
        };
        let data_dir = config::load(None, &place.overrides())?.data_dir;
        let key_file = self.key_file.clone().unwrap_or_else(|| data_dir.join("keys").join("buyer.key"));
        if self.key_file.is_some() && !key_file.exists() {
            anyhow::bail!("key file {} does not exist", key_file.display());
        }
        let buyer = Buyer::new(load_or_create_key(&key_file)?)?;
        let ask = self.ask()?;
        let slot = Slot::take(&data_dir, &ask, &buyer.address())?;
        let open = if self.abandon { None } else { slot.load()? };
        // from here on a signal ends this in words; before it, nothing was signed
        let mut signals = (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?);
        let standing = tokio::select! {
            biased;
            found = self.stand(open, &buyer, &ask, &slot) => found?,
            () = either(&mut signals) => {
                eprintln!("jim: stopped; nothing was paid");
                return Ok(ExitCode::from(4));
            }
        };
        match standing {
            Ok(standing) => self.pay(&buyer, &ask, &slot, &standing, &mut signals).await,
            Err(status) => Ok(status),
        }
    }

    /// The open payment, or a new one that is on disk when this returns. The error is the end of a request that needs or allows
    /// none.
    async fn stand(
        &self,
        open: Option<Purchase>,
        buyer: &Buyer,
        ask: &Ask,
        slot: &Slot,
    ) -> anyhow::Result<Result<Standing, ExitCode>> {
        let Some(purchase) = open else { return self.offer(buyer, ask, slot).await };
        let payment = purchase.payment().ok_or_else(|| anyhow::anyhow!("{} does not decode", slot.path().display()))?;
        eprintln!("jim: resuming payment {} of {}", purchase.nonce(), purchase.made());
        Ok(Ok(Standing { purchase, payment, resumed: true }))
    }

    /// Asks without a payment and signs one for the terms.
    async fn offer(&self, buyer: &Buyer, ask: &Ask, slot: &Slot) -> anyhow::Result<Result<Standing, ExitCode>> {
        let first = match buyer.send(ask, None).await {
            Ok(reply) => reply,
            Err(error) => {
                eprintln!("jim: {error}; nothing was paid");
                return Ok(Err(ExitCode::from(4)));
            }
        };
        if first.status != 402 {
            let ending = if first.status < 300 { Ending::Delivered } else { Ending::Refused };
            return Ok(Err(self.report(&Course { reply: Some(first), ending }, None, buyer)));
        }
        match buyer.sign(&first, self.max_price, self.rail) {
            Ok(payment) => {
                let (offer, price) = choose(&first, self.rail)?;
                let now_s = SystemClock.now().unix_timestamp();
                let purchase = Purchase::new(ask, &buyer.address(), &offer, &payment, now_s);
                self.set_aside(slot, now_s)?;
                slot.save(&purchase)?;
                eprintln!("jim: paying {price} USD to {} on {}", checksummed(&offer.pay_to), offer.network);
                Ok(Ok(Standing { purchase, payment, resumed: false }))
            }
            Err(error @ (Error::Terms(_) | Error::TooDear { .. } | Error::Unreachable { .. } | Error::TooLong)) => {
                eprintln!("jim: {error}; nothing was paid");
                Ok(Err(ExitCode::from(4)))
            }
        }
    }

    /// With `--abandon`: puts what is open aside and says what that risks.
    fn set_aside(&self, slot: &Slot, now_s: i64) -> anyhow::Result<()> {
        if !self.abandon || !slot.path().exists() {
            return Ok(());
        }
        let old = slot.load().ok().flatten();
        let aside = slot.set_aside(now_s)?;
        let what = old.map_or_else(
            || "a payment that cannot be read".to_owned(),
            |old| format!("payment {} ({}; can be charged until {})", old.nonce(), old.terms(), old.ends().0),
        );
        eprintln!(
            "jim: giving up {what} and paying anew; if the old one was or is charged, this is paid twice. It is kept in {}",
            aside.display()
        );
        Ok(())
    }

    async fn pay(
        &self,
        buyer: &Buyer,
        ask: &Ask,
        slot: &Slot,
        standing: &Standing,
        signals: &mut (Signal, Signal),
    ) -> anyhow::Result<ExitCode> {
        let budget = Duration::from_secs(self.wait);
        let say = |what: &str| eprintln!("jim: {what}");
        let course = tokio::select! {
            course = buyer.settle(ask, &standing.payment, budget, standing.resumed, say) => course,
            () = either(signals) => {
                eprintln!("jim: stopped while the payment is under way");
                Course { reply: None, ending: Ending::Unknown }
            }
        };
        match course.ending {
            // removed before the end is reported: what is reported has happened
            Ending::Delivered | Ending::Refused => {
                if let Err(error) = slot.remove() {
                    eprintln!("jim: {error}; the payment in it has ended, delete it");
                }
            }
            Ending::Unknown => how_to_go_on(slot, &standing.purchase),
        }
        Ok(self.report(&course, Some(standing), buyer))
    }

    fn ask(&self) -> anyhow::Result<Ask> {
        let default = if self.body.is_some() { Method::POST } else { Method::GET };
        let mut headers = HeaderMap::new();
        for line in &self.header {
            let (name, value) =
                line.split_once(':').ok_or_else(|| anyhow::anyhow!("--header must be \"name: value\""))?;
            headers.append(HeaderName::try_from(name.trim())?, HeaderValue::try_from(value.trim())?);
        }
        if let Some(body) = &self.body {
            serde_json::from_str::<Value>(body).map_err(|e| anyhow::anyhow!("--body is not JSON: {e}"))?;
        }
        let method = self.method.clone().unwrap_or(default);
        Ok(Ask { method, url: self.url.clone(), body: self.body.clone(), headers })
    }

    fn report(&self, course: &Course, standing: Option<&Standing>, buyer: &Buyer) -> ExitCode {
        let (word, status) = match course.ending {
            Ending::Delivered => ("delivered", 0),
            Ending::Refused => ("refused", 4),
            Ending::Unknown => ("unknown", 5),
        };
        let reply = course.reply.as_ref();
        if self.json {
            let text = |reply: &Reply| reply.json().unwrap_or_else(|| String::from_utf8_lossy(&reply.body).into());
            let receipt = reply.zip(standing).and_then(|(reply, s)| receipt_header(s.payment.version, reply));
            println!(
                "{}",
                json!({
                    "outcome": word,
                    "status": reply.map(|r| r.status),
                    "payer": buyer.address(),
                    "payment": standing.map(|s| s.purchase.nonce()),
                    "resumed": standing.is_some_and(|s| s.resumed),
                    "receipt": receipt,
                    "order_id": reply.and_then(|r| r.header("x-order-id")),
                    "replay": reply.is_some_and(|r| r.header("idempotent-replay").is_some()),
                    "body": reply.map(text),
                })
            );
        } else if let Some(reply) = reply {
            println!("{}", String::from_utf8_lossy(&reply.body));
        }
        if course.ending == Ending::Refused {
            eprintln!("jim: refused, not charged");
        }
        ExitCode::from(status)
    }
}

fn signed_rail(name: &str) -> Result<Rail, String> {
    let known = Rail::from_name(name).filter(|rail| Rail::SETTLED_BY_US.contains(rail));
    known.ok_or_else(|| "there are exact, exact-permit2 and upto".to_owned())
}

fn how_to_go_on(slot: &Slot, purchase: &Purchase) {
    let (end, end_s) = purchase.ends();
    let chargeable = if SystemClock.unix_s() <= end_s.saturating_add(limits::CLOCK_SKEW_S) {
        format!("it can be charged until {end}")
    } else {
        format!("it could be charged until {end}, and whether it was only the seller or the chain can say")
    };
    eprintln!("jim: the outcome of payment {} is unknown; {chargeable}", purchase.nonce());
    eprintln!("jim: run the same command again, it sends the same payment; it is kept in {}", slot.path().display());
}

async fn either((interrupt, terminate): &mut (Signal, Signal)) {
    tokio::select! {
        _ = interrupt.recv() => {}
        _ = terminate.recv() => {}
    }
}
