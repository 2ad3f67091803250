//! Load lines by workload and platform: peak, its share of the limit, growth, what bounds it, and the load line.

use loadline_analyze::kpi::time_in_checkpoint;
use loadline_analyze::{BoundBy, LoadLine, Saturation, Sweep, bound_of_sweep};
use loadline_model::format::{ABSENT, counted, duration_ns};
use loadline_model::{Column, column};

use super::figure::figure;
use super::{kept, limit, stop};
use crate::columns::value;
use crate::doc::{Block, Cell, Head, Notes, Row, Section, Table};
use crate::platform_run::{PlatformRun, group_title, groups, swept};
use crate::words::{name, place, unit};

/// Redo at the peak, for workloads that write.
const REDO: [&Column; 2] = [column::REDO_MIB_PER_S, column::REDO_KIB_PER_TX];

/// Why rates inside and outside checkpoints have no mean latency.
pub(super) const NO_MEAN: &str =
    "only the 99th percentile is measured separately for transactions inside and outside checkpoints";

/// The section; a brief one has no remarks on workloads.
pub(crate) fn section(sides: &[PlatformRun<'_>], brief: bool) -> Section {
    let mut table = table(sides);
    if brief {
        // What bounds the workloads and which tests are kept is on the first page.
        table.rows.iter_mut().for_each(|row| row.remark.clear());
        table.merge_notes();
    }
    let blocks = if swept(sides).is_empty() { Vec::new() } else { vec![Block::Table(table), meaning(sides)] };
    Section::of("load-lines", "Load lines", blocks)
}

fn table(sides: &[PlatformRun<'_>]) -> Table {
    let several = sides.len() > 1;
    let mut head = vec![Head::text("Workload")];
    if several {
        head.push(Head::text("Platform"));
    }
    head.extend([
        Head::number("Peak", "").tip("Highest mean throughput, by the workload's first KPI, valid tests only."),
        Head::text(""),
        Head::text("at").tip("Jobs (or swept value) with the highest throughput."),
        Head::number("Latency", "ms").tip("Mean transaction time at the peak; in an open loop the response time."),
        Head::number("p50", "ms").tip("Median of the same."),
        Head::number("p99", "ms").tip("99th percentile of the same."),
    ]);
    let all = groups(sides.iter());
    let sweeps = || sides.iter().flat_map(|s| &s.sweeps);
    // Only in tables of one group: most groups do not need these columns.
    let redo =
        all.len() == 1 && sweeps().any(|s| s.peak().is_some_and(|p| REDO.iter().any(|id| p.figure(id).is_some())));
    if redo {
        head.push(Head::number("Redo", "MiB/s").tip("Redo generated per second at the peak."));
        head.push(Head::number("Redo", "KiB/tx").tip("Redo generated per transaction at the peak."));
    }
    let limited = all.len() == 1 || sweeps().any(|s| s.peak().is_some_and(|p| p.figure(limit::LIMIT).is_some()));
    if limited {
        head.push(
            Head::number(limit::TITLE, "")
                .tip("What the hardware allows for the same work and jobs, in the unit of the peak."),
        );
        head.push(Head::number("Of limit", "%").tip("Peak throughput as a share of the limit."));
    }
    head.extend([Head::text("Growth"), Head::text("Load line")]);
    let mut notes = Notes::default();
    let mut rows = Vec::new();
    for group in &all {
        let of_group: Vec<String> =
            swept(sides).into_iter().filter(|w| sweeps().any(|s| s.workload == *w && s.group == *group)).collect();
        if all.len() > 1 && !of_group.is_empty() {
            rows.push(Row::title(group_title(group)));
        }
        for workload in of_group {
            let mut own: Vec<(&PlatformRun<'_>, &Sweep)> = sides
                .iter()
                .flat_map(|side| side.sweeps.iter().map(move |sweep| (side, sweep)))
                .filter(|(_, s)| s.workload == workload)
                .collect();
            // By swept parameter, then by platform.
            let overs: Vec<String> = own.iter().map(|(_, s)| s.over.clone()).collect();
            own.sort_by_key(|(_, s)| overs.iter().position(|o| *o == s.over));
            for (i, (side, sweep)) in own.into_iter().enumerate() {
                rows.push(row(side, sweep, (several, redo, limited, i == 0), &mut notes));
            }
        }
    }
    Table { notes: notes.finish(), ..Table::of("key", head, rows) }
}

fn row(
    side: &PlatformRun<'_>,
    sweep: &Sweep,
    (several, redo, limited, first): (bool, bool, bool, bool),
    notes: &mut Notes,
) -> Row {
    let mut cells: Vec<Cell> = vec![name(sweep, &side.sweeps).into()];
    if several {
        cells.push(side.label.as_str().into());
    }
    match sweep.peak() {
        Some(peak) => {
            let rate = sweep.rate;
            let response = peak.figure(column::RESPONSE_TIME_NS_MEAN).is_some();
            let latency = if response {
                [column::RESPONSE_TIME_NS_MEAN, column::RESPONSE_TIME_NS_P50, column::RESPONSE_TIME_NS_P99]
            } else {
                [column::COMMIT_LATENCY_MS, column::TRANSACTION_TIME_NS_P50, column::TRANSACTION_TIME_NS_P99]
            };
            let records = &side.run.records;
            let reached = figure(records, peak, rate, notes);
            let mark = kept::with_mark(&reached.mark, &kept::mark(peak, notes));
            cells.push(Cell { mark, ..reached });
            cells.push(unit(rate).into());
            cells.push(place(&sweep.over, peak.at).into());
            match time_in_checkpoint(rate) {
                // Rate and latency are of the same transactions.
                Some(p99) => {
                    let none = || Cell { text: ABSENT.to_owned(), mark: String::new() };
                    let mark = notes.mark(NO_MEAN, "Latency [ms], p50 [ms]");
                    cells.extend([none(), none()].map(|c| Cell { mark: mark.clone(), ..c }));
                    cells.push(figure(records, peak, p99, notes));
                }
                None => cells.extend(latency.map(|id| figure(records, peak, id, notes))),
            }
            if redo {
                cells.extend(REDO.map(|id| figure(records, peak, id, notes)));
            }
            if limited {
                cells.push(limit::limit(records, sweep, peak, notes));
                cells.push(limit::share(records, sweep, peak, notes));
            }
        }
        None => {
            let mark = notes.mark("no valid test has a throughput", "");
            let none = || Cell { text: ABSENT.to_owned(), mark: mark.clone() };
            cells.extend([none(), "".into(), "".into()]);
            cells.extend((0..3 + 2 * (usize::from(redo) + usize::from(limited))).map(|_| none()));
        }
    }
    cells.push(format!("{}{}", growth(sweep), beyond(sweep)).into());
    cells.push(load_line(sweep, side.run.manifest.plan.latency_objective_ns).into());
    let of = if several { format!("{}: ", side.label) } else { String::new() };
    let bound = bound_of_sweep(sweep, &side.run.records).filter(|_| side.run.published.is_none());
    let remark = bound.map(|b| match b.by {
        BoundBy::Unknown => format!("{of}{}.", stop(&b.sentence())),
        _ => format!("{of}bounded by {}.", stop(&b.sentence())),
    });
    let kept = Some(kept::remark(sweep)).filter(|k| !k.is_empty()).map(|k| match several {
        true => format!("{of}{k}."),
        false => format!("{}.", k.replacen("test", "Test", 1)),
    });
    let remark = remark.into_iter().chain(kept).collect::<Vec<_>>().join(" ");
    Row { cells, first, remark, ..Row::default() }
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
        Saturation::Unknown if sweep.over_jobs() => "unknown: fewer than two job counts".to_owned(),
        Saturation::Unknown => "unknown: fewer than two values".to_owned(),
    }
}

/// Job counts above the highest valid one, which have only invalid tests.
fn beyond(sweep: &Sweep) -> String {
    let highest = sweep.points.iter().filter(|p| !p.tests.is_empty()).map(|p| p.at).max().unwrap_or(0);
    let mut above: Vec<String> = sweep.points.iter().filter(|p| p.at > highest).map(|p| p.at.to_string()).collect();
    let Some(last) = above.pop() else { return String::new() };
    let last = place(&sweep.over, last.parse().unwrap_or(0));
    above.push(last);
    format!("; invalid at {}", above.join(", "))
}

fn load_line(sweep: &Sweep, objective_ns: Option<u64>) -> String {
    let ms = |v: f64| duration_ns(v * 1e6);
    let rate = sweep.rate;
    let at = |jobs: u32, throughput: f64, latency: f64, at_least: bool| {
        let jobs = counted(jobs as usize, "job");
        let least = if at_least { "at least " } else { "" };
        format!("{least}{jobs}: {} {} at {}", value(rate, throughput), unit(rate), ms(latency))
    };
    match sweep.load_line(objective_ns) {
        LoadLine::Objective { jobs, throughput, latency_ms, objective_ms, at_least, missed_below } => {
            let missed: Vec<String> = missed_below.iter().map(u32::to_string).collect();
            let missed =
                if missed.is_empty() { String::new() } else { format!("; but missed at {} jobs", missed.join(", ")) };
            format!("{} (mean ≤ {}{missed})", at(jobs, throughput, latency_ms, at_least), ms(objective_ms))
        }
        LoadLine::NoneMeets { objective_ms, lowest_latency_ms, jobs } => format!(
            "none: the objective of {} is missed at every job count (lowest mean: {} at {})",
            ms(objective_ms),
            ms(lowest_latency_ms),
            counted(jobs as usize, "job")
        ),
        LoadLine::Power { jobs, throughput, latency_ms, at_least } => {
            format!("{} (power)", at(jobs, throughput, latency_ms, at_least))
        }
        LoadLine::Unknown { why } => format!("{ABSENT}: {why}"),
    }
}

fn meaning(sides: &[PlatformRun<'_>]) -> Block {
    let imported = sides.iter().any(|side| side.run.published.as_ref().is_some_and(|p| p.imported));
    let unchecked = if imported { "Imported figures are as the tool stated them, and checked by nobody. " } else { "" };
    Block::para(format!(
        "{unchecked}Figures are from valid tests only; tests that are valid only by --allow-cached, --allow-disturbed or --force are \
         marked. Latency is the transaction time at the peak: from a transaction's first statement to the return of its commit. The load line \
         is the highest load at which mean latency still meets the objective; without an objective it is the load with the \
         highest power (throughput / latency), marked 'power'. 'a ± b' is a mean over repetitions with its 95 % confidence \
         interval (Student's t); a percentile over repetitions is the mean of their percentiles. The limit is what the \
         hardware allows for the same work. What bounds a workload follows from the figures given with it; 'limit unknown' \
         means that they do not show it."
    ))
}
