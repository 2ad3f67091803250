//! Comparison between platforms: factors computed from the figures, with their uncertainty, and
//! refused where the work was not the same.

use loadline_model::{TestRecord, format};
use serde::Serialize;

use crate::kpi::{metrics, uses_data, writes_redo};
use crate::stats::{Estimate, Ratio, ratio};
use crate::sweep::{JOBS, Point, Sweep, sweeps};

/// Redo per transaction may differ by this share between two platforms before they count as doing
/// different work: the calibration's own tolerance.
pub const REDO_TOLERANCE: f64 = 0.10;
/// Redo per transaction that counts as none, KiB: what a database writes on its own meanwhile.
const NO_REDO_KIB: f64 = 0.1;

/// One side of a comparison.
#[derive(Debug, Clone, Copy)]
pub struct Platform<'a> {
    /// How it is called; unique among those compared.
    pub label: &'a str,
    /// Share of the payload that compresses away, 0…1, if it is known.
    pub payload_compressibility: Option<f64>,
    /// Size of the data set, bytes, if it is known.
    pub data_bytes: Option<u64>,
    /// All of its tests.
    pub records: &'a [TestRecord],
}

/// A figure that platforms are compared by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(into = "&'static str")]
pub struct Metric {
    /// Column id.
    pub id: &'static str,
    /// Whether more is better.
    pub higher_is_better: bool,
}

impl From<Metric> for &'static str {
    fn from(metric: Metric) -> &'static str {
        metric.id
    }
}

const fn more(id: &'static str) -> Metric {
    Metric { id, higher_is_better: true }
}

const fn less(id: &'static str) -> Metric {
    Metric { id, higher_is_better: false }
}

/// What log writers are compared by, in the order of their table; see [`crate::kpi::metrics`] for others.
pub const METRICS: [Metric; 6] = [
    more("commit_throughput_tps"),
    less("commit_latency_ms"),
    more("redo_mib_per_s"),
    less("log_file_sync_ms"),
    less("commit_time_ns_p50"),
    less("commit_time_ns_p99"),
];

/// How many times better the other platform is than the base in one figure: `other / base` where
/// more is better, `base / other` where less is. Above 1 is in favour of the other platform.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Factor {
    /// The figure.
    pub metric: Metric,
    /// The base platform's figure, in the column's unit.
    pub base: f64,
    /// The other platform's figure, in the column's unit.
    pub other: f64,
    /// Tests behind the base platform's figure.
    pub n_base: usize,
    /// Tests behind the other platform's figure.
    pub n_other: usize,
    /// The factor and its interval.
    pub factor: Ratio,
}

/// Where two platforms are compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum At {
    /// At the same number of jobs (or value of what was swept).
    Jobs(u32),
    /// Each at its own highest throughput.
    Peak {
        /// Jobs (or value of what was swept) at the base platform's peak.
        base_jobs: u32,
        /// The same at the other platform's peak.
        other_jobs: u32,
    },
}

/// One place of comparison: factors, or why there are none.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Row {
    /// Where.
    pub at: At,
    /// Factors of the figures that both sides have; empty if refused.
    pub factors: Vec<Factor>,
    /// Why there is no factor.
    pub refused: Option<String>,
    /// What could not be checked about the work being equal.
    pub caveat: Option<String>,
}

/// One workload on one platform against the base platform.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Comparison {
    /// Workload code.
    pub workload: String,
    /// What was swept: `jobs`, or the column of another parameter.
    pub over: String,
    /// What is compared, the workload's KPIs first.
    pub metrics: Vec<Metric>,
    /// Base platform: the first one given.
    pub base: String,
    /// The other platform.
    pub other: String,
    /// Why the whole comparison is refused.
    pub refused: Option<String>,
    /// The platform that has no test of it, if that is why.
    pub lacks: Option<String>,
    /// Peak first, then every job count that both measured.
    pub rows: Vec<Row>,
}

