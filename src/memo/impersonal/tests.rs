use proptest::prelude::*;

use super::{KNOWN, feedback, find};
use crate::limits;
use crate::memo::{Draft, Section};

fn draft(summary: &str) -> Draft {
    let section = Section { heading: "Sales".into(), markdown: "Revenue: $1.2 billion [C1].".into() };
    Draft { title: "Calder".into(), summary: summary.into(), sections: vec![section] }
}

#[test]
fn advice_is_found_in_every_field_and_told() {
    for text in [
        "You should buy.",
        "We **recommend** the shares.",
        "Given the growth, you should probably now sell.",
        "INVESTORS SHOULD wait.",
        "A strong-buy case",
        "It suits your\nportfolio",
        "we re\u{200b}commend",
        "Set a price target of [C1].",
    ] {
        let found = find(&draft(text));
        assert_eq!(found.first().map(|advice| advice.field.as_str()), Some("summary"), "{text}");
        assert!(feedback(&found).starts_with("advice in summary: \""), "{text}");
    }
    let mut titled = draft("");
    titled.title = "Time to buy".into();
    titled.sections[0].heading = "Why it is a buy".into();
    titled.sections[0].markdown = "Holders should sell the stock.".into();
    let fields: Vec<_> = find(&titled).into_iter().map(|advice| advice.field).collect();
    let expected = ["title", "sections[0].heading", "sections[0].markdown", "sections[0].markdown"];
    assert_eq!(fields, expected);
}

#[test]
fn facts_are_not_advice() {
    for text in [
        "The company bought back shares for $1.2 billion [C1].",
        "Best Buy sells electronics; its board recommends a dividend.",
        "Management should the need arise may sell notes.",
        "Shares held for sale; investing activities used $3 million [C2].",
        "Holders of record: the youth segment grew. Sell-through rose.",
        "",
    ] {
        assert_eq!(find(&draft(text)), [], "{text}");
    }
}

#[test]
fn the_list_is_lower_case_words_that_are_all_found() {
    for phrase in KNOWN.values().flatten() {
        assert_eq!(phrase.text, phrase.text.to_lowercase(), "{}", phrase.text);
        assert!(phrase.words.len() > 1 && phrase.words[0] != "*", "{}", phrase.text);
        let text = phrase.text.replace('*', "indeed");
        assert!(find(&draft(&text)).iter().any(|advice| advice.phrase == phrase.text), "{}", phrase.text);
    }
}

proptest! {
    #[test]
    fn any_text_is_read_and_the_list_is_bounded(text in "(you should buy |\\PC){0,200}") {
        let found = find(&draft(&text));
        prop_assert!(found.len() <= limits::VIOLATIONS_LISTED_MAX);
        prop_assert_eq!(found.is_empty(), feedback(&found).is_empty());
    }

    #[test]
    fn advice_is_found_wherever_it_stands(before in "[a-z ,.]{0,40}", after in "[a-z ,.]{0,40}") {
        let text = format!("{before} we recommend {after}");
        prop_assert!(!find(&draft(&text)).is_empty());
    }
}
