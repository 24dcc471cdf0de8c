//! Several facilitators behind one port. Which one a payment goes to is chosen by health before its verify, and never again:
//! its settle calls go to the one that verified it, under the name that the journal keeps.
//!
//! A second facilitator is never given a payment whose settle call may be under way at the first: both could broadcast, and the
//! one that loses would call the payment failed. So a payment whose facilitator is not configured any more stays unknown.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use futures_util::future::join_all;
use tokio::time::Instant;

use super::remote::{BadUrl, Remote};
use crate::evm::Network;
use crate::limits::{FACILITATOR_ASK_PAUSE, FACILITATOR_REFRESH, FACILITATOR_REST_MAX, FACILITATOR_REST_MIN};
use crate::paywall::port::{
    Facilitator, FacilitatorRequest, Judged, Kind, Member, SettleIntent, Settlement, Unreachable, not_ours,
};
use crate::x402::SCHEME;

/// One or more facilitators over HTTP.
#[derive(Debug)]
pub struct Pool {
    name: String,
    members: Vec<Asked>,
    ours: Kind,
}

/// A facilitator and what is known of it.
#[derive(Debug)]
struct Asked {
    remote: Remote,
    health: Mutex<Health>,
}

#[derive(Debug)]
struct Health {
    /// The last answer of `/supported`.
    kinds: Option<Vec<Kind>>,
    /// When it is asked for its kinds again.
    ask_at: Instant,
    /// Failed calls since the last verify that was answered.
    failures: u32,
    /// Not chosen before, unless all others rest longer.
    rest_until: Option<Instant>,
    /// The last failure, until it answers again.
    failing: Option<String>,
}

impl Pool {
    /// A pool for payments on one network. Two facilitators of one name cannot be told apart and are refused.
    pub fn new(remotes: Vec<Remote>, network: Network) -> Result<Self, BadUrl> {
        let names: Vec<String> = remotes.iter().map(|remote| remote.name().to_owned()).collect();
        for (i, name) in names.iter().enumerate() {
            if names[..i].contains(name) {
                return Err(BadUrl { url: name.clone(), why: "it is listed twice".to_owned() });
            }
        }
        if names.is_empty() {
            return Err(BadUrl { url: String::new(), why: "no facilitator is listed".to_owned() });
        }
        let ours = Kind { x402_version: 2, scheme: SCHEME.to_owned(), network: network.to_string() };
        let now = Instant::now();
        let members = remotes.into_iter().map(|remote| Asked { remote, health: Mutex::new(Health::new(now)) });
        Ok(Self { name: names.join(", "), members: members.collect(), ours })
    }

    /// The healthy one that is listed first; when all rest, the one that has rested enough soonest.
    fn choose(&self, request: &FacilitatorRequest) -> Option<&Asked> {
        let scheme = request.payment_requirements["scheme"].as_str().unwrap_or(SCHEME);
        let wanted = Kind { scheme: scheme.to_owned(), ..self.ours.clone() };
        let now = Instant::now();
        let usable = self.members.iter().filter_map(|member| {
            let health = member.health();
            let rests_for = health.rest_until.map_or(Duration::ZERO, |until| until.saturating_duration_since(now));
            health.lists(&wanted).then_some((member, rests_for))
        });
        usable.min_by_key(|(_, rests_for)| *rests_for).map(|(member, _)| member)
    }

    /// Private: settling needs an intent.
    async fn settle_at(&self, name: &str, request: &FacilitatorRequest) -> Settlement {
        let Some(member) = self.members.iter().find(|member| member.remote.name() == name) else {
            return not_ours(name);
        };
        let settlement = member.remote.settle_request(request).await;
        match &settlement {
            Settlement::NotSent { reason } | Settlement::Unknown { reason, transaction: None } => member.failed(reason),
            Settlement::Settled { .. }
            | Settlement::Denied { .. }
            | Settlement::NonceUsed { .. }
            | Settlement::Unknown { transaction: Some(_), .. } => {}
        }
        settlement
    }
}

