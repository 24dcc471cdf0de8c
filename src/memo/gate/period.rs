//! The times that a text names, and which of its figures each one dates (decision 9: period).
//!
//! A time dates a figure for sure when it stands right behind it or over its column; a time elsewhere in the sentence dates it only
//! when nothing else in the sentence fits the fact. [`super::span`] tells whether a time and a fact's period can be one.

mod words;

use std::ops::Range;

use self::words::WORDS;
use super::span;
use crate::limits;
use crate::memo::fact::Fact;
use crate::memo::figure::lexicon::class;
use crate::memo::figure::token::{Gap, Kind};
use crate::memo::figure::{Figure, Found, Scan};

/// Tokens between a figure and the time that dates it for sure: its citation, a preposition, an article.
const BEHIND_MAX: usize = 6;

/// Words that may stand between a time and the preposition that tells its role.
const BACK_MAX: usize = 7;

/// A part of a year.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    /// One to four.
    Quarter(u8),
    /// One or two.
    Half(u8),
    /// So many months that end at a date.
    Months(u8),
    /// A year as a whole.
    Year,
    /// A quarter, whichever: "quarterly revenue".
    SomeQuarter,
    /// A half, whichever.
    SomeHalf,
    /// A month or less: "monthly sales".
    Shorter,
}

/// A time that the text names.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Mention {
    /// First token.
    pub(super) first: usize,
    /// The token after the last.
    pub(super) last: usize,
    pub(super) year: Option<i32>,
    pub(super) month: Option<u8>,
    pub(super) day: Option<u8>,
    /// Whether it is called a fiscal year.
    pub(super) fiscal: bool,
    pub(super) part: Option<Part>,
    /// Whether it tells when, rather than until when, since when or against when.
    pub(super) stated: bool,
}

/// Every time of a segment, in order.
pub(super) fn read(scan: &Scan<'_>, found: &Found) -> Vec<Mention> {
    let mut out: Vec<Mention> = Vec::new();
    let reader = Reader { scan, found };
    // a sentence with too many figures is refused whatever it dates
    let full = found.figures.len() >= limits::SEGMENT_FIGURES_MAX;
    let mut at = if full { found.segment.last } else { found.segment.first };
    let mut next = 0;
    while at < found.segment.last && out.len() < limits::SEGMENT_TIMES_MAX {
        // the digits of a figure are no time
        if let Some(figure) = found.figures.get(next).filter(|f| f.tokens.0 <= at) {
            at = at.max(figure.tokens.1);
            next += 1;
            continue;
        }
        match reader.mention(at) {
            Some(mut mention) => {
                mention.stated = reader.stated(&mention, out.last());
                at = mention.last;
                out.push(mention);
            }
            None => at += 1,
        }
    }
    out
}

struct Reader<'a> {
    scan: &'a Scan<'a>,
    found: &'a Found,
}

