//! Truly signed payments, made before a cell: each by a payer of its own, since a second purchase of one payer for the
//! same request is held until the first is done.

use std::net::SocketAddr;
use std::thread;

use jim::canonical;
use jim::clock::{Clock, SystemClock};
use jim::evm::{B256, SecretKey};
use jim::x402::{self, PeerOffer, REQUIRED_HEADER};

use super::wire;

/// Makes requests for a paid route, each with a payment for the offer of its own 402.
pub(crate) fn sign(address: SocketAddr, target: &str, count: usize) -> Vec<Vec<u8>> {
    let offer = offer(address, target);
    let mut seed = [0; 32];
    getrandom::fill(&mut seed).expect("random bytes");
    let workers = thread::available_parallelism().map_or(1, usize::from);
    thread::scope(|scope| {
        let share = |worker| (worker..count).step_by(workers);
        let parts: Vec<_> = (0..workers)
            .map(|worker| {
                let offer = &offer;
                scope.spawn(move || share(worker).map(|number| request(offer, target, &seed, number)).collect())
            })
            .collect();
        parts.into_iter().flat_map(|part| -> Vec<Vec<u8>> { part.join().expect("signed payments") }).collect()
    })
}

fn request(offer: &PeerOffer, target: &str, seed: &[u8; 32], number: usize) -> Vec<u8> {
    let word = |kind: &str| -> B256 {
        let mut text = seed.to_vec();
        text.extend_from_slice(format!("{kind}{number}").as_bytes());
        canonical::sha256_hex(&text).parse().expect("32 bytes")
    };
    let key = SecretKey::from_bytes(word("key").0).expect("a number below the order of the curve");
    let payment = x402::pay(offer, &key, word("nonce"), SystemClock.unix_s());
    wire::get(target, &format!("{}: {}\r\n", payment.version.payment_header(), payment.header_value))
}

/// The first offer of a seller's 402.
fn offer(address: SocketAddr, target: &str) -> PeerOffer {
    let (status, head) = wire::ask(address, &wire::get(target, "")).expect("an answer");
    assert_eq!(status, 402, "{target} is not sold");
    let header = wire::header(&head, REQUIRED_HEADER).expect("terms of version 2");
    x402::read_required(header).expect("readable terms").offers.remove(0)
}
