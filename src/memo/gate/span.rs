//! Whether a time that a text names can be the period of a fact. Where the fact's period is not known it can.

use time::{Date, Month};

use super::period::{Mention, Part};
use crate::memo::fact::Fact;

/// Days by which a date may miss a period's end: 52-week years, filing dates that stand for period ends.
const DAYS_OFF_MAX: i64 = 45;

/// Years after which a time is about something else: a plan's start, a maturity.
const YEARS_OFF_MAX: i32 = 6;

/// Days of the longest month, quarter and half, and of the shortest year.
const MONTH_DAYS_MAX: i64 = 40;
const QUARTER_DAYS_MAX: i64 = 120;
const HALF_DAYS_MAX: i64 = 220;
const YEAR_DAYS_MIN: i64 = 300;

/// A period that ends in this month or before may belong to the year before.
const EARLY_MONTH_MAX: u8 = 2;

/// Whether anything is known of a fact's period.
pub(super) fn known(fact: &Fact) -> bool {
    fact.fiscal_year.is_some() || fact.period_end.is_some()
}

/// Whether a time can be the fact's.
pub(super) fn fits(mention: &Mention, fact: &Fact) -> bool {
    year_fits(mention, fact) && mention.part.is_none_or(|part| part_fits(part, fact))
}

fn year_fits(mention: &Mention, fact: &Fact) -> bool {
    let Some(year) = mention.year else { return true };
    let Some((first, last)) = years(mention, fact) else { return true };
    if year + YEARS_OFF_MAX < first || year > last + YEARS_OFF_MAX {
        return true;
    }
    if (first..=last).contains(&year) {
        return true;
    }
    // a filing date shortly after the period's end, or a year of 52 weeks that ends beside the calendar's
    date(mention, year).zip(fact.period_end).is_some_and(|(date, end)| {
        let start = fact.period_start.unwrap_or(end);
        (start - date).whole_days() <= DAYS_OFF_MAX && (date - end).whole_days() <= DAYS_OFF_MAX
    })
}

fn date(mention: &Mention, year: i32) -> Option<Date> {
    let month = Month::try_from(mention.month?).ok()?;
    Date::from_calendar_date(year, month, mention.day.unwrap_or(15)).ok()
}

/// The years by which a text may call the fact's period.
fn years(mention: &Mention, fact: &Fact) -> Option<(i32, i32)> {
    let end = fact.period_end;
    let start = fact.period_start.or(end);
    if let Some(own) = fact.fiscal_year {
        if mention.fiscal {
            return Some((own, own));
        }
        // the dates of a fiscal year may lie in the years beside it
        let interim = fact.fiscal_period.as_deref().is_some_and(|period| period != "FY");
        return Some(match (start, end) {
            (Some(start), Some(end)) => (own.min(start.year()), own.max(end.year())),
            _ if mention.month.is_some() => (own - i32::from(interim), own + 1),
            _ => (own, own),
        });
    }
    let (start, end) = (start?, end?);
    let early = i32::from(u8::from(end.month()) <= EARLY_MONTH_MAX);
    let whole = (end - start).whole_days() >= YEAR_DAYS_MIN;
    if mention.fiscal {
        // a quarter of a fiscal year that ends in the next calendar year
        return Some((end.year() - early, end.year() + i32::from(!whole)));
    }
    if mention.month.is_some() {
        return Some((start.year(), end.year()));
    }
    Some((start.year() - i32::from(start == end) * early, end.year()).min((end.year() - early, end.year())))
}

fn part_fits(part: Part, fact: &Fact) -> bool {
    let period = fact.fiscal_period.as_deref();
    let quarter = period.and_then(|p| p.strip_prefix('Q')).and_then(|q| q.parse::<u8>().ok());
    let year = period == Some("FY");
    let days =
        fact.period_start.zip(fact.period_end).map(|(start, end)| (end - start).whole_days()).filter(|days| *days > 1);
    let longer = |most: i64| days.is_some_and(|days| days > most);
    match part {
        Part::Quarter(n) => {
            quarter.is_none_or(|own| own == n) && !longer(QUARTER_DAYS_MAX) && (days.is_some() || !year)
        }
        Part::SomeQuarter => !longer(QUARTER_DAYS_MAX) && (days.is_some() || !year),
        Part::Half(_) | Part::SomeHalf => {
            (quarter.is_none() || days.is_some()) && !longer(HALF_DAYS_MAX) && (days.is_some() || !year)
        }
        Part::Shorter => !longer(MONTH_DAYS_MAX) && (days.is_some() || period.is_none()),
        Part::Months(n) => days.is_none_or(|days| (days - i64::from(n) * 61 / 2).abs() <= DAYS_OFF_MAX),
        Part::Year => days.map_or(quarter.is_none(), |days| days >= YEAR_DAYS_MIN),
    }
}
