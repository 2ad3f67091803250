//! Reports of runs over levels of replication, and over nodes.

use loadline_model::record::NodeFigures;
use loadline_model::snapshot::counter;
use loadline_model::variant::{InPair, Letter, LevelPoint, Links, Paired};
use loadline_model::{CheckId, Detail, TestRecord, column};
use loadline_report::{Costs, Format, Options, RunData, render};

use crate::common::*;

/// A run in which `on` adds 0.3 ms and a round trip to a commit of 0.5 ms, and `local` nothing.
fn levels() -> RunData {
    let mut m = manifest("P", "r1");
    m.plan.paired = Some(Box::new(Paired {
        variants: Paired::of_levels(&["local".into(), "on".into()], &[0.0, 1.0]),
        pairs: 6,
        links: Some(Links { replicas: 1, ..Links::default() }),
        ..Paired::default()
    }));
    let mut records: Vec<TestRecord> = Vec::new();
    for jobs in [1, 4] {
        for level in ["local", "on"] {
            for delay_ms in [0.0, 1.0] {
                for pair in 1..=6 {
                    for arm in Letter::BOTH {
                        let rtt_ms = 0.04 + 2.0 * delay_ms;
                        let waits = arm == Letter::B && level == "on";
                        let latency_ms = 0.5 + 0.01 * f64::from(pair) + if waits { 0.3 + rtt_ms } else { 0.0 };
                        let test = records.len() as u32 + 1;
                        let tps = f64::from(jobs) / latency_ms * 1e3;
                        let mut r = record(&m, test, "LGWR-LAT1", jobs, tps, 1.9);
                        r.figures.insert(column::COMMIT_LATENCY_MS.id.into(), latency_ms);
                        r.figures.insert(column::RTT_MS.id.into(), rtt_ms);
                        r.repetition = pair;
                        let level = Some(LevelPoint { level: level.into(), delay_ms });
                        r.variant = Some(InPair { level, ..InPair::of_two(arm) });
                        records.push(r);
                    }
                }
            }
        }
    }
    RunData::new(m, records, Vec::new())
}

/// The section on levels of `run`, with its costs on a terminal.
fn shown(run: &RunData) -> (bool, String) {
    let costs = Costs::from_run(run, 100).unwrap();
    let section = section(&text(std::slice::from_ref(run), Format::Markdown), "The cost of synchronous replication");
    (costs.holds, format!("{}\n{section}", costs.text))
}

#[test]
fn what_a_level_costs_is_a_sentence_and_a_row() {
    let (holds, said) = shown(&levels());
    assert!(holds);
    insta::assert_snapshot!("levels", said);
    assert!(text(&[levels()], Format::Html).contains("<svg"), "no chart");
}

#[test]
fn the_way_to_a_users_own_standbys_is_left_out() {
    let mut run = levels();
    if let Some(paired) = &mut run.manifest.plan.paired {
        paired.links.as_mut().unwrap().standbys = vec!["postgres://i/d".into()];
        paired.variants.retain(|variant| variant.level.as_ref().is_none_or(|level| level.delay_ms == 0.0));
    }
    run.records.retain(|r| r.level().is_some_and(|level| level.delay_ms == 0.0));
    for r in &mut run.records {
        r.figures.remove(column::RTT_MS.id);
    }
    let (holds, said) = shown(&run);
    assert!(holds);
    insta::assert_snapshot!("own_standbys", said);
    insta::assert_snapshot!("own_standbys_csv", text(&[run], Format::Csv));
}

#[test]
fn with_chosen_columns_tests_are_the_rows_of_levels_as_well() {
    let chosen = Options { columns: Some(vec!["test".into(), "level".into()]), ..Options::default() };
    let tests = String::from_utf8(render(&[levels()], Format::Csv, &chosen).unwrap()).unwrap();
    assert_eq!(tests.lines().count(), 97);
}