impl Comparison {
    /// Lowest and highest factor of column `id` over equal job counts, each with its job count.
    #[must_use]
    pub fn range(&self, id: &str) -> Option<((u32, Factor), (u32, Factor))> {
        let seen: Vec<(u32, Factor)> = self
            .rows
            .iter()
            .filter_map(|row| match row.at {
                At::Jobs(jobs) => Some((jobs, *row.factor(id)?)),
                At::Peak { .. } => None,
            })
            .collect();
        let by_value = |a: &&(u32, Factor), b: &&(u32, Factor)| a.1.factor.value.total_cmp(&b.1.factor.value);
        Some((*seen.iter().min_by(by_value)?, *seen.iter().max_by(by_value)?))
    }

    /// The comparison at each platform's peak.
    #[must_use]
    pub fn peak(&self) -> Option<&Row> {
        self.rows.iter().find(|r| matches!(r.at, At::Peak { .. }))
    }

    /// The comparison at `jobs` jobs.
    #[must_use]
    pub fn at_jobs(&self, jobs: u32) -> Option<&Row> {
        self.rows.iter().find(|r| r.at == At::Jobs(jobs))
    }
}

impl Row {
    /// The factor of column `id`.
    #[must_use]
    pub fn factor(&self, id: &str) -> Option<&Factor> {
        self.factors.iter().find(|f| f.metric.id == id)
    }
}

/// Compares every platform with the first one, workload by workload in the order of the first
/// platform's tests. A workload that only one of the two measured is refused by name as well.
#[must_use]
pub fn compare(platforms: &[Platform<'_>]) -> Vec<Comparison> {
    let Some((base, others)) = platforms.split_first() else { return Vec::new() };
    let base_sweeps = sweeps(base.records);
    let mut out = Vec::new();
    for other in others {
        let mut partnered = vec![false; base_sweeps.len()];
        for sweep in sweeps(other.records) {
            match partner(&base_sweeps, &sweep) {
                Some((index, partner)) => {
                    if let Some(mark) = partnered.get_mut(index) {
                        *mark = true;
                    }
                    out.push(compare_sweeps(base, partner, other, &sweep));
                }
                None => out.push(one_sided(base, other, &sweep, base.label)),
            }
        }
        for (sweep, _) in base_sweeps.iter().zip(&partnered).filter(|(_, seen)| !**seen) {
            if !other.records.iter().any(|r| r.workload == sweep.workload && swept_alike(r, sweep)) {
                out.push(one_sided(base, other, sweep, other.label));
            }
        }
    }
    let order = |workload: &str| base_sweeps.iter().position(|s| s.workload == workload).unwrap_or(usize::MAX);
    out.sort_by_key(|c| order(&c.workload));
    out
}

/// The base platform's sweep that `sweep` is held against: the same driver and parameters if
/// there is one, else the same driver, else any of the same workload (which is then refused).
fn partner<'a>(base: &'a [Sweep], sweep: &Sweep) -> Option<(usize, &'a Sweep)> {
    let alike = |b: &Sweep| b.workload == sweep.workload && b.over == sweep.over;
    let same: Vec<(usize, &Sweep)> = base.iter().enumerate().filter(|(_, b)| alike(b)).collect();
    let pick = |wanted: &dyn Fn(&Sweep) -> bool| same.iter().copied().find(|(_, b)| wanted(b));
    pick(&|b| b.driver == sweep.driver && b.rate_tps == sweep.rate_tps && b.parameters == sweep.parameters)
        .or_else(|| pick(&|b| b.driver == sweep.driver && b.rate_tps == sweep.rate_tps))
        .or_else(|| pick(&|b| b.driver == sweep.driver))
        .or_else(|| same.first().copied())
}

fn swept_alike(record: &TestRecord, sweep: &Sweep) -> bool {
    record.swept.as_deref().unwrap_or(JOBS) == sweep.over
}

fn one_sided(base: &Platform<'_>, other: &Platform<'_>, sweep: &Sweep, lacks: &str) -> Comparison {
    let over = if sweep.over_jobs() { String::new() } else { format!(" over {}", sweep.over) };
    Comparison {
        workload: sweep.workload.clone(),
        over: sweep.over.clone(),
        metrics: metrics(&sweep.group, &sweep.kpis),
        base: base.label.to_owned(),
        other: other.label.to_owned(),
        refused: Some(format!("«{lacks}» has no test of {}{over}", sweep.workload)),
        lacks: Some(lacks.to_owned()),
        rows: Vec::new(),
    }
}

