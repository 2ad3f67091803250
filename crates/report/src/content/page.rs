//! The key figures on one page, by component group: one line per workload with its peak, the load and latency there, and
//! its valid tests; then the planned workloads that were not measured.

use loadline_analyze::kpi::{LATENCY, RESPONSE, time_in_checkpoint};
use loadline_analyze::{BoundBy, Sweep, SweepPoint, bound_of_sweep, kept_test};
use loadline_model::column;
use loadline_model::disturbance::judged;
use loadline_model::format::{ABSENT, Format, counted, number};
use loadline_model::{Column, TestRecord};

use super::figure::absent;
use super::key::NO_MEAN;
use super::{kept, limit, sizes, stop};
use crate::columns::value;
use crate::doc::{Block, Cell, Head, Notes, Row, Section, Table};
use crate::platform_run::{PlatformRun, Scan, group_title, groups};
use crate::small;
use crate::templates::prose;
use crate::words::{alike, cut, grouped, short_name, short_place, spans, unit};

/// Most characters of a reason; the test's own table has it in full.
const MAX_REASON: usize = 200;
/// Mean and 99th percentile of the time of a single-block read.
const READ: (&Column, &Column) = (column::READ_TIME_US_MEAN, column::READ_TIME_US_P99);
/// The same of a transaction, and of one in an open loop.
const TRANSACTION: (&Column, &Column) = (LATENCY, column::TRANSACTION_TIME_NS_P99);
const INTENDED: (&Column, &Column) = (RESPONSE, column::RESPONSE_TIME_NS_P99);

