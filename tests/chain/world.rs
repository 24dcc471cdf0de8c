//! Everything that one run of the suite shares.

use std::cell::OnceCell;
use std::panic::{AssertUnwindSafe, catch_unwind};

use alloy_primitives::{Address, U256};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;
use tempfile::TempDir;

use crate::devnet::{Devnet, Kit, Payer, Transfer};
use crate::facilitator::Facilitator;
use crate::service::Jim;
use crate::web::Web;

/// Who is paid: the kit's seller.
pub(crate) const PAY_TO: &str = "0x3C44CdDdB6a900fa2b585dd299e03d12FA4293BC";

/// Node, facilitator, and the sellers that tests ask for. Fields end in this order: jim before its facilitator.
pub(crate) struct World {
    // `None`: it was started and did not come up; the other tests need not wait for that again
    jim: OnceCell<Option<Jim>>,
    seller: OnceCell<Facilitator>,
    pub(crate) facilitator: Facilitator,
    pub(crate) devnet: Devnet,
    pub(crate) kit: Kit,
    pub(crate) web: Web,
    logs: TempDir,
}

impl World {
    /// Installs the kit where it is missing, then starts the node and the facilitator.
    pub(crate) fn start() -> Self {
        let (kit, web, logs) = (Kit::install(), Web::new(), TempDir::new().expect("a folder"));
        let devnet = Devnet::start(&kit, &web, logs.path());
        let facilitator = Facilitator::start(&kit, &web, &devnet, logs.path());
        Self { jim: OnceCell::new(), seller: OnceCell::new(), facilitator, devnet, kit, web, logs }
    }

    /// The URL of jim's paid route; the first call starts jim.
    pub(crate) fn memo_url(&self) -> String {
        let start = || Jim::start(&self.web, &self.facilitator, PAY_TO, self.logs.path());
        let jim = self.jim.get_or_init(|| catch_unwind(AssertUnwindSafe(start)).ok());
        jim.as_ref().expect("jim to have started").memo_url()
    }

    /// The URL of the reference seller's paid route; the first call starts it.
    pub(crate) fn reference_url(&self) -> String {
        let start = || self.facilitator.start_seller(&self.kit, &self.web, self.logs.path());
        format!("{}/memo", self.seller.get_or_init(start).url())
    }

    /// A payer of this test's own.
    pub(crate) fn payer(&self, name: &str) -> Payer {
        self.devnet.payer(&self.web, name)
    }

    /// What the URL costs, from the terms of version 2 in the header of the 402.
    pub(crate) fn price(&self, url: &str) -> U256 {
        let terms = self.web.get(url, &[]);
        assert_eq!(terms.status, 402);
        let header = terms.header("payment-required").expect("terms in the header");
        let offer: Value = serde_json::from_slice(&STANDARD.decode(header).expect("base64")).expect("JSON");
        offer["accepts"][0]["amount"].as_str().expect("an amount").parse().expect("digits")
    }

    /// What has moved from a payer to the seller so far.
    pub(crate) fn moved(&self, payer: &Payer) -> Vec<Transfer> {
        self.devnet.transfers_between(&self.web, payer.address, pay_to())
    }

    /// Asserts that exactly one transfer moved, of the price, from the payer to the seller.
    pub(crate) fn assert_charged_once(&self, url: &str, payer: &Payer) {
        let want = Transfer { from: payer.address, to: pay_to(), amount: self.price(url) };
        assert_eq!(self.moved(payer), [want]);
    }

    /// Prints the last lines of every process.
    pub(crate) fn print_logs(&self) {
        println!("{}\n{}", self.devnet.tail(), self.facilitator.tail());
        self.jim.get().into_iter().flatten().for_each(|jim| println!("{}", jim.tail()));
        self.seller.get().into_iter().for_each(|seller| println!("{}", seller.tail()));
    }
}

/// The seller's address.
pub(crate) fn pay_to() -> Address {
    PAY_TO.parse().expect("an address")
}