impl Asked {
    fn health(&self) -> MutexGuard<'_, Health> {
        self.health.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn failed(&self, reason: &str) {
        let rest = self.health().fail(reason, Instant::now());
        tracing::warn!(
            facilitator = self.remote.name(),
            reason,
            rest_ms = rest.as_millis(),
            "a facilitator call failed"
        );
    }

    /// Asks for its kinds when it is time to.
    async fn ask(&self, ours: &Kind) {
        if self.health().ask_at > Instant::now() {
            return;
        }
        let answer = self.remote.fetch_supported().await;
        let mut health = self.health();
        match answer {
            Ok(kinds) => health.listed(kinds, ours, Instant::now()),
            Err(Unreachable(reason)) if health.kinds.is_some() => {
                health.fail(&reason, Instant::now());
            }
            Err(Unreachable(reason)) => {
                health.failing = Some(reason);
                health.ask_at = Instant::now() + FACILITATOR_ASK_PAUSE;
            }
        }
    }
}

impl Health {
    fn new(now: Instant) -> Self {
        Self { kinds: None, ask_at: now, failures: 0, rest_until: None, failing: None }
    }

    fn lists(&self, ours: &Kind) -> bool {
        self.kinds.as_ref().is_some_and(|kinds| kinds.contains(ours))
    }

    fn listed(&mut self, kinds: Vec<Kind>, ours: &Kind, now: Instant) {
        self.kinds = Some(kinds);
        self.ask_at = now + if self.lists(ours) { FACILITATOR_REFRESH } else { FACILITATOR_ASK_PAUSE };
        // its failures stay counted: a list is served even where verify fails
        self.rest_until = None;
        self.failing = None;
    }

    fn fail(&mut self, reason: &str, now: Instant) -> Duration {
        let rest = FACILITATOR_REST_MIN.saturating_mul(2u32.saturating_pow(self.failures)).min(FACILITATOR_REST_MAX);
        self.failures = self.failures.saturating_add(1);
        self.rest_until = Some(now + rest);
        self.ask_at = now + rest;
        self.failing = Some(reason.to_owned());
        rest
    }

    fn answered(&mut self) {
        self.failures = 0;
        self.rest_until = None;
        self.failing = None;
    }
}

#[async_trait]
impl Facilitator for Pool {
    fn name(&self) -> &str {
        &self.name
    }

    fn sole(&self) -> Option<&str> {
        match self.members.as_slice() {
            [only] => Some(only.remote.name()),
            _ => None,
        }
    }

    fn is_simulated(&self) -> bool {
        false
    }

    fn members(&self) -> Vec<Member> {
        let shown = |member: &Asked| {
            let health = member.health();
            Member {
                name: member.remote.name().to_owned(),
                supported: health.lists(&self.ours),
                failing: health.failing.clone(),
            }
        };
        self.members.iter().map(shown).collect()
    }

    /// Asks those whose time it is; the kinds are those of all last answers.
    async fn fetch_supported(&self) -> Result<Vec<Kind>, Unreachable> {
        join_all(self.members.iter().map(|member| member.ask(&self.ours))).await;
        let mut kinds = Vec::new();
        let (mut answered, mut failures) = (false, Vec::new());
        for member in &self.members {
            let health = member.health();
            answered |= health.kinds.is_some();
            kinds.extend(health.kinds.iter().flatten().cloned());
            failures.extend(health.failing.as_ref().map(|reason| format!("{}: {reason}", member.remote.name())));
        }
        if answered { Ok(kinds) } else { Err(Unreachable(failures.join("; "))) }
    }

    /// One call to the one that is chosen. When it fails the buyer sends the same payment again, and by then it rests.
    async fn verify(&self, request: &FacilitatorRequest) -> Result<Judged, Unreachable> {
        let member = self.choose(request).ok_or_else(|| Unreachable("none lists our kind".to_owned()))?;
        match member.remote.verify(request).await {
            Ok(judged) => {
                member.health().answered();
                Ok(judged)
            }
            Err(Unreachable(reason)) => {
                member.failed(&reason);
                Err(Unreachable(format!("{}: {reason}", member.remote.name())))
            }
        }
    }

    async fn settle(&self, intent: &SettleIntent) -> Settlement {
        self.settle_at(intent.facilitator(), intent.request()).await
    }
}

#[cfg(test)]
mod tests;
