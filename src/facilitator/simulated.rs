//! The facilitator in process: real signatures, nonces and windows, play money.
//!
//! It reads a request as a real one would, from its JSON alone, and trusts nothing that was checked before. Balances and
//! used nonces are rows (`store::simulated`), so that they outlive a restart.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use alloy_primitives::keccak256;
use async_trait::async_trait;
use sqlx::PgPool;

use crate::clock::Clock;
use crate::evm::{self, Address, B256, EXACT_PROXY, Network, Signature, TokenDomain, U256, UPTO_PROXY, lower};
use crate::fault;
use crate::limits::SIMULATED_MARGIN_S;
use crate::paywall::port::{
    Facilitator, FacilitatorRequest, Judged, Kind, Member, SettleIntent, Settlement, Unreachable, Verdict, not_ours,
};
use crate::store::simulated::{self, Executed, Transfer};
use crate::x402::{Authorization, Method, Payment, SCHEME, UPTO, Version, read_terms};

/// Its name; no URL reads like it.
const NAME: &str = "simulated";

/// Who settles what is signed for `upto`: the facilitator in process, which has no key.
const ADDRESS: Address = Address::repeat_byte(0x51);

/// What each new payer starts with: 1,000 USDC in atomic units.
const GRANT: u64 = 1_000_000_000;

// the names of the TypeScript packages, which most facilitators run
const BAD_PAYLOAD: &str = "invalid_payload";
const BAD_REQUIREMENTS: &str = "invalid_payment_requirements";
const OTHER_NETWORK: &str = "invalid_exact_evm_network_mismatch";
const OTHER_SCHEME: &str = "unsupported_scheme";
const OTHER_ASSET: &str = "asset_not_deployed_contract";
const OTHER_PAYEE: &str = "invalid_exact_evm_recipient_mismatch";
const OTHER_VALUE: &str = "invalid_exact_evm_payload_authorization_value_mismatch";
const EXPIRED: &str = "invalid_exact_evm_payload_authorization_valid_before";
const TOO_EARLY: &str = "invalid_exact_evm_payload_authorization_valid_after";
const BAD_SIGNATURE: &str = "invalid_exact_evm_signature";
const OTHER_PERMIT_AMOUNT: &str = "permit2_amount_mismatch";
const OTHER_SPENDER: &str = "invalid_permit2_spender";
const OTHER_TOKEN: &str = "permit2_token_mismatch";
const ABOVE_CAP: &str = "invalid_upto_evm_payload_settlement_exceeds_amount";
const OTHER_FACILITATOR: &str = "upto_facilitator_mismatch";
const NO_MONEY: &str = "invalid_exact_evm_insufficient_balance";
const NONCE_USED: &str = "invalid_exact_evm_nonce_already_used";

/// How often the facilitator was asked: its own log, for tests and the demo.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Calls {
    /// Verify calls.
    pub verify: u64,
    /// Settle calls.
    pub settle: u64,
}

/// The simulated facilitator of one token.
pub struct Simulated {
    pool: PgPool,
    domain: TokenDomain,
    clock: Arc<dyn Clock>,
    cut_next: AtomicBool,
    verify_calls: AtomicU64,
    settle_calls: AtomicU64,
}

impl Simulated {
    /// Who may settle what is signed for `upto`.
    pub const ADDRESS: Address = ADDRESS;

    /// A facilitator for the token of `domain`, with its rows behind `pool`.
    pub fn new(pool: PgPool, domain: TokenDomain, clock: Arc<dyn Clock>) -> Self {
        Self {
            pool,
            domain,
            clock,
            cut_next: AtomicBool::new(false),
            verify_calls: AtomicU64::new(0),
            settle_calls: AtomicU64::new(0),
        }
    }

    /// The next settle call moves the money, and its answer is lost. For the demo and for tests.
    pub fn cut_next_settle(&self) {
        self.cut_next.store(true, Ordering::SeqCst);
    }

    /// How often it was asked since it was made.
    pub fn calls(&self) -> Calls {
        Calls { verify: self.verify_calls.load(Ordering::SeqCst), settle: self.settle_calls.load(Ordering::SeqCst) }
    }

