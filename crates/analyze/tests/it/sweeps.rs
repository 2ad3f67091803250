//! Sweeps, comparisons and histories: what is said of the tests in `data/sweeps.txt` and `data/compare.txt`, and of any figures.

use std::collections::BTreeMap;

use crate::common::made::tests;
use crate::common::{is_as, lines, measured, record};
use loadline_analyze::compare::history::histories;
use loadline_analyze::compare::{Comparison, Platform, compare};
use loadline_analyze::sweep::{SweepPoint, sweeps};
use loadline_analyze::{bound, bound_of_sweep};
use loadline_model::manifest::Calibration;
use loadline_model::plan::WorkloadFile;
use loadline_model::{Column, TestRecord, column};
use proptest::prelude::*;

fn list<T>(all: &[T], of: impl Fn(&T) -> String) -> String {
    all.iter().map(of).collect::<Vec<_>>().join("; ")
}

fn side<'a>(records: &'a [TestRecord], label: &'a str) -> Platform<'a> {
    Platform { payload: Some(Default::default()), ..Platform::new(label, records) }
}

/// The platforms of `all` in the order of their names; the first is the base.
fn compared(all: &[TestRecord]) -> Vec<Comparison> {
    let mut all = all.to_vec();
    all.sort_by(|a, b| a.platform.cmp(&b.platform));
    let sides = all.chunk_by(|a, b| a.platform == b.platform).map(|of| side(of, &of[0].platform));
    compare(&sides.collect::<Vec<_>>())
}

fn factors(c: &Comparison, column: &Column) -> String {
    let rows = list(&c.rows, |row| {
        let interval = |i: loadline_analyze::Interval| format!(" [{:.3}, {:.3}]", i.low, i.high);
        row.factor(column).map_or("none".to_owned(), |f| {
            let interval = f.factor.interval.map_or(String::new(), interval);
            format!("{:?} {:.9}{interval} of {}, {}", row.at, f.factor.value, f.n_base, f.n_other)
        })
    });
    format!("{} {:?} {}", c.over, c.nodes, c.refused.clone().unwrap_or(rows))
}

/// The answer to a question about tests, of which most are about the first sweep.
fn said(question: &str, all: &[TestRecord]) -> String {
    let (what, of) = question.split_once(' ').unwrap_or((question, ""));
    let (found, column) = (sweeps(all), || column::column(of).unwrap());
    let points = &found[0].points;
    match what {
        "sweeps" => list(&found, |s| {
            format!("{} by {} {}", s.rate, s.over, list(&s.points, |p| format!("{} {:?}", p.at, p.tests)))
        }),
        "workloads" => list(&found, |s| s.workload.clone()),
        "parameters" => list(&found, |s| format!("{:?}", s.parameters)),
        "refused" => list(&points[0].refused, |r| format!("{} {} {}", r.test, r.reason, r.figures[of])),
        "aside" => list(&points[0].set_aside, |aside| format!("{} {}", aside.test, aside.kept.says().unwrap())),
        "kept" => list(points, |p| format!("{:?} {:?}", p.kept.data_source, p.kept.says())),
        "figure" => list(points, |p: &SweepPoint| {
            let e = p.figure(column()).unwrap();
            format!("{} of {} ± {:.2?}", e.mean, e.n, e.half_width())
        }),
        "latency" => format!("{:?}", points[0].latency_ms()),
        "peak" => format!("{:?}", found[0].peak().map(|p| p.at)),
        "saturation" => format!("{:?}", found[0].saturation()),
        "line" => format!("{:?}", found[0].load_line(of.parse().ok())),
        "bound" => bound_of_sweep(&found[0], all).unwrap().sentence(),
        "first-bound" => bound(&all[0]).unwrap().by.name().to_owned(),
        "factors" => list(&compared(all), |c| factors(c, column())),
        "caveats" => list(&compared(all)[0].rows, |row| format!("{:?}", row.caveat)),
        "equal" => list(&compared(all), |c| {
            let is_equal = c.rows.iter().all(|r| r.refused.is_none() && !r.factors.is_empty());
            format!("{} {}", c.workload, c.refused.is_none() && is_equal && !c.rows.is_empty())
        }),
        "best" => compared(all)[0].range(column()).map(|(_, (at, f))| format!("{at} {:.2}", f.factor.value)).unwrap(),
        "histories" => {
            let runs = all.chunk_by(|a, b| a.run == b.run).map(|of| ("p".to_owned(), side(of, &of[0].run)));
            let all = histories(&runs.collect::<Vec<_>>(), None);
            let figures = list(&all, |h| format!("{}{} {:?}", if h.main { "main " } else { "" }, h.at, h.points));
            format!("{} {figures}, left out {}", all[0].metric, all[0].left_out.len())
        }
        _ => panic!("{question}?"),
    }
}

