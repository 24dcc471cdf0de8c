//! The body of a delivered answer, in the forms that a buyer may ask for. Everything in it comes from the accepted memo.

use serde::Serialize;
use serde_json::value::RawValue;
use time::format_description::well_known::Rfc3339;

use crate::catalog::input::{Format, Fundamentals};
use crate::memo::{Coverage, Fact, Mode, Section, Subject};
use crate::paywall::verified::Answer;
use crate::pipeline::Memo as Written;

/// Said under every memo.
const DISCLAIMER: &str = "Research for information only: impersonal, no offer and no advice. Every figure is a fact of the cited \
     source; check the source before you act on it.";

/// What an answer says about the sale beside the memo.
#[derive(Clone, Debug)]
pub struct Sale<'a> {
    /// Product id.
    pub product: &'a str,
    /// The order.
    pub order_id: &'a str,
    /// The refusal contract in force.
    pub contract_id: &'a str,
    /// Drafts that were judged.
    pub attempts: u32,
    /// What was asked.
    pub asked: &'a Fundamentals,
}

/// Renders the body in the form that was asked for.
pub fn render(memo: &Written, sale: &Sale<'_>) -> Answer {
    match sale.asked.format {
        Format::Json => Answer { content_type: "application/json".into(), body: as_json(memo, sale) },
        Format::Md => {
            Answer { content_type: "text/markdown; charset=utf-8".into(), body: as_markdown(memo, sale).into_bytes() }
        }
        Format::Html => {
            Answer { content_type: "text/html; charset=utf-8".into(), body: as_html(memo, sale).into_bytes() }
        }
    }
}

/// The JSON form, member by member as it is published. Written straight from the memo: no tree is built in between.
#[derive(Serialize)]
struct Body<'a> {
    order_id: &'a str,
    product: &'a str,
    subject: &'a Subject,
    as_of: String,
    mode: Mode,
    status: &'static str,
    memo: Memo<'a>,
    facts: &'a RawValue,
    citations: &'a [String],
    sourcing: Sourcing,
    coverage_status: Coverage,
    limits: Vec<&'a str>,
    proof: Proof<'a>,
    disclaimer: &'static str,
}

#[derive(Serialize)]
struct Memo<'a> {
    title: &'a str,
    summary: &'a str,
    sections: &'a [Section],
    markdown: String,
}

#[derive(Serialize)]
struct Sourcing {
    passed: bool,
    figures_checked: usize,
    figures_covered: usize,
    attempts: u32,
    judge: &'static str,
}

#[derive(Serialize)]
struct Proof<'a> {
    order_id: &'a str,
    contract_id: &'a str,
}

fn as_json(memo: &Written, sale: &Sale<'_>) -> Vec<u8> {
    let accepted = &memo.accepted;
    let (snapshot, draft, report) = (accepted.snapshot(), accepted.draft(), accepted.report());
    let body = Body {
        order_id: sale.order_id,
        product: sale.product,
        subject: snapshot.subject(),
        as_of: snapshot.as_of().format(&Rfc3339).unwrap_or_default(),
        mode: sale.asked.mode,
        status: "ok",
        memo: Memo {
            title: &draft.title,
            summary: &draft.summary,
            sections: &draft.sections,
            markdown: draft.markdown(),
        },
        facts: snapshot.facts_json(),
        citations: &report.citations,
        sourcing: Sourcing {
            passed: report.passed,
            figures_checked: report.figures_checked,
            figures_covered: report.figures_covered,
            attempts: sale.attempts,
            judge: if memo.is_reviewed { "passed" } else { "skipped" },
        },
        coverage_status: snapshot.coverage(),
        limits: limits(memo).collect(),
        proof: Proof { order_id: sale.order_id, contract_id: sale.contract_id },
        disclaimer: DISCLAIMER,
    };
    serde_json::to_vec(&body).expect("text, numbers and lists of them serialize")
}

/// The memo with its sources: what each citation stands for, and where it can be opened.
fn as_markdown(memo: &Written, sale: &Sale<'_>) -> String {
    let accepted = &memo.accepted;
    let mut out = accepted.draft().markdown();
    out.push_str("\n## Sources\n\n");
    let used = &accepted.report().citations;
    for fact in accepted.snapshot().facts().iter().filter(|fact| used.contains(&fact.id)) {
        out.push_str(&format!("- [{}] {}: {}\n", fact.id, fact.label, source_of(fact)));
    }
    if limits(memo).next().is_some() {
        out.push_str("\n## Limits\n\n");
        for limit in limits(memo) {
            out.push_str(&format!("- {limit}\n"));
        }
    }
    out.push_str(&format!("\n{DISCLAIMER}\n\nOrder `{}`, contract `{}`.\n", sale.order_id, sale.contract_id));
    out
}

/// What is missing, recorded, stale or unusual.
fn limits(memo: &Written) -> impl Iterator<Item = &str> {
    memo.accepted.snapshot().limits().iter().map(String::as_str).chain(memo.note)
}

fn source_of(fact: &Fact) -> String {
    let place = &fact.provenance;
    match (&fact.formula, &place.accession, &place.filing_url) {
        (Some(formula), _, _) => format!("computed as `{formula}`"),
        (None, Some(accession), Some(url)) => {
            format!("{} {accession}, <{url}>", place.form.as_deref().unwrap_or("filing"))
        }
        (None, _, _) => place.source.clone(),
    }
}

/// The Markdown form as a page. Raw HTML in a memo is shown as text, and only https links stay links.
fn as_html(memo: &Written, sale: &Sale<'_>) -> String {
    use pulldown_cmark::{CowStr, Event, Options, Parser, Tag, html};
    let markdown = as_markdown(memo, sale);
    let safe = |url: CowStr<'static>| if url.starts_with("https://") { url } else { CowStr::Borrowed("") };
    let events = Parser::new_ext(&markdown, Options::ENABLE_TABLES).map(|event| match event {
        Event::Html(text) | Event::InlineHtml(text) => Event::Text(text),
        Event::Start(Tag::Link { link_type, dest_url, title, id }) => {
            Event::Start(Tag::Link { link_type, dest_url: safe(dest_url.into_string().into()), title, id })
        }
        Event::Start(Tag::Image { link_type, title, id, .. }) => {
            Event::Start(Tag::Link { link_type, dest_url: CowStr::Borrowed(""), title, id })
        }
        other => other,
    });
    let mut body = String::new();
    html::push_html(&mut body, events);
    let mut title = String::new();
    html::push_html(&mut title, std::iter::once(Event::Text(CowStr::Borrowed(&memo.accepted.draft().title))));
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<head><meta charset=\"utf-8\"><title>{title}</title>\n\
         <style>body{{font:16px/1.5 serif;max-width:46em;margin:2em auto;padding:0 1em}}table{{border-collapse:collapse}}\
         td,th{{border-bottom:1px solid #ccc;padding:.2em .8em;text-align:left}}</style></head>\n<body>\n{body}</body>\n</html>\n"
    )
}