    /// What a holder has, in atomic units. Who never paid nor was paid has what a new payer starts with.
    pub async fn load_balance(&self, holder: &Address) -> Result<U256, Unreachable> {
        let (network, asset) = (self.network().to_string(), lower(&self.domain.contract));
        let amount =
            simulated::load_balance(&self.pool, &network, &asset, &lower(holder)).await.map_err(unreachable)?;
        let amount = amount.map_or(Ok(U256::from(GRANT)), |digits| evm::parse_uint(&digits));
        amount.map_err(|error| Unreachable(error.to_string()))
    }

    fn network(&self) -> Network {
        Network::new(self.domain.chain_id)
    }

    async fn judge_now(&self, request: &FacilitatorRequest) -> Result<Verdict, Unreachable> {
        self.verify_calls.fetch_add(1, Ordering::SeqCst);
        let invalid = |reason: &str| Ok(Verdict::Invalid { reason: reason.to_owned() });
        let transfer = match judge(request, &self.domain, self.clock.unix_s()) {
            Ok(transfer) => transfer,
            Err(reason) => return invalid(reason),
        };
        let outlook = simulated::load_outlook(&self.pool, &transfer, GRANT).await.map_err(unreachable)?;
        if outlook.nonce_used {
            return invalid(NONCE_USED);
        }
        if !outlook.funded {
            return invalid(NO_MONEY);
        }
        Ok(Verdict::Valid { payer: Some(transfer.authorizer) })
    }

    /// Private: settling needs an intent.
    async fn settle_request(&self, request: &FacilitatorRequest) -> Settlement {
        self.settle_calls.fetch_add(1, Ordering::SeqCst);
        let cut = self.cut_next.swap(false, Ordering::SeqCst);
        let answer = self.execute(request).await;
        if cut { Settlement::Unknown { reason: "connection lost".to_owned(), transaction: None } } else { answer }
    }

    async fn execute(&self, request: &FacilitatorRequest) -> Settlement {
        let denied = |reason: &str| Settlement::Denied { reason: reason.to_owned() };
        let transfer = match judge(request, &self.domain, self.clock.unix_s()) {
            Ok(transfer) => transfer,
            Err(reason) => return denied(reason),
        };
        fault::point("before-execute");
        let executed = simulated::execute(&self.pool, &transfer, GRANT).await;
        fault::point("after-execute");
        match executed {
            Ok(Executed::Moved) => Settlement::Settled {
                transaction: format!("{:#x}", B256::from(transfer.tx_hash)),
                payer: Some(transfer.authorizer),
            },
            Ok(Executed::NonceUsed) => Settlement::NonceUsed { reason: NONCE_USED.to_owned(), transaction: None },
            Ok(Executed::Insufficient) => denied(NO_MONEY),
            // a commit whose answer was lost may have happened
            Err(error) => Settlement::Unknown { reason: format!("simulated chain: {error}"), transaction: None },
        }
    }
}

impl fmt::Debug for Simulated {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Simulated").field("domain", &self.domain).field("calls", &self.calls()).finish_non_exhaustive()
    }
}

#[async_trait]
impl Facilitator for Simulated {
    fn name(&self) -> &str {
        NAME
    }

    fn sole(&self) -> Option<&str> {
        Some(NAME)
    }

    fn is_simulated(&self) -> bool {
        true
    }

    fn members(&self) -> Vec<Member> {
        vec![Member { name: NAME.to_owned(), supported: true, failing: None }]
    }

    async fn fetch_supported(&self) -> Result<Vec<Kind>, Unreachable> {
        let kind = |version: Version, scheme: &str, network: String| Kind {
            x402_version: version.number(),
            scheme: scheme.to_owned(),
            network,
        };
        let v1 = self.network().v1_name().map(|name| kind(Version::V1, SCHEME, name.to_owned()));
        let v2 = [SCHEME, UPTO].map(|scheme| kind(Version::V2, scheme, self.network().to_string()));
        Ok(v1.into_iter().chain(v2).collect())
    }

