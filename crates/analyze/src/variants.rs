//! Runs of variants: their windows in pairs, and what the pairs show.

use loadline_model::variant::Paired;
use loadline_model::{Column, InPair, Letter, LevelPoint, TestRecord};

use crate::kpi::{RESPONSE, higher_is_better, metrics};
use crate::paired::ratio::levels;
use crate::paired::verdict::{detectable, more_pairs, pairs_to};
use crate::paired::{Answer, Family, Pair, PairedEstimate, Question, Verdict, judge, paired_ratio};
use crate::sawtooth::{Shape, shape};

/// Probability that the interval of a figure misses the true ratio, and share of false verdicts.
pub const ERROR: f64 = 0.05;

/// The pairs of a variant and the first one, with a workload at a number of jobs.
#[derive(Debug, Clone, PartialEq)]
pub struct Cell<'a> {
    pub workload: &'a str,
    pub jobs: u32,
    window: &'a InPair,
    /// The windows of each planned pair, A's first; `None` if it was not measured as a pair.
    pub pairs: Vec<Option<[&'a TestRecord; 2]>>,
}

/// The cells of a run's records, in their order. `planned`: pairs of each.
pub fn cells(records: &[TestRecord], planned: u32) -> Vec<Cell<'_>> {
    let mut cells: Vec<Cell<'_>> = Vec::new();
    for r in records {
        let Some(window) = &r.variant else { continue };
        if !cells.iter().any(|cell| cell.has(r)) {
            cells.push(Cell { workload: &r.workload, jobs: r.jobs, window, pairs: Vec::new() });
        }
    }
    for cell in &mut cells {
        let windows: Vec<&TestRecord> = records.iter().filter(|r| cell.has(r)).collect();
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
    pub fn other(&self) -> Letter {
        self.window.beside
    }

    pub fn level(&self) -> Option<&'a LevelPoint> {
        self.window.level.as_ref()
    }

    pub fn has(&self, record: &TestRecord) -> bool {
        (self.workload, self.jobs) == (record.workload.as_str(), record.jobs)
            && record.variant.as_ref().is_some_and(|window| window.compares_as(self.window))
    }

    /// The last two of `windows`, A's first, if they are of both variants and neighbours: an interruption may leave one alone.
    pub fn last_pair(windows: &[&'a TestRecord]) -> Option<[&'a TestRecord; 2]> {
        let [.., first, second] = windows else { return None };
        match (first.arm()?, second.arm()?) {
            (x, y) if first.test + 1 != second.test || x == y => None,
            (Letter::A, _) => Some([first, second]),
            _ => Some([second, first]),
        }
    }

    /// The figure of each planned pair; none of a refused window.
    pub fn pairs_of(&self, column: &Column) -> Vec<Pair> {
        self.pairs_by(|r| r.figure(column))
    }

    /// The figure `of` the windows of each planned pair, likewise.
    pub fn pairs_by(&self, of: impl Fn(&TestRecord) -> Option<f64>) -> Vec<Pair> {
        let figure = |r: &TestRecord| if r.is_usable() { of(r) } else { None };
        let pair = |windows: &Option<[&TestRecord; 2]>| match windows {
            Some([a, b]) => Pair { a: figure(a), b: figure(b) },
            None => Pair { a: None, b: None },
        };
        self.pairs.iter().map(pair).collect()
    }

    /// Figures that the variants are compared by, the main one first: the first key figure, or in an open loop the response time.
    pub fn metrics(&self) -> Vec<&'static Column> {
        let windows: Vec<&TestRecord> = self.pairs.iter().flatten().flatten().copied().collect();
        let (Some(first), false) = (windows.first(), self.is_scan()) else { return Vec::new() };
        let open_loop = windows.iter().any(|r| r.figure(RESPONSE).is_some());
        let mut found = metrics(&first.group, &first.kpis, open_loop);
        // The main figure stays, because its lack is an answer; others that a variant's database does not have are left out.
        let has = |arm: Letter, column: &Column| {
            windows.iter().any(|r| r.arm() == Some(arm) && r.figure(column).is_some_and(|v| v > 0.0))
        };
        let both = [Letter::A, self.other()];
        let main = found.first().copied();
        found.retain(|metric| Some(*metric) == main || both.into_iter().all(|arm| has(arm, metric)));
        found
    }

    /// Whether its windows are scans of commit time over redo, which are compared by their curves.
    pub fn is_scan(&self) -> bool {
        self.pairs.iter().flatten().flatten().any(|r| !r.sizes().is_empty())
    }

    pub fn main_pairs(&self) -> Vec<Pair> {
        self.metrics().first().map_or_else(Vec::new, |main| self.pairs_of(main))
    }
}

