//! Ranges: the unit and scale that only one end shows belong to both.

use super::clean::code;
use super::token::{Kind, Token};
use super::view::View;
use super::{Counted, Figure, Measure};

/// Gives both ends of a range the unit and scale that only the second one shows.
pub(super) fn share_units(view: &View<'_>, figures: &mut [Figure]) {
    for i in 1..figures.len() {
        let (left, right) = figures.split_at_mut(i);
        let (Some(a), Some(b)) = (left.last_mut(), right.first_mut()) else { continue };
        let between = &view.tokens[a.tokens.1.min(b.tokens.0)..b.tokens.0];
        let Some(kind) = connector(view, between, a.tokens.0) else { continue };
        let listed = kind == Connector::And;
        if a.measure == Measure::Bare
            && a.counted == Counted::Unsaid
            && (b.measure != Measure::Multiple || !listed)
            && !(listed && matches!(b.measure, Measure::Money(_)))
        {
            a.measure = b.measure;
        } else if b.measure == Measure::Bare && matches!(a.measure, Measure::Money(_)) && !listed {
            b.measure = a.measure;
        }
        if b.scaled && !a.scaled && !listed && a.significant <= 6 {
            rescale(a, b);
        }
    }
}

/// Multiplies `a` by the scale word of `b`.
fn rescale(a: &mut Figure, b: &Figure) {
    let scale = super::power(b.scale);
    let bigger = |d: rust_decimal::Decimal| d.checked_mul(scale);
    if let (Some(magnitude), Some(quantum), Some(coarse)) =
        (a.magnitude.and_then(bigger), bigger(a.quantum), bigger(a.coarse_quantum))
    {
        a.magnitude = Some(magnitude);
        a.quantum = quantum;
        a.coarse_quantum = coarse;
        a.scaled = true;
        a.header_exponent = 0;
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Connector {
    Dash,
    To,
    And,
}

fn connector(view: &View<'_>, between: &[Token], first: usize) -> Option<Connector> {
    match between {
        [t] if matches!(t.kind, Kind::Sign(b'-' | b'~' | code::EN_DASH | code::EM_DASH | code::MINUS)) => {
            Some(Connector::Dash)
        }
        [] => Some(Connector::Dash),
        [t] if t.text(view.bytes) == b"to" => Some(Connector::To),
        [t] if t.text(view.bytes) == b"and" => {
            let from = first.saturating_sub(3).max(view.segment.first);
            let ranged = view.tokens[from..first].iter().any(|t| t.text(view.bytes).eq_ignore_ascii_case(b"between"));
            Some(if ranged { Connector::To } else { Connector::And })
        }
        [t] if t.text(view.bytes) == b"or" => Some(Connector::And),
        _ => None,
    }
}
