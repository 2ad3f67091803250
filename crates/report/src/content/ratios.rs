//! Ratios B/A of figures with their verdicts: a table for people, a row of each for scripts, and a chart of the intervals.

use loadline_analyze::paired::Verdict;
use loadline_analyze::stats::Interval;
use loadline_model::Column;

use crate::columns::value;
use crate::csv::{self, Named, number};
use crate::doc::{Cell, Head, Notes, Row, Table};
use crate::text::{self, narrowed, wrapped};

/// A figure of A and B.
#[derive(Debug, Clone)]
pub(crate) struct Shown {
    pub(crate) workload: String,
    /// Number of jobs; `None` if all of the workload is refused.
    pub(crate) jobs: Option<u32>,
    pub(crate) column: &'static Column,
    /// Whether it is the main figure of its workload and job count.
    pub(crate) main: bool,
    /// Both sides, in the column's unit.
    pub(crate) sides: Option<(f64, f64)>,
    pub(crate) ratio: Option<f64>,
    pub(crate) interval: Option<Interval>,
    /// `None`: refused.
    pub(crate) verdict: Option<Verdict>,
    /// Smallest difference that would be seen, as a share.
    pub(crate) detectable: Option<f64>,
    /// Pairs, or tests of the side with fewer.
    pub(crate) pairs: usize,
    /// Pairs left out.
    pub(crate) dropped: usize,
    /// Why there is no interval, or no comparison.
    pub(crate) why: Option<String>,
    /// What qualifies the verdict.
    pub(crate) but: Option<String>,
}

impl Shown {
    /// The verdict in a word.
    pub(crate) fn word(&self) -> &'static str {
        match self.verdict {
            None => "refused",
            Some(Verdict::Faster) => "faster",
            Some(Verdict::Slower) => "slower",
            Some(Verdict::Equivalent) => "equivalent",
            Some(Verdict::NotShown) => "not_shown",
        }
    }
}

/// `1.034`.
pub(crate) fn ratio(value: f64) -> String {
    match value {
        100.0.. => format!("{value:.0}"),
        0.1..100.0 => format!("{value:.3}"),
        // Three digits that count.
        _ => format!("{value:.*}", (2.0 - value.max(1e-12).log10().floor()) as usize),
    }
}

/// A share in percent.
pub(crate) fn percent(share: f64) -> String {
    if share >= 0.1 { format!("{:.0} %", share * 100.0) } else { format!("{:.1} %", share * 100.0) }
}

/// The table; `counted`: what the last column counts.
pub(crate) fn table(rows: &[Shown], counted: &str) -> Table {
    let mut notes = Notes::default();
    let absent = || "–".to_owned();
    let row = |shown: &Shown| {
        let mut marked =
            |text: &Option<String>| text.as_ref().map_or_else(String::new, |text| notes.mark(text, &shown.workload));
        let (mark, but) = (marked(&shown.why), marked(&shown.but));
        let jobs = shown.jobs.map_or_else(String::new, |jobs| jobs.to_string());
        let (workload, jobs) = if shown.main { (shown.workload.clone(), jobs) } else { Default::default() };
        let side = |of: fn((f64, f64)) -> f64| shown.sides.map_or_else(absent, |s| value(shown.column, of(s)));
        let pairs = if shown.dropped > 0 {
            format!("{} of {}", shown.pairs, shown.pairs + shown.dropped)
        } else {
            shown.pairs.to_string()
        };
        let interval = shown.interval.map_or_else(absent, |i| format!("{} – {}", ratio(i.low), ratio(i.high)));
        let cells = vec![
            Cell::from(workload),
            Cell::from(jobs),
            Cell::from(shown.column.title),
            Cell::from(side(|s| s.0)),
            Cell::from(side(|s| s.1)),
            Cell::from(shown.column.unit),
            Cell::from(shown.ratio.map_or_else(absent, ratio)),
            Cell { text: interval, mark },
            Cell { text: shown.word().replace('_', " "), mark: but },
            Cell::from(shown.detectable.map_or_else(absent, percent)),
            Cell::from(pairs),
        ];
        Row { cells, first: shown.main, ..Row::default() }
    };
    let rows: Vec<Row> = rows.iter().map(row).collect();
    let head = vec![
        Head::text("Workload"),
        Head::number("Jobs", ""),
        Head::text("Figure"),
        Head::number("A", ""),
        Head::number("B", ""),
        Head::text("Unit"),
        Head::number("B/A", ""),
        Head::number("Interval", ""),
        Head::text("B is"),
        Head::number("Detectable", "")
            .tip("The smallest difference that would be shown in four of five such comparisons"),
        Head::number(counted, ""),
    ];
    Table { caption: "B against A".to_owned(), notes: notes.finish(), ..Table::of("figures", head, rows) }
}

/// The table in lines of `width` characters.
pub(crate) fn text(out: &mut String, of: &Table, width: usize) {
    let (narrow, left_out) = narrowed(of, width, &["Detectable", "Pairs", "Tests", "Unit", "A", "B"]);
    text::table(out, &narrow, width);
    if !left_out.is_empty() {
        let all = format!("For want of width without {}: --format csv has them.", left_out.join(", "));
        out.push_str(&wrapped(&all, "", width));
    }
}

/// A header and a row of each figure.
pub(crate) fn csv(rows: &[Shown]) -> String {
    let columns: [Named<'_, &Shown>; 11] = [
        ("workload", &|row| row.workload.clone()),
        ("jobs", &|row| row.jobs.map_or_else(String::new, |jobs| jobs.to_string())),
        ("figure", &|row| row.column.id.to_owned()),
        ("a", &|row| number(row.sides.map(|s| s.0))),
        ("b", &|row| number(row.sides.map(|s| s.1))),
        ("ratio", &|row| number(row.ratio)),
        ("low", &|row| number(row.interval.map(|i| i.low))),
        ("high", &|row| number(row.interval.map(|i| i.high))),
        ("verdict", &|row| row.word().to_owned()),
        ("smallest_detectable_pct", &|row| number(row.detectable.map(|share| share * 100.0))),
        ("pairs", &|row| row.pairs.to_string()),
    ];
    csv::table(&columns, rows)
}