/// Commit time over redo since the last commit, of a variant and the first one.
#[derive(Debug, Clone, PartialEq)]
pub struct Curves<'a> {
    pub cell: Cell<'a>,
    /// Shape in the first variant and in the other, of the last pair whose tests are both usable; `None` if there is none.
    pub shapes: Option<[Shape; 2]>,
}

pub fn curves(records: &[TestRecord], planned: u32) -> Vec<Curves<'_>> {
    let usable = |pair: &&[&TestRecord; 2]| pair.iter().all(|r| r.is_usable());
    let all = cells(records, planned).into_iter().filter(Cell::is_scan).map(|cell| {
        let shapes = cell.pairs.iter().flatten().rfind(usable).map(|pair| pair.map(|r| shape(r.sizes())));
        Curves { shapes, cell }
    });
    all.collect()
}

impl Curves<'_> {
    /// Whether they differ: one alone has a period, with teeth that the scatter of the other would not hide, or the 95 % intervals of
    /// both periods do not overlap. `None` if a shape is not decided, or may have teeth that are hidden.
    pub fn differ(&self) -> Option<bool> {
        match self.shapes.as_ref()? {
            [Shape::Sawtooth { period_interval: a, .. }, Shape::Sawtooth { period_interval: b, .. }] => {
                Some(a.high < b.low || b.high < a.low)
            }
            [Shape::Undecided { .. }, _] | [_, Shape::Undecided { .. }] => None,
            [Shape::Straight { .. }, Shape::Straight { .. }] => Some(false),
            [Shape::Sawtooth { amplitude_interval: teeth, .. }, Shape::Straight { hidden_ns, .. }]
            | [Shape::Straight { hidden_ns, .. }, Shape::Sawtooth { amplitude_interval: teeth, .. }] => {
                (*hidden_ns < teeth.low).then_some(true)
            }
        }
    }
}

/// Numbers of the tests that are the windows of a typical pair in each cell: that whose ratio is the median.
pub fn typical_windows(records: &[TestRecord], planned: u32) -> Vec<u32> {
    let typical = |cell: &Cell<'_>| {
        let windows = |(windows, figures): (&Option<[&TestRecord; 2]>, Pair)| {
            let ratio = Some(figures.b? / figures.a?).filter(|ratio| ratio.is_finite())?;
            windows.map(|[a, b]| (ratio, [a.test, b.test]))
        };
        let mut found: Vec<(f64, [u32; 2])> = cell.pairs.iter().zip(cell.main_pairs()).filter_map(windows).collect();
        found.sort_by(|x, y| x.0.total_cmp(&y.0));
        // Without a valid pair, the last one.
        let last = || cell.pairs.iter().flatten().next_back().map(|[a, b]| [a.test, b.test]);
        found.get(found.len() / 2).map(|(_, tests)| *tests).or_else(last)
    };
    cells(records, planned).iter().filter_map(typical).flatten().collect()
}

/// A figure of a variant and the first one, A; B stands for the variant.
#[derive(Debug, Clone, PartialEq)]
pub struct Row<'a> {
    pub cell: Cell<'a>,
    pub metric: &'static Column,
    pub main: bool,
    /// Typical level of A and of B in the valid pairs, in the column's unit: the typical level of both (the estimate of Hodges and
    /// Lehmann of their geometric means), divided by and times the root of the ratio, so that B/A is the ratio. Not numbers without
    /// a ratio.
    pub levels: (f64, f64),
    /// The ratio B/A; `None` if no pair is valid.
    pub ratio: Option<PairedEstimate>,
    /// Pairs that an interval of figures judged together takes, if there are fewer; `ratio` then has that of this figure alone.
    pub together_takes: Option<usize>,
    /// Verdict; `None` if no pair is valid.
    pub verdict: Option<Verdict>,
    /// Smallest difference that would have been shown with a probability of 80 %, as a share.
    pub detectable: Option<f64>,
    pub more_pairs: Option<usize>,
    /// Of a main figure in a run with a precision, whether and how that was reached.
    pub precision: Option<Precision>,
}

/// How near the interval of a figure is to the precision that was asked for.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Precision {
    /// Half its width, as a share; `None` without an interval.
    pub half_width: Option<f64>,
    /// How many more pairs the precision takes, about: 0 if it was reached; `None` if there is no interval to tell it from.
    pub more_pairs: Option<usize>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Compared<'a> {
    /// Cell by cell, the main figure first.
    pub rows: Vec<Row<'a>>,
    /// Treatment of several main figures, and of several others.
    pub families: [Family; 2],
}

