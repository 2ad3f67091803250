//! The key figures on one page, by component group: one line per workload with its peak, the load and latency there, and its valid tests; then
//! the planned workloads that were not measured. And the load lines: the share of the limit at the peak, growth, what bounds it, the load line.

use loadline_analyze::kpi::{LATENCY, time_in_checkpoint};
use loadline_analyze::{BoundBy, LoadLine, NotKey, Sweep, SweepPoint, kept_test};
use loadline_model::disturbance::judged;
use loadline_model::format::{ABSENT, Format, counted, number};
use loadline_model::{Column, TestRecord, column};
use minijinja::context;

use super::qualified::{LIMIT, TITLE, absent, figure, limit, share as share_of_limit};
use super::{qualified, stop};
use crate::Options;
use crate::bars::{load_line, share};
use crate::doc::{Block, Cell, Row, Section, Table};
use crate::platform_run::{PlatformRun, Scan, group_title, groups, swept};
use crate::spec::TableSpec;
use crate::templates::{prose, stored};
use crate::words::{
    alike, are, grouped, name, of_pairs, place, places, short_name, short_place, tests_named, unit, value,
};

const READ: (&Column, &Column) = (column::READ_TIME_US_MEAN, column::READ_TIME_US_P99);

pub(crate) fn section(sides: &[PlatformRun<'_>], on_paper: bool) -> Section {
    let several = sides.len() > 1;
    let mut blocks = Vec::new();
    for side in sides {
        blocks.extend(Block::table(table(side, if several { &side.label } else { "" }, on_paper)));
        let of = if several { format!("{}: ", side.label) } else { String::new() };
        blocks.extend(not_measured(side).into_iter().map(|text| Block::para(format!("{of}{text}"))));
    }
    if sides.iter().any(|s| !s.run.records.is_empty()) {
        blocks.push(Block::para(prose("key-figures", ())));
    }
    Section::new("key-figures", "Key figures", blocks)
}

/// The line of a workload: of a sweep its peak, of a scan, which has a shape instead, its commit times.
#[derive(Default)]
struct Line {
    group: String,
    workload: String,
    peak: Option<Cell>,
    unit: String,
    at: Cell,
    mean: Option<Cell>,
    p99: Option<Cell>,
    valid_tests: String,
    of_limit: Option<Cell>,
    bounded_by: Option<BoundBy>,
    is_invalid: bool,
    remark: String,
}

/// The page of one platform. The first page on paper lists refused, disturbed and kept tests once: in what to mind.
pub(crate) fn table(side: &PlatformRun<'_>, caption: &str, on_paper: bool) -> Table {
    let all = groups(std::iter::once(side));
    let mut lines: Vec<Line> = Vec::new();
    for group in &all {
        let sweeps = side.sweeps.iter().filter(|sweep| sweep.group == *group);
        lines.extend(sweeps.map(|sweep| of_sweep(side, sweep, on_paper)));
        let scans = side.scans.iter().filter(|scan| scan.record.group == *group);
        lines.extend(scans.map(|scan| of_scan(scan, on_paper)));
    }
    let any_bound = lines.iter().any(|line| line.bounded_by.is_some_and(|by| by != BoundBy::Unknown));
    let known = |cell: &Option<Cell>| cell.clone().unwrap_or_else(|| ABSENT.into());
    TableSpec::<&Line>::new("key", &lines)
        .text("Workload", |line| &line.workload)
        .number("Peak", "", |line| known(&line.peak))
        .text("", |line| &line.unit)
        .text("at", |line| line.at.clone())
        .number("Latency", "mean", |line| known(&line.mean))
        .number("Latency", "p99", |line| known(&line.p99))
        .text("Valid tests", |line| &line.valid_tests)
        .number("Of limit", "%", |line| known(&line.of_limit))
        .if_known()
        .text("Bounded by", |line| line.bounded_by.map_or(ABSENT, |by| by.name()))
        .when(any_bound)
        .dispensable(&["Valid tests", "Of limit", "Bounded by"])
        .titles(|line| if all.len() > 1 { group_title(&line.group).to_owned() } else { String::new() })
        .lines(|line| Row { invalid: line.is_invalid, remark: line.remark.clone(), ..Row::default() })
        .caption(caption)
        .brief(on_paper)
        .tips("tips of key figures")
        .build()
}

fn of_sweep(side: &PlatformRun<'_>, sweep: &Sweep, on_paper: bool) -> Line {
    let (records, is_published) = (&side.run.records, side.run.published.is_some());
    let said = if on_paper { Vec::new() } else { vec![why_not(sweep), qualified::remark(sweep)] };
    let without_peak = Line {
        group: sweep.group.clone(),
        workload: short_name(sweep, &side.sweeps),
        valid_tests: if is_published { "not checked".to_owned() } else { valid_tests(sweep) },
        is_invalid: sweep.points.iter().all(|p| p.tests.is_empty()),
        remark: remark(&sweep.workload, said),
        ..Line::default()
    };
    let Some(peak) = sweep.peak() else {
        let peak = Some(Cell::absent("every test is refused or has no throughput", ""));
        // Where a place would say what was swept, there is none.
        return Line { workload: name(sweep, &side.sweeps), peak, ..without_peak };
    };
    let points = sweep.points.iter().filter_map(|p| Some((f64::from(p.at), sweep.rate_at(p)?.mean)));
    let drawn = load_line(&points.collect::<Vec<_>>(), f64::from(peak.at));
    let bounded_by = side.bound(sweep).map(|bound| bound.by);
    let drawn_share = peak.figure(column::LIMIT_SHARE_PCT);
    let drawn_share = drawn_share.map(|pct| share(pct.mean, bounded_by.unwrap_or(BoundBy::Unknown)));
    let (mean, p99) = latency(sweep, peak);
    let rate = Cell::from(sweep.rate_at(peak).map(|e| value(sweep.rate, e.mean)));
    Line {
        peak: Some(rate.noted(qualified::kept_by(peak), "")),
        unit: unit(sweep.rate),
        at: Cell { drawn, ..Cell::from(short_place(sweep, peak.at)) },
        mean: Some(match mean {
            Some(mean) => time(records, peak, mean),
            None => Cell::absent(NO_MEAN, "Latency [mean]"),
        }),
        p99: Some(time(records, peak, p99)),
        of_limit: Some(Cell { drawn: drawn_share, ..share_of_limit(records, sweep, peak) }),
        bounded_by,
        ..without_peak
    }
}

fn of_scan(scan: &Scan<'_>, on_paper: bool) -> Line {
    let r = scan.record;
    let of_test = |what: &str| format!("test {} is {what}", r.test);
    let said = match &scan.shape {
        Some(shape) => vec![prose("shape", shape), kept_test(r).map_or_else(String::new, |kept| of_test(&kept))],
        None if on_paper => Vec::new(),
        None => vec![of_test(stop(&judged(r)))],
    };
    let time = |column| r.figure(column).map(|ns| short_ns(ns).into());
    Line {
        group: r.group.clone(),
        workload: r.workload.clone(),
        at: counted(r.sizes().len(), "size").into(),
        mean: time(column::COMMIT_TIME_NS_MEAN),
        p99: time(column::COMMIT_TIME_NS_P99),
        valid_tests: if r.valid { "1" } else { "0 of 1" }.to_owned(),
        is_invalid: !r.is_usable(),
        remark: remark(&r.workload, said),
        ..Line::default()
    }
}

/// `4`, or `3 of 4` if one is not valid.
fn valid_tests(sweep: &Sweep) -> String {
    let [valid, all] = sweep.points.iter().map(SweepPoint::counts).fold([0, 0], |[v, a], [x, y]| [v + x, a + y]);
    of_pairs(all, all - valid)
}

/// Remarks on a workload: tests that are not valid or kept, and the shape of a scan; empty without any.
fn remark(workload: &str, said: Vec<String>) -> String {
    let said = said.into_iter().filter(|s| !s.is_empty()).collect::<Vec<_>>().join("; ");
    let end = if said.ends_with('…') { "" } else { "." };
    if said.is_empty() { said } else { format!("{workload}: {said}{end}") }
}

/// Columns of the mean and 99th percentile of the latency at `point`. Inside or outside checkpoints there is no mean.
fn latency(sweep: &Sweep, point: &SweepPoint) -> (Option<&'static Column>, &'static Column) {
    let about_reads = sweep.kpis.iter().any(|id| id.starts_with("read_time_us"));
    if let Some(p99) = time_in_checkpoint(sweep.rate) {
        return (None, p99);
    }
    let [mean, _, p99] = point.latencies();
    let is_read = about_reads && mean == LATENCY && point.figure(READ.0).is_some();
    if is_read { (Some(READ.0), READ.1) } else { (Some(mean), p99) }
}

fn time(records: &[TestRecord], point: &SweepPoint, column: &Column) -> Cell {
    match point.figure(column) {
        Some(e) => short_ns(nanoseconds(column, e.mean)).into(),
        None => absent(records, point, column, column.title),
    }
}

/// A time with three digits in a fitting unit: `87.1 µs`, `124 ms`.
fn short_ns(ns: f64) -> String {
    let (value, unit) = match ns.abs() {
        a if a < 999.5 => (ns, "ns"),
        a if a < 999.5e3 => (ns / 1e3, "µs"),
        a if a < 999.5e6 => (ns / 1e6, "ms"),
        _ => (ns / 1e9, "s"),
    };
    let decimals = match value.abs() {
        v if v < 9.995 => 2,
        v if v < 99.95 => 1,
        _ => 0,
    };
    format!("{} {unit}", number(value, decimals))
}

fn nanoseconds(column: &Column, value: f64) -> f64 {
    match (column.format, column.unit) {
        (Format::NsAsMs, _) => value,
        (_, "s") => value * 1e9,
        (_, "ms") => value * 1e6,
        (_, "µs") => value * 1e3,
        _ => value,
    }
}

/// The refused tests with their reasons, whose ends say what to do. Reasons that differ only in numbers appear once.
fn why_not(sweep: &Sweep) -> String {
    let mut refused: Vec<_> = sweep.points.iter().flat_map(|p| &p.refused).collect();
    refused.sort_by_key(|t| t.test);
    let said = alike(refused.into_iter().map(|t| (&t.reason, t.test)))
        .into_iter()
        .map(|(reason, tests)| format!("{} {} refused: {}", tests_named(&tests), are(tests.len()), stop(reason)));
    said.collect::<Vec<_>>().join("; ")
}

/// Planned workloads without a test: skipped with the reason, or not reached. One sentence per reason.
pub(crate) fn not_measured(side: &PlatformRun<'_>) -> Vec<String> {
    let plan = &side.run.manifest.plan;
    let said = grouped(&plan.skipped, |s| s.reason.as_str()).into_iter().map(|(reason, skipped)| {
        let codes: Vec<&str> = skipped.iter().map(|s| s.code.as_str()).collect();
        format!("Skipped: {}: {}.", codes.join(", "), stop(reason))
    });
    let known = |code: &str| {
        side.run.records.iter().any(|r| r.workload == code) || plan.skipped.iter().any(|skipped| skipped.code == code)
    };
    let left: Vec<&str> = plan.workloads.iter().map(|w| w.code.as_str()).filter(|code| !known(code)).collect();
    let left = (!left.is_empty()).then(|| format!("Not measured, as the run ended before: {}.", left.join(", ")));
    said.chain(left).collect()
}

const REDO: [&Column; 2] = [column::REDO_MIB_PER_S, column::REDO_KIB_PER_TX];

/// Why rates inside and outside checkpoints have no mean latency.
const NO_MEAN: &str = "only the 99th percentile is measured separately for transactions inside and outside checkpoints";

pub(crate) fn load_lines(sides: &[PlatformRun<'_>], options: &Options) -> Section {
    let imported = sides.iter().any(|side| side.run.published.as_ref().is_some_and(|p| p.imported));
    let explained = || Block::para(prose("load-lines", context! { imported }));
    let blocks = if swept(sides).is_empty() {
        Vec::new()
    } else {
        vec![Block::Table(load_line_table(sides, options)), explained()]
    };
    Section::new("load-lines", "Load lines", blocks)
}

type Of<'a> = (&'a PlatformRun<'a>, &'a Sweep);

fn ordered<'a>(sides: &'a [PlatformRun<'a>]) -> Vec<Of<'a>> {
    let all = sides.iter().flat_map(|side| side.sweeps.iter().map(move |sweep| (side, sweep)));
    let of_workloads = grouped(all, |(_, sweep)| &sweep.workload).into_iter().map(|(_, of)| of);
    let mut ordered: Vec<Of<'_>> =
        of_workloads.flat_map(|of| grouped(of, |(_, sweep)| &sweep.over)).flat_map(|(_, of)| of).collect();
    let groups = groups(sides.iter());
    ordered.sort_by_key(|(_, sweep)| groups.iter().position(|group| *group == sweep.group));
    ordered
}

fn load_line_table(sides: &[PlatformRun<'_>], options: &Options) -> Table {
    let several = sides.len() > 1;
    // The key figures say it, except on paper.
    let says_kept = options.paper && !options.summary;
    let alone = groups(sides.iter()).len() == 1;
    let any = |column: &Column| {
        sides.iter().flat_map(|s| &s.sweeps).any(|s| s.peak().is_some_and(|p| p.figure(column).is_some()))
    };
    // Only in tables of one group: most groups do not need these columns.
    let (redo, limited) = (alone && REDO.iter().any(|column| any(column)), alone || any(LIMIT));
    let at_peak = |(side, sweep): Of<'_>, cell: &dyn Fn(&[TestRecord], &SweepPoint) -> Cell| match sweep.peak() {
        Some(peak) => cell(&side.run.records, peak),
        None => Cell::absent("no valid test has a throughput", ""),
    };
    let shown = |of: Of<'_>, column: &Column| at_peak(of, &|records, peak| figure(records, peak, column));
    let latency = |of: Of<'_>, which: usize| {
        at_peak(of, &|records, peak| match (time_in_checkpoint(of.1.rate), which) {
            // Rate and latency are of the same transactions.
            (Some(p99), 2) => figure(records, peak, p99),
            (Some(_), _) => Cell::absent(NO_MEAN, "Latency [ms], p50 [ms]"),
            (None, which) => figure(records, peak, peak.latencies()[which]),
        })
    };
    let reached =
        |of: Of<'_>| at_peak(of, &|records, peak| figure(records, peak, of.1.rate).noted(qualified::kept_by(peak), ""));
    TableSpec::new("key", ordered(sides))
        .text("Workload", |(side, sweep)| name(sweep, &side.sweeps))
        .once()
        .text("Platform", |(side, _)| &side.label)
        .when(several)
        .number("Peak", "", reached)
        .text("", |(_, sweep)| sweep.peak().map_or_else(String::new, |_| unit(sweep.rate)))
        .text("at", |(_, sweep)| sweep.peak().map_or_else(String::new, |peak| place(&sweep.over, peak.at)))
        .number("Latency", "ms", |of| latency(of, 0))
        .number("p50", "ms", |of| latency(of, 1))
        .number("p99", "ms", |of| latency(of, 2))
        .number("Redo", "MiB/s", |of| shown(of, REDO[0]))
        .when(redo)
        .number("Redo", "KiB/tx", |of| shown(of, REDO[1]))
        .when(redo)
        .number(TITLE, "", |of| at_peak(of, &|records, peak| limit(records, of.1, peak)))
        .when(limited)
        .number("Of limit", "%", |of| at_peak(of, &|records, peak| share_of_limit(records, of.1, peak)))
        .when(limited)
        .text("Growth", |(_, sweep)| growth(sweep))
        .text("Load line", |(side, sweep)| line_of(sweep, side.run.manifest.plan.latency_objective_ns()))
        .titles(|(_, sweep)| if alone { String::new() } else { group_title(&sweep.group).to_owned() })
        .lines(|(side, sweep)| Row { remark: bound_and_kept(side, sweep, several, says_kept), ..Row::default() })
        .brief(options.summary)
        .tips("tips of load lines")
        .build()
}

/// The bound of a sweep, and which of its tests are valid by an option only.
fn bound_and_kept(side: &PlatformRun<'_>, sweep: &Sweep, several: bool, says_kept: bool) -> String {
    let (label, bound) = (several.then_some(&side.label), side.bound(sweep));
    let is_unknown = bound.as_ref().is_some_and(|bound| bound.by == BoundBy::Unknown);
    let kept = if says_kept { qualified::remark(sweep) } else { String::new() };
    let bound = bound.map(|bound| bound.sentence());
    prose("remark-of-load-line", context! { label, is_unknown, bound, kept })
}

fn growth(sweep: &Sweep) -> String {
    let growth = stored(&sweep.saturation());
    prose("growth", context! { growth, over => sweep.over, over_jobs => sweep.over_jobs() }) + &beyond(sweep)
}

/// Job counts above the highest that counts, by why they do not: `; disturbed at 4 jobs; refused at 8, 16 jobs`.
pub(super) fn beyond(sweep: &Sweep) -> String {
    let of_reason = |(why, points): (NotKey, Vec<(u32, NotKey)>)| {
        let why = match why {
            NotKey::Refused => "refused",
            NotKey::Disturbed => "disturbed",
            NotKey::NoRate => "without a figure",
        };
        let at: Vec<u32> = points.into_iter().map(|(at, _)| at).collect();
        format!("; {why} at {}", places(&sweep.over, &at))
    };
    grouped(sweep.beyond(), |(_, why)| *why).into_iter().map(of_reason).collect()
}

fn line_of(sweep: &Sweep, objective_ns: Option<u64>) -> String {
    let line = sweep.load_line(objective_ns);
    let throughput = match &line {
        LoadLine::Objective { throughput, .. } | LoadLine::Power { throughput, .. } => value(sweep.rate, *throughput),
        _ => String::new(),
    };
    prose("load-line", context! { line, throughput, unit => unit(sweep.rate) })
}

#[cfg(test)]
mod tests {
    use super::short_ns;

    #[test]
    fn times_have_three_digits() {
        let shown =
            [(0.0, "0.00 ns"), (87_123.0, "87.1 µs"), (999_700.0, "1.00 ms"), (123.53e6, "124 ms"), (12.7e9, "12.7 s")];
        for (ns, text) in shown {
            assert_eq!(short_ns(ns), text);
        }
    }
}
