//! Use of the time: shares of the jobs' time, sampled waits by class and event, and histograms of latencies.

use loadline_analyze::bound;
use loadline_analyze::kpi::{LATENCY, THROUGHPUT};
use loadline_analyze::waits::Counts;
use loadline_model::column::*;
use loadline_model::format::{ABSENT, duration_ns, number};
use loadline_model::{Column, TestRecord};

use super::Period;
use super::words::{each, heading, heads, name, row};
use crate::columns::value;
use crate::content::load::with_kinds;
use crate::content::{histogram, stop};
use crate::doc::{Block, Head, Table};
use crate::spec::TableSpec;
use crate::templates::prose;
use crate::words::{distinct, grouped, heading_of, lower};

const MOST_EVENTS: usize = 20;
/// Classes of waits for the client, which are not the database's time: of PostgreSQL and MySQL, and of Oracle.
const CLIENT: [&str; 2] = ["Client", "Idle"];
const PARTS: [&Column; 15] = [
    THINKING_PCT, SCRIPT_SLEEP_PCT, CONNECTING_PCT, SESSION_CPU_PCT, SESSION_CPU_WAIT_PCT, SESSION_IO_PCT,
    READ_WAIT_PCT, WRITE_WAIT_PCT, LOG_WRITE_WAIT_PCT, LOCK_WAIT_PCT, WRITER_WAIT_PCT, REPLICA_WAIT_PCT,
    SESSION_IDLE_PCT, CLIENT_JOB_CPU_PCT, CLIENT_JOB_CPU_WAIT_PCT,
];
/// Subject of the test.
const ANSWER: [&Column; 12] = [
    THROUGHPUT, LATENCY, TRANSACTION_TIME_NS_P50, TRANSACTION_TIME_NS_P99, RESPONSE_TIME_NS_P99, COMMIT_TIME_NS_MEAN,
    COMMIT_TIME_NS_P99, LOG_FILE_SYNC_MS, READ_TIME_US_MEAN, CONNECT_TIME_NS_MEAN, CONNECT_TIME_NS_P99, LIMIT_TPS,
];
const MACHINE: [&Column; 12] = [
    CPU_BUSY_PCT, CPU_USER_PCT, CPU_SYS_PCT, CPU_IOWAIT_PCT, CPU_STEAL_PCT, OTHER_CPU_PCT, DEVICE_WRITES_PER_S,
    DEVICE_WRITE_MIB_PER_S, DEVICE_UTIL_PCT, DEVICE_READS_PER_S, DEVICE_READ_MIB_PER_S, DATA_DEVICE_UTIL_PCT,
];

/// The bound of each test, and its main figures.
pub(super) fn answer(periods: &[Period]) -> Vec<Block> {
    let said = |p: &Period| {
        let of = if periods.len() > 1 { format!("{}: bounded", p.label) } else { "Bounded".to_owned() };
        Some(Block::para(format!("{of} by {}.", stop(&bound(p.record.as_ref()?)?.sentence()))))
    };
    let of_tests: Vec<Block> = periods.iter().filter_map(said).collect();
    let figures = if periods.iter().any(|p| p.record.is_some()) { figures(periods, "", &ANSWER) } else { None };
    of_tests.into_iter().chain(figures).collect()
}

/// Tables of the jobs' time, of the machine, and of the sampled sessions by class.
pub(super) fn model(periods: &[Period]) -> Vec<Block> {
    let mut blocks = Vec::new();
    blocks.extend(figures(periods, "Shares of the jobs' time, which overlap", &PARTS));
    blocks.extend(sampled(periods, "Sampled sessions by class", usize::MAX, class));
    blocks.extend(figures(periods, "The machine", &MACHINE));
    let reasons: Vec<String> =
        periods.iter().filter_map(|p| p.record.as_ref()).flat_map(|r| absent(r, &PARTS)).collect();
    if !reasons.is_empty() && periods.len() == 1 {
        blocks.push(Block::para(format!("Without a figure: {}.", reasons.join("; "))));
    }
    blocks
}

/// The columns without a figure, by reason.
fn absent(record: &TestRecord, columns: &[&Column]) -> Vec<String> {
    let without = columns.iter().filter(|c| record.figure(c).is_none());
    let reasons = without.filter_map(|column| Some((record.absent.get(column.id)?, lower(column.title))));
    let said = |(why, of): (&String, Vec<(&String, String)>)| {
        format!("{} ({why})", of.into_iter().map(|(_, title)| title).collect::<Vec<_>>().join(", "))
    };
    grouped(reasons, |(why, _)| *why).into_iter().map(said).collect()
}

