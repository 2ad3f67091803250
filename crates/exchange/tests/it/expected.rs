//! Contents of files as read, with values that were worked out by hand from them: `data/expected.json` has the files, what is replaced in the
//! first, what stands `before` and `after` it (a text, or `@file`), and the tests or the line at which they are refused, and what is
//! `named` then, or texts that are `noted`.

use loadline_exchange::{Absence, Group, ImportError, ImportedTest, Tool};
use loadline_model::column::*;
use serde_json::{Value, json};

use crate::{contents, figure, latencies, near, one, read};

/// Figures, reasons that are of this file, warnings and throughput over time.
fn seen(test: &ImportedTest) -> Value {
    let general = |why: &Absence| matches!(why, Absence::NotLookedFor(_) | Absence::ClosedLoop | Absence::OpenLoop);
    let absent = test.absent.iter().filter(|(_, why)| !general(why)).map(|(id, why)| (*id, format!("{why:?}")));
    json!({
        "workload": test.record.workload,
        "jobs": test.record.jobs,
        "parameters": test.record.parameters,
        "figures": test.record.figures,
        "absent": absent.collect::<std::collections::BTreeMap<_, _>>(),
        "warnings": test.warnings.iter().map(|warning| format!("{warning:?}")).collect::<Vec<_>>(),
        "course": test.series.rows,
        "times": test.histograms.iter().map(|(kind, all)| json!([kind, all.count()])).collect::<Vec<_>>(),
    })
}

/// Whether two values are the same; numbers may differ by what printing costs.
fn same(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => {
            let [a, b] = [a, b].map(|n| n.as_f64().unwrap());
            (a - b).abs() <= 1e-12 * b.abs()
        }
        (Value::Array(a), Value::Array(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same(a, b)),
        (Value::Object(a), Value::Object(b)) => {
            a.len() == b.len() && a.iter().all(|(key, a)| b.get(key).is_some_and(|b| same(a, b)))
        }
        _ => a == b,
    }
}

fn outcome(case: &Value) -> Value {
    let tool = Tool::ALL.into_iter().find(|tool| case["tool"] == tool.name()).unwrap();
    let names: Vec<&str> = case["files"].as_array().unwrap().iter().map(|name| name.as_str().unwrap()).collect();
    let part = |key: &str| {
        let text = case[key].as_str().unwrap_or_default();
        text.strip_prefix('@').map_or_else(|| text.to_owned(), contents)
    };
    let mut texts: Vec<String> = names.iter().map(|name| contents(name)).collect();
    texts[0] = part("before") + &texts[0] + &part("after");
    for pair in case["replace"].as_array().into_iter().flatten() {
        let [from, to] = [0, 1].map(|at| pair[at].as_str().unwrap());
        assert!(texts[0].contains(from), "{case}");
        texts[0] = texts[0].replace(from, to);
    }
    let files: Vec<(&str, &str)> = names.into_iter().zip(texts.iter().map(String::as_str)).collect();
    match read(tool, &files) {
        Ok(groups) => {
            let notes: Vec<String> =
                groups.iter().flat_map(|g| &g.tests).flat_map(|t| &t.record.notes).map(ToString::to_string).collect();
            for text in case["noted"].as_array().into_iter().flatten().map(|text| text.as_str().unwrap()) {
                assert!(notes.iter().any(|note| note.contains(text)), "{case}: {notes:?}");
            }
            let group = |group: &Group| {
                let tests: Vec<Value> = group.tests.iter().map(seen).collect();
                json!({"files": group.files, "version": group.version, "product": group.product, "tests": tests})
            };
            groups.iter().map(group).collect()
        }
        Err(ImportError::Wrong { file, line, what }) => {
            assert!(what.contains(case["named"].as_str().unwrap_or_default()), "{case}: {what}");
            json!({"refused": file, "line": line})
        }
        Err(other) => panic!("{other}"),
    }
}

#[test]
fn files_are_read_as_their_figures_and_refused_at_their_line() {
    let cases: Vec<Value> = serde_json::from_str(include_str!("data/expected.json")).unwrap();
    let seen: Vec<Value> = cases.iter().map(outcome).collect();
    let other = cases.iter().zip(&seen).filter(|(case, outcome)| !same(outcome, &case["expected"]));
    let other: Vec<String> = other.map(|(case, outcome)| format!("{case}\nis {outcome}")).collect();
    assert!(other.is_empty(), "{}", other.join("\n"));
}

#[test]
fn logs_of_all_threads_give_the_percentiles() {
    let test = one(Tool::Pgbench, &["pgbench-tries.txt", "pgbench-tries.32652", "pgbench-tries.32652.1"]);
    let texts = contents("pgbench-tries.32652") + &contents("pgbench-tries.32652.1");
    let mut us: Vec<u64> = texts.lines().filter_map(|line| line.split(' ').nth(2)?.parse().ok()).collect();
    us.sort_unstable();
    assert_eq!((us.len(), latencies(&test, "transaction").count(), figure(&test, COMMITS)), (117, 117, 117.0));
    // --rate: times are from the scheduled start, so they are response times.
    assert!(test.record.figure(TRANSACTION_TIME_NS_MEAN).is_none());
    let mean = us.iter().sum::<u64>() as f64 / us.len() as f64 * 1e3;
    assert!(near(figure(&test, RESPONSE_TIME_NS_MEAN), mean, 1e-9));
    for (column, q) in [(RESPONSE_TIME_NS_P50, 0.5), (RESPONSE_TIME_NS_P99, 0.99), (RESPONSE_TIME_NS_MAX, 1.0)] {
        let exact = us[(us.len() as f64 * q).ceil() as usize - 1] as f64 * 1e3;
        assert!(near(figure(&test, column), exact, 1.1e-3), "{column}: {} for {exact}", figure(&test, column));
    }
}

#[test]
fn histograms_give_the_percentiles_that_are_printed() {
    // fio's buckets are 1.6 % wide, and it states the end of one.
    for test in read(Tool::Fio, &[("f", &contents("fio-two-jobs.json"))]).unwrap().remove(0).tests {
        for (column, q) in [(TRANSACTION_TIME_NS_P50, 0.5), (TRANSACTION_TIME_NS_P99, 0.99)] {
            let computed = latencies(&test, "transaction").quantile_ns(q).unwrap() as f64;
            assert!(near(computed, figure(&test, column), 0.02), "{column}: {computed}");
        }
    }
}
