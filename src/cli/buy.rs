//! `jim buy`. Exit status: 0 delivered, 4 refused and not charged, 5 outcome unknown; 2 when it could not be tried.
//!
//! A signed payment is written to the data folder before it is sent and removed when its outcome is known, so that the same
//! command after a crash or Ctrl-C sends the same payment and never a second one.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use http::{HeaderMap, HeaderName, HeaderValue, Method};
use serde_json::{Value, json};

use super::buyer::{Ask, Buyer, Error, Reply, choose, receipt_header};
use super::{Place, fail};
use crate::app::load_or_create_key;
use crate::canonical;
use crate::clock::{Clock, SystemClock};
use crate::config;
use crate::evm::U256;
use crate::money::UsdMicros;
use crate::signer::{read_secret, write_secret};
use crate::x402::{OutgoingPayment, Version, decode};

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
    /// Folder for the generated key and payments under way [default: jim in the user's cache folder].
    #[arg(long, value_name = "DIR")]
    data_dir: Option<PathBuf>,
}

/// How a purchase ended.
enum Ending {
    Delivered,
    Refused,
    Unknown,
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
        let pending = Pending::of(&data_dir, &ask, &buyer.address());
        let payment = match pending.load() {
            Some(payment) => {
                eprintln!("jim: an earlier payment for this request is still open; sending that one again");
                payment
            }
            None => match self.offer(&buyer, &ask, &pending).await? {
                Ok(payment) => payment,
                Err(status) => return Ok(status),
            },
        };
        let reply = buyer.settle(&ask, &payment, |what| eprintln!("jim: {what}")).await;
        let ending = reply.as_ref().map_or(Ending::Unknown, ending_of);
        if !matches!(ending, Ending::Unknown) {
            pending.remove();
        }
        Ok(self.report(reply.as_ref(), Some(payment.version), &ending, &buyer.address()))
    }

    /// Asks without a payment and signs one for the terms; the error is the end of a request that needs or allows none.
    async fn offer(
        &self,
        buyer: &Buyer,
        ask: &Ask,
        pending: &Pending,
    ) -> anyhow::Result<Result<OutgoingPayment, ExitCode>> {
        let first = match buyer.send(ask, None).await {
            Ok(reply) => reply,
            Err(error) => {
                eprintln!("jim: {error}; nothing was paid");
                return Ok(Err(ExitCode::from(4)));
            }
        };
        if first.status != 402 {
            let ending = if first.status < 300 { Ending::Delivered } else { Ending::Refused };
            return Ok(Err(self.report(Some(&first), None, &ending, &buyer.address())));
        }
        match buyer.sign(&first, self.max_price) {
            Ok(payment) => {
                let (offer, price) = choose(&first)?;
                eprintln!("jim: paying {price} USD to {} on {}", crate::evm::checksummed(&offer.pay_to), offer.network);
                pending.save(&payment)?;
                Ok(Ok(payment))
            }
            Err(error @ (Error::Terms(_) | Error::TooDear { .. } | Error::Unreachable { .. } | Error::TooLong)) => {
                eprintln!("jim: {error}; nothing was paid");
                Ok(Err(ExitCode::from(4)))
            }
        }
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

    fn report(&self, reply: Option<&Reply>, version: Option<Version>, ending: &Ending, payer: &str) -> ExitCode {
        let (word, status) = match ending {
            Ending::Delivered => ("delivered", 0),
            Ending::Refused => ("refused", 4),
            Ending::Unknown => ("unknown", 5),
        };
        let receipt = reply.zip(version).and_then(|(reply, version)| receipt_header(version, reply));
        if self.json {
            let text = |reply: &Reply| reply.json().unwrap_or_else(|| String::from_utf8_lossy(&reply.body).into());
            println!(
                "{}",
                json!({
                    "outcome": word,
                    "status": reply.map(|r| r.status),
                    "payer": payer,
                    "receipt": receipt,
                    "order_id": reply.and_then(|r| r.header("x-order-id")),
                    "replay": reply.is_some_and(|r| r.header("idempotent-replay").is_some()),
                    "body": reply.map(text),
                })
            );
        } else if let Some(reply) = reply {
            println!("{}", String::from_utf8_lossy(&reply.body));
        }
        match ending {
            Ending::Delivered => {}
            Ending::Refused => eprintln!("jim: refused, not charged"),
            Ending::Unknown => {
                eprintln!("jim: the outcome is unknown; run the same command again, it sends the same payment")
            }
        }
        ExitCode::from(status)
    }
}

/// 200 is delivered, what says that the outcome is unknown is unknown, everything else did not charge.
fn ending_of(reply: &Reply) -> Ending {
    let charged = reply.json().and_then(|body| body.get("charged").cloned());
    match (reply.status, charged) {
        (200..=299, _) => Ending::Delivered,
        (_, Some(Value::Bool(false))) | (402, _) => Ending::Refused,
        _ => Ending::Unknown,
    }
}

/// The file of a payment whose outcome is not known.
struct Pending(PathBuf);

impl Pending {
    fn of(data_dir: &Path, ask: &Ask, payer: &str) -> Self {
        let name = canonical::address(&json!([ask.method.as_str(), ask.url, ask.body, payer]));
        Self(data_dir.join("purchases").join(name))
    }

    /// The payment, unless it can no longer be settled.
    fn load(&self) -> Option<OutgoingPayment> {
        let text = read_secret(&self.0).ok()?;
        let (number, header) = text.trim().split_once(' ')?;
        let version = Version::from_number(number.parse().ok()?)?;
        let authorization = decode(version, header).ok()?.authorization;
        if authorization.valid_before <= U256::from(SystemClock.unix_s()) {
            self.remove();
            return None;
        }
        Some(OutgoingPayment { version, header_value: header.to_owned(), authorization })
    }

    fn save(&self, payment: &OutgoingPayment) -> anyhow::Result<()> {
        let text = format!("{} {}\n", payment.version.number(), payment.header_value);
        Ok(write_secret(&self.0, text.as_bytes())?)
    }

    fn remove(&self) {
        if let Err(error) = std::fs::remove_file(&self.0)
            && error.kind() != std::io::ErrorKind::NotFound
        {
            eprintln!("jim: {} could not be removed: {error}", self.0.display());
        }
    }
}
