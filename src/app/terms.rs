//! What the faces and the application are made with, from the settings: who is served, what is promised, who pays back.

use std::sync::Arc;

use sqlx::PgPool;

use super::{StartError, say};
use crate::catalog::Product;
use crate::clock::Clock;
use crate::config::{self, Settings};
use crate::evm::Address;
use crate::http::Rules;
use crate::http::shelf::{Shelf, Till};
use crate::paywall::Policy;
use crate::paywall::contract::Contract;
use crate::paywall::landing::Landings;
use crate::paywall::port::chain::{Chain, Treasury};
use crate::paywall::recovery::sweep::Sweep;
use crate::paywall::refunds::{RefundDesk, Terms};
use crate::pipeline::Writing;
use crate::pipeline::port::Synthesizer;
use crate::refusal::document::{Deployment, RefundPromise};
use crate::signer::{self, Signer};
use crate::store::journal::Journal;
use crate::synth::faulty::Faulty;
use crate::synth::model::{ModelTerms, ModelWriter};
use crate::synth::renderer::Renderer;
use crate::x402::Permit2Rails;

/// The desk that pays refunds, when there is a chain to read and a key to pay with.
pub(super) fn refund_desk(
    settings: &Settings,
    till: &Till,
    journal: &Journal,
    money: Option<(Arc<dyn Chain>, Arc<dyn Treasury>)>,
    clock: &Arc<dyn Clock>,
) -> Option<Arc<RefundDesk>> {
    let (chain, treasury) = money?;
    let terms = Terms { network: till.network, asset: till.asset, auto: settings.payments.auto_refunds };
    Some(Arc::new(RefundDesk::new(journal.clone(), chain, treasury, Arc::clone(clock), terms)))
}

/// What the settings say about payers and load; `own` are we ourselves.
pub(super) fn policy(settings: &Settings, own: [Address; 2]) -> Policy {
    Policy {
        denied_payers: settings.denied_payers.clone(),
        own: own.into(),
        rate_per_minute: settings.rate_per_minute,
        max_in_flight: settings.max_in_flight,
        contract_wallets: settings.payments.contract_wallets,
    }
}

/// What the settings say about requests.
pub(super) fn rules(settings: &Settings, identity: Address) -> Rules {
    Rules {
        denied_subjects: settings.denied_subjects.clone(),
        identity,
        max_depth: settings.max_depth,
        rate_per_minute: settings.rate_per_minute,
    }
}

/// The sweep for stranded money, where the client-broadcast rail is on.
pub(super) fn sweep(till: &Till, shelves: &[Arc<Shelf>], contract_id: &str) -> Option<Sweep> {
    let secret = till.offer_secret.clone()?;
    Some(Sweep {
        secret,
        network: till.network,
        asset: till.asset,
        asset_decimals: till.asset_decimals,
        pay_to: till.pay_to,
        contract_id: contract_id.to_owned(),
        sold: shelves.iter().map(|shelf| (shelf.product.id.clone(), shelf.offer.clone())).collect(),
    })
}

/// What the client-broadcast rail needs to know, where it is switched on.
pub(super) fn landings(till: &Till, shelves: &[Arc<Shelf>], public_url: &str) -> Option<Landings> {
    let secret = Arc::clone(till.offer_secret.as_ref()?);
    let sold = shelves.iter().map(|shelf| (shelf.product.clone(), shelf.offer.clone())).collect();
    Some(Landings { secret, sold, orders_url: format!("{public_url}/api/orders/") })
}

pub(super) fn refund_promise(settings: &Settings, public_url: &str) -> Option<RefundPromise> {
    settings.payments.rails.client_broadcast.then(|| RefundPromise {
        is_automatic: settings.payments.auto_refunds,
        status_url: format!("{public_url}/api/orders/{{order_id}}"),
    })
}

#[expect(clippy::too_many_arguments, reason = "what a contract is made of, said once at the start")]
pub(super) async fn publish_contract(
    products: &[Product],
    public_url: &str,
    signer: Signer,
    has_chain: bool,
    refund: Option<RefundPromise>,
    permit2: Permit2Rails,
    clock: &Arc<dyn Clock>,
    pool: &PgPool,
) -> Result<Arc<Contract>, StartError> {
    let deployment = Deployment {
        paid_routes: products.iter().map(|p| p.path.clone()).collect(),
        key_id: signer.key_id().to_owned(),
        public_key: signer.public_key().to_owned(),
        outcome_evidence: match has_chain {
            true => {
                "the token's own logs on chain (AuthorizationUsed with its Transfer, AuthorizationCanceled, or unused after expiry; of a permit the Transfer in the call of the x402 proxy)"
            }
            false => "the facilitator's answer when the same payment is presented again; no chain is read",
        },
        refund,
        permit2,
    };
    let url = format!("{public_url}/api/meta/refusal-contract");
    Ok(Arc::new(Contract::publish(pool, &deployment, url, signer, clock.now()).await?))
}

/// Who writes memos: `given` by a test, the demo's liar, or whom the settings name. The renderer stands in for a model, where the
/// settings allow that.
pub(super) fn writing(
    settings: &Settings,
    given: Option<Arc<dyn Synthesizer>>,
    faulty: Option<&Faulty>,
) -> Result<Writing, StartError> {
    let alone = |synthesizer| Writing { synthesizer, attempts_max: settings.max_attempts, stand_in: None };
    match (given, faulty, &settings.model) {
        (Some(given), _, _) => Ok(alone(given)),
        (None, Some(faulty), _) => Ok(alone(Arc::new(faulty.clone()))),
        (None, None, None) => Ok(alone(Arc::new(Renderer))),
        (None, None, Some(model)) => {
            let stand_in = model.fallback.then(|| Arc::new(Renderer) as Arc<dyn Synthesizer>);
            Ok(Writing { stand_in, ..alone(Arc::new(writer(model)?)) })
        }
    }
}

/// The language model that the settings name.
pub fn writer(model: &config::Model) -> Result<ModelWriter, StartError> {
    let key = model.api_key_file.as_deref().map(signer::read_secret).transpose().map_err(say)?;
    let terms = ModelTerms {
        api: model.api,
        url: model.url.clone(),
        model: model.name.clone(),
        timeout: model.timeout,
        price: model.price,
        judge: model.judge,
    };
    ModelWriter::new(terms, key.as_deref().map(str::trim)).map_err(say)
}
