//! The arithmetic of derived facts, done again (decision 10 of the gate's specification).
//!
//! A formula is over fact ids and plain numbers with `+ - * /`, brackets, `abs()` and a leading minus:
//! `(C2 - C1) / abs(C1) * 100`. Pure; it derives nothing new.

use rust_decimal::Decimal;

use super::fact::Fact;

/// Brackets within brackets that a formula may have. Real ones have two.
const DEPTH_MAX: usize = 16;

/// Decimals to which a derived value is held even when it is written with fewer: 12 may stand for 12.00, not for 12.9.
const DECIMALS_MIN: u32 = 2;

/// Whether a derived fact is what its formula gives, to one unit of its own last digit. `find` gives the value of an id.
///
/// A fact without a formula holds: there is nothing to do again.
pub fn holds<'a>(fact: &Fact, find: impl Fn(&str) -> Option<&'a Fact>) -> bool {
    let Some(formula) = fact.formula.as_deref() else { return true };
    let mut parser = Parser { rest: formula.as_bytes(), find: &|id| find(id).map(|fact| fact.value), depth: 0 };
    let Some(value) = parser.sum() else { return false };
    parser.blanks();
    let unit = Decimal::new(1, fact.value.scale().max(DECIMALS_MIN));
    parser.rest.is_empty() && value.checked_sub(fact.value).is_some_and(|difference| difference.abs() <= unit)
}

struct Parser<'a> {
    rest: &'a [u8],
    find: &'a dyn Fn(&str) -> Option<Decimal>,
    depth: usize,
}

impl<'a> Parser<'a> {
    fn blanks(&mut self) {
        self.rest = self.rest.trim_ascii_start();
    }

    fn take(&mut self, sign: u8) -> bool {
        self.blanks();
        match self.rest.split_first() {
            Some((first, rest)) if *first == sign => {
                self.rest = rest;
                true
            }
            _ => false,
        }
    }

    fn sum(&mut self) -> Option<Decimal> {
        let mut value = self.product()?;
        loop {
            if self.take(b'+') {
                value = value.checked_add(self.product()?)?;
            } else if self.take(b'-') {
                value = value.checked_sub(self.product()?)?;
            } else {
                return Some(value);
            }
        }
    }

    fn product(&mut self) -> Option<Decimal> {
        let mut value = self.term()?;
        loop {
            if self.take(b'*') {
                value = value.checked_mul(self.term()?)?;
            } else if self.take(b'/') {
                value = value.checked_div(self.term()?)?;
            } else {
                return Some(value);
            }
        }
    }

    fn term(&mut self) -> Option<Decimal> {
        self.depth += 1;
        if self.depth > DEPTH_MAX {
            return None;
        }
        let value = if self.take(b'-') {
            self.term().map(|value| -value)
        } else if let Some(rest) = self.rest.strip_prefix(b"abs(") {
            self.rest = rest;
            self.sum().filter(|_| self.take(b')')).map(|value| value.abs())
        } else if self.take(b'(') {
            self.sum().filter(|_| self.take(b')'))
        } else {
            self.name()
        };
        self.depth -= 1;
        value
    }

    fn name(&mut self) -> Option<Decimal> {
        self.blanks();
        let length = self.rest.iter().take_while(|b| b.is_ascii_alphanumeric() || **b == b'.').count();
        let (name, rest) = self.rest.split_at_checked(length)?;
        self.rest = rest;
        let name = std::str::from_utf8(name).ok()?;
        if name.starts_with('C') { (self.find)(name) } else { name.parse().ok() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memo::case;

    fn derived(formula: &str, value: &str) -> bool {
        let text = format!(
            r#"[{{"id":"C1","label":"a","value":43055,"unit":"USD"}},{{"id":"C2","label":"b","value":48217,"unit":"USD"}},
               {{"id":"C3","label":"c","value":{value},"unit":"%","formula":"{formula}"}}]"#
        );
        let facts = case::facts(&text).expect("facts");
        holds(&facts[2], |id| facts.iter().find(|fact| fact.id == id))
    }

    #[test]
    fn a_formula_is_done_again() {
        assert!(derived("(C2 - C1) / C1 * 100", "11.99"));
        assert!(derived("-(C1 - C2) / C1 * 100", "11.989"));
        assert!(derived("(C1 - C2) / abs(C1) * 100", "-11.99"));
        assert!(derived("C2 / C2", "1"));
        assert!(!derived("C2 / C1", "1"));
        assert!(!derived("(C2 - C1) / C1 * 100", "12.99"));
        assert!(!derived("C1 / C2 * 100", "11.99"));
        assert!(!derived("(C2 - C9) / C1", "11.99"));
        assert!(!derived("C2 / (C1 - C1)", "0"));
        assert!(!derived("C2 C1", "48217"));
        assert!(!derived(&"(".repeat(1000), "1"));
    }
}