fn figures(periods: &[Period], caption: &str, columns: &[&'static Column]) -> Option<Block> {
    let log = periods.iter().all(|p| p.record.as_ref().is_none_or(|r| r.group == "log-writer"));
    let known = columns.iter().copied().filter(|column| periods.iter().any(|p| p.figure(column).is_some()));
    let mut table =
        TableSpec::<&Column>::new("figures narrow", known).text("", |column| heading_of(column, log)).caption(caption);
    for period in periods {
        table = table.number(name(period, periods), "", |column| period.figure(column).map(|v| value(column, v)));
    }
    Block::table(table.build())
}

/// Class of a wait event: what is before the colon.
fn class(event: &str) -> String {
    event.split_once(':').map_or(event, |(class, _)| class).to_owned()
}

/// The sampled waits by event.
pub(super) fn waits(periods: &[Period]) -> Vec<Block> {
    let mut blocks: Vec<Block> = sampled(periods, "", MOST_EVENTS, str::to_owned).into_iter().collect();
    if !blocks.is_empty() {
        blocks.push(Block::para(prose("sampled", ())));
    }
    blocks
}

/// Sessions by what `of` makes of their event: mean number, share of database time, time per transaction.
fn sampled(periods: &[Period], caption: &str, most: usize, named: impl Fn(&str) -> String) -> Option<Block> {
    let sampled = periods.iter().filter(|p| p.waits.samples > 0).flat_map(|p| p.waits.sessions.keys());
    let mean = |name: String| {
        let of = |p: &Period| p.waits.mean_sessions(|event| named(event) == name);
        (periods.iter().map(of).collect::<Vec<Option<f64>>>(), name)
    };
    let mut means: Vec<_> = distinct(sampled.map(|event| named(event))).into_iter().map(mean).collect();
    let is_client = |name: &str| CLIENT.contains(&class(name).as_str());
    let total =
        |at: usize| -> f64 { means.iter().filter(|(_, name)| !is_client(name)).filter_map(|(m, _)| m[at]).sum() };
    let totals: Vec<f64> = (0..periods.len()).map(total).collect();
    let largest = |m: &[Option<f64>]| m.iter().flatten().copied().fold(0.0, f64::max);
    means.sort_by(|(x, a), (y, b)| is_client(a).cmp(&is_client(b)).then(largest(y).total_cmp(&largest(x))));
    let left_out = means.len().saturating_sub(most);
    means.truncate(most);
    let lines = means.iter().map(|(mean, name)| {
        let per_tx: Vec<Option<f64>> = mean.iter().zip(periods).map(|(m, p)| each(*m, p.tps())).collect();
        let cells = mean.iter().zip(&totals).zip(&per_tx).flat_map(|((mean, total), each)| {
            let share = mean.filter(|_| !is_client(name) && *total > 0.0).map(|m| m / total * 100.0);
            let shown = |n: Option<f64>, decimals| n.map_or(ABSENT.to_owned(), |n| number(n, decimals));
            [shown(*mean, 2), shown(share, 1), each.map_or(ABSENT.to_owned(), |s| duration_ns(s * 1e9))]
        });
        row(name, cells, &per_tx)
    });
    let columns = [("sessions", "mean"), ("database time", "%"), ("per transaction", "")];
    let head = heads("Wait", periods, &columns.map(|(title, unit)| Head::number(title, unit)), "times per transaction");
    let sub = if left_out > 0 { format!("{left_out} smaller ones are left out") } else { String::new() };
    Block::table(Table { caption: caption.to_owned(), sub, ..Table::new("figures narrow", head, lines) })
}

/// Times of each kind of transaction, and histograms of the stored latencies.
pub(super) fn latencies(periods: &[Period]) -> Vec<Block> {
    let stored = periods.iter().flat_map(|p| p.histograms.iter().map(move |(kind, counts)| (p, kind, counts)));
    let kinds = grouped(stored.filter(|(.., counts)| counts.count() > 0), |(_, kind, _)| *kind);
    let drawn = |(kind, of): (&String, Vec<(&Period, &String, &Counts)>)| {
        let name = |p: &Period| if periods.len() > 1 { p.label.clone() } else { kind.clone() };
        let times: Vec<_> = of.into_iter().map(|(p, _, counts)| (name(p), counts.buckets())).collect();
        histogram(&format!("Times by {kind}"), &times)
    };
    let of_kinds = |p: &Period| with_kinds(p.record.as_ref()?, &heading(p, periods, "kinds of transactions"));
    periods.iter().filter_map(of_kinds).chain(kinds.into_iter().flat_map(drawn)).collect()
}