impl Reader<'_> {
    fn text(&self, at: usize) -> &[u8] {
        if at < self.found.segment.last && at >= self.found.segment.first {
            self.scan.tokens[at].text(&self.scan.clean.bytes)
        } else {
            &[]
        }
    }

    fn is(&self, at: usize, classes: u64) -> bool {
        at < self.found.segment.last && self.scan.tokens[at].is(classes)
    }

    fn glued(&self, at: usize) -> bool {
        at < self.found.segment.last && self.scan.tokens[at].glued()
    }

    /// The time that begins at a token.
    fn mention(&self, first: usize) -> Option<Mention> {
        if !self.may_begin(first) {
            return None;
        }
        let mut out = Mention { first, ..Mention::default() };
        let mut at = first;
        loop {
            let item = self.item(at, &mut out);
            let Some(end) = item else { break };
            out.last = end;
            at = end;
            while at < end + 3 && self.joins(at) {
                at += 1;
            }
        }
        (out.last > first && (out.year.is_some() || out.part.is_some())).then_some(out)
    }

    fn may_begin(&self, at: usize) -> bool {
        let token = &self.scan.tokens[at];
        match token.kind {
            Kind::Number => true,
            Kind::Word => token.is(class::TIME_WORD),
            Kind::Citation | Kind::Sign(_) => false,
        }
    }

    /// Marks and words inside one time: "the third quarter of fiscal 2024", "June 30, 2024".
    fn joins(&self, at: usize) -> bool {
        matches!(self.text(at), b"," | b"of" | b"the" | b"'" | b"-" | b"/" | b"ended" | b"ending")
    }

    /// One piece of a time: a part of a year, a month with its day, a year.
    fn item(&self, at: usize, out: &mut Mention) -> Option<usize> {
        if out.part.is_none()
            && let Some((part, end)) = self.part(at)
        {
            out.part = Some(part);
            return Some(end);
        }
        if out.year.is_some() {
            return None;
        }
        let text = self.text(at);
        if text.eq_ignore_ascii_case(b"fiscal") || text.eq_ignore_ascii_case(b"fy") {
            let number = at + 1 + usize::from(matches!(self.text(at + 1), b"year" | b"years" | b"Year" | b"'"));
            let year = self.year(number).or_else(|| self.short_year(number))?;
            (out.fiscal, out.year) = (true, Some(year));
            return Some(number + 1);
        }
        if text.eq_ignore_ascii_case(b"calendar") {
            return self.year(at + 1).map(|_| at + 1);
        }
        if self.is(at, class::MONTH) && text.first().is_some_and(u8::is_ascii_uppercase) {
            return self.month_first(at, out);
        }
        if out.month.is_none()
            && let Some(day) = self.small(at, 31)
            && self.is(at + 1, class::MONTH)
        {
            (out.month, out.day) = (month(self.text(at + 1)), Some(day));
            return Some(at + 2);
        }
        let year =
            self.year(at).or_else(|| (out.part.is_some() && self.glued(at)).then(|| self.short_year(at)).flatten())?;
        out.year = Some(year);
        // 2024-06-30, 2024Q3
        if self.text(at + 1) == b"-"
            && self.text(at + 3) == b"-"
            && let (Some(month), Some(day)) = (self.small(at + 2, 12), self.small(at + 4, 31))
        {
            (out.month, out.day) = (Some(month), Some(day));
            return Some(at + 5);
        }
        Some(at + 1)
    }

    fn month_first(&self, at: usize, out: &mut Mention) -> Option<usize> {
        if out.month.is_some() {
            return None;
        }
        let first = at + 1 + usize::from(self.text(at + 1) == b"." && self.glued(at + 1));
        let day = self.small(first, 31);
        let end = first + usize::from(day.is_some());
        // a month without a year behind it is no time that can be compared
        let comma = usize::from(self.text(end) == b",");
        let year = self.year(end + comma)?;
        (out.month, out.day, out.year) = (month(self.text(at)), day, Some(year));
        Some(end + comma + 1)
    }

    /// Third quarter, Q3, 3Q, first half, H1, six months ended, full year.
    fn part(&self, at: usize) -> Option<(Part, usize)> {
        let text = self.text(at);
        let rank = [&b"first"[..], b"second", b"third", b"fourth"].iter().position(|r| text.eq_ignore_ascii_case(r));
        if let Some(rank) = rank.and_then(|rank| u8::try_from(rank + 1).ok()) {
            let noun = at + 1 + usize::from(self.text(at + 1) == b"-");
            let fiscal = usize::from(self.text(noun) == b"fiscal");
            return match self.text(noun + fiscal) {
                b"quarter" | b"Quarter" => Some((Part::Quarter(rank), noun + fiscal + 1)),
                b"half" | b"Half" if rank <= 2 => Some((Part::Half(rank), noun + fiscal + 1)),
                _ => None,
            };
        }
        if matches!(text, b"Q" | b"q" | b"H" | b"h") && self.glued(at + 1) {
            return self.lettered(text, self.small(at + 1, 4)?).map(|part| (part, at + 2));
        }
        if text.len() == 1 && matches!(self.text(at + 1), b"Q" | b"H") && self.glued(at + 1) {
            return self.lettered(self.text(at + 1), self.small(at, 4)?).map(|part| (part, at + 2));
        }
        let months = match text {
            b"three" | b"Three" => Some(3),
            b"six" | b"Six" => Some(6),
            b"nine" | b"Nine" => Some(9),
            b"twelve" | b"Twelve" => Some(12),
            _ => self.small(at, 12),
        };
        if let Some(months) = months.filter(|n| n % 3 == 0) {
            let ended = self.text(at + 1) == b"months" && matches!(self.text(at + 2), b"ended" | b"ending");
            return ended.then_some((Part::Months(months), at + 3));
        }
        let hyphen = usize::from(self.text(at + 1) == b"-");
        if text.eq_ignore_ascii_case(b"half") && hyphen == 1 && matches!(self.text(at + 2), b"year" | b"yearly") {
            return Some((Part::SomeHalf, at + 3));
        }
        let some = [
            (&b"quarterly"[..], Part::SomeQuarter),
            (b"semiannual", Part::SomeHalf),
            (b"monthly", Part::Shorter),
            (b"weekly", Part::Shorter),
            (b"daily", Part::Shorter),
        ];
        // "quarterly revenue"; "vesting quarterly" and "the daily rate" date nothing
        let some = some.into_iter().find(|(word, _)| text.eq_ignore_ascii_case(word));
        if let Some((_, part)) = some.filter(|_| self.is(at + 1, class::POS | class::NEG)) {
            return Some((part, at + 1));
        }
        let placed = at > self.found.segment.first + 1
            && self.text(at - 1) == b"the"
            && matches!(self.text(at - 2), b"for" | b"in" | b"during" | b"For" | b"In" | b"During");
        if text == b"quarter" && placed {
            return Some((Part::SomeQuarter, at + 1));
        }
        if text.eq_ignore_ascii_case(b"full") && self.text(at + 1 + hyphen) == b"year" {
            return Some((Part::Year, at + 2 + hyphen));
        }
        let ended = text.eq_ignore_ascii_case(b"year") && matches!(self.text(at + 1), b"ended" | b"ending");
        if ended || text.eq_ignore_ascii_case(b"annual") && self.is(at + 1, class::POS) {
            return Some((Part::Year, at + 1 + usize::from(ended)));
        }
        None
    }

    fn lettered(&self, letter: &[u8], n: u8) -> Option<Part> {
        match letter {
            b"Q" | b"q" if n > 0 => Some(Part::Quarter(n)),
            b"H" | b"h" if (1..=2).contains(&n) => Some(Part::Half(n)),
            _ => None,
        }
    }

    fn year(&self, at: usize) -> Option<i32> {
        let text = self.text(at);
        if text.len() != 4 || !text.iter().all(u8::is_ascii_digit) || self.in_figure(at) {
            return None;
        }
        let year = text.iter().fold(0, |n, b| n * 10 + i32::from(b - b'0'));
        (1900..2100).contains(&year).then_some(year)
    }

    /// The two digits of FY24.
    fn short_year(&self, at: usize) -> Option<i32> {
        let n = self.small(at, 99).filter(|_| self.text(at).len() == 2)?;
        Some(if n < 70 { 2000 } else { 1900 } + i32::from(n))
    }

    fn small(&self, at: usize, most: u8) -> Option<u8> {
        let text = self.text(at);
        if text.is_empty() || text.len() > 2 || !text.iter().all(u8::is_ascii_digit) {
            return None;
        }
        let n = text.iter().fold(0u8, |n, b| n * 10 + (b - b'0'));
        (n <= most && !self.in_figure(at)).then_some(n)
    }

    /// Whether a token belongs to a figure of the segment.
    fn in_figure(&self, at: usize) -> bool {
        let after = self.found.figures.partition_point(|f| f.tokens.1 <= at);
        self.found.figures.get(after).is_some_and(|f| f.tokens.0 <= at)
    }

    /// Whether a time tells when.
    fn stated(&self, mention: &Mention, previous: Option<&Mention>) -> bool {
        let words = &*WORDS;
        let first = self.found.segment.first;
        let mut at = mention.first;
        // "2024 and 2023", "2024, 2023": as the one before
        let joined = at > first && matches!(self.text(at - 1), b"and" | b"or" | b"," | b"&");
        if let Some(previous) = previous.filter(|p| joined && p.last + 2 >= at) {
            return previous.stated;
        }
        if self.names(mention) {
            return false;
        }
        while at > first && mention.first - at < BACK_MAX && words.inside.has(self.text(at - 1)) {
            at -= 1;
        }
        let before = if at > first { self.text(at - 1) } else { b"" };
        if words.aside.has(before) {
            return false;
        }
        if words.place.has(before) {
            let outer = if at > first + 1 { self.text(at - 2) } else { b"" };
            // "than in 2023", "due in 2029"; "increased to $5 in 2024" has its figure between
            return !words.aside.has(outer);
        }
        mention.fiscal
            || mention.part.is_some()
            || before.is_empty()
            || matches!(before, b"|" | b"(" | b"#")
            || self.narrows(mention)
    }

    /// Whether the time is a part of a name: "the 2024 Notes".
    fn names(&self, mention: &Mention) -> bool {
        let next = mention.last;
        if next >= self.found.segment.last || mention.month.is_some() || mention.fiscal || mention.part.is_some() {
            return false;
        }
        let token = &self.scan.tokens[next];
        let word = token.kind == Kind::Word && token.gap == Gap::Space;
        let capital = self.text(next).first().is_some_and(u8::is_ascii_uppercase);
        let placed = mention.first > self.found.segment.first && WORDS.place.has(self.text(mention.first - 1));
        word && (WORDS.name.has(self.text(next)) || capital && !placed)
    }

    /// Whether the time narrows the name of a measure: "the 2022 actuarial loss".
    fn narrows(&self, mention: &Mention) -> bool {
        let owned = mention.first == self.found.segment.first || WORDS.owner.has(self.text(mention.first - 1));
        let measures = class::POS | class::NEG | class::NEG_WEAK;
        owned && (self.is(mention.last, measures) || self.is(mention.last + 1, measures))
    }
}

