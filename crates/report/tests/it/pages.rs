//! Pages of a watched database: what is shown, withheld and escaped.

use std::collections::BTreeMap;

use loadline_model::activity::Watched;
use loadline_model::activity::{Kind, Topic, Unit, Value, View, ViewColumn};
use loadline_model::manifest::TargetInfo;
use loadline_model::{Activity, Series, Snapshot};
use loadline_report::{Format, Period, render_page};
use serde_json::json;

use crate::common::{assert_says, made, manifest, patched, record, words};

/// Ten seconds in which `counters` went from their first to their second value.
fn watched(counters: &[(&str, f64, f64)]) -> Watched {
    let at = |at_ns, end: fn(&(&str, f64, f64)) -> f64| Snapshot {
        at_ns,
        counters: counters.iter().map(|c| (c.0.to_owned(), end(c))).collect(),
        ..Snapshot::default()
    };
    Watched {
        loadline_version: "0".to_owned(),
        taken_at: "2026-11-23T00:00:00Z".to_owned(),
        seconds: 10.0,
        target: TargetInfo { product: "Some <b>base".to_owned(), ..TargetInfo::default() },
        open: at(0, |c| c.1),
        close: at(10_000_000_000, |c| c.2),
        activity: Activity { seconds: 10.0, ..Activity::default() },
        complete: true,
        ..Watched::default()
    }
}

fn page(periods: &[Period], format: Format) -> String {
    crate::common::unscripted(&String::from_utf8(render_page(periods, format).unwrap()).unwrap())
}

fn text(watched: Watched) -> String {
    page(&[Period::of_watched(watched, "a")], Format::Text)
}

#[test]
fn counters_are_totals_rates_and_shares_of_transactions_in_their_units() {
    let mut shown = watched(&[
        ("loadline.commits", 100.0, 2100.0),
        ("base.fsync_time", 0.0, 5000.0),
        ("base.temp_bytes", 0.0, 20480.0),
        ("base.pages_dirty", 500.0, 100.0),
        ("base.nothing", 5.0, 5.0),
        // A nanosecond is no read.
        ("loadline.read_ns", 0.0, 1000.0),
        ("loadline.read_calls", 0.0, 1000.0),
        // Purge makes it rise and fall.
        ("INNODB_METRICS.trx_rseg_history_len", 5.0, 12.0),
        // Oracle counts hundredths of a second.
        ("v$osstat.BUSY_TIME", 0.0, 200.0),
        ("INNODB_METRICS.os_pending_reads", 0.0, 0.0),
    ]);
    // Sessions that wait for their client are no database time.
    shown.waits.samples = 10;
    let waits = ["Client:ClientRead", "Idle:SQL*Net message from client", "User I/O:db file sequential read"];
    shown.waits.sessions = waits.map(|event| (event.to_owned(), 10)).into();
    insta::assert_snapshot!("watched", text(shown));
    // Figures of each node, which make no sum.
    let mut cluster = watched(&[("wsrep_cluster_size", 5.0, 5.0)]);
    let nodes = |sizes: [f64; 2]| sizes.map(|n| BTreeMap::from([("wsrep_cluster_size".to_owned(), n)])).into();
    (cluster.open.nodes, cluster.close.nodes) = (nodes([3.0, 2.0]), nodes([2.0, 2.0]));
    assert!(text(cluster).contains("  3, 2 → 2, 2\n"));
}

#[test]
fn counters_that_were_reset_are_withheld() {
    let same = watched(&[("loadline.commits", 100.0, 2100.0), ("pg_stat_database.stats_reset", 1.0, 1.0)]);
    assert_says(&text(same.clone()), &["Load profile"]);
    let [_, reset] = ["pg_stat_wal", "pg_stat_database"].map(|view| {
        let mut reset = same.clone();
        reset.close.counters.insert(format!("{view}.stats_reset"), 2.0);
        assert_says(&text(reset.clone()), &[&format!("meanwhile ({view})"), "!Load profile"]);
        reset
    });
    let two = [Period::of_watched(same, "a"), Period::of_watched(reset, "b")];
    insta::assert_snapshot!("one_of_two_reset", page(&two, Format::Text));
}

