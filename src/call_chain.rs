//! `X-Jim-Call-Chain`: who is paying on whose behalf, and the ruling that ends loops and runaway depth.
//!
//! Implements seed 000 section 5. The header is a comma list of payer identities, oldest first; several header lines are
//! one list. An identity is an address or its CAIP-10 form, and is compared by its 20 bytes. The ruling comes before any
//! payment is looked at.

use crate::evm::{Address, Network, lower, parse_address};
use crate::limits::CALL_CHAIN_BYTES_MAX;

/// The header, in lower case as HTTP libraries want it.
pub const HEADER: &str = "x-jim-call-chain";

/// A chain that was ruled fine: fewer hops than the ceiling, and we are none of them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CallChain {
    hops: Vec<Address>,
}

/// Why a chain is refused. The hops are those that a refusal may echo: the oldest ones, at most `max_depth`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Violation {
    /// An item is empty or no identity.
    #[error("an item of the call chain is not an address")]
    Invalid,
    /// We are in the chain already.
    #[error("the call chain already holds this seller")]
    Loop {
        /// Hops to echo.
        hops: Vec<Address>,
    },
    /// The chain is at the ceiling or above it.
    #[error("the call chain is at its ceiling")]
    TooDeep {
        /// Hops to echo.
        hops: Vec<Address>,
    },
}

impl Violation {
    /// The refusal code of the matrix.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Invalid => "call_chain_invalid",
            Self::Loop { .. } => "call_chain_loop",
            Self::TooDeep { .. } => "call_chain_depth",
        }
    }

    /// The hops that a refusal may echo.
    pub fn hops(&self) -> &[Address] {
        match self {
            Self::Invalid => &[],
            Self::Loop { hops } | Self::TooDeep { hops } => hops,
        }
    }
}

impl CallChain {
    /// The hops, oldest first.
    pub fn hops(&self) -> &[Address] {
        &self.hops
    }

    /// The chain to send when buying: the inbound hops and ours once. `None` when that is more than `max_depth`:
    /// then nothing may be bought.
    pub fn appended(&self, ours: Address, max_depth: usize) -> Option<Self> {
        let mut hops = self.hops.clone();
        if !hops.contains(&ours) {
            hops.push(ours);
        }
        (hops.len() <= max_depth).then_some(Self { hops })
    }

    /// The value of the header.
    pub fn header_value(&self) -> String {
        self.hops.iter().map(lower).collect::<Vec<_>>().join(",")
    }
}

/// Rules on the lines of the header, in their order. No line at all is the empty chain; an empty line is invalid.
///
/// The work is bounded by `CALL_CHAIN_BYTES_MAX`: what is longer is too deep, unless an invalid item or ours was read
/// before the bound.
pub fn rule<I, L>(lines: I, ours: Address, max_depth: usize) -> Result<CallChain, Violation>
where
    I: IntoIterator<Item = L>,
    L: AsRef<[u8]>,
{
    let mut hops = Vec::new();
    let mut bytes_left = CALL_CHAIN_BYTES_MAX;
    let mut cut = false;
    'lines: for line in lines {
        for item in line.as_ref().split(|b| *b == b',') {
            // the comma counts too, so that empty lines cannot be sent for free
            let Some(left) = bytes_left.checked_sub(item.len() + 1) else {
                cut = true;
                break 'lines;
            };
            bytes_left = left;
            hops.push(identity(item).ok_or(Violation::Invalid)?);
        }
    }
    let echo = || hops.iter().take(max_depth).copied().collect();
    if hops.contains(&ours) {
        return Err(Violation::Loop { hops: echo() });
    }
    if cut || hops.len() >= max_depth {
        return Err(Violation::TooDeep { hops: echo() });
    }
    Ok(CallChain { hops })
}

