//! What a run of two arms shows: a table of ratios, and a row of each figure for scripts.

use std::collections::BTreeSet;

use loadline_analyze::arms::{Compared, Row as Figure, compare};
use loadline_analyze::paired::Verdict;
use loadline_model::arms::{ArmName, Arms};

use super::count;
use crate::RunData;
use crate::columns::value;
use crate::doc::{Block, Cell, Head, Notes, Row, Section, Table};

/// Probability that an interval misses the true ratio.
const ERROR: f64 = 0.05;

/// The arms of a run and what its pairs show.
pub(crate) struct OfRun<'a> {
    arms: &'a Arms,
    compared: Compared<'a>,
    /// What each arm was measured in spite of.
    forced: BTreeSet<(ArmName, &'a str)>,
}

/// Of `run`, if it has arms.
pub(crate) fn of(run: &RunData) -> Option<OfRun<'_>> {
    let arms = run.manifest.plan.arms.as_deref()?;
    let forced = run.records.iter().filter_map(|r| Some((r.arm?, r.forced.as_deref()?))).collect();
    Some(OfRun { arms, compared: compare(&run.records, arms, ERROR), forced })
}

/// `1.034`, with as many digits as the interval is worth.
fn ratio(value: f64) -> String {
    format!("{value:.3}")
}

fn percent(share: f64) -> String {
    if share >= 0.1 { format!("{:.0} %", share * 100.0) } else { format!("{:.1} %", share * 100.0) }
}

