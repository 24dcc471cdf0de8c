//! Three x402 buyers that others wrote, and one that signs a payment without sending it.

use std::process::{Command, Stdio};

use serde_json::Value;

use crate::devnet::{Kit, Payer};
use crate::process::output;

/// What a buyer reports: `{client, status, headers, body, settlement, error?}`.
#[derive(Clone, Debug)]
pub(crate) struct Purchase {
    pub(crate) status: u64,
    pub(crate) body: String,
    /// The receipt as the client decoded it.
    pub(crate) settlement: Value,
}

/// A payment as it stands in a header.
#[derive(Clone, Debug)]
pub(crate) struct Signed {
    pub(crate) header: String,
    pub(crate) value: String,
}

/// Protocol version of a buyer.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Version {
    V1,
    V2,
    /// Version 2, `exact` by Permit2.
    Permit2,
    /// Version 2, `upto`.
    Upto,
}

/// Buys with the TypeScript client of version 2.
pub(crate) fn buy_ts_v2(kit: &Kit, url: &str, payer: &Payer) -> Purchase {
    buy(kit.node("kit/clients/buyer-v2.cjs").arg(url), payer)
}

/// Buys with the TypeScript client of version 1.
pub(crate) fn buy_ts_v1(kit: &Kit, url: &str, payer: &Payer) -> Purchase {
    buy(kit.node("kit/clients/buyer-v1.cjs").arg(url), payer)
}

/// Buys with the Python client, over `httpx` or `requests`.
pub(crate) fn buy_python(kit: &Kit, url: &str, payer: &Payer, library: &str) -> Purchase {
    buy(kit.python("kit/clients/buyer.py").arg(url).env("HTTP_LIB", library), payer)
}

/// Signs a payment for the URL's terms and sends nothing.
pub(crate) fn sign_once(kit: &Kit, url: &str, payer: &Payer, version: Version) -> Signed {
    let version = match version {
        Version::V1 => "v1",
        Version::V2 => "v2",
        Version::Permit2 => "permit2",
        Version::Upto => "upto",
    };
    let text = output("a signature", kit.node("sign-once.cjs").args([url, version]).env("BUYER_KEY", &payer.key));
    let signed: Value = serde_json::from_str(&text).expect("one JSON object");
    let member = |name: &str| signed[name].as_str().expect("a member of text").to_owned();
    Signed { header: member("header"), value: member("value") }
}

fn buy(command: &mut Command, payer: &Payer) -> Purchase {
    let out = command.env("BUYER_KEY", &payer.key).stdin(Stdio::null()).output().expect("the buyer runs");
    let (text, noise) = (String::from_utf8_lossy(&out.stdout), String::from_utf8_lossy(&out.stderr));
    let report: Value = serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}\n{text}\n{noise}"));
    assert!(report.get("error").is_none(), "the client failed: {report}\n{noise}");
    Purchase {
        status: report["status"].as_u64().expect("a status"),
        body: report["body"].as_str().expect("a body").to_owned(),
        settlement: report["settlement"].clone(),
    }
}
