//! Load lines by workload and platform: peak, its share of the limit, growth, what bounds it, and the load line.

use loadline_analyze::kpi::time_in_checkpoint;
use loadline_analyze::{BoundBy, LoadLine, NotKey, Saturation, Sweep, SweepPoint, bound_of_sweep};
use loadline_model::format::ABSENT;
use loadline_model::{Column, TestRecord, column};
use minijinja::context;

use super::figure::{LIMIT, TITLE, figure, limit, share};
use super::{qualified, stop};
use crate::columns::value;
use crate::doc::{Block, Cell, Notes, Row, Section, Table};
use crate::platform_run::{PlatformRun, group_title, groups, swept};
use crate::spec::TableSpec;
use crate::templates::prose;
use crate::words::{grouped, name, place, unit};

/// Redo at the peak, for workloads that write.
const REDO: [&Column; 2] = [column::REDO_MIB_PER_S, column::REDO_KIB_PER_TX];

/// Why rates inside and outside checkpoints have no mean latency.
pub(super) const NO_MEAN: &str =
    "only the 99th percentile is measured separately for transactions inside and outside checkpoints";

/// The section; a brief one does not say which tests are kept, as its first page does.
pub(crate) fn section(sides: &[PlatformRun<'_>], brief: bool) -> Section {
    let imported = sides.iter().any(|side| side.run.published.as_ref().is_some_and(|p| p.imported));
    let explained = || Block::para(prose("load-lines", context! { imported }));
    let blocks =
        if swept(sides).is_empty() { Vec::new() } else { vec![Block::Table(table(sides, brief)), explained()] };
    Section::new("load-lines", "Load lines", blocks)
}

type Of<'a> = (&'a PlatformRun<'a>, &'a Sweep);

/// The sweeps by group, workload, swept parameter and platform.
fn ordered<'a>(sides: &'a [PlatformRun<'a>]) -> Vec<Of<'a>> {
    let all = sides.iter().flat_map(|side| side.sweeps.iter().map(move |sweep| (side, sweep)));
    let of_workloads = grouped(all, |(_, sweep)| &sweep.workload).into_iter().map(|(_, of)| of);
    let mut ordered: Vec<Of<'_>> =
        of_workloads.flat_map(|of| grouped(of, |(_, sweep)| &sweep.over)).flat_map(|(_, of)| of).collect();
    let groups = groups(sides.iter());
    ordered.sort_by_key(|(_, sweep)| groups.iter().position(|group| *group == sweep.group));
    ordered
}

fn table(sides: &[PlatformRun<'_>], brief: bool) -> Table {
    let several = sides.len() > 1;
    let alone = groups(sides.iter()).len() == 1;
    let any = |column: &Column| {
        sides.iter().flat_map(|s| &s.sweeps).any(|s| s.peak().is_some_and(|p| p.figure(column).is_some()))
    };
    // Only in tables of one group: most groups do not need these columns.
    let (redo, limited) = (alone && REDO.iter().any(|column| any(column)), alone || any(LIMIT));
    let notes = Notes::new(brief);
    let at_peak = |(side, sweep): Of<'_>, cell: &dyn Fn(&[TestRecord], &SweepPoint) -> Cell| match sweep.peak() {
        Some(peak) => cell(&side.run.records, peak),
        None => Cell::absent(notes.mark("no valid test has a throughput", "")),
    };
    let shown = |of: Of<'_>, column: &Column| at_peak(of, &|records, peak| figure(records, peak, column, &notes));
    let latency = |of: Of<'_>, which: usize| {
        at_peak(of, &|records, peak| match (time_in_checkpoint(of.1.rate), which) {
            // Rate and latency are of the same transactions.
            (Some(p99), 2) => figure(records, peak, p99, &notes),
            (Some(_), _) => Cell::absent(notes.mark(NO_MEAN, "Latency [ms], p50 [ms]")),
            (None, which) => figure(records, peak, peak.latencies()[which], &notes),
        })
    };
    let reached = |of: Of<'_>| {
        at_peak(of, &|records, peak| figure(records, peak, of.1.rate, &notes).marked(qualified::mark(peak, &notes)))
    };
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
        .number(TITLE, "", |of| at_peak(of, &|records, peak| limit(records, of.1, peak, &notes)))
        .when(limited)
        .number("Of limit", "%", |of| at_peak(of, &|records, peak| share(records, of.1, peak, &notes)))
        .when(limited)
        .text("Growth", |(_, sweep)| format!("{}{}", growth(sweep), beyond(sweep)))
        .text("Load line", |(side, sweep)| load_line(sweep, side.run.manifest.plan.latency_objective_ns()))
        .titles(|(_, sweep)| if alone { String::new() } else { group_title(&sweep.group).to_owned() })
        .lines(|(side, sweep)| Row { remark: remark(side, sweep, several, brief), ..Row::default() })
        .notes(&notes)
        .tips("tips of load lines")
        .build()
}

