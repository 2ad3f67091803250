//! Reports of runs over levels of replication, and over nodes.

use loadline_model::variant::{InPair, Letter, LevelPoint, Paired};
use loadline_model::{Check, CheckId, Detail, Outcome, column};
use loadline_report::{Costs, Format, Options, RunData};
use serde_json::json;

use crate::common::*;

/// A run in which `on` adds 0.3 ms and a round trip to a commit of 0.5 ms, and `local` nothing.
fn levels() -> RunData {
    let variants = Paired::of_levels(&["local".into(), "on".into()], &[0.0, 1.0]);
    let paired = json!({"variants": variants, "pairs": 6, "seed": 0, "links": {"jitter_ms": 0, "replicas": 1}});
    let m = patched(&manifest("P", "r1"), json!({"plan": {"paired": paired}}));
    let mut records = Vec::new();
    let windows = [1, 4].into_iter().flat_map(|jobs| ["local", "on"].map(|level| (jobs, level)));
    for (jobs, level, delay_ms) in windows.flat_map(|(jobs, level)| [0.0, 1.0].map(|delay_ms| (jobs, level, delay_ms)))
    {
        for (pair, arm) in (1..=6).flat_map(|pair| Letter::BOTH.map(|arm| (pair, arm))) {
            let rtt_ms = 0.04 + 2.0 * delay_ms;
            let waits = arm == Letter::B && level == "on";
            let latency_ms = 0.5 + 0.01 * f64::from(pair) + if waits { 0.3 + rtt_ms } else { 0.0 };
            let tps = f64::from(jobs) / latency_ms * 1e3;
            let mut r = record(&m, records.len() as u32 + 1, "LGWR-LAT1", jobs, tps, 1.9);
            r.set(column::COMMIT_LATENCY_MS, latency_ms);
            r.set(column::RTT_MS, rtt_ms);
            let level = Some(LevelPoint { level: level.into(), delay_ms });
            (r.repetition, r.variant) = (pair, Some(InPair { level, ..InPair::of_two(arm) }));
            records.push(r);
        }
    }
    made(m, records)
}

/// The section on levels of `run`, with its costs on a terminal.
fn shown(run: &RunData) -> (bool, String) {
    let costs = Costs::from_run(run).unwrap();
    let section = sections(std::slice::from_ref(run), &["The cost of synchronous replication"]);
    (costs.holds(), format!("{}\n{section}", costs.text(100)))
}

#[test]
fn what_a_level_costs_is_a_sentence_and_a_row() {
    let (holds, said) = shown(&levels());
    assert!(holds);
    insta::assert_snapshot!("levels", said);
    assert!(text(&[levels()], Format::Html).contains("<svg"), "no chart");
    // With chosen columns tests are the rows as well.
    let chosen = Options { columns: Some(vec!["test".into(), "level".into()]), ..Options::default() };
    assert_eq!(with(&[levels()], Format::Csv, &chosen).lines().count(), 97);
}

#[test]
fn the_way_to_a_users_own_standbys_is_left_out() {
    let mut run = levels();
    if let Some(paired) = &mut run.manifest.plan.paired {
        paired.links.as_mut().unwrap().standbys = vec!["postgres://i/d".into()];
        paired.variants.retain(|variant| variant.level.as_ref().is_none_or(|level| level.delay_ms == 0.0));
    }
    run.records.retain(|r| r.level().is_some_and(|level| level.delay_ms == 0.0));
    change(&mut run, "LGWR-LAT1", &json!({"rtt_ms": null}));
    let (holds, said) = shown(&run);
    assert!(holds);
    insta::assert_snapshot!("own_standbys", said);
    insta::assert_snapshot!("own_standbys_csv", text(&[run], Format::Csv));
}

#[test]
fn a_level_that_did_not_wait_is_named() {
    let mut run = levels();
    for r in run.records.iter_mut().filter(|r| r.level().is_some_and(|l| l.level == "on" && l.delay_ms == 1.0)) {
        r.checks.push(Check::new(CheckId::RoundTrip, Outcome::Passed, "seen"));
        r.set(column::COMMIT_LATENCY_MS, if r.arm() == Some(Letter::A) { 3.0 } else { 3.5 });
    }
    let (holds, said) = shown(&run);
    assert!(!holds && words(&said).contains("part of the commits did not wait"), "{said}");
    // A copy that is sent while the own log is written takes part of the same time.
    run.manifest.plan.paired.as_mut().unwrap().links.as_mut().unwrap().at_once = true;
    let (holds, said) = shown(&run);
    assert!(holds && !said.contains("did not wait") && !said.contains("Of law"), "{said}");
}

/// Figures of nodes, as a test stores it.
fn nodes(of: impl IntoIterator<Item = serde_json::Value>) -> Detail {
    Detail::Nodes(of.into_iter().map(|node| patched(&Default::default(), node)).collect())
}

