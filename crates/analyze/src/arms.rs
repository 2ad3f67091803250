//! Runs of two arms: their windows in pairs, and what the pairs show.

use loadline_model::arms::Arms;
use loadline_model::{ArmName, Column, TestRecord};

use crate::kpi::{Metric, RESPONSE, metrics};
use crate::paired::verdict::{detectable, more_pairs, verdict};
use crate::paired::{Family, Pair, PairedRatio, Question, Verdict, judge, paired_ratio};

/// The pairs of a workload at a number of jobs.
#[derive(Debug, Clone, PartialEq)]
pub struct Cell<'a> {
    /// Workload code.
    pub workload: &'a str,
    /// Number of jobs.
    pub jobs: u32,
    /// The windows of each planned pair, A's first; `None` if it was not measured as a pair.
    pub pairs: Vec<Option<[&'a TestRecord; 2]>>,
}

/// The cells of a run's records, in their order. `planned`: pairs of each.
#[must_use]
pub fn cells(records: &[TestRecord], planned: u32) -> Vec<Cell<'_>> {
    let mut cells: Vec<Cell<'_>> = Vec::new();
    for r in records.iter().filter(|r| r.arm.is_some()) {
        if !cells.iter().any(|c| c.workload == r.workload && c.jobs == r.jobs) {
            cells.push(Cell { workload: &r.workload, jobs: r.jobs, pairs: Vec::new() });
        }
    }
    for cell in &mut cells {
        let windows: Vec<&TestRecord> =
            records.iter().filter(|r| r.workload == cell.workload && r.jobs == cell.jobs && r.arm.is_some()).collect();
        let last = windows.iter().map(|r| r.repetition).max().unwrap_or(0).min(planned);
        let pair = |number| {
            let of: Vec<&TestRecord> = windows.iter().copied().filter(|r| r.repetition == number).collect();
            Cell::last_pair(&of)
        };
        cell.pairs = (1..=last).map(pair).collect();
    }
    cells
}

impl<'a> Cell<'a> {
    /// The last two of `windows` of one pair, A's first, if they are of both arms and followed each other. An interruption
    /// may leave a window without its neighbour; the pair is then measured anew.
    #[must_use]
    pub fn last_pair(windows: &[&'a TestRecord]) -> Option<[&'a TestRecord; 2]> {
        let [.., first, second] = windows else { return None };
        match (first.arm?, second.arm?) {
            _ if first.test + 1 != second.test => None,
            (ArmName::A, ArmName::B) => Some([first, second]),
            (ArmName::B, ArmName::A) => Some([second, first]),
            _ => None,
        }
    }

    /// The figure of each planned pair; none of an invalid window.
    #[must_use]
    pub fn pairs_of(&self, column: &Column) -> Vec<Pair> {
        let figure = |r: &TestRecord| r.figure(column).filter(|_| r.valid);
        let pair = |windows: &Option<[&TestRecord; 2]>| match windows {
            Some([a, b]) => Pair { a: figure(a), b: figure(b) },
            None => Pair { a: None, b: None },
        };
        self.pairs.iter().map(pair).collect()
    }

    /// Figures that the arms are compared by, the main one first: the workload's first key figure, or the response time in an
    /// open loop, in which throughput is given.
    #[must_use]
    pub fn metrics(&self) -> Vec<Metric> {
        let windows: Vec<&TestRecord> = self.pairs.iter().flatten().flatten().copied().collect();
        let Some(first) = windows.first() else { return Vec::new() };
        let mut found = metrics(&first.group, &first.kpis);
        if windows.iter().any(|r| r.figure(RESPONSE).is_some()) {
            found.insert(0, Metric { column: RESPONSE, higher_is_better: false });
        }
        // The main figure stays, because its lack is an answer; others that an arm's database does not have are left out.
        let has = |arm: ArmName, column| {
            windows.iter().any(|r| r.arm == Some(arm) && r.figure(column).is_some_and(|v| v > 0.0))
        };
        let main = found.first().map(|m| m.column);
        found.retain(|m| Some(m.column) == main || ArmName::ALL.into_iter().all(|arm| has(arm, m.column)));
        found
    }

    /// The pairs of the main figure.
    #[must_use]
    pub fn main_pairs(&self) -> Vec<Pair> {
        self.metrics().first().map_or_else(Vec::new, |main| self.pairs_of(main.column))
    }
}

/// A figure of both arms.
#[derive(Debug, Clone, PartialEq)]
pub struct Row<'a> {
    /// Workload code.
    pub workload: &'a str,
    /// Number of jobs.
    pub jobs: u32,
    /// The figure.
    pub metric: Metric,
    /// Whether it is the main figure of its cell: those are judged together.
    pub main: bool,
    /// Mean over A's windows of valid pairs, in the column's unit.
    pub a: f64,
    /// The same of B.
    pub b: f64,
    /// The ratio B/A; `None` if no pair is valid.
    pub ratio: Option<PairedRatio>,
    /// If the pairs are too few for an interval of comparisons judged together, how many that takes; `ratio` then has the
    /// interval of this figure alone, and nothing is shown.
    pub together_takes: Option<usize>,
    /// What it shows; `None` if no pair is valid.
    pub verdict: Option<Verdict>,
    /// Smallest difference that would have been shown with a probability of 80 %, as a share.
    pub detectable: Option<f64>,
    /// Pairs that it would take beside those measured.
    pub more_pairs: Option<usize>,
}