/// The number of a month by the first letters of its name.
fn month(text: &[u8]) -> Option<u8> {
    const NAMES: [&[u8; 3]; 12] =
        [b"jan", b"feb", b"mar", b"apr", b"may", b"jun", b"jul", b"aug", b"sep", b"oct", b"nov", b"dec"];
    let start = text.get(..3)?;
    NAMES.iter().position(|name| start.eq_ignore_ascii_case(&name[..])).and_then(|i| u8::try_from(i + 1).ok())
}

/// The times of a segment, ready to be asked about its figures.
#[derive(Debug, Default)]
pub(super) struct Times {
    pub(super) mentions: Vec<Mention>,
    /// Places of times that are listed: "2024, 2023 and 2022".
    lists: Vec<Range<usize>>,
    /// The time of each figure that stands in the order of such a list; empty when there is none.
    in_order: Vec<Option<Mention>>,
    /// Whether the times name one year at most, and none of them dates a fact that the segment cites.
    loose: bool,
}

impl Times {
    /// Reads a segment. `cited` are the facts that it cites.
    pub(super) fn of<'a>(scan: &Scan<'_>, found: &Found, cited: impl Iterator<Item = &'a Fact>) -> Self {
        let mentions = read(scan, found);
        if mentions.is_empty() {
            return Self::default();
        }
        let lists = lists(&mentions);
        let in_order = in_order(&mentions, &lists, found);
        let stated = || mentions.iter().filter(|m| m.stated);
        let year = stated().find_map(|m| m.year);
        let one = stated().all(|m| m.year.is_none() || m.year == year);
        let mut cited = cited.filter(|fact| span::known(fact));
        let loose = stated().next().is_some() && one && !cited.any(|fact| stated().any(|m| span::fits(m, fact)));
        Self { mentions, lists, in_order, loose }
    }

    /// Whether the times named contradict the period of a fact that the figure states.
    pub(super) fn contradict(&self, scan: &Scan<'_>, found: &Found, at: usize, fact: &Fact) -> bool {
        if self.mentions.is_empty() {
            return false;
        }
        if let Some(Some(own)) = self.in_order.get(at) {
            return !span::fits(own, fact);
        }
        let Some(figure) = found.figures.get(at) else { return false };
        let listed = |i: usize| self.lists.iter().any(|list| list.contains(&i));
        let sure = self.mentions.iter().enumerate().find(|(i, m)| m.stated && !listed(*i) && behind(scan, figure, m));
        if let Some((_, sure)) = sure {
            return !span::fits(sure, fact);
        }
        // a time of another kind is no contradiction when the sentence has the right one too, or dates another of its facts
        self.loose && self.mentions.iter().filter(|m| m.stated).all(|m| !span::fits(m, fact))
    }
}