/// The 20 bytes behind `0x...` or `eip155:1:0x...`, in any case, with blanks around it.
fn identity(item: &[u8]) -> Option<Address> {
    let text = std::str::from_utf8(item).ok()?.trim_matches([' ', '\t']).to_ascii_lowercase();
    match text.rsplit_once(':') {
        None => parse_address(&text).ok(),
        Some((network, address)) => {
            network.parse::<Network>().ok()?;
            parse_address(address).ok()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const OURS: Address = Address::repeat_byte(0xaa);

    fn hop(n: u8) -> Address {
        Address::repeat_byte(n)
    }

    fn text(n: u8) -> String {
        lower(&hop(n))
    }

    #[test]
    fn lines_are_joined_in_order_and_forms_are_equal() {
        let lines = [format!("{}, \teip155:8453:{}", text(1), text(2)), format!("EIP155:1:0X{}", "B3".repeat(20))];
        let chain = rule(lines, OURS, 4).expect("a chain");
        assert_eq!(chain.hops(), [hop(1), hop(2), hop(0xb3)]);
        assert_eq!(rule(Vec::<&str>::new(), OURS, 4), Ok(CallChain::default()));
    }

    #[test]
    fn ours_in_any_form_is_a_loop() {
        for form in
            [text(0xaa), text(0xaa).to_uppercase(), format!("eip155:1:{}", text(0xaa)), format!(" {} ", text(0xaa))]
        {
            let refused = rule([format!("{},{form}", text(1))], OURS, 4).expect_err("a loop");
            assert_eq!(refused, Violation::Loop { hops: vec![hop(1), OURS] }, "{form}");
            assert_eq!(refused.code(), "call_chain_loop");
        }
    }

    #[test]
    fn the_ceiling_is_exact_and_the_echo_bounded() {
        let line = |n: u8| (1..=n).map(text).collect::<Vec<_>>().join(",");
        assert!(rule([line(3)], OURS, 4).is_ok());
        for n in [4, 5, 90] {
            let hops = (1..=4).map(hop).collect();
            assert_eq!(rule([line(n)], OURS, 4), Err(Violation::TooDeep { hops }));
        }
        assert_eq!(rule([line(0)], OURS, 4), Err(Violation::Invalid), "an empty line");
    }

    #[test]
    fn empty_and_other_items_are_invalid() {
        let one = text(1);
        let bad = [
            ",".to_owned(),
            format!("{one},"),
            format!(",{one}"),
            format!("{one},,{one}"),
            format!("{one} {one}"),
            "jim".to_owned(),
            one[2..].to_owned(),
            format!("{one}0"),
            format!("eip155:{one}"),
            format!("solana:1:{one}"),
            format!("eip155:01:{one}"),
            format!("\u{a0}{one}"),
        ];
        for line in bad {
            assert_eq!(rule([&line], OURS, 4), Err(Violation::Invalid), "{line:?}");
        }
        assert_eq!(rule([b"\xff".as_slice()], OURS, 4), Err(Violation::Invalid));
    }

    #[test]
    fn ten_thousand_items_are_read_only_up_to_the_bound() {
        let long = vec![text(1); 10_000];
        let hops = vec![hop(1); 4];
        assert_eq!(rule([long.join(",")], OURS, 4), Err(Violation::TooDeep { hops: hops.clone() }));
        assert_eq!(rule(&long, OURS, 4), Err(Violation::TooDeep { hops }), "as many lines");
        let endless = std::iter::repeat(text(1));
        assert!(
            matches!(rule(endless, OURS, 1_000_000), Err(Violation::TooDeep { .. })),
            "no line is read past the bound"
        );
    }

    #[test]
    fn buying_appends_ours_once_and_never_past_the_ceiling() {
        let chain = rule([text(1)], OURS, 2).expect("a chain");
        let sent = chain.appended(OURS, 2).expect("room for ours");
        assert_eq!(sent.header_value(), format!("{},{}", text(1), text(0xaa)));
        assert_eq!(sent.appended(OURS, 2), Some(sent.clone()));
        assert_eq!(chain.appended(OURS, 1), None);
        assert!(
            matches!(rule([sent.header_value()], OURS, 4), Err(Violation::Loop { .. })),
            "and it comes back as a loop"
        );
    }

    proptest! {
        #[test]
        fn arbitrary_lines_never_panic_and_the_ceiling_always_holds(
            lines in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..60), 0..4), depth in 0usize..6,
        ) {
            match rule(&lines, OURS, depth) {
                Ok(chain) => prop_assert!(chain.hops().len() < depth),
                Err(refused) => prop_assert!(refused.hops().len() <= depth),
            }
        }

        #[test]
        fn what_is_sent_is_read_back(hops in prop::collection::vec(any::<[u8; 20]>(), 1..20)) {
            let sent = CallChain { hops: hops.into_iter().map(Address::from).collect() };
            prop_assert_eq!(rule([sent.header_value()], OURS, 64), Ok(sent));
        }
    }
}
