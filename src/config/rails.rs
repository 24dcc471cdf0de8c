//! How buyers may pay, and what that needs: a chain to read and a key that pays refunds.

use super::{Error, bad};
use crate::evm::Address;
use crate::limits::CONFIRMATIONS_MAX;
use crate::machine::Rail;

/// How buyers may pay. `exact` by our settle call is always among them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rails {
    /// `exact` by Permit2 too.
    pub exact_permit2: bool,
    /// `upto`, which is by Permit2.
    pub upto: bool,
    /// The buyer broadcasts the transfer himself and sends its hash.
    pub client_broadcast: bool,
}

pub(super) fn rails(listed: &[String], has_rpc: bool, has_treasury: bool) -> Result<Rails, Error> {
    let key = "payments.rails";
    if let Some(other) = listed.iter().find(|name| Rail::from_name(name).is_none()) {
        return Err(bad(key, other, "is no rail; there are exact, exact-permit2, upto and client-broadcast"));
    }
    let has = |rail: Rail| listed.iter().any(|listed| listed == rail.name());
    if !has(Rail::Exact) {
        return Err(bad(key, &listed.join(","), "must have exact; the others can stand beside it"));
    }
    let client_broadcast = has(Rail::ClientBroadcast);
    if client_broadcast && !has_rpc {
        return Err(bad(key, "client-broadcast", "needs payments.rpc_url: the transfer is looked up on the chain"));
    }
    if client_broadcast && !has_treasury {
        return Err(bad(
            key,
            "client-broadcast",
            "needs payments.treasury_key_file: a refused payment has moved money, which is sent back",
        ));
    }
    Ok(Rails { exact_permit2: has(Rail::ExactPermit2), upto: has(Rail::Upto), client_broadcast })
}

/// Who settles `upto`: the buyer's signature names him, so that there can be one only. The simulated facilitator is known.
pub(super) fn upto_facilitator(
    said: Option<Address>,
    upto: bool,
    facilitators: usize,
) -> Result<Option<Address>, Error> {
    let key = "payments.upto_facilitator";
    match (upto, facilitators, said) {
        (true, 1, None) => Err(bad(
            key,
            "",
            "rail upto needs the address that the facilitator settles from; /supported lists it as facilitatorAddress",
        )),
        (true, 2.., _) => {
            Err(bad(key, "", "rail upto needs one facilitator: what a buyer signs names who may settle it"))
        }
        _ => Ok(said),
    }
}

/// The text of a bad URL is not repeated: it may hold a password.
pub(super) fn rpc_url(text: &str) -> Result<String, Error> {
    let why = "must be an http or https URL without user and password";
    let uri: http::Uri = text.parse().map_err(|_| bad("payments.rpc_url", "...", why))?;
    let plain = uri.authority().is_some_and(|authority| !authority.as_str().contains('@'));
    if !plain || !matches!(uri.scheme_str(), Some("http" | "https")) || text.contains('#') {
        return Err(bad("payments.rpc_url", "...", why));
    }
    Ok(text.to_owned())
}

pub(super) fn confirmations(blocks: u32) -> Result<u32, Error> {
    if (1..=CONFIRMATIONS_MAX).contains(&blocks) {
        return Ok(blocks);
    }
    let why = format!("must be 1 to {CONFIRMATIONS_MAX}; 1 counts the newest block");
    Err(bad("payments.confirmations", &blocks.to_string(), &why))
}

/// As said, or true when there is a key to pay with and a chain to pay on.
pub(super) fn auto_refunds(said: Option<bool>, has_rpc: bool, has_treasury: bool) -> Result<bool, Error> {
    if said == Some(true) && !(has_rpc && has_treasury) {
        return Err(bad("refunds.auto", "true", "needs payments.treasury_key_file and payments.rpc_url"));
    }
    Ok(said.unwrap_or(has_treasury && has_rpc))
}

#[cfg(test)]
mod tests {
    use super::super::tests::with;
    use super::*;

    const CHAIN: &str = "rpc_url = 'http://127.0.0.1:8545'\ntreasury_key_file = '/keys/treasury.key'\n";

