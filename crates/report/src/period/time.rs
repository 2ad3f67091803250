//! Use of the time: shares of the jobs' time, sampled waits by class and event, those of the slowest transactions, histograms of latencies, and
//! figures over time on one axis.

use loadline_analyze::bound;
use loadline_analyze::kpi::{LATENCY, THROUGHPUT};
use loadline_analyze::waits::Counts;
use loadline_model::column::*;
use loadline_model::format::{ABSENT, duration_ns, number};
use loadline_model::slow::{SlowWait, WaitClass};
use loadline_model::{Column, JobLoad, TestRecord};
use minijinja::context;

use super::{Period, each, heading, name, ratio, side_by_side};
use crate::content::load::with_kinds;
use crate::content::{histogram, of_test, stop};
use crate::doc::{Block, Chart, Head};
use crate::spec::TableSpec;
use crate::svg::{self, ChartLine};
use crate::templates::prose;
use crate::words::{distinct, grouped, heading_of, lower, value};

const MOST_EVENTS: usize = 20;
/// Classes of waits for the client, which are not the database's time: of PostgreSQL and MySQL, and of Oracle.
const CLIENT: [&str; 2] = ["Client", "Idle"];
const PARTS: [&Column; 15] = [
    THINKING_PCT, SCRIPT_SLEEP_PCT, CONNECTING_PCT, SESSION_CPU_PCT, SESSION_CPU_WAIT_PCT, SESSION_IO_PCT,
    READ_WAIT_PCT, WRITE_WAIT_PCT, LOG_WRITE_WAIT_PCT, LOCK_WAIT_PCT, WRITER_WAIT_PCT, REPLICA_WAIT_PCT,
    SESSION_IDLE_PCT, CLIENT_JOB_CPU_PCT, CLIENT_JOB_CPU_WAIT_PCT,
];
const ANSWER: [&Column; 12] = [
    THROUGHPUT, LATENCY, TRANSACTION_TIME_NS_P50, TRANSACTION_TIME_NS_P99, RESPONSE_TIME_NS_P99, COMMIT_TIME_NS_MEAN,
    COMMIT_TIME_NS_P99, LOG_FILE_SYNC_MS, READ_TIME_US_MEAN, CONNECT_TIME_NS_MEAN, CONNECT_TIME_NS_P99, LIMIT_TPS,
];
const MACHINE: [&Column; 12] = [
    CPU_BUSY_PCT, CPU_USER_PCT, CPU_SYS_PCT, CPU_IOWAIT_PCT, CPU_STEAL_PCT, OTHER_CPU_PCT, DEVICE_WRITES_PER_S,
    DEVICE_WRITE_MIB_PER_S, DEVICE_UTIL_PCT, DEVICE_READS_PER_S, DEVICE_READ_MIB_PER_S, DATA_DEVICE_UTIL_PCT,
];