    async fn verify(&self, request: &FacilitatorRequest) -> Result<Judged, Unreachable> {
        let verdict = self.judge_now(request).await?;
        Ok(Judged { verdict, facilitator: NAME.to_owned() })
    }

    async fn settle(&self, intent: &SettleIntent) -> Settlement {
        if intent.facilitator() != NAME {
            return not_ours(intent.facilitator());
        }
        self.settle_request(intent.request()).await
    }
}

/// What the request asks to be transferred, or the reason why no chain would do it.
fn judge(request: &FacilitatorRequest, token: &TokenDomain, now_s: u64) -> Result<Transfer, &'static str> {
    let version = Version::from_number(request.x402_version).ok_or("invalid_x402_version")?;
    let payment = Payment::from_value(version, request.payment_payload.clone()).map_err(|_| BAD_PAYLOAD)?;
    let terms = read_terms(version, &request.payment_requirements).ok_or(BAD_REQUIREMENTS)?;
    let auth = &payment.authorization;
    let demand = |holds: bool, reason| if holds { Ok(()) } else { Err(reason) };
    let network = Network::new(token.chain_id);
    let sent = payment.network.parse().ok().or_else(|| Network::from_v1_name(&payment.network));
    demand(payment.scheme == terms.method.scheme(), OTHER_SCHEME)?;
    demand(terms.network == network && sent == Some(network), OTHER_NETWORK)?;
    demand(terms.asset == token.contract, OTHER_ASSET)?;
    demand(auth.to() == terms.pay_to, OTHER_PAYEE)?;
    let charged = U256::from(terms.amount.0);
    match (auth, terms.method) {
        (Authorization::Eip3009(auth), Method::Eip3009) => demand(auth.value == charged, OTHER_VALUE)?,
        (Authorization::Permit2(permit), Method::Permit2) => {
            demand(permit.amount == charged, OTHER_PERMIT_AMOUNT)?;
            demand(permit.spender == EXACT_PROXY && permit.facilitator.is_none(), OTHER_SPENDER)?;
            demand(permit.token == token.contract, OTHER_TOKEN)?;
        }
        (Authorization::Permit2(permit), Method::Upto(_)) => {
            demand(permit.amount >= charged, ABOVE_CAP)?;
            demand(permit.spender == UPTO_PROXY, OTHER_SPENDER)?;
            demand(permit.token == token.contract, OTHER_TOKEN)?;
            demand(permit.facilitator == Some(ADDRESS), OTHER_FACILITATOR)?;
        }
        (Authorization::Eip3009(_), Method::Permit2 | Method::Upto(_))
        | (Authorization::Permit2(_), Method::Eip3009) => return Err(BAD_PAYLOAD),
    }
    demand(auth.valid_before() >= U256::from(now_s) + U256::from(SIMULATED_MARGIN_S), EXPIRED)?;
    demand(auth.valid_after() <= U256::from(now_s), TOO_EARLY)?;
    // the token knows its own domain, whatever the terms call it
    let digest = auth.digest(token);
    let signature = Signature::from_bytes(&payment.signature).map_err(|_| BAD_SIGNATURE)?;
    signature.verify(&digest, &auth.from()).map_err(|_| BAD_SIGNATURE)?;
    let nonce = match auth {
        Authorization::Eip3009(auth) => auth.nonce,
        // nonces of Permit2 are apart from those of the token
        Authorization::Permit2(_) => keccak256([b"permit2".as_slice(), auth.nonce().as_slice()].concat()),
    };
    Ok(Transfer {
        network: network.to_string(),
        asset: lower(&token.contract),
        authorizer: lower(&auth.from()),
        nonce: nonce.0,
        payee: lower(&auth.to()),
        value: charged.to_string(),
        tx_hash: keccak256([b"jim/simulated/1".as_slice(), digest.as_slice()].concat()).0,
    })
}

fn unreachable(error: sqlx::Error) -> Unreachable {
    Unreachable(format!("simulated chain: {error}"))
}

#[cfg(test)]
mod tests;