    #[test]
    fn one_rail_and_no_chain_is_the_default() {
        let payments = with("").expect("the defaults").payments;
        assert_eq!((payments.rails, payments.confirmations), (Rails::default(), 1));
        assert_eq!((payments.rpc_url, payments.treasury_key_file, payments.auto_refunds), (None, None, false));
    }

    #[test]
    fn the_second_rail_needs_a_chain_and_a_treasury() {
        let both = "rails = ['exact', 'client-broadcast']\n";
        let settings = with(&format!("[payments]\n{both}{CHAIN}")).expect("complete");
        assert!(settings.payments.rails.client_broadcast && settings.payments.auto_refunds);
        assert!(settings.warnings().iter().any(|w| w.contains("one rail moves money")), "{:?}", settings.warnings());
        for (toml, word) in [
            (both.to_owned(), "payments.rpc_url"),
            (format!("{both}rpc_url = 'https://node.example'"), "payments.treasury_key_file"),
            (format!("{both}treasury_key_file = '/k'"), "payments.rpc_url"),
            (format!("rails = ['client-broadcast']\n{CHAIN}"), "must have exact"),
            (format!("rails = ['exact', 'down']\n{CHAIN}"), "down"),
            ("rails = ['upto']".to_owned(), "must have exact"),
            ("rails = ['exact', 'upto']\nfacilitator_url = 'https://a.example'".to_owned(), "facilitatorAddress"),
            (
                "rails = ['exact', 'upto']\nfacilitator_url = 'https://a.example, https://b.example'".to_owned(),
                "one facilitator",
            ),
            ("rails = []".to_owned(), "must have exact"),
            ("confirmations = 0".to_owned(), "1 counts the newest block"),
        ] {
            let text = with(&format!("[payments]\n{toml}")).expect_err(&toml).to_string();
            assert!(text.contains(word), "{text}");
        }
        let listed = with(&format!("[payments]\nrails = 'exact, client-broadcast'\n{CHAIN}")).expect("as a variable");
        assert!(listed.payments.rails.client_broadcast);
    }

    #[test]
    fn the_rails_by_permit2_need_no_chain_but_upto_names_who_settles() {
        let simulated = with("[payments]\nrails = ['exact', 'exact-permit2', 'upto']").expect("simulated").payments;
        assert_eq!(simulated.rails, Rails { exact_permit2: true, upto: true, client_broadcast: false });
        let address = "0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266";
        let real = with(&format!(
            "[payments]\nrails = 'exact,upto'\nfacilitator_url = 'https://a.example'\nupto_facilitator = '{address}'"
        ));
        let named = real.expect("complete").payments.upto_facilitator.expect("named");
        assert_eq!(crate::evm::checksummed(&named), address);
    }

    #[test]
    fn a_node_is_an_http_url_whose_password_is_never_shown() {
        for good in ["http://127.0.0.1:8545", "https://node.example/v2/abc", "https://node.example/?key=abc"] {
            let payments = with(&format!("[payments]\nrpc_url = '{good}'")).expect(good).payments;
            assert_eq!(payments.rpc_url.as_deref(), Some(good));
        }
        for bad in ["node.example", "ws://node.example", "https://", "/x", "http://u:secret@node.example", "http://a b"]
        {
            let text = with(&format!("[payments]\nrpc_url = '{bad}'")).expect_err(bad).to_string();
            assert!(text.contains("payments.rpc_url") && !text.contains("secret"), "{text}");
        }
    }

    #[test]
    fn refunds_are_automatic_when_they_can_be() {
        let auto = |chain: &str, said: &str| {
            with(&format!("[payments]\n{chain}[refunds]\nauto = {said}")).map(|s| s.payments.auto_refunds)
        };
        assert!(auto(CHAIN, "''").expect("by the key") && auto(CHAIN, "true").expect("said"));
        assert!(!auto(CHAIN, "false").expect("said") && !auto("", "''").expect("no key"));
        let text = auto("", "true").expect_err("no key").to_string();
        assert!(text.contains("treasury_key_file"), "{text}");
        assert!(auto(CHAIN, "'perhaps'").is_err());
    }
}