/// Times that stand in a list, each right behind the one before it.
fn lists(mentions: &[Mention]) -> Vec<Range<usize>> {
    let next_to =
        |i: usize| mentions.get(i + 1).is_some_and(|next| next.first <= mentions[i].last + 2 && next.year.is_some());
    let mut out = Vec::new();
    let mut start = 0;
    for i in 0..mentions.len() {
        if !next_to(i) {
            if i > start {
                out.push(start..i + 1);
            }
            start = i + 1;
        }
    }
    out
}

/// Figures in the order of the list that follows them, or of a list before all of them.
fn in_order(mentions: &[Mention], lists: &[Range<usize>], found: &Found) -> Vec<Option<Mention>> {
    if lists.is_empty() || found.figures.is_empty() {
        return Vec::new();
    }
    let mut out = vec![None; found.figures.len()];
    let mut first = 0;
    for (i, list) in lists.iter().enumerate() {
        let start = mentions[list.start].first;
        let mut last = found.figures.partition_point(|f| f.tokens.0 < start);
        if i == 0 && last == 0 && lists.len() == 1 {
            last = found.figures.len();
        }
        let (count, size) = (last - first, list.len());
        let fiscal = mentions[list.clone()].iter().any(|m| m.fiscal);
        if count.is_multiple_of(size) && mentions[list.start].stated {
            for (at, slot) in out[first..last].iter_mut().enumerate() {
                *slot = Some(Mention { part: None, fiscal, ..mentions[list.start + at % size] });
            }
        }
        first = last;
    }
    out
}

/// Whether a time stands right behind a figure and its citation.
fn behind(scan: &Scan<'_>, figure: &Figure, mention: &Mention) -> bool {
    if mention.first < figure.tokens.1 || mention.first - figure.tokens.1 > BEHIND_MAX {
        return false;
    }
    let mut placed = false;
    for token in &scan.tokens[figure.tokens.1..mention.first] {
        let text = token.text(&scan.clean.bytes);
        match token.kind {
            Kind::Citation => {}
            Kind::Word if WORDS.place.has(text) => placed = true,
            Kind::Word if WORDS.inside.has(text) => {}
            Kind::Word | Kind::Number | Kind::Sign(_) => return false,
        }
    }
    placed
}
