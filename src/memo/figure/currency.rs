//! The currency that stands before a figure: a sign, a code, or a sign with the letters of its country.

use super::Mark;
use super::clean::code;
use super::lexicon::{self, class};
use super::token::{Gap, Kind};
use super::view::View;
use crate::memo::fact::Currency;

/// A currency sign, code or prefixed sign at `at`, and the position after it.
pub(super) fn before(view: &View<'_>, at: usize) -> (Option<Mark>, usize) {
    let Some(token) = view.get(at) else { return (None, at) };
    if let Kind::Sign(sign) = token.kind {
        return match mark_of_sign(sign) {
            Some(mark) => (Some(prefixed(view, at).unwrap_or(mark)), at + 1),
            None => (None, at),
        };
    }
    if token.kind != Kind::Word {
        return (None, at);
    }
    // the letters of C$ and of US$ are read with their sign
    if dollar_prefix(view, at) && amount_next(view, at + 2) {
        return (Some(dollar(view.text(at))), at + 2);
    }
    match lexicon::currency(token.word) {
        Some(currency)
            if view.get(at + 1).is_some_and(|t| t.kind == Kind::Number && t.gap <= Gap::Line)
                && names_currency(view, at) =>
        {
            (Some(Mark::Of(currency)), at + 1)
        }
        _ => (None, at),
    }
}

/// A code counts in capitals, a name in any letters.
pub(super) fn names_currency(view: &View<'_>, at: usize) -> bool {
    let text = view.text(at);
    let code = text.len() == 3
        && lexicon::currency(lexicon::word(text)).is_some_and(|c| text.eq_ignore_ascii_case(c.code().as_bytes()));
    !code || text.iter().all(u8::is_ascii_uppercase) || matches!(text, b"usd" | b"eur" | b"gbp")
}

fn amount_next(view: &View<'_>, at: usize) -> bool {
    view.get(at).is_some_and(|t| {
        t.kind == Kind::Number
            || t.is(class::UNIT | class::TENS)
            || matches!(t.kind, Kind::Sign(b'(' | b'-' | code::MINUS))
    })
}

fn prefixed(view: &View<'_>, at: usize) -> Option<Mark> {
    let before = at.checked_sub(1).filter(|&i| i >= view.segment.first)?;
    (view.tokens[at].sign(b'$') && view.tokens[at].glued() && dollar_prefix(view, before))
        .then(|| dollar(view.text(before)))
}

/// US$, C$, "hk $"; the article of "a $5 note" is none.
fn dollar_prefix(view: &View<'_>, at: usize) -> bool {
    let Some(sign) = view.get(at + 1).filter(|t| t.sign(b'$') && t.gap <= Gap::Space) else { return false };
    let text = view.text(at);
    let letter = text.len() == 1 && !text.eq_ignore_ascii_case(b"c");
    view.is(at, class::DOLLAR_PREFIX) && (!letter || sign.glued() && text[0].is_ascii_uppercase())
}

fn dollar(prefix: &[u8]) -> Mark {
    let code = match prefix.to_ascii_lowercase().as_slice() {
        b"us" | b"usd" => "USD",
        b"c" | b"ca" | b"cad" | b"can" => "CAD",
        b"a" | b"au" | b"aud" => "AUD",
        b"hk" | b"hkd" => "HKD",
        b"nz" | b"nzd" => "NZD",
        b"s" | b"sgd" => "SGD",
        b"nt" => "TWD",
        b"r" => "BRL",
        _ => return Mark::Unknown,
    };
    code.parse().map_or(Mark::Unknown, Mark::Of)
}

pub(crate) fn mark_of_sign(sign: u8) -> Option<Mark> {
    let code = match sign {
        b'$' => return Some(Mark::Of(Currency::USD)),
        code::EURO => "EUR",
        code::POUND => "GBP",
        code::YEN => return Some(Mark::YenOrYuan),
        code::RUPEE => "INR",
        code::WON => "KRW",
        code::RUBLE => "RUB",
        code::LIRA => "TRY",
        code::BITCOIN => "BTC",
        code::CENT => return Some(Mark::Cents),
        code::OTHER_CURRENCY => return Some(Mark::Unknown),
        _ => return None,
    };
    Some(code.parse().map_or(Mark::Unknown, Mark::Of))
}