/// Compares each variant with the first in all figures of all cells. The main figures are judged together, and so are all others: a
/// reader looks at either for any difference. Each of both holds the share of false verdicts at [`ERROR`].
pub fn compare<'a>(records: &'a [TestRecord], paired: &Paired) -> Compared<'a> {
    let cells = cells(records, paired.pairs);
    let figures = |cell: &Cell<'a>| {
        let figure = |(n, metric)| Figure { cell: cell.clone(), metric, main: n == 0, pairs: cell.pairs_of(metric) };
        cell.metrics().into_iter().enumerate().map(figure).collect::<Vec<_>>()
    };
    let all: Vec<Figure<'_>> = cells.iter().flat_map(figures).collect();
    let looks = paired.looks.len().max(1);
    let family = |main: bool| {
        let of = all.iter().filter(|figure| figure.main == main);
        let questions = of.map(|figure| Question {
            pairs: &figure.pairs,
            higher_is_better: higher_is_better(figure.metric),
            margin: paired.margin,
        });
        judge(&questions.collect::<Vec<_>>(), ERROR, looks)
    };
    let families = [family(true), family(false)];
    let mut answers = families.each_ref().map(|family| family.answers.iter());
    let row = |figure: &Figure<'a>| {
        let answer = answers[usize::from(!figure.main)].next()?;
        Some(row(figure, answer, paired, ERROR / looks as f64))
    };
    let rows = all.iter().filter_map(row).collect();
    Compared { rows, families }
}

struct Figure<'a> {
    cell: Cell<'a>,
    metric: &'static Column,
    main: bool,
    pairs: Vec<Pair>,
}

/// `answer`: that of its family; `alone`: the error of an interval of a single figure.
fn row<'a>(figure: &Figure<'a>, answer: &Answer, paired: &Paired, alone: f64) -> Row<'a> {
    let by_itself = paired_ratio(&figure.pairs, alone);
    let with_interval = by_itself.filter(|r| r.interval.is_some());
    let lacks = answer.ratio.filter(|r| r.interval.is_none() && with_interval.is_some());
    let ratio = if lacks.is_some() { with_interval } else { answer.ratio };
    let wanted = if figure.main { paired.precision } else { None };
    let precision = wanted.map(|wanted| {
        let half_width = by_itself.and_then(|r| r.half_width());
        Precision { half_width, more_pairs: by_itself.and_then(|r| pairs_to(&r, wanted)) }
    });
    Row {
        cell: figure.cell.clone(),
        metric: figure.metric,
        main: figure.main,
        levels: levels(&figure.pairs).unwrap_or((f64::NAN, f64::NAN)),
        ratio,
        together_takes: lacks.map(|r| r.least_pairs),
        verdict: answer.ratio.map(|_| answer.verdict),
        detectable: ratio.and_then(|r| detectable(&r)),
        more_pairs: ratio.and_then(|r| more_pairs(&r, paired.margin)),
        precision,
    }
}

#[cfg(test)]
mod tests {
    use loadline_model::{Detail, InPair, column};

    use super::*;
    use crate::paired::simulated;

    /// Windows of `pairs` pairs in blocks ABBA, B being `ratio` times as fast.
    fn windows(pairs: u32, ratio: f64) -> Vec<TestRecord> {
        simulated::windows(pairs, |test, arm| {
            let tps = if arm == Letter::A { 1000.0 } else { 1000.0 * ratio } + f64::from(test.div_ceil(2));
            vec![(column::COMMIT_THROUGHPUT_TPS, tps), (column::COMMIT_LATENCY_MS, 1e3 / tps)]
        })
    }

    fn arms(pairs: u32) -> Paired {
        Paired { pairs, looks: vec![pairs as usize], margin: 0.02, ..Paired::default() }
    }

    #[test]
    fn more_variants_are_each_compared_with_the_first_and_judged_together() {
        let mut records = windows(12, 1.3);
        let third = windows(12, 1.0).into_iter().map(|mut r| {
            let window = r.variant.as_mut().unwrap();
            window.beside = Letter::nth(2);
            window.arm = if window.arm == Letter::A { Letter::A } else { Letter::nth(2) };
            r.test += 24;
            r
        });
        records.extend(third);
        let compared = compare(&records, &arms(12));
        let shown: Vec<_> =
            compared.rows.iter().map(|row| (row.cell.other().to_string(), row.main, row.verdict.unwrap())).collect();
        let expected = [("B", Verdict::Faster), ("C", Verdict::Equivalent)];
        let expected = expected.into_iter().flat_map(|(arm, v)| [true, false].map(|main| (arm.to_owned(), main, v)));
        assert_eq!(shown, expected.collect::<Vec<_>>());
        let judged = compared.families.each_ref().map(|family| family.answers.len());
        assert_eq!(judged, [2, 2], "false discoveries are held over all main figures, and over all others");
    }