impl OfRun<'_> {
    /// The answer in a sentence for each main figure, and what an arm has that no platform should have.
    pub(crate) fn sentences(&self) -> Vec<String> {
        let answers = self.compared.rows.iter().filter(|row| row.main).map(|row| self.sentence(row));
        answers.chain(self.forced.iter().map(|(arm, why)| format!("Arm {arm} was measured although {why}."))).collect()
    }

    fn sentence(&self, row: &Figure<'_>) -> String {
        let place = format!("{} with {}", row.workload, count(row.jobs as usize, "job", "jobs"));
        let Some(found) = &row.ratio else { return format!("{place}: no pair of windows is valid.") };
        let title = row.metric.column.title.to_lowercase();
        let interval = found.interval.map_or_else(
            || found.why_no_interval().map_or_else(String::new, |why| format!(" ({why})")),
            |i| format!(" ({:.0} % interval {} to {})", found.confidence * 100.0, ratio(i.low), ratio(i.high)),
        );
        let said = match row.verdict {
            Some(Verdict::Faster) => "B is faster".to_owned(),
            Some(Verdict::Slower) => "B is slower".to_owned(),
            Some(Verdict::Equivalent) => format!("the arms are equivalent within ±{}", percent(self.arms.margin)),
            _ => "no difference is shown".to_owned(),
        };
        let mut text = format!("{place}: {said}; {title} of B is {} of A's{interval}", ratio(found.value));
        if found.by_pairs && found.interval.is_some() {
            text += "; with so few pairs the interval assumes that neighbouring windows vary independently";
        }
        if row.verdict == Some(Verdict::NotShown) {
            if let Some(seen) = row.detectable {
                text += &format!("; a difference of {} would have been seen in four of five such runs", percent(seen));
            }
            if let Some(more) = row.more_pairs.filter(|more| *more > 0) {
                text += &format!("; to tell {} takes about {more} more pairs", percent(self.arms.margin));
            }
        }
        text + "."
    }

    /// The table of all figures.
    pub(crate) fn table(&self) -> Table {
        let mut notes = Notes::default();
        let mut rows = Vec::new();
        for row in &self.compared.rows {
            let found = row.ratio;
            let interval = found.and_then(|r| r.interval);
            let why = found.map_or_else(|| Some("no pair of windows is valid".to_owned()), |r| r.why_no_interval());
            let mark =
                why.filter(|_| interval.is_none()).map_or_else(String::new, |why| notes.mark(&why, row.workload));
            let place = if row.main { (row.workload.to_owned(), row.jobs.to_string()) } else { Default::default() };
            let cells = [
                Cell::from(place.0),
                Cell::from(place.1),
                Cell::from(row.metric.column.title.to_owned()),
                Cell::from(value(row.metric.column, row.a)),
                Cell::from(value(row.metric.column, row.b)),
                Cell::from(found.map_or("–".to_owned(), |r| ratio(r.value))),
                Cell {
                    text: interval.map_or("–".to_owned(), |i| format!("{} – {}", ratio(i.low), ratio(i.high))),
                    mark,
                },
                Cell::from(row.word().replace('_', " ")),
                Cell::from(row.detectable.map_or("–".to_owned(), percent)),
                Cell::from(match found {
                    Some(r) if r.dropped > 0 => format!("{} of {}", r.pairs, r.pairs + r.dropped),
                    Some(r) => r.pairs.to_string(),
                    None => "0".to_owned(),
                }),
            ];
            rows.push(Row { cells: cells.into(), first: row.main, ..Row::default() });
        }
        let head = vec![
            Head::text("Workload"),
            Head::number("Jobs", ""),
            Head::text("Figure"),
            Head::number("A", ""),
            Head::number("B", ""),
            Head::number("B/A", "").tip("Hodges-Lehmann estimate of the ratio in pairs of windows"),
            Head::number("Interval", ""),
            Head::text("B is"),
            Head::number("Would be seen", "")
                .tip("The smallest difference that would be shown in four of five such runs"),
            Head::number("Pairs", ""),
        ];
        Table {
            caption: "B against A".to_owned(),
            class: "figures",
            head,
            rows,
            notes: notes.finish(),
            ..Table::default()
        }
    }

    /// How to read it.
    fn method(&self) -> String {
        let looks = match self.arms.looks.as_slice() {
            [_] => String::new(),
            looks => format!(
                " Measured until the interval was ±{} wide, looked at after {} pairs, which were set before the run.",
                percent(self.arms.precision.unwrap_or_default()),
                looks.iter().map(usize::to_string).collect::<Vec<_>>().join(", ")
            ),
        };
        let family = self.compared.family.says().map_or_else(String::new, |says| format!(" The main figures: {says}."));
        format!(
            "Windows of both arms in turns, in blocks ABBA or BAAB by coin, so that a device that drifts is the same for both. \
             The ratio is that of neighbouring windows, at {:.0} % confidence; equivalent means within ±{}.{looks}{family} \
             docs/statistics.md says how.",
            self.compared.family.confidence * 100.0,
            percent(self.arms.margin)
        )
    }

    /// `workload,jobs,figure,a,b,ratio,low,high,verdict,smallest_detectable_pct,pairs`.
    pub(crate) fn csv(&self) -> Vec<Vec<String>> {
        let of = |value: Option<f64>| value.filter(|v| v.is_finite()).map_or_else(String::new, |v| v.to_string());
        let row = |row: &Figure<'_>| {
            let interval = row.ratio.and_then(|r| r.interval);
            let both = row.ratio.is_some();
            vec![
                row.workload.to_owned(),
                row.jobs.to_string(),
                row.metric.column.id.to_owned(),
                of(Some(row.a).filter(|_| both)),
                of(Some(row.b).filter(|_| both)),
                of(row.ratio.map(|r| r.value)),
                of(interval.map(|i| i.low)),
                of(interval.map(|i| i.high)),
                row.word().to_owned(),
                of(row.detectable.map(|share| share * 100.0)),
                row.ratio.map_or(0, |r| r.pairs).to_string(),
            ]
        };
        self.compared.rows.iter().map(row).collect()
    }

    /// Workloads and job counts without a valid pair.
    pub(crate) fn refused(&self) -> usize {
        self.compared.rows.iter().filter(|row| row.main && row.ratio.is_none()).count()
    }
}

/// The section of a report on one run of two arms.
pub(crate) fn section(of_run: Option<&OfRun<'_>>) -> Section {
    let blocks = of_run.map_or_else(Vec::new, |of_run| {
        vec![
            Block::List { items: of_run.sentences() },
            Block::Table(of_run.table()),
            Block::Para { text: of_run.method() },
        ]
    });
    Section { id: "arms", title: "Which is faster".to_owned(), in_text: true, group: false, blocks }
}
