//! Runs of two arms: their windows in pairs, and what the pairs show.

use loadline_model::plan::Arms;
use loadline_model::record::LevelPoint;
use loadline_model::{ArmName, Column, TestRecord};

use crate::kpi::{Metric, RESPONSE, metrics};
use crate::paired::verdict::{detectable, more_pairs, verdict};
use crate::paired::{Family, Pair, PairedRatio, Question, Verdict, judge, paired_ratio};

/// Probability that the interval of a figure misses the true ratio, and share of false verdicts.
pub const ERROR: f64 = 0.05;

/// The pairs of a workload at a number of jobs.
#[derive(Debug, Clone, PartialEq)]
pub struct Cell<'a> {
    /// Workload code.
    pub workload: &'a str,
    /// Number of jobs.
    pub jobs: u32,
    /// Level and distance, in a run of levels.
    pub level: Option<&'a LevelPoint>,
    /// The windows of each planned pair, A's first; `None` if it was not measured as a pair.
    pub pairs: Vec<Option<[&'a TestRecord; 2]>>,
}

/// The cells of a run's records, in their order. `planned`: pairs of each.
#[must_use]
pub fn cells(records: &[TestRecord], planned: u32) -> Vec<Cell<'_>> {
    let mut cells: Vec<Cell<'_>> = Vec::new();
    let of_arms = || records.iter().filter(|r| r.arm.is_some());
    for r in of_arms() {
        if !cells.iter().any(|cell| cell.has(r)) {
            cells.push(Cell { workload: &r.workload, jobs: r.jobs, level: r.level.as_ref(), pairs: Vec::new() });
        }
    }
    for cell in &mut cells {
        let windows: Vec<&TestRecord> = of_arms().filter(|r| cell.has(r)).collect();
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
    /// Whether `record` is a window of it.
    fn has(&self, record: &TestRecord) -> bool {
        (self.workload, self.jobs, self.level) == (record.workload.as_str(), record.jobs, record.level.as_ref())
    }

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

/// Compares the arms in all figures of all cells. Only the main figures are judged together, at [`ERROR`]: a reader who looks
/// for any difference looks at those; the other figures have the same confidence.
#[must_use]
pub fn compare<'a>(records: &'a [TestRecord], arms: &Arms) -> Compared<'a> {
    let cells = cells(records, arms.pairs);
    let mains: Vec<(Metric, Vec<Pair>)> =
        cells.iter().filter_map(|cell| Some((*cell.metrics().first()?, cell.main_pairs()))).collect();
    let questions: Vec<Question<'_>> = mains
        .iter()
        .map(|(main, pairs)| Question { pairs, higher_is_better: main.higher_is_better, margin: arms.margin })
        .collect();
    let family = judge(&questions, ERROR, arms.looks.len());
    let errors = (1.0 - family.confidence, ERROR / arms.looks.len().max(1) as f64);
    let mut rows = Vec::new();
    for cell in &cells {
        for (index, metric) in cell.metrics().into_iter().enumerate() {
            rows.push(row(cell, metric, index == 0, arms.margin, errors));
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

#[cfg(test)]
mod tests {
    use loadline_model::column;

    use super::*;

    /// A window of `arm` in pair `pair` with a throughput.
    fn window(test: u32, arm: ArmName, pair: u32, tps: f64) -> TestRecord {
        let mut r = TestRecord { test, arm: Some(arm), repetition: pair, ..TestRecord::blank("LGWR-LAT1") };
        r.figures.insert(column::COMMIT_THROUGHPUT_TPS.id.to_owned(), tps);
        r
    }

    fn arms(pairs: u32) -> Arms {
        let arm = || loadline_model::plan::Arm {
            label: String::new(),
            target: String::new(),
            settings: Default::default(),
            workloads: Vec::new(),
            switch: None,
        };
        Arms { a: arm(), b: arm(), pairs, precision: None, looks: vec![pairs as usize], margin: 0.02, seed: 1 }
    }

    /// Windows of `pairs` pairs in blocks ABBA, B being `ratio` times as fast.
    fn windows(pairs: u32, ratio: f64) -> Vec<TestRecord> {
        let mut out = Vec::new();
        for pair in 1..=pairs {
            let order = if pair % 2 == 1 { ArmName::ALL } else { [ArmName::B, ArmName::A] };
            for arm in order {
                let tps = if arm == ArmName::A { 1000.0 } else { 1000.0 * ratio } + f64::from(pair);
                out.push(window(out.len() as u32 + 1, arm, pair, tps));
            }
        }
        out
    }

    #[test]
    fn windows_are_compared_in_their_pairs() {
        let records = windows(12, 1.3);
        let compared = compare(&records, &arms(12));
        let row = &compared.rows[0];
        assert!(row.main && row.verdict == Some(Verdict::Faster), "{row:?}");
        assert!((row.ratio.unwrap().value - 1.3).abs() < 0.01 && row.b > row.a);
        assert_eq!(compare(&windows(12, 1.0), &arms(12)).rows[0].verdict, Some(Verdict::Equivalent));
        assert!(
            compared.rows.iter().all(|r| r.metric.column != column::LOG_FILE_SYNC_MS),
            "no figure that no window has"
        );
    }

    #[test]
    fn a_pair_that_was_broken_or_is_invalid_is_left_out() {
        let mut records = windows(6, 1.1);
        records[0].valid = false;
        let row = &compare(&records, &arms(6)).rows[0];
        assert_eq!(row.ratio.map(|r| (r.pairs, r.dropped)), Some((5, 1)));
        // Pair 6 again, because its second window was missing when the run was resumed.
        let mut records = windows(6, 1.1);
        let broken = records.pop().unwrap();
        assert_eq!(cells(&records, 6)[0].pairs[5], None);
        records.push(window(12, broken.arm.unwrap(), 6, 1.0));
        records.push(window(13, ArmName::A, 6, 500.0));
        let again = cells(&records, 6)[0].pairs[5].map(|[a, b]| (a.test, b.test));
        assert_eq!(again, None, "two windows of one arm are no pair");
        records.push(window(14, ArmName::B, 6, 500.0));
        assert_eq!(cells(&records, 6)[0].pairs[5].map(|[a, b]| (a.test, b.test)), Some((13, 14)));
    }

    #[test]
    fn few_pairs_of_many_comparisons_show_intervals_but_no_verdict() {
        let mut records = Vec::new();
        for workload in ["A", "B", "C", "D"] {
            records.extend(windows(6, 1.5).into_iter().map(|r| TestRecord { workload: workload.to_owned(), ..r }));
        }
        let compared = compare(&records, &arms(6));
        for row in compared.rows.iter().filter(|r| r.main) {
            assert!(row.ratio.unwrap().interval.is_some() && row.together_takes.is_none(), "all four differ: {row:?}");
            assert_eq!(row.verdict, Some(Verdict::Faster));
        }
        let same = windows(6, 1.0).into_iter().map(|r| TestRecord { workload: "E".to_owned(), ..r });
        let noise = same.map(|mut r| {
            let tps = 1000.0 + f64::from(r.test * 7919 % 100);
            r.figures.insert(column::COMMIT_THROUGHPUT_TPS.id.to_owned(), tps);
            r
        });
        let records: Vec<TestRecord> = noise.chain(windows(6, 1.0)).collect();
        let mut exact = arms(6);
        exact.margin = 0.0001;
        let compared = compare(&records, &exact);
        let noisy = &compared.rows[0];
        assert_eq!((noisy.verdict, noisy.together_takes), (Some(Verdict::NotShown), Some(7)), "{noisy:?}");
        assert!(noisy.ratio.unwrap().interval.is_some(), "that of the figure alone");
    }
}
