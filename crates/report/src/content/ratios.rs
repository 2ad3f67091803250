//! Ratios B/A of figures with their verdicts: a table for people, a row of each for scripts, and a chart of the intervals.

use loadline_analyze::paired::Verdict;
use loadline_analyze::stats::Interval;
use loadline_model::format::counted;
use loadline_model::{Column, Letter};

use crate::bars::intervals;
use crate::doc::{Block, Cell, Table};
use crate::listing::{Listing, Named};
use crate::spec::TableSpec;
use crate::words::{of_pairs, percent, ratio, value};

/// A figure of A and B.
#[derive(Debug, Clone)]
pub(crate) struct Shown {
    pub(crate) workload: String,
    /// Number of jobs; `None` if all of the workload is refused.
    pub(crate) jobs: Option<u32>,
    /// The variant that is compared with A, if it is not always B.
    pub(crate) arm: Option<Letter>,
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
    pub(crate) dropped: usize,
    /// Why there is no interval, or no comparison.
    pub(crate) why: Option<String>,
    /// Qualifications of the verdict.
    pub(crate) but: Option<String>,
}

impl Shown {
    /// A main figure of `workload` with so many jobs of which nothing is known.
    pub(crate) fn new((workload, jobs): (String, Option<u32>), column: &'static Column) -> Shown {
        Shown {
            workload,
            jobs,
            arm: None,
            column,
            main: true,
            sides: None,
            ratio: None,
            interval: None,
            verdict: None,
            detectable: None,
            pairs: 0,
            dropped: 0,
            why: None,
            but: None,
        }
    }

    /// `LGWR-LAT1 with 4 jobs`, or `LGWR-LAT1 with 4 jobs, C`.
    pub(crate) fn place(&self) -> String {
        let jobs = self.jobs.map_or_else(String::new, |n| format!(" with {}", counted(n as usize, "job")));
        let arm = self.arm.map_or_else(String::new, |arm| format!(", {arm}"));
        format!("{}{jobs}{arm}", self.workload)
    }

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

/// The table; `last`: what the last column counts.
pub(crate) fn table(rows: &[Shown], last: &str) -> Table {
    let side = |shown: &Shown, of: fn((f64, f64)) -> f64| shown.sides.map(|s| value(shown.column, of(s)));
    let interval = |i: Interval| format!("{} – {}", ratio(i.low), ratio(i.high));
    let several = rows.iter().any(|shown| shown.arm.is_some());
    let [b, b_of_a, b_is, caption] = match several {
        true => ["Arm's", "To A", "It is", "Each arm against A"],
        false => ["B", "B/A", "B is", "B against A"],
    };
    TableSpec::<&Shown>::new("figures", rows)
        .text("Workload", |shown| &shown.workload)
        .number("Jobs", "", |shown| shown.jobs.map_or_else(String::new, |jobs| jobs.to_string()))
        .text("Arm", |shown| shown.arm.map(|arm| arm.to_string()))
        .once()
        .when(several)
        .text("Figure", |shown| shown.column.title)
        .number("A", "", |shown| side(shown, |s| s.0))
        .number(b, "", |shown| side(shown, |s| s.1))
        .text("Unit", |shown| shown.column.unit)
        .number(b_of_a, "", |shown| shown.ratio.map(ratio))
        .number("Interval", "", |shown| Cell::from(shown.interval.map(interval)).noted(&shown.why, &shown.workload))
        .text(b_is, |shown| Cell::from(shown.word().replace('_', " ")).noted(&shown.but, &shown.workload))
        .number("Detectable", "", |shown| shown.detectable.map(percent))
        .number(last, "", |shown| of_pairs(shown.pairs + shown.dropped, shown.dropped))
        .caption(caption)
        .dispensable(&["A", b, "Unit", "Detectable", last])
        .tips("tips of ratios")
        .build()
}

/// The main figures, with a band of what is called equivalent: ratios within 1 ± `margin`. `None` without a ratio.
pub(crate) fn chart(rows: &[Shown], margin: f64) -> Option<Block> {
    let what = if rows.iter().any(|row| row.arm.is_some()) { "Ratio to A" } else { "B/A" };
    let title = format!("{what} of the main figures; the band is what is called equivalent");
    let main = rows.iter().filter(|row| row.main);
    let ratios: Vec<_> =
        main.filter_map(|row| Some((row.place(), row.ratio.filter(|r| *r > 0.0)?, row.interval))).collect();
    Block::charts(1, intervals(&title, &ratios, margin))
}

/// A row of each figure; with more than two variants, the last column names that of the row.
pub(crate) fn listing(rows: &[Shown]) -> Listing {
    let columns: [Named<Shown>; 11] = [
        ("workload", |row| row.workload.as_str().into()),
        ("jobs", |row| row.jobs.into()),
        ("figure", |row| row.column.id.into()),
        ("a", |row| row.sides.map(|s| s.0).into()),
        ("b", |row| row.sides.map(|s| s.1).into()),
        ("ratio", |row| row.ratio.into()),
        ("low", |row| row.interval.map(|i| i.low).into()),
        ("high", |row| row.interval.map(|i| i.high).into()),
        ("verdict", |row| row.word().into()),
        ("smallest_detectable_pct", |row| row.detectable.map(|share| share * 100.0).into()),
        ("pairs", |row| row.pairs.into()),
    ];
    let mut columns = columns.to_vec();
    if rows.iter().any(|row| row.arm.is_some()) {
        columns.push(("arm", |row| row.arm.map(|arm| arm.to_string()).into()));
    }
    Listing::new(&columns, rows)
}
