//! Makes text of a filer harmless: names and forms reach memos, pages and language models.
//!
//! A name is what a stranger typed into a form. It may hold markup, direction marks or line breaks; a company name needs
//! none of them. Nothing here decides what a name means.

use crate::limits;

/// Marks that company names use. Everything else that is no letter, digit or space is dropped.
const NAME_MARKS: &str = ".,&'-/()+!:%$@";

/// Marks inside form names, as in `10-K/A` and `DEF 14A`.
const FORM_MARKS: &str = "-/ ";

/// Longest form name. The longest seen is `10-KT/A` among the annual ones and `S-1MEF` among the others.
const FORM_CHARS_MAX: usize = 16;

/// One line of letters, digits and a few marks, at most [`limits::NAME_CHARS_MAX`] characters.
pub(crate) fn plain_name(text: &str) -> String {
    let mut out = String::new();
    for word in text.split(|c: char| c.is_whitespace() || c.is_control()) {
        let word: String = word.chars().filter(|c| c.is_alphanumeric() || NAME_MARKS.contains(*c)).collect();
        if word.is_empty() {
            continue;
        }
        if !out.is_empty() {
            out.push(' ');
        }
        out.push_str(&word);
    }
    out.chars().take(limits::NAME_CHARS_MAX).collect::<String>().trim_end().to_owned()
}

/// A form name; none when it is not written like one.
pub(crate) fn form(text: &str) -> Option<String> {
    let well_formed = (1..=FORM_CHARS_MAX).contains(&text.len())
        && text.chars().all(|c| c.is_ascii_alphanumeric() || FORM_MARKS.contains(c));
    well_formed.then(|| text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn real_names_stay_as_they_are() {
        for name in ["Apple Inc.", "JPMORGAN CHASE & CO", "BANK OF AMERICA CORP /DE/", "Nestlé S.A.", "L'Oréal (ADR)"]
        {
            assert_eq!(plain_name(name), name);
        }
    }

    #[test]
    fn markup_and_tricks_are_dropped() {
        assert_eq!(plain_name("<script>x</script>\n# [a](b)  *y*"), "scriptx/script a(b) y");
        assert_eq!(plain_name("A\u{202e}B\u{200b}C\u{0}D"), "ABC D");
        assert_eq!(plain_name("| `cmd` {{x}}"), "cmd x");
    }

    #[test]
    fn forms() {
        for good in ["10-K", "10-K/A", "20-F", "DEF 14A", "424B5"] {
            assert_eq!(form(good).as_deref(), Some(good));
        }
        for bad in ["", "10-K\n", "<b>", "a form of more than sixteen"] {
            assert_eq!(form(bad), None, "{bad}");
        }
    }

    proptest! {
        #[test]
        fn a_name_is_one_short_plain_line(text in "\\PC{0,300}|[\\x00-\\x7f]{0,300}") {
            let name = plain_name(&text);
            prop_assert!(name.chars().count() <= limits::NAME_CHARS_MAX);
            prop_assert!(name.chars().all(|c| c.is_alphanumeric() || c == ' ' || NAME_MARKS.contains(c)));
            prop_assert_eq!(plain_name(&name), name.clone());
        }
    }
}
