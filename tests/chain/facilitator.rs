//! The kit's facilitator: real verify and settle over the node, with a log of its calls and a switch that spoils them.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use serde_json::{Value, json};

use crate::devnet::{Devnet, Kit};
use crate::process::{Running, free_port, wait_for};
use crate::web::Web;

/// A running process of the kit with an HTTP face.
pub(crate) struct Facilitator {
    url: String,
    process: Running,
}

impl Facilitator {
    /// Starts the facilitator for a node.
    pub(crate) fn start(kit: &Kit, web: &Web, devnet: &Devnet, logs: &Path) -> Self {
        let mut command = kit.node("kit/facilitator.cjs");
        command.env("RPC_URL", devnet.url());
        Self::listen("facilitator", "/health", web, &mut command, logs)
    }

    /// Starts the reference seller: not jim, but bought in the same way, so that a broken kit is told from a broken jim.
    pub(crate) fn start_seller(&self, kit: &Kit, web: &Web, logs: &Path) -> Self {
        let mut command = kit.node("kit/seller-express.cjs");
        command.env("FACILITATOR_URL", &self.url);
        Self::listen("seller", "/free", web, &mut command, logs)
    }

    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    pub(crate) fn tail(&self) -> String {
        self.process.tail()
    }

    /// Every call so far: `{op, request, response?, chaos?}`.
    pub(crate) fn log(&self, web: &Web) -> Vec<Value> {
        web.get(&format!("{}/_log", self.url), &[]).json().as_array().expect("a list of calls").clone()
    }

    /// Calls of one operation for one payer.
    pub(crate) fn calls(&self, web: &Web, op: &str, payer: &str) -> usize {
        let payers = ["authorization", "permit2Authorization"]
            .map(|kind| format!("/request/paymentPayload/payload/{kind}/from"));
        let is_payer = |call: &Value| payers.iter().filter_map(|at| call.pointer(at)).any(|who| is_same(who, payer));
        let of = |call: &&Value| call["op"] == op && is_payer(call);
        self.log(web).iter().filter(of).count()
    }

    /// Spoils the next call of an operation: `500`, `garbage`, `reject`, `drop-after`.
    pub(crate) fn spoil_next(&self, web: &Web, op: &str, how: &str) {
        let queued = web.post(&format!("{}/_chaos", self.url), &json!([{"op": op, "do": how}]));
        assert_eq!(queued["queued"], 1);
    }

    fn listen(name: &'static str, probe: &str, web: &Web, command: &mut Command, logs: &Path) -> Self {
        let port = free_port();
        let url = format!("http://127.0.0.1:{port}");
        let mut process = Running::start(name, logs, command.env("PORT", port.to_string()));
        wait_for(name, Duration::from_secs(60), || {
            process.assert_alive();
            web.try_get(&format!("{url}{probe}"), &[]).filter(|answer| answer.status == 200)
        });
        Self { url, process }
    }
}

fn is_same(who: &Value, payer: &str) -> bool {
    who.as_str().is_some_and(|who| who.eq_ignore_ascii_case(payer))
}