/// The section: one table per platform.
pub(crate) fn section(sides: &[PlatformRun<'_>], on_paper: bool) -> Section {
    let several = sides.len() > 1;
    let mut blocks = Vec::new();
    for side in sides {
        let mut table = table(side, if several { &side.label } else { "" }, on_paper);
        if on_paper {
            table.merge_notes();
        }
        blocks.extend(Block::table(table));
        let of = if several { format!("{}: ", side.label) } else { String::new() };
        blocks.extend(not_measured(side).into_iter().map(|text| Block::para(format!("{of}{text}"))));
    }
    if sides.iter().any(|s| !s.run.records.is_empty()) {
        blocks.push(Block::para(prose("key-figures", ())));
    }
    Section::of("key-figures", "Key figures", blocks)
}

/// The page of one platform. The first page on paper has space for one list of refused, disturbed and kept tests: that of what to
/// mind. So this one has none there.
pub(crate) fn table(side: &PlatformRun<'_>, caption: &str, on_paper: bool) -> Table {
    let notes = Notes::default();
    let mut rows = Vec::new();
    let all = groups(std::iter::once(side));
    for group in &all {
        if all.len() > 1 {
            rows.push(Row::title(group_title(group)));
        }
        rows.extend(side.sweeps.iter().filter(|s| s.group == *group).map(|s| line(side, s, &notes, on_paper)));
        let scans = side.scans.iter().filter(|s| s.record.group == *group);
        rows.extend(scans.map(|scan| scan_line(scan, on_paper)));
    }
    let head = [
        Head::text("Workload"),
        Head::number("Peak", "").tip("Highest mean of the workload's first KPI. Refused tests do not count."),
        Head::text(""),
        Head::text("at").tip("Jobs (or swept value) at the peak."),
        Head::number("Latency", "mean").tip("Mean latency at the peak."),
        Head::number("Latency", "p99").tip("99th percentile of the latency at the peak."),
        Head::text("Valid tests")
            .tip("Valid tests of all completed tests; the others are disturbed or refused.")
            .dispensable(),
        Head::number("Of limit", "%")
            .dispensable()
            .tip("Peak throughput as a share of what the hardware allows for the same work."),
        Head::text("Bounded by")
            .tip("What bounds the workload at its peak; the load lines give the reason.")
            .dispensable(),
    ];
    let mut table = Table { caption: caption.to_owned(), ..Table::of("key", head, rows) };
    // A column without any value is left out.
    for index in [8, 7] {
        let empty = ["", ABSENT, BoundBy::Unknown.name()];
        if table.rows.iter().all(|r| r.cells.get(index).is_none_or(|c| empty.contains(&c.text.as_str()))) {
            table.remove(index);
        }
    }
    table.notes = notes.finish(&mut table.rows);
    table
}

fn line(side: &PlatformRun<'_>, sweep: &Sweep, notes: &Notes, on_paper: bool) -> Row {
    let records = &side.run.records;
    let [valid, all] = sweep.points.iter().map(SweepPoint::counts).fold([0, 0], |[v, a], [x, y]| [v + x, a + y]);
    let tests = match all - valid {
        _ if side.run.published.is_some() => "not checked".to_owned(),
        0 => valid.to_string(),
        _ => format!("{valid} of {all}"),
    };
    let name = short_name(sweep, &side.sweeps);
    let cells: [Cell; 9] = match sweep.peak() {
        Some(peak) => {
            let (mean, p99) = latency(sweep, peak);
            let reached = Cell::from(sweep.rate_at(peak).map(|e| value(sweep.rate, e.mean)));
            let bound = bound_of_sweep(sweep, records).filter(|_| side.run.published.is_none());
            let point = |p: &SweepPoint| Some((f64::from(p.at), sweep.rate_at(p)?.mean));
            let points: Vec<(f64, f64)> = sweep.points.iter().filter_map(point).collect();
            let share = peak.figure(column::LIMIT_SHARE_PCT).map(|e| e.mean);
            let colour = colour_of(bound.as_ref().map_or(BoundBy::Unknown, |b| b.by));
            let no_mean = || Cell::absent(notes.mark(NO_MEAN, "Latency [mean]"));
            [
                name.into(),
                reached.marked(kept::mark(peak, notes)),
                unit(sweep.rate).into(),
                Cell::from(short_place(sweep, peak.at)).drawn(small::load_line(&points, f64::from(peak.at))),
                mean.map_or_else(no_mean, |mean| time(records, peak, mean, notes)),
                time(records, peak, p99, notes),
                tests.into(),
                limit::share(records, sweep, peak, notes).drawn(share.map(|pct| small::share(pct, colour))),
                bound.map_or(ABSENT, |b| b.by.name()).into(),
            ]
        }
        None => {
            let none = Cell::absent(notes.mark("every test is refused or has no throughput", ""));
            let [unit, at, mean, p99, share, bound] = ["", "", ABSENT, ABSENT, ABSENT, ABSENT].map(Cell::from);
            [name.into(), none, unit, at, mean, p99, tests.into(), share, bound]
        }
    };
    let of_tests = if on_paper { Default::default() } else { [why_not(sweep), kept::remark(sweep)] };
    let remark = remark(&sweep.workload, &of_tests);
    Row { invalid: sweep.points.iter().all(|p| p.tests.is_empty()), remark, ..Row::of(cells) }
}

/// Colour of a share of the limit, by what bounds the workload.
fn colour_of(by: BoundBy) -> usize {
    match by {
        BoundBy::Cpu | BoundBy::Client => 0,
        BoundBy::StorageReads | BoundBy::StorageWrites => 1,
        BoundBy::LogSync | BoundBy::LogWrite | BoundBy::DeviceBandwidth | BoundBy::SingleWriter => 2,
        BoundBy::Locks | BoundBy::Replica | BoundBy::RoundTrip => 3,
        BoundBy::Rate | BoundBy::ThinkTime | BoundBy::ScriptSleep | BoundBy::Connecting => 4,
        BoundBy::Unknown => 5,
    }
}

/// The remarks on a workload as a sentence; empty without any.
fn remark(workload: &str, said: &[String]) -> String {
    let said: Vec<&str> = said.iter().map(String::as_str).filter(|s| !s.is_empty()).collect();
    let said = said.join("; ");
    let end = if said.ends_with('…') { "" } else { "." };
    if said.is_empty() { said } else { format!("{workload}: {said}{end}") }
}

/// Columns of the mean and 99th percentile of the latency at `point`. Inside or outside checkpoints there is no mean.
fn latency(sweep: &Sweep, point: &SweepPoint) -> (Option<&'static Column>, &'static Column) {
    let about_reads = sweep.kpis.iter().any(|id| id.starts_with("read_time_us"));
    if let Some(p99) = time_in_checkpoint(sweep.rate) {
        return (None, p99);
    }
    let (mean, p99) = if point.figure(RESPONSE).is_some() {
        INTENDED
    } else if about_reads && point.figure(READ.0).is_some() {
        READ
    } else {
        TRANSACTION
    };
    (Some(mean), p99)
}

/// A time of `point` in a fitting unit.
fn time(records: &[TestRecord], point: &SweepPoint, column: &Column, notes: &Notes) -> Cell {
    match point.figure(column) {
        Some(e) => short_ns(nanoseconds(column, e.mean)).into(),
        None => absent(records, point, column, column.title, notes),
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

/// The refused tests with their reasons, shortened. Reasons that differ only in numbers appear once.
fn why_not(sweep: &Sweep) -> String {
    let mut refused: Vec<_> = sweep.points.iter().flat_map(|p| &p.refused).collect();
    refused.sort_by_key(|t| t.test);
    let said = alike(refused.into_iter().map(|t| (&t.reason, t.test))).into_iter().map(|(reason, tests)| {
        let (word, is) = if tests.len() == 1 { ("test", "is") } else { ("tests", "are") };
        format!("{word} {} {is} refused: {}", spans(&tests), cut(stop(reason), MAX_REASON))
    });
    said.collect::<Vec<_>>().join("; ")
}

/// A scan of sizes has a shape instead of a peak.
fn scan_line(scan: &Scan<'_>, on_paper: bool) -> Row {
    let r = scan.record;
    let median = |column: &Column| Cell::from(r.figure(column).map(short_ns));
    let cells: [Cell; 9] = [
        (&r.workload).into(),
        ABSENT.into(),
        "".into(),
        counted(r.sizes.len(), "size").into(),
        median(column::COMMIT_TIME_NS_MEAN),
        median(column::COMMIT_TIME_NS_P99),
        if r.valid { "1" } else { "0 of 1" }.into(),
        ABSENT.into(),
        ABSENT.into(),
    ];
    let remark = match &scan.shape {
        Some(shape) => {
            let kept = kept_test(r).map_or(String::new(), |kept| format!("; test {} is {kept}", r.test));
            format!("{}: {}{kept}.", r.workload, sizes::sentence(shape))
        }
        None if on_paper => String::new(),
        None => format!("{}: test {} is {}.", r.workload, r.test, stop(&judged(r))),
    };
    Row { invalid: !r.is_usable(), remark, ..Row::of(cells) }
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