/// A table of the file, or with `@TEXT` the tests of the published study whose lines have that text.
fn of_case(table: &str) -> Vec<TestRecord> {
    let Some(text) = table.strip_prefix('@') else { return tests(&measured("a", 1, 1, 100.0, 1.0), table) };
    let study = include_str!("../../../../references/log-writer-exadata.csv").lines().enumerate();
    let lines = study.filter(|(n, line)| *n == 0 || line.contains(text.trim())).map(|(_, line)| line);
    tests(&record("a", 1, 1), &lines.collect::<Vec<_>>().join("\n"))
}

#[test]
fn tests_are_pooled_compared_and_followed_as_the_tables_say() {
    let mut wrong = Vec::new();
    for case in include_str!("../data/sweeps.txt").split("\n== ").skip(1) {
        let (name, rest) = case.split_once('\n').unwrap();
        let (questions, table): (Vec<&str>, Vec<&str>) = rest
            .lines()
            .filter(|line| !line.is_empty() && !line.starts_with('#'))
            .partition(|line| line.starts_with("> "));
        let all = of_case(&table.join("\n"));
        for (question, expected) in questions.iter().map(|line| line[2..].split_once(": ").unwrap()) {
            let said = said(question, &all);
            wrong.extend((!is_as(&said, expected)).then(|| format!("{name}\n> {question}: {said}\n not {expected}")));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn tests_are_compared_or_refused_as_the_table_says() {
    for line in lines(include_str!("../data/compare.txt"), &measured("a", 1, 4, 100.0, 40.0)) {
        let calibrations: Vec<Option<BTreeMap<String, Calibration>>> =
            line.sides.iter().map(|side| serde_json::from_value(side["calibration"].clone()).unwrap()).collect();
        let file = |text: &str| WorkloadFile { name: "queue.toml".to_owned(), text: text.to_owned() };
        let files: Vec<Vec<WorkloadFile>> =
            line.sides.iter().map(|side| side["file"].as_str().map(file).into_iter().collect()).collect();
        let named = |(test, label): (&TestRecord, &str)| {
            [TestRecord { platform: label.to_owned(), run: format!("run-{label}"), ..test.clone() }]
        };
        let records: Vec<[TestRecord; 1]> = line.tests.iter().zip(["a", "b"]).map(named).collect();
        let side = |n: usize, label| Platform {
            calibration: calibrations[n].as_ref(),
            workload_files: &files[n],
            payload: serde_json::from_value(line.sides[n].clone()).ok(),
            data_bytes: line.sides[n]["data_bytes"].as_u64(),
            in_process: line.sides[n]["in_process"] == true,
            across_drivers: line.sides[n]["across_drivers"] == true,
            ..Platform::new(label, &records[n])
        };
        let mut found = compare(&[side(0, "a"), side(1, "b")]).remove(0);
        assert!(found.rows.iter().all(|row| row.factors.is_empty() == row.refused.is_some()), "{found:?}");
        let row = (!found.rows.is_empty()).then(|| found.rows.remove(0));
        let refused = found.refused.or_else(|| row.as_ref()?.refused.clone()).map(|why| format!("refused: {why}"));
        let caveat = row.and_then(|row| row.caveat).map(|what| format!("caveat: {what}"));
        assert!(refused.is_none() || caveat.is_none(), "{refused:?} and {caveat:?}");
        let said = refused.into_iter().chain(caveat).collect::<Vec<_>>().join("; ");
        let said = if said.is_empty() { "none" } else { &said };
        assert!(is_as(said, line.expected), "{}\nis {said}", line.expected);
    }
}

proptest! {
    #[test]
    fn any_figures_are_handled_without_panic(rows in prop::collection::vec((1u32..9, any::<f64>(), any::<f64>(), any::<bool>()), 0..12)) {
        let tests: Vec<_> = rows.iter().enumerate().map(|(i, (jobs, tps, ms, valid))| {
            let mut r = record(if i % 2 == 0 { "a" } else { "b" }, i as u32, *jobs);
            // Not by `set`: a damaged file could contain it.
            r.figures.insert("commit_throughput_tps".to_owned(), *tps);
            r.figures.insert("commit_latency_ms".to_owned(), *ms);
            r.valid = *valid;
            r
        }).collect();
        for s in sweeps(&tests) {
            let _ = (s.saturation(), s.load_line(None), s.load_line(Some(1)));
        }
        let (a, b): (Vec<_>, Vec<_>) = tests.into_iter().partition(|r| r.platform == "a");
        let side = |label, records| Platform::new(label, records);
        for f in compare(&[side("a", &a), side("b", &b)]).iter().flat_map(|c| &c.rows).flat_map(|r| &r.factors) {
            prop_assert!(f.factor.value.is_finite() && f.factor.value > 0.0);
        }
    }
}
