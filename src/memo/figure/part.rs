//! Parts in words: a third, half of, half a billion, one and a half percent.

use super::lexicon::class;
use super::numeral::Numeral;
use super::view::View;

/// "half a billion", "a quarter of a percent", "quarter-point": a part of what the next word scales or counts. Thirds cannot be
/// written exactly and are left unread. Answers with the token of that next word.
pub(super) fn of_unit(view: &View<'_>, at: usize) -> Option<(Option<Numeral>, usize)> {
    let hyphen = |i: usize| i + usize::from(view.sign(i, b'-'));
    let counted = view.is(at, class::A) || view.text(at).eq_ignore_ascii_case(b"one");
    let part = if counted { hyphen(at + 1) } else { at };
    let word = view.get(part).filter(|t| t.is(class::FRACTION))?;
    let ranked = view.before_is(at, class::ORDINAL) || view.before(at).is_some_and(|t| t.sign(b'-'));
    if word.is(class::ORDINAL) && !counted || ranked {
        return None;
    }
    let mut unit = hyphen(part + 1);
    unit += usize::from(view.text(unit) == b"of");
    unit += usize::from(view.is(unit, class::A));
    let scale = view.is(unit, class::DOZEN)
        || view.is(unit, class::SCALE) && view.text(unit).len() > 4 && view.text(unit).last() != Some(&b's');
    let percent = view.is(unit, class::PERCENT | class::BASIS) || view.sign(unit, b'%');
    let point = view.is(unit, class::POINT);
    let numeral = match word.word.value {
        2 => Some(Numeral { mantissa: 5, exponent: -1 }),
        4 => Some(Numeral { mantissa: 25, exponent: -2 }),
        _ => None,
    };
    // a bare point is left for the unit to read; "half point" without one would be a score
    (scale || percent || point).then_some((numeral, unit))
}

/// "one and a half billion", "three and a quarter percent": the number with its part, and the token after it.
pub(super) fn and_a_half(view: &View<'_>, at: usize, whole: Numeral) -> Option<(Option<Numeral>, usize)> {
    let a = at + 1;
    if view.text(at) != b"and" || !view.is(a, class::A) && view.text(a) != b"one" {
        return None;
    }
    let part = a + 1 + usize::from(view.sign(a + 1, b'-'));
    let word = view.get(part).filter(|t| t.is(class::FRACTION))?;
    let hundredths = match word.word.value {
        2 => Some(50),
        4 => Some(25),
        _ => None,
    };
    let numeral = hundredths
        .filter(|_| whole.exponent == 0)
        .map(|n| Numeral { mantissa: whole.mantissa.saturating_mul(100).saturating_add(n), exponent: -2 });
    Some((numeral, part + 1))
}

/// "a third", "two-thirds", "half of", "a quarter of": hundredths of the whole, and the token after it.
pub(super) fn fraction(view: &View<'_>, at: usize) -> Option<(Numeral, usize)> {
    let token = view.get(at)?;
    let percent = |n: u128, d: u8| Numeral { mantissa: (n * 100 + u128::from(d) / 2) / u128::from(d), exponent: 0 };
    if token.is(class::FRACTION) && token.word.value == 2 {
        let part = view.text(at + 1) == b"of" && !period_after(view, at + 2) && !view.before_is(at, class::ORDINAL);
        return part.then(|| (percent(1, 2), at + 1));
    }
    let count = if token.is(class::UNIT) {
        u128::from(token.word.value)
    } else {
        u128::from(token.is(class::A) && view.text(at).eq_ignore_ascii_case(b"a"))
    };
    if count == 0 || count > 19 {
        return None;
    }
    let hyphen = usize::from(view.sign(at + 1, b'-'));
    let noun = at + 1 + hyphen;
    let part = view.get(noun).filter(|t| t.is(class::FRACTION) && t.word.value > 2)?;
    let plural = view.text(noun).last() == Some(&b's');
    let quarter = part.word.value == 4 && !view.text(noun).starts_with(b"f");
    let of = view.text(noun + 1) == b"of";
    let rank =
        view.is(noun + 1, class::TIME | class::NOUN) || view.sign(noun + 1, b'-') || view.text(noun + 1) == b"party";
    let stated = if quarter { of && !period_after(view, noun + 2) } else { (plural == (count > 1)) && (of || !rank) };
    stated.then(|| (percent(count, part.word.value), noun + 1))
}

fn period_after(view: &View<'_>, at: usize) -> bool {
    view.is(at, class::TIME | class::MONTH)
        || view.year(at).is_some()
        || matches!(view.text(at), b"fiscal" | b"calendar")
        || view.is(at + 1, class::TIME)
}
