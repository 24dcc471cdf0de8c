//! One JSON line a cell as it ends, and at the end a table of medians.

use serde_json::json;

use super::load::Answers;
use super::process::load_average;
use super::sellers::Usage;

/// One seller, one kind of load, one round.
pub(crate) struct Cell {
    pub(crate) measure: &'static str,
    pub(crate) seller: &'static str,
    connections: usize,
    pub(crate) rate: f64,
    p50_ms: f64,
    p99_ms: f64,
    cpu_us: f64,
    database_us: f64,
    commits: f64,
}

impl Cell {
    /// From what came back and the processor time that went into it; says so on a line of JSON.
    pub(crate) fn new(
        (measure, connections, seller, round): (&'static str, usize, &'static str, usize),
        answers: &Answers,
        wanted: u16,
        (before, after): (Usage, Usage),
    ) -> Self {
        let each = |us: u64| us as f64 / answers.count().max(1) as f64;
        let cell = Self {
            measure,
            seller,
            connections,
            rate: answers.count() as f64 / answers.elapsed.as_secs_f64(),
            p50_ms: answers.percentile_ms(0.50),
            p99_ms: answers.percentile_ms(0.99),
            cpu_us: each(after.cpu.own_us.saturating_sub(before.cpu.own_us)),
            database_us: each(after.cpu.below_us.saturating_sub(before.cpu.below_us)),
            commits: each(after.commits.saturating_sub(before.commits)),
        };
        let line = json!({
            "measure": measure, "seller": seller, "connections": connections, "round": round,
            "answers": answers.count(), "statuses": answers.statuses,
            "as_wanted": answers.statuses.keys().all(|status| *status == wanted),
            "elapsed_s": answers.elapsed.as_secs_f64(), "per_s": cell.rate.round(),
            "p50_ms": cell.p50_ms, "p99_ms": cell.p99_ms,
            "cpu_us": tenth(cell.cpu_us), "database_cpu_us": tenth(cell.database_us), "commits": (cell.commits * 100.0).round() / 100.0, "load": load_average(),
        });
        println!("{line}");
        cell
    }
}

/// The table: medians over the rounds, and jim's rate as a multiple of each other seller's in the same round.
pub(crate) fn table(cells: &[Cell]) {
    println!(
        "\n{:8} {:10} {:>5} {:>9} {:>8} {:>8} {:>8} {:>8} {:>8} {:>9}",
        "measure", "seller", "conns", "per s", "p50 ms", "p99 ms", "cpu us", "db us", "commits", "jim is"
    );
    let mut rows: Vec<(&str, usize, &str)> = Vec::new();
    for cell in cells {
        if !rows.contains(&(cell.measure, cell.connections, cell.seller)) {
            rows.push((cell.measure, cell.connections, cell.seller));
        }
    }
    for (measure, connections, seller) in rows {
        let of = |seller: &str| -> Vec<&Cell> {
            let is_ours = |c: &&Cell| (c.measure, c.connections, c.seller) == (measure, connections, seller);
            cells.iter().filter(is_ours).collect()
        };
        let (row, ours) = (of(seller), of("jim"));
        let each = |value: fn(&Cell) -> f64| median(row.iter().map(|cell| value(cell)).collect());
        let times = median(ours.iter().zip(&row).map(|(our, their)| our.rate / their.rate).collect());
        println!(
            "{measure:8} {seller:10} {connections:5} {:9.0} {:8.2} {:8.2} {:8.1} {:8.1} {:8.2} {:>8.2}x",
            each(|c| c.rate),
            each(|c| c.p50_ms),
            each(|c| c.p99_ms),
            each(|c| c.cpu_us),
            each(|c| c.database_us),
            each(|c| c.commits),
            times,
        );
    }
}

/// The middle one; of an even number the mean of the two in the middle.
pub(crate) fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    let half = values.len() / 2;
    match (values.get(half), values.len() % 2) {
        (Some(middle), 1) => *middle,
        (Some(upper), _) => f64::midpoint(values[half - 1], *upper),
        (None, _) => f64::NAN,
    }
}

fn tenth(value: f64) -> f64 {
    (value * 10.0).round() / 10.0
}