/// The bound of a sweep, and which of its tests are valid by an option only.
fn remark(side: &PlatformRun<'_>, sweep: &Sweep, several: bool, brief: bool) -> String {
    let of = if several { format!("{}: ", side.label) } else { String::new() };
    let bound = if side.run.published.is_none() { bound_of_sweep(sweep, &side.run.records) } else { None };
    let bound = bound.map(|b| match b.by {
        BoundBy::Unknown => format!("{of}{}.", stop(&b.sentence())),
        _ => format!("{of}bounded by {}.", stop(&b.sentence())),
    });
    let kept = Some(qualified::remark(sweep)).filter(|k| !brief && !k.is_empty()).map(|k| match several {
        true => format!("{of}{k}."),
        false => format!("{}.", k.replacen("test", "Test", 1)),
    });
    bound.into_iter().chain(kept).collect::<Vec<_>>().join(" ")
}

fn growth(sweep: &Sweep) -> String {
    let at = |value: u32| place(&sweep.over, value);
    match sweep.saturation() {
        Saturation::Saturated { peak_jobs } if sweep.over_jobs() => format!("saturated at {}", at(peak_jobs)),
        // Another parameter than jobs is not load and saturates nothing.
        Saturation::Saturated { peak_jobs } => format!("highest at {}", at(peak_jobs)),
        Saturation::Rising { jobs, previous_jobs, growth_pct } if growth_pct.is_finite() => {
            format!("still rising at {} (+{growth_pct:.1} % over {previous_jobs})", at(jobs))
        }
        Saturation::Rising { jobs, .. } => format!("still rising at {}", at(jobs)),
        Saturation::RateGiven => format!("{ABSENT}: the rate was given"),
        Saturation::Unknown if sweep.over_jobs() => "unknown: fewer than two job counts".to_owned(),
        Saturation::Unknown => "unknown: fewer than two values".to_owned(),
    }
}

/// Job counts above the highest that counts, by why they do not: `; disturbed at 4 jobs; refused at 8, 16 jobs`.
pub(super) fn beyond(sweep: &Sweep) -> String {
    let by_reason = grouped(sweep.beyond(), |(_, why)| *why);
    let of_reason = by_reason.into_iter().map(|(why, points)| {
        let why = match why {
            NotKey::Refused => "refused",
            NotKey::Disturbed => "disturbed",
            NotKey::NoRate => "without a figure",
        };
        let (last, before) = points.split_last().map_or((0, &points[..]), |((at, _), before)| (*at, before));
        let before: String = before.iter().map(|(at, _)| format!("{at}, ")).collect();
        format!("; {why} at {before}{}", place(&sweep.over, last))
    });
    of_reason.collect()
}

fn load_line(sweep: &Sweep, objective_ns: Option<u64>) -> String {
    let line = sweep.load_line(objective_ns);
    let throughput = match &line {
        LoadLine::Objective { throughput, .. } | LoadLine::Power { throughput, .. } => value(sweep.rate, *throughput),
        _ => String::new(),
    };
    prose("load-line", context! { line, throughput, unit => unit(sweep.rate) })
}