fn compare_sweeps(base: &Platform<'_>, a: &Sweep, other: &Platform<'_>, b: &Sweep) -> Comparison {
    let refused = different_setup(base, a, other, b);
    let work = Compared {
        names: (base.label, other.label),
        metrics: metrics(&a.group, &a.kpis),
        with_redo: writes_redo(&a.group),
        over_jobs: a.over_jobs(),
    };
    let mut rows = Vec::new();
    if refused.is_none() {
        if let (Some(pa), Some(pb)) = (a.peak(), b.peak()) {
            let at = At::Peak { base_jobs: pa.at, other_jobs: pb.at };
            let refused = (a.rate != b.rate).then(|| {
                format!("the peak is one of {} on «{}», and of {} on «{}»", a.rate, base.label, b.rate, other.label)
            });
            rows.push(match refused {
                Some(_) => Row { at, factors: Vec::new(), refused, caveat: None },
                None => work.row(at, pa, pb),
            });
        }
        let equal = a.points.iter().filter_map(|pa| Some((pa, b.at(pa.at)?)));
        rows.extend(equal.map(|(pa, pb)| work.row(At::Jobs(pa.at), pa, pb)));
    }
    Comparison {
        workload: a.workload.clone(),
        over: a.over.clone(),
        metrics: work.metrics,
        base: base.label.to_owned(),
        other: other.label.to_owned(),
        refused,
        lacks: None,
        rows,
    }
}

fn different_setup(base: &Platform<'_>, a: &Sweep, other: &Platform<'_>, b: &Sweep) -> Option<String> {
    if a.driver != b.driver {
        return Some(format!(
            "different drivers: «{}» was measured with the {} driver, «{}» with the {} driver",
            base.label, a.driver, other.label, b.driver
        ));
    }
    if a.rate_tps != b.rate_tps {
        let rate = |r: Option<f64>| r.map_or("closed loop".to_owned(), |r| format!("open loop at {r} tps"));
        return Some(format!(
            "different load: «{}» ran {}, «{}» {}",
            base.label,
            rate(a.rate_tps),
            other.label,
            rate(b.rate_tps)
        ));
    }
    if !a.over_jobs() && a.points.first().map(|p| p.jobs) != b.points.first().map(|p| p.jobs) {
        let jobs = |s: &Sweep| s.points.first().map_or(0, |p| p.jobs);
        return Some(format!(
            "different load: «{}» was swept over {} with {} {}, «{}» with {}",
            base.label,
            a.over,
            jobs(a),
            jobs_word(jobs(a)),
            other.label,
            jobs(b)
        ));
    }
    if let (true, Some(x), Some(y)) = (uses_data(&a.group), base.data_bytes, other.data_bytes)
        && x != y
    {
        let size = |bytes: u64| format::bytes(bytes as f64);
        return Some(format!(
            "different data: a data set of {} on «{}», of {} on «{}» (--size)",
            size(x),
            base.label,
            size(y),
            other.label
        ));
    }
    match (base.payload_compressibility, other.payload_compressibility) {
        (Some(x), Some(y)) if (x - y).abs() > 1e-9 => Some(format!(
            "different payload: {:.0} % of it compresses away on «{}», {:.0} % on «{}»",
            x * 100.0,
            base.label,
            y * 100.0,
            other.label
        )),
        _ => None,
    }
}

/// What two sweeps of the same workload are held to.
struct Compared<'a> {
    names: (&'a str, &'a str),
    metrics: Vec<Metric>,
    /// Whether redo is part of the work.
    with_redo: bool,
    over_jobs: bool,
}

