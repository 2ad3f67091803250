//! Ratios B/A of figures with their verdicts: a table for people, a row of each for scripts, and a chart of the intervals.

use loadline_analyze::paired::Verdict;
use loadline_analyze::stats::Interval;
use loadline_model::format::counted;
use loadline_model::{Column, Letter};
use minijinja::{Value, context};
use serde::Serialize;

use crate::bars::intervals;
use crate::doc::{Block, Table};
use crate::listing::Listing;
use crate::spec::TableSpec;
use crate::words::{of_pairs, value};

/// A figure of A and B.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Shown {
    pub(crate) workload: String,
    /// Number of jobs; `None` if all of the workload is refused.
    pub(crate) jobs: Option<u32>,
    /// The variant that is compared with A, if it is not always B.
    pub(crate) arm: Option<Letter>,
    pub(crate) column: &'static Column,
    /// Whether it is the main figure of its workload and job count.
    pub(crate) main: bool,
    /// `None`: refused.
    pub(crate) found: Option<Found>,
    /// Why there is no interval, or no comparison.
    pub(crate) why: Option<String>,
    /// Qualifications of the verdict.
    pub(crate) but: Option<String>,
}

#[derive(Debug, Clone, Copy, Serialize)]
pub(crate) struct Found {
    /// Both sides, in the column's unit.
    pub(crate) sides: (f64, f64),
    pub(crate) ratio: f64,
    pub(crate) interval: Option<Interval>,
    pub(crate) verdict: Verdict,
    /// Smallest difference that would be seen, as a share.
    pub(crate) detectable: Option<f64>,
    /// Pairs, or tests of the side with fewer.
    pub(crate) pairs: usize,
    pub(crate) dropped: usize,
}

impl Shown {
    pub(crate) fn interval(&self) -> Option<Interval> {
        self.found?.interval
    }

    /// `LGWR-LAT1 with 4 jobs`, or `LGWR-LAT1 with 4 jobs, C`.
    pub(crate) fn place(&self) -> String {
        let jobs = self.jobs.map_or_else(String::new, |n| format!(" with {}", counted(n as usize, "job")));
        let arm = self.arm.map_or_else(String::new, |arm| format!(", {arm}"));
        format!("{}{jobs}{arm}", self.workload)
    }

    fn word(&self) -> &'static str {
        match self.found.map(|found| found.verdict) {
            None => "refused",
            Some(Verdict::Faster) => "faster",
            Some(Verdict::Slower) => "slower",
            Some(Verdict::Equivalent) => "equivalent",
            Some(Verdict::NotShown) => "not_shown",
        }
    }
}

fn row(shown: &Shown, several: bool, last: &str) -> Value {
    context! {
        several, last, title => shown.column.title, unit => shown.column.unit, word => shown.word(),
        sides => shown.found.map(|found| [found.sides.0, found.sides.1].map(|side| value(shown.column, side))),
        of_pairs => shown.found.map(|found| of_pairs(found.pairs + found.dropped, found.dropped)),
        ..Value::from_serialize(shown)
    }
}

/// Whether there are more variants than A and B.
fn are_several(rows: &[Shown]) -> bool {
    rows.iter().any(|shown| shown.arm.is_some())
}

/// The table; `last`: what the last column counts.
pub(crate) fn table(rows: &[Shown], last: &str) -> Table {
    let several = are_several(rows);
    let table = TableSpec::<&Shown>::new("figures", rows);
    let caption = if several { "Each arm against A" } else { "B against A" };
    table.columns("table of ratios", |shown| row(shown, several, last)).caption(caption).build()
}

/// The main figures, with a band of what is called equivalent: ratios within 1 ± `margin`. `None` without a ratio.
pub(crate) fn chart(rows: &[Shown], margin: f64) -> Option<Block> {
    let what = if are_several(rows) { "Ratio to A" } else { "B/A" };
    let title = format!("{what} of the main figures; the band is what is called equivalent");
    let main = rows.iter().filter(|row| row.main);
    let ratios: Vec<_> = main
        .filter_map(|row| Some((row.place(), row.found?.ratio, row.interval())))
        .filter(|(_, r, _)| *r > 0.0)
        .collect();
    Block::charts(1, intervals(&title, &ratios, margin))
}

/// A row of each figure; with more than two variants, the last column names that of the row.
pub(crate) fn listing(rows: &[Shown]) -> Listing {
    let mut listing = Listing::new("ratios", rows.iter().map(|shown| row(shown, true, "")));
    if !are_several(rows) {
        listing.columns.pop();
        listing.rows.iter_mut().for_each(|row| drop(row.pop()));
    }
    listing
}
