//! A memo as proposed: not yet believed.

use serde::{Deserialize, Serialize};

/// Who the memo is for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// Terse, facts first.
    #[default]
    Agent,
    /// Sentences in paragraphs.
    Human,
}

/// One part of a memo.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Section {
    /// Heading, plain text on one line.
    pub heading: String,
    /// Body in Markdown.
    pub markdown: String,
}

/// A memo that a synthesizer proposes. Figures are followed by their citation: `$48.2 billion [C1]`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Draft {
    /// Title, plain text on one line.
    pub title: String,
    /// Two or three sentences.
    pub summary: String,
    /// The parts, in order.
    pub sections: Vec<Section>,
}

impl Draft {
    /// Every text that a buyer would see, with its name. The gate reads exactly these.
    pub fn fields(&self) -> impl Iterator<Item = (String, &str)> {
        [("title".to_owned(), self.title.as_str()), ("summary".to_owned(), self.summary.as_str())].into_iter().chain(
            self.sections.iter().enumerate().flat_map(|(i, section)| {
                [
                    (format!("sections[{i}].heading"), section.heading.as_str()),
                    (format!("sections[{i}].markdown"), section.markdown.as_str()),
                ]
            }),
        )
    }

    /// The whole memo as one Markdown document, made of the fields and nothing else.
    pub fn markdown(&self) -> String {
        let mut out = format!("# {}\n\n{}\n", self.title, self.summary);
        for section in &self.sections {
            out.push_str(&format!("\n## {}\n\n{}\n", section.heading, section.markdown));
        }
        out
    }

    /// Bytes of all fields.
    pub fn len_bytes(&self) -> usize {
        self.fields().map(|(_, text)| text.len()).sum()
    }
}