    #[test]
    fn curves_differ_if_the_intervals_of_their_periods_do_not_overlap() {
        use loadline_model::limits::SizePoint;
        let scan = |test: u32, arm: Letter, period: Option<f64>| {
            let point = |n: u32| {
                let mib = 0.25 * f64::from(n);
                let tooth = period.map_or(0.0, |period| (mib / period).fract() * 2e6);
                let at = |k: u32| (5e5 + 1e5 * mib + tooth + 1e3 * f64::from((n * 7 + k * 13) % 11)) as u64;
                SizePoint {
                    idle_s: 0.0,
                    redo_bytes: mib * 1_048_576.0,
                    commit_ns: (0..5).map(at).collect(),
                    write_ns: Vec::new(),
                }
            };
            let details = vec![Detail::Sizes((1..=96).map(point).collect())];
            let figures = [(column::COMMIT_THROUGHPUT_TPS.id.to_owned(), 1.0)].into();
            TestRecord { test, details, figures, variant: Some(InPair::of_two(arm)), ..TestRecord::blank("LGWR-SIZE") }
        };
        for (a, b, differ) in [(Some(4.0), Some(6.0), true), (Some(4.0), Some(4.0), false), (Some(4.0), None, true)] {
            let records = [scan(1, Letter::A, a), scan(2, Letter::B, b)];
            let found = curves(&records, 1);
            assert_eq!(found[0].differ(), Some(differ), "{a:?} {b:?}: {:?}", found[0].shapes);
            assert!(compare(&records, &arms(1)).rows.is_empty(), "no ratio is made of a curve");
        }
        assert!(curves(&windows(2, 1.0), 2).is_empty());
        // Teeth that the scatter of the other could hide are no difference.
        let records = [scan(1, Letter::A, Some(4.0)), scan(2, Letter::B, None)];
        let mut hidden = curves(&records, 1).remove(0);
        let Some([_, Shape::Straight { hidden_ns, .. }]) = &mut hidden.shapes else { panic!("{:?}", hidden.shapes) };
        *hidden_ns = 1e9;
        assert_eq!(hidden.differ(), None);
    }

    #[test]
    fn a_typical_pair_is_that_with_the_median_ratio() {
        let mut records = windows(5, 1.2);
        let typical = |records: &[TestRecord]| typical_windows(records, 5);
        // B's lead of 200 counts for less the higher the level: the third pair is the one in the middle.
        assert_eq!(typical(&records), [5, 6]);
        records.iter_mut().for_each(|r| r.valid = false);
        assert_eq!(typical(&records).len(), 2, "refused windows have pages as well");
    }

    #[test]
    fn a_pair_that_was_broken_or_is_refused_is_left_out() {
        let mut records = windows(6, 1.1);
        records[0].valid = false;
        let row = &compare(&records, &arms(6)).rows[0];
        assert_eq!(row.ratio.map(|r| (r.pairs, r.dropped)), Some((5, 1)));
        // Pair 6 again, because its second window was missing when the run was resumed.
        let all = windows(8, 1.1);
        let again = |test: u32| TestRecord { test, repetition: 6, ..all[test as usize - 1].clone() };
        let sixth = |records: &[TestRecord]| cells(records, 6)[0].pairs[5].map(|[a, b]| (a.test, b.test));
        let mut records = all[..11].to_vec();
        assert_eq!(sixth(&records), None);
        // The last is of A, as the one that is missing is.
        records.extend([again(12), again(13)]);
        assert_eq!(sixth(&records), None, "two windows of one arm are no pair");
        records.push(again(14));
        assert_eq!(sixth(&records), Some((13, 14)));
    }

    #[test]
    fn few_pairs_of_many_comparisons_show_intervals_but_no_verdict() {
        let same = windows(6, 1.0).into_iter().map(|r| TestRecord { workload: "E".to_owned(), ..r });
        let noise = same.map(|mut r| {
            let tps = 1000.0 + f64::from(r.test * 7919 % 100);
            r.figures.insert(column::COMMIT_THROUGHPUT_TPS.id.to_owned(), tps);
            r
        });
        let records: Vec<TestRecord> = noise.chain(windows(6, 1.0)).collect();
        let mut exact = arms(6);
        exact.margin = 0.0001;
        let noisy = &compare(&records, &exact).rows[0];
        assert_eq!((noisy.verdict, noisy.together_takes), (Some(Verdict::NotShown), Some(7)), "{noisy:?}");
        assert!(noisy.ratio.unwrap().interval.is_some(), "that of the figure alone");
    }
}