#[test]
fn numbers_of_nodes_are_set_side_by_side() {
    let m = manifest("P", "r1");
    let mut records = Vec::new();
    for (count, jobs, tps) in [(1, 1, 1000.0), (1, 2, 1500.0), (3, 3, 2400.0), (3, 6, 3000.0)] {
        let mut r = record(&m, records.len() as u32 + 1, "LGWR-LAT1", jobs, tps, 1.9);
        r.nodes = count;
        let of = |n: u32| {
            let paused = if (n, jobs) == (1, 6) { 1.2e8 } else { 1e6 };
            json!({"jobs": jobs / 3, "tps": tps / 3.0 + f64::from(n),
                "per_s": {"loadline.commits": tps / 3.0, "loadline.flow_paused_ns": paused,
                    "loadline.redo_bytes": 3e6, "loadline.redo_syncs": 31, "loadline.rows_read": 32,
                    "loadline.replicated_bytes": 4e6, "loadline.cert_failures": 33, "loadline.apply_aborts": 34},
                "gauges": {"loadline.apply_queue": 15, "loadline.cluster_size": 3}})
        };
        r.details.extend((count > 1).then(|| nodes((0..count).map(of))));
        records.push(r);
    }
    let agents = json!([{"name": "a", "host": "h", "jobs": 7, "tps": 1234.0, "transaction_time_ns_p50": 1_000_000,
        "transaction_time_ns_p99": 2_000_000, "cpus": 1, "errors": 3, "late_starts": 4, "client_cpu_pct": 5.0, "machine_cpu_pct": 6.0,
        "network": {"interface": "e", "bytes_per_s": 1.0, "pct": 8.0}, "start_skew_ms": 0.25},
        {"name": "b", "host": "h", "cpus": 1, "jobs": 9, "errors": 0, "late_starts": 0, "lost": true, "failed": "it was lost"}]);
    records[0] = patched(&records[0], json!({"by_agent": agents}));
    let runs = [made(m, records)];
    let rows = [
        "| 1 | a | h | 7 | 1,234 | 1.000 | 2.000 | 3 | 4 | 5 | 6 | 8 | 0.250 | |",
        "| | b | h | 9 | – | – | – | – | – |",
        "it was lost |",
    ];
    assert_says(&words(&sections(&runs, &["Agents"])), &rows);
    insta::assert_snapshot!("nodes", sections(&runs, &["Tests over nodes"]));
    assert_says(&text(&runs, Format::Markdown), &["3 nodes against 1 node"]);
    assert!(text(&runs, Format::Csv).lines().next().unwrap().contains(",nodes,"));
}

#[test]
fn repetitions_over_nodes_have_intervals_and_loads_are_of_rows() {
    let m = manifest("P", "r1");
    let mut records = Vec::new();
    for (repetition, off, shift) in [(1, -100.0, -30.0), (2, 0.0, 60.0), (3, 100.0, -30.0)] {
        for (count, tps) in [(1, 1000.0 + off), (2, 1800.0 + off)] {
            let mut r = record(&m, records.len() as u32 + 1, "DBL-11", count, 1000.0, 1.9);
            r.set(column::COMMIT_THROUGHPUT_TPS, tps);
            r.set(column::ROWS_PER_S, 2.0 * tps);
            r.kpis = vec![column::ROWS_PER_S.id.into()];
            (r.nodes, r.repetition) = (count, repetition);
            // Each node is the slower one once or twice: neither is as slow as the least of all tests.
            let both = [tps / 2.0 - shift, tps / 2.0 + shift].map(|tps| json!({"jobs": 1, "tps": tps}));
            r.details.extend((count == 2).then(|| nodes(both)));
            records.push(r);
        }
    }
    // t(0.975, 2) · 200 / √3 = 496.8
    assert_says(
        &text(&[made(m, records)], Format::Markdown),
        &[
            "| DBL-11 (rows/s) | 1 | 1 | 2,000 (1,503 to 2,497) |",
            "| 2 | 2 | 3,600 (3,103 to 4,097) | 1,800 | 1,800 | 1.80 (1.4",
        ],
    );
}

#[test]
fn disturbed_repetitions_over_nodes_do_not_count_beside_valid_ones() {
    let m = manifest("P", "r1");
    let mut records = Vec::new();
    for (count, tps, is_disturbed) in
        [(1, 1000.0, false), (1, 1010.0, false), (1, 600.0, true), (2, 1800.0, false), (2, 1830.0, false)]
    {
        let number = records.len() as u32 + 1;
        let mut r = record(&m, number, "LGWR-LAT1", count, tps, 1.9);
        (r.nodes, r.repetition) = (count, number);
        if is_disturbed {
            r.add_check(failed(CheckId::OtherCpu, "busy"));
        }
        records.push(r);
    }
    let said = sections(&[made(m, records)], &["Tests over nodes"]);
    assert_says(&said, &["| LGWR-LAT1 | 1 | 1 | 1,005 (", "| 1.81 ", "1,005 tps at most on 1 node"]);
}