/// All figures of a run of two arms.
#[derive(Debug, Clone, PartialEq)]
pub struct Compared<'a> {
    /// Cell by cell, the main figure first.
    pub rows: Vec<Row<'a>>,
    /// What was done about several comparisons.
    pub family: Family,
}

/// Compares the arms in all figures of all cells. Only the main figures are judged together, at `error` (0.05): a reader
/// who looks for any difference looks at those; the other figures have the same confidence.
#[must_use]
pub fn compare<'a>(records: &'a [TestRecord], arms: &Arms, error: f64) -> Compared<'a> {
    let cells = cells(records, arms.pairs);
    let mains: Vec<(Metric, Vec<Pair>)> =
        cells.iter().filter_map(|cell| Some((*cell.metrics().first()?, cell.main_pairs()))).collect();
    let questions: Vec<Question<'_>> = mains
        .iter()
        .map(|(main, pairs)| Question { pairs, higher_is_better: main.higher_is_better, margin: arms.margin })
        .collect();
    let family = judge(&questions, error, arms.looks.len());
    let mut rows = Vec::new();
    for cell in &cells {
        for (index, metric) in cell.metrics().into_iter().enumerate() {
            rows.push(row(
                cell,
                metric,
                index == 0,
                arms.margin,
                (1.0 - family.confidence, error / arms.looks.len().max(1) as f64),
            ));
        }
    }
    Compared { rows, family }
}

/// `together` and `alone`: the error of an interval of comparisons judged together, and of a single one.
fn row<'a>(cell: &Cell<'a>, metric: Metric, main: bool, margin: f64, (together, alone): (f64, f64)) -> Row<'a> {
    let pairs = cell.pairs_of(metric.column);
    let both: Vec<(f64, f64)> = pairs.iter().filter_map(|p| p.a.zip(p.b)).collect();
    let mean = |of: fn(&(f64, f64)) -> f64| both.iter().map(of).sum::<f64>() / both.len().max(1) as f64;
    let judged = paired_ratio(&pairs, together);
    let by_itself = paired_ratio(&pairs, alone).filter(|r| r.interval.is_some());
    let lacks = judged.filter(|r| r.interval.is_none() && by_itself.is_some());
    let ratio = if lacks.is_some() { by_itself } else { judged };
    Row {
        workload: cell.workload,
        jobs: cell.jobs,
        metric,
        main,
        a: mean(|p| p.0),
        b: mean(|p| p.1),
        ratio,
        together_takes: lacks.map(|r| r.least_pairs),
        verdict: judged.map(|r| verdict(&r, metric.higher_is_better, margin)),
        detectable: ratio.and_then(|r| detectable(&r)),
        more_pairs: ratio.and_then(|r| more_pairs(&r, margin)),
    }
}