fn statements(rows: &[(&str, f64, f64)]) -> View {
    let column = |title: &str, kind, unit, per| ViewColumn { title: title.to_owned(), kind, unit, per };
    let columns = vec![
        column("statement", Kind::Key, Unit::Text, None),
        column("calls", Kind::Counter, Unit::Count, None),
        column("time", Kind::Counter, Unit::Ms, Some(1)),
    ];
    let text = |text: &str| Some(Value::Text(text.to_owned()));
    let row = |of: &(&str, f64, f64)| vec![text(of.0), Some(Value::Number(of.1)), Some(Value::Number(of.2))];
    View {
        topic: Topic::Statements,
        title: "Statements".to_owned(),
        columns,
        order: Some(2),
        rows: rows.iter().map(row).collect(),
        left_out: 0,
        reset: 1,
        epoch: None,
        absent: None,
    }
}

#[test]
fn two_periods_are_one_table_by_name() {
    let of = |rows: &[(&str, f64, f64)], name: &str| {
        let mut watched = watched(&[("loadline.commits", 0.0, 1000.0)]);
        watched.activity.views.push(statements(rows));
        Period::of_watched(watched, name)
    };
    let both = [
        of(&[("UPDATE a", 100.0, 50.0)], "first"),
        of(&[("UPDATE a", 200.0, 400.0), ("DELETE b", 1.0, 9.0)], "second"),
    ];
    insta::assert_snapshot!("two_periods", page(&both, Format::Text));
}

#[test]
fn waits_of_the_slowest_transactions_are_in_samples_and_shares() {
    let wait = |class: &str, samples: u32| json!({"class": class, "event": "E:e", "samples": samples, "others": 50});
    let slow = json!({"transactions": 10, "of": 1000, "above_ns": 1000, "mean_ns": [9000.0, 1000.0], "samples": 100,
        "moments": 10, "others": 500, "waits": [wait("lock", 82), wait("background", 40)]});
    let m = manifest("P", "r1");
    let r = patched(&record(&m, 1, "LGWR-LAT1", 1, 1000.0, 1.9), json!({"slow": slow}));
    let period = Period::of_test(&made(m, vec![r]), 1, &[], Series::default(), None).unwrap();
    assert_says(
        &words(&page(&[period], Format::Markdown)),
        &["| locks | E:e | 82 | 82.0 | 91.0 | 50 | 10.0 |", "| during E:e | E:e | 40 | 40.0 | – | 50 | 10.0 |"],
    );
}

#[test]
fn hostile_names_are_escaped_and_nothing_panics() {
    let mut watched =
        watched(&[("<script>", 0.0, 7.0), ("x", f64::NAN, f64::INFINITY), ("loadline.commits", 9.0, 1.0)]);
    watched.activity.views.push(statements(&[("<img onerror=1>|`\n", f64::NAN, -1.0)]));
    // A row that is shorter than its columns.
    watched.activity.views[0].rows.push(Vec::new());
    watched.waits.samples = 1;
    watched.waits.sessions = [("<i>:".to_owned(), u64::MAX), (String::new(), 1)].into();
    watched.notes.push("</ul><script>".to_owned());
    for format in [Format::Html, Format::Markdown, Format::Text] {
        let period = Period::of_watched(watched.clone(), "<a>");
        let page = page(&[period.clone(), period], format);
        assert!(
            format != Format::Html || !["<script>", "<img", "<i>:", "Some <b>"].iter().any(|bad| page.contains(bad))
        );
    }
    assert!(render_page(&[], Format::Html).is_err() && render_page(&[], Format::Csv).is_err());
}