impl Compared<'_> {
    fn row(&self, at: At, a: &Point, b: &Point) -> Row {
        // At the peaks of a sweep over rows per transaction these differ by intent.
        let alike = self.over_jobs || a.at == b.at;
        let unequal = || alike.then(|| unequal_work(self.names, self.with_redo, a, b)).flatten();
        let refused = no_valid_test(self.names, a, b).or_else(unequal);
        let factors = if refused.is_some() {
            Vec::new()
        } else {
            self.metrics.iter().filter_map(|m| factor(*m, a.figure(m.id)?, b.figure(m.id)?)).collect()
        };
        let caveat = if refused.is_some() { None } else { unchecked(self.names, self.with_redo, a, b) };
        Row { at, factors, refused, caveat }
    }
}

fn factor(metric: Metric, a: &Estimate, b: &Estimate) -> Option<Factor> {
    let factor = if metric.higher_is_better { ratio(b, a)? } else { ratio(a, b)? };
    Some(Factor { metric, base: a.mean, other: b.mean, n_base: a.n, n_other: b.n, factor })
}

fn no_valid_test(names: (&str, &str), a: &Point, b: &Point) -> Option<String> {
    let side = |name: &str, p: &Point| {
        p.tests.is_empty().then(|| format!("«{name}» has no valid test at {} {}", p.jobs, jobs_word(p.jobs)))
    };
    side(names.0, a).or_else(|| side(names.1, b))
}

fn jobs_word(n: u32) -> &'static str {
    if n == 1 { "job" } else { "jobs" }
}

fn unequal_work(names: (&str, &str), with_redo: bool, a: &Point, b: &Point) -> Option<String> {
    let counts = [
        ("rows_per_tx", "rows per transaction"),
        ("statements_per_tx", "statements per transaction"),
        ("threads", "parallel workers"),
    ];
    for (id, what) in counts {
        if let (Some(x), Some(y)) = (a.figure(id), b.figure(id)) {
            // Counts are whole numbers; half of one is room for a mean over repetitions.
            if (x.mean - y.mean).abs() >= 0.5 {
                return Some(format!(
                    "unequal work: {:.0} {what} on «{}», {:.0} on «{}»",
                    x.mean, names.0, y.mean, names.1
                ));
            }
        }
    }
    if !with_redo {
        return None;
    }
    let (x, y) = (a.figure("redo_kib_per_tx")?.mean, b.figure("redo_kib_per_tx")?.mean);
    if x.max(y) <= NO_REDO_KIB {
        return None;
    }
    let apart = x.max(y) / x.min(y) - 1.0;
    ((!apart.is_finite() && x != y) || apart > REDO_TOLERANCE).then(|| {
        let differ = if apart.is_finite() { format!("{:.0} % apart", apart * 100.0) } else { "apart".to_owned() };
        format!(
            "unequal work: {x:.2} KiB of redo per transaction on «{}», {y:.2} on «{}»: {differ}, more than {:.0} %",
            names.0,
            names.1,
            REDO_TOLERANCE * 100.0
        )
    })
}

fn unchecked(names: (&str, &str), with_redo: bool, a: &Point, b: &Point) -> Option<String> {
    let evidence = [
        ("redo_kib_per_tx", "redo per transaction"),
        ("rows_per_tx", "rows per transaction"),
        ("statements_per_tx", "statements per transaction"),
    ];
    let lacks = |point: &Point| -> Vec<&str> {
        evidence
            .iter()
            .filter(|(id, _)| with_redo || *id != "redo_kib_per_tx")
            .filter(|(id, _)| point.figure(id).is_none())
            .map(|(_, what)| *what)
            .collect()
    };
    let (a, b) = (lacks(a), lacks(b));
    let told = |what: &[&str], whose: String| (!what.is_empty()).then(|| format!("{} on {whose}", what.join(", ")));
    let missing: Vec<String> = if a == b {
        told(&a, "both platforms".to_owned()).into_iter().collect()
    } else {
        [told(&a, format!("«{}»", names.0)), told(&b, format!("«{}»", names.1))].into_iter().flatten().collect()
    };
    (!missing.is_empty())
        .then(|| format!("not recorded, so equal work could not be checked by it: {}", missing.join("; ")))
}