pub(super) fn answer(periods: &[Period]) -> Vec<Block> {
    let said = |p: &Period| {
        let record = p.record.as_ref()?;
        let bound = bound(record)?;
        let of = if periods.len() > 1 { format!("{}: bounded", p.label) } else { "Bounded".to_owned() };
        let sentence = format!("{of} by {}.", stop(&bound.sentence()));
        Some(Block::Answer { label: name(p, periods).to_owned(), figures: of_test(record, &bound), sentence })
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

pub(super) fn waits(periods: &[Period]) -> Vec<Block> {
    let mut blocks: Vec<Block> = sampled(periods, "", MOST_EVENTS, str::to_owned).into_iter().collect();
    if !blocks.is_empty() {
        blocks.push(Block::para(prose("sampled", ())));
    }
    blocks
}

/// The mean number of sessions in each period, by what they wait for.
type Means = (Vec<Option<f64>>, String);

/// Sessions by what `named` makes of their event: mean number, share of database time, time per transaction.
fn sampled(periods: &[Period], caption: &str, most: usize, named: impl Fn(&str) -> String) -> Option<Block> {
    let sampled = periods.iter().filter(|p| p.waits.samples > 0).flat_map(|p| p.waits.sessions.keys());
    let mean = |name: String| {
        let of = |p: &Period| p.waits.mean_sessions(|event| named(event) == name);
        (periods.iter().map(of).collect::<Vec<Option<f64>>>(), name)
    };
    let mut means: Vec<Means> = distinct(sampled.map(|event| named(event))).into_iter().map(mean).collect();
    let is_client = |name: &str| CLIENT.contains(&class(name).as_str());
    let total =
        |at: usize| -> f64 { means.iter().filter(|(_, name)| !is_client(name)).filter_map(|(m, _)| m[at]).sum() };
    let totals: Vec<f64> = (0..periods.len()).map(total).collect();
    let largest = |m: &[Option<f64>]| m.iter().flatten().copied().fold(0.0, f64::max);
    means.sort_by(|(x, a), (y, b)| is_client(a).cmp(&is_client(b)).then(largest(y).total_cmp(&largest(x))));
    let left_out = means.len().saturating_sub(most);
    means.truncate(most);
    let per_tx = |mean: &[Option<f64>], at: usize| each(mean[at], periods[at].tps());
    let cells = |(mean, name): &Means, at: usize| {
        let of_database = if !is_client(name) && totals[at] > 0.0 { mean[at] } else { None };
        let share = of_database.map(|m| m / totals[at] * 100.0);
        let shown = |n: Option<f64>, decimals| n.map_or(ABSENT.to_owned(), |n| number(n, decimals));
        let each = per_tx(mean, at).map_or(ABSENT.to_owned(), |s| duration_ns(s * 1e9));
        [shown(mean[at], 2), shown(share, 1), each]
    };
    let heads = [("sessions", "mean"), ("database time", "%"), ("per transaction", "")];
    let heads = heads.map(|(title, unit)| Head::number(title, unit));
    let sub = if left_out > 0 { format!("{left_out} smaller ones are left out") } else { String::new() };
    let table = TableSpec::<&Means>::new("figures narrow", &means).text("Wait", |(_, name)| name);
    let compared = |(mean, _): &Means| ratio(per_tx(mean, 0), per_tx(mean, 1));
    let compared = ("times per transaction", compared);
    Block::table(side_by_side(table.caption(caption).sub(sub), periods, (heads, cells), compared))
}

pub(super) fn latencies(periods: &[Period]) -> Vec<Block> {
    let stored = periods.iter().flat_map(|p| p.histograms.iter().map(move |(kind, counts)| (p, kind, counts)));
    let kinds = grouped(stored.filter(|(.., counts)| counts.count() > 0), |(_, kind, _)| *kind);
    let drawn = |(kind, of): (&String, Vec<(&Period, &String, &Counts)>)| {
        let name = |p: &Period| if periods.len() > 1 { p.label.clone() } else { kind.clone() };
        let times: Vec<_> = of.into_iter().map(|(p, _, counts)| (name(p), counts.buckets())).collect();
        histogram(&format!("Time of a {kind}"), &times)
    };
    let of_kinds = |p: &Period| with_kinds(p.record.as_ref()?, &heading(p, periods, "kinds of transactions"));
    periods.iter().filter_map(of_kinds).chain(kinds.into_iter().flat_map(drawn)).collect()
}

/// Waits of the slowest transactions shown: those that explain most.
const MOST_SLOW: usize = 8;

/// Waits of the slowest transactions: a sentence and a table for each test.
pub(super) fn slowest(periods: &[Period]) -> Vec<Block> {
    periods.iter().flat_map(|p| slowest_of(p, &heading(p, periods, "slowest transactions"))).collect()
}

fn slowest_of(p: &Period, caption: &str) -> Vec<Block> {
    let Some(record) = &p.record else { return Vec::new() };
    let Some(slow) = record.slow() else {
        // A run of an older version says nothing of them.
        let why = record.absent.get(SLOW_WAIT.id);
        return why.map(|why| Block::para(prose("slow-unknown", context! { why }))).into_iter().collect();
    };
    let share = |wait: &SlowWait| slow.shares(wait).map(|share| share * 100.0);
    let cause = slow.cause();
    let why = cause.as_ref().err().map(ToString::to_string);
    let words = slow.words();
    let shares = cause.ok().map(share);
    let said = prose("slow", context! { slow, words, shares, why });
    let is_work = |wait: &&SlowWait| wait.class == WaitClass::Background;
    let waits =
        slow.waits.iter().filter(|wait| !is_work(wait)).take(MOST_SLOW).chain(slow.waits.iter().filter(is_work));
    let row = |of: &SlowWait| {
        let explains = (!is_work(&of)).then(|| slow.explained(of) * 100.0);
        context! { words => of.words(), of, pct => share(of), explains }
    };
    let table = TableSpec::new("figures narrow", waits).columns("table of slow transactions", row).caption(caption);
    [Some(Block::para(said)), Block::table(table.build())].into_iter().flatten().collect()
}

const DRAWN: [&Column; 6] =
    [THROUGHPUT, REDO_MIB_PER_S, BLOCK_READS_PER_S, CPU_BUSY_PCT, DEVICE_WRITES_PER_S, DEVICE_UTIL_PCT];

/// Charts over time, with the background work that was seen.
pub(super) fn over_time(periods: &[Period]) -> Vec<Block> {
    let times = periods.iter().filter_map(|p| p.series.column("t_s"));
    let x_end = times.flatten().flatten().fold(0.0, f64::max);
    let spans: Vec<(f64, f64, String)> = periods
        .iter()
        .flat_map(|p| p.activity.iter().flat_map(|a| a.spans.iter().flatten()).map(move |s| (p, s)))
        .map(|(p, s)| {
            let of = name(p, periods);
            let of = if of.is_empty() { String::new() } else { format!("{of}: ") };
            (s.from_s, s.to_s, format!("{of}{} from {} to {} s", s.what, number(s.from_s, 1), number(s.to_s, 1)))
        })
        .collect();
    let mut charts: Vec<Chart> = Vec::new();
    for column in DRAWN {
        charts.extend(chart(periods, &heading_of(column, false), x_end, &spans, |p| p.series.column(column.id)));
        if column == THROUGHPUT {
            charts.extend(chart(periods, "Mean transaction time [ms]", x_end, &spans, latency));
        }
    }
    let Some(charts) = Block::charts(2, charts) else { return Vec::new() };
    let known = periods.iter().all(|p| p.activity.as_ref().is_some_and(|a| a.spans.is_some()));
    let said: Vec<String> = spans.into_iter().map(|(.., what)| what).collect();
    vec![charts, Block::para(prose("shaded", context! { known, said }))]
}

/// Mean time of transactions, ms: of an imported test what it states, else jobs / throughput, which it is in a closed loop without time
/// between transactions (Little's law).
fn latency(period: &Period) -> Option<Vec<Option<f64>>> {
    let record = period.record.as_ref().filter(|r| r.load() == JobLoad::default())?;
    if record.imported().is_some() {
        return period.series.column(COMMIT_LATENCY_MS.id);
    }
    let jobs = f64::from(record.jobs);
    let tps = period.series.column(THROUGHPUT.id)?;
    // Where no transaction ended, the line breaks.
    let ms = |tps: f64| if tps > 0.0 { jobs / tps * 1e3 } else { f64::NAN };
    Some(tps.into_iter().map(|tps| tps.map(ms)).collect())
}

fn chart(
    periods: &[Period],
    title: &str,
    x_end: f64,
    spans: &[(f64, f64, String)],
    values: impl Fn(&Period) -> Option<Vec<Option<f64>>>,
) -> Option<Chart> {
    let line = |(colour, period): (usize, &Period)| {
        let times = period.series.column("t_s")?;
        let points = times.into_iter().zip(values(period)?).filter_map(|(t, v)| t.zip(v)).filter(|(t, _)| *t >= 0.0);
        Some(ChartLine::through(name(period, periods), colour, points)).filter(|line| line.points.len() > 1)
    };
    let lines: Vec<ChartLine> = periods.iter().enumerate().filter_map(line).collect();
    let chart = svg::Chart::of_lines(title.to_owned(), ["s", ""], lines, (480.0, 150.0));
    svg::Chart { unnamed: periods.len() == 1, spans: spans.to_vec(), x_end, ..chart }.drawn()
}