#[test]
fn a_level_that_did_not_wait_is_named() {
    let mut run = levels();
    for r in run.records.iter_mut().filter(|r| r.level().is_some_and(|l| l.level == "on" && l.delay_ms == 1.0)) {
        r.checks.push(loadline_model::Check::require(CheckId::RoundTrip, true, "seen".into()));
        r.figures.insert(column::COMMIT_LATENCY_MS.id.into(), if r.arm() == Some(Letter::A) { 3.0 } else { 3.5 });
    }
    let (holds, said) = shown(&run);
    assert!(!holds && words(&said).contains("part of the commits did not wait"), "{said}");
    // A copy that is sent while the own log is written takes part of the same time.
    run.manifest.plan.paired.as_mut().unwrap().links.as_mut().unwrap().at_once = true;
    let (holds, said) = shown(&run);
    assert!(holds && !said.contains("did not wait") && !said.contains("Of law"), "{said}");
}

#[test]
fn numbers_of_nodes_are_set_side_by_side() {
    let m = manifest("P", "r1");
    let mut records = Vec::new();
    for (nodes, jobs, tps) in [(1, 1, 1000.0), (1, 2, 1500.0), (3, 3, 2400.0), (3, 6, 3000.0)] {
        let mut r = record(&m, records.len() as u32 + 1, "LGWR-LAT1", jobs, tps, 1.9);
        r.nodes = nodes;
        if nodes > 1 {
            let of = |n: u32| NodeFigures {
                jobs: jobs / 3,
                tps: tps / 3.0 + f64::from(n),
                per_s: [
                    (counter::COMMITS.to_owned(), tps / 3.0),
                    (counter::FLOW_PAUSED_NS.to_owned(), if (n, jobs) == (1, 6) { 1.2e8 } else { 1e6 }),
                ]
                .into(),
                gauges: [(counter::APPLY_QUEUE.to_owned(), 15.0), (counter::CLUSTER_SIZE.to_owned(), 3.0)].into(),
            };
            r.details.push(Detail::Nodes((0..nodes).map(of).collect()));
        }
        records.push(r);
    }
    let run = RunData::new(m, records, Vec::new());
    let markdown = text(std::slice::from_ref(&run), Format::Markdown);
    insta::assert_snapshot!("nodes", section(&markdown, "Tests over nodes"));
    assert!(markdown.contains("3 nodes against 1 node"));
    assert!(text(&[run], Format::Csv).lines().next().unwrap().contains(",nodes,"));
}

#[test]
fn repetitions_over_nodes_have_intervals_and_loads_are_of_rows() {
    let m = manifest("P", "r1");
    let mut records = Vec::new();
    for repetition in 1..=3u32 {
        for (nodes, tps) in [(1, 1000.0), (2, 1800.0)] {
            let mut r = record(&m, records.len() as u32 + 1, "DBL-11", nodes, tps, 1.9);
            let off = 100.0 * (f64::from(repetition) - 2.0);
            r.figures.insert(column::COMMIT_THROUGHPUT_TPS.id.into(), tps + off);
            r.figures.insert(column::ROWS_PER_S.id.into(), 2.0 * (tps + off));
            r.kpis = vec![column::ROWS_PER_S.id.into()];
            (r.nodes, r.repetition) = (nodes, repetition);
            // Each node is the slower one once or twice: neither is as slow as the least of all tests.
            let half = (tps + off) / 2.0;
            let shift = if repetition == 2 { 60.0 } else { -30.0 };
            let of = |tps| NodeFigures { jobs: 1, tps, ..NodeFigures::default() };
            if nodes == 2 {
                r.details.push(Detail::Nodes(vec![of(half - shift), of(half + shift)]));
            }
            records.push(r);
        }
    }
    let run = RunData::new(m, records, Vec::new());
    let markdown = text(std::slice::from_ref(&run), Format::Markdown);
    // t(0.975, 2) · 200 / √3 = 496.8
    assert!(markdown.contains("| DBL-11 (rows/s) | 1 | 1 | 2,000 (1,503 to 2,497) |"), "{markdown}");
    assert!(markdown.contains("| 2 | 2 | 3,600 (3,103 to 4,097) | 1,800 | 1,800 | 1.80 (1.4"), "{markdown}");
}
