//! `--redact` and `--anonymous`: what stays is a list, and nothing else is in any format.

use std::collections::{BTreeMap, BTreeSet};

use crate::common::groups::all_groups;
use crate::common::{run, text, two_platforms};
use loadline_analyze::sweeps;
use loadline_model::Forced;
use loadline_model::column::COLUMNS;
use loadline_model::record::KindFigures;
use loadline_model::{Check, CheckId, Imported, Manifest, Outcome, TestRecord};
use loadline_report::{Format, Options, RunData, anonymise, redact, render};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

const ALL: [Format; 5] = [Format::Html, Format::Markdown, Format::Csv, Format::Json, Format::Text];
/// The fields in which any text stays.
const STAYS: &str = include_str!("stays.txt");
const POISON: &str = "acme";

fn known(word: &str) -> bool {
    word.starts_with("LGWR") && !word.contains(POISON)
}

fn outputs(runs: &[RunData]) -> Vec<(String, String)> {
    let mut out = Vec::new();
    for format in ALL {
        for short in [false, true] {
            let options = Options { summary: short, paper: short, ..Options::default() };
            let text = String::from_utf8(render(runs, format, &options).unwrap()).unwrap();
            let plain =
                text.replace("&#x2f;", "/").replace("&#x27;", "'").replace("&quot;", "\"").replace("&amp;", "&");
            out.push((format!("{format:?}, {short}"), plain.to_lowercase()));
        }
    }
    out
}

fn assert_gone(runs: &[RunData], forbidden: &[&str]) {
    for (format, mut text) in outputs(runs) {
        // What a column means is the same in every report, whatever was measured.
        for column in COLUMNS.iter() {
            text = text.replace(&column.meaning.to_lowercase(), "");
        }
        for word in forbidden {
            let at = text.find(&word.to_lowercase());
            let around =
                at.map(|at| text[..at].chars().rev().take(80).collect::<String>().chars().rev().collect::<String>());
            assert!(at.is_none(), "{format}: '{word}' is in it, after: {}", around.unwrap_or_default());
        }
    }
}

/// `value` with a name in each text, and as a key of each map, where it can be read.
fn poisoned<T: Serialize + DeserializeOwned>(value: &T) -> T {
    let mut json = serde_json::to_value(value).unwrap();
    let mut pointers = Vec::new();
    visit(&json, &mut |pointer, _| pointers.push(pointer.to_owned()), "");
    for pointer in pointers {
        let mut tried = json.clone();
        match tried.pointer_mut(&pointer).unwrap() {
            Value::String(text) => *text = format!("{text} {POISON}"),
            Value::Object(map) => {
                let Some(item) = map.values().next().cloned() else { continue };
                map.insert(format!("{POISON}_key{}", map.len()), item);
            }
            _ => continue,
        }
        if let Ok(read) = serde_json::from_value::<T>(tried) {
            json = serde_json::to_value(read).unwrap();
        }
    }
    serde_json::from_value(json).unwrap()
}

/// All values, with pointers to them.
fn visit(value: &Value, with: &mut dyn FnMut(&str, &Value), at: &str) {
    with(at, value);
    match value {
        Value::Array(items) => items.iter().enumerate().for_each(|(n, item)| visit(item, with, &format!("{at}/{n}"))),
        Value::Object(map) => {
            let key = |key: &str| key.replace('~', "~0").replace('/', "~1");
            map.iter().for_each(|(name, item)| visit(item, with, &format!("{at}/{}", key(name))));
        }
        _ => {}
    }
}

/// A run with every field of manifest and record.
fn full() -> RunData {
    let mut full: BTreeMap<String, Value> = serde_json::from_str(include_str!("full.json")).unwrap();
    let manifest: Manifest = serde_json::from_value(full.remove("manifest").unwrap()).unwrap();
    let test: TestRecord = serde_json::from_value(full.remove("test").unwrap()).unwrap();
    RunData::new(poisoned(&manifest), vec![poisoned(&test)], vec![POISON.to_owned()])
}

#[test]
fn only_listed_texts_stay() {
    let mut run = full();
    run.notes.insert(POISON.to_owned(), POISON.to_owned());
    run.records[0].figures.insert(POISON.to_owned(), 1.0);
    let holds = |run: &RunData| -> BTreeSet<String> {
        let mut found = BTreeSet::new();
        for (name, json) in [("manifest", json!(run.manifest)), ("test", json!(run.records[0]))] {
            let mut add = |pointer: &str, value: &Value| {
                let fields: Vec<&str> = pointer.split('/').filter(|part| part.parse::<usize>().is_err()).collect();
                if pointer.contains(POISON) || value.as_str().is_some_and(|text| text.contains(POISON)) {
                    found.insert(format!("{name}{}", fields.join(".")));
                }
            };
            visit(&json, &mut add, "");
        }
        found
    };
    let before = holds(&run).len();
    assert!(before > 150, "{before}");
    redact(std::slice::from_mut(&mut run), &known).unwrap();
    let stays: BTreeSet<String> = STAYS.lines().map(str::to_owned).collect();
    assert_eq!(holds(&run), stays);
    assert!(run.warnings.iter().chain(run.notes.keys()).chain(run.notes.values()).all(|text| !text.contains(POISON)));
}

#[test]
fn names_are_in_no_format() {
    let mut runs = two_platforms();
    for run in &mut runs {
        let m = &mut run.manifest;
        m.machine.host = "Zeus12".to_owned();
        m.target.url = "postgres://hermes@styx:5432/orders".to_owned();
        m.plan.platform = "zeus12, new disks".to_owned();
        m.command = ["loadline", "run", "--results", "/home/apollo"].map(String::from).into();
        for (name, value) in [
            ("cluster_name", "artemis-prod"),
            ("primary_conninfo", "host=10.9.8.7 user=charon port=5432"),
            ("port", "599912345"),
            ("work_mem", "4MB"),
            ("wal_level", "replica"),
        ] {
            m.target.settings.insert(name.to_owned(), value.to_owned());
        }
        m.target.notes.push("hera-3 is a standby of zeus12".to_owned());
        for record in &mut run.records {
            record.platform = m.plan.platform.clone();
            record.target = m.target.url.clone();
            record.error_texts.insert("relation nyx does not exist".to_owned(), 3);
            record.waits.sessions.insert("ops@athena.example".to_owned(), 3);
            record.add_check(Check::new(CheckId::Settings, Outcome::Failed, "cluster_name is artemis-prod"));
        }
    }
    redact(&mut runs, &known).unwrap();
    assert_gone(
        &runs,
        &[
            "zeus", "hera-3", "hermes", "styx", "orders", "apollo", "artemis", "10.9.8.7", "charon", "599912345",
            "nyx", "athena", "new disks",
        ],
    );
    let page = text(&runs, Format::Html);
    for kept in [
        "4MB", "replica", "AMD EPYC 7543", "PostgreSQL", "15.8 (Debian 15.8-0+deb12u1)", "platform-1", "nvme0n1",
        "LGWR-LAT1", "failed: settings", "write back",
    ] {
        assert!(page.contains(kept), "'{kept}' is gone");
    }
}

#[test]
fn figures_stay_as_they_are() {
    let (before, mut after) = (two_platforms(), two_platforms());
    anonymise(&mut after, &known).unwrap();
    for (a, b) in before.iter().zip(&after) {
        for (x, y) in a.records.iter().zip(&b.records) {
            assert_eq!(
                (&x.figures, x.valid, x.jobs, &x.workload, &x.kpis),
                (&y.figures, y.valid, y.jobs, &y.workload, &y.kpis)
            );
            assert_eq!(x.waits.sessions.values().sum::<u64>(), y.waits.sessions.values().sum::<u64>());
        }
        assert_eq!(a.over_time, b.over_time);
    }
}

#[test]
fn what_differs_still_differs() {
    let mut runs = two_platforms();
    for (run, [method, folder]) in
        runs.iter_mut().zip([["worker", "/tmp/loadline-pg-1/s"], ["io_uring", "/tmp/loadline-pg-2/s"]])
    {
        let settings = [("io_method", method), ("unix_socket_directories", folder), ("cluster_name", "7prd")];
        run.manifest.target.settings.extend(settings.map(|(name, value)| (name.to_owned(), value.to_owned())));
    }
    redact(&mut runs, &known).unwrap();
    let page = text(&runs, Format::Html);
    assert!(page.contains("≠ io_method"), "{page}");
    assert!(!page.contains("≠ unix_socket_directories") && !page.contains("≠ cluster_name"));
    assert!(page.contains("cluster_name") && !page.contains("7prd"));
}

#[test]
fn tests_are_pooled_as_before() {
    let versions = ["3.35.1", "3.35.2"].map(|version| {
        Some(Imported { tool: "fio".to_owned(), version: Some(version.to_owned()), ..Imported::default() })
    });
    let mut runs = two_platforms();
    for run in &mut runs {
        let first = run.records[0].clone();
        let ways = [("a", false), ("b", false), ("a", true), ("b", true)]
            .map(|(why, not_the_devices)| (Forced { refused: Some(why.to_owned()), not_the_devices }, None));
        let imported = versions.clone().map(|imported| (Forced::default(), imported));
        let all = ways.into_iter().chain(imported).cycle().take(12);
        run.records = (1..)
            .zip(all)
            .map(|(test, (forced, imported))| {
                // Each two that differ are of one point, where one of them is set aside.
                let jobs = 1 + (test - 1) % 6 / 2;
                TestRecord { test, jobs, forced, imported, ..first.clone() }
            })
            .collect();
    }
    let pools = |runs: &[RunData]| -> Vec<(u32, Vec<u32>, Vec<u32>)> {
        let points = runs.iter().flat_map(|run| sweeps(&run.records)).flat_map(|sweep| sweep.points);
        points.map(|p| (p.jobs, p.tests, p.set_aside.iter().map(|aside| aside.test).collect())).collect()
    };
    let before = pools(&runs);
    assert!(before.iter().all(|(_, _, aside)| !aside.is_empty()), "{before:?}");
    redact(&mut runs, &known).unwrap();
    assert_eq!(pools(&runs), before);
}

#[test]
fn names_agree() {
    let mut run = full();
    let arms = run.manifest.plan.arms.as_mut().unwrap();
    "acme's B".clone_into(&mut arms.b.label);
    "acme's B".clone_into(&mut run.records[0].platform);
    let kinds = ["own.sql", "builtin:select-only"].map(|name| (name, run.records[0].kinds[0].clone()));
    run.records[0].kinds = kinds.map(|(name, kind)| KindFigures { name: name.to_owned(), ..kind }).into();
    redact(std::slice::from_mut(&mut run), &known).unwrap();
    assert_eq!(run.records[0].platform, run.manifest.plan.arms.unwrap().b.label);
    let names: Vec<&str> = run.records[0].kinds.iter().map(|kind| kind.name.as_str()).collect();
    assert_eq!(names, ["script-1", "builtin:select-only"]);
}

#[test]
fn waits_keep_the_names_of_databases() {
    let names = [
        "IO:WALSync",
        "wait/io/file/sql/binlog",
        "log file switch (checkpoint incomplete)",
        "Disk file operations I/O",
    ];
    let mut runs = two_platforms();
    let sessions = &mut runs[0].records[0].waits.sessions;
    *sessions = names.iter().chain(&["/home/zeus", "zeus@styx"]).map(|name| ((*name).to_owned(), 1)).collect();
    redact(&mut runs, &known).unwrap();
    let kept: BTreeSet<&str> = runs[0].records[0].waits.sessions.keys().map(String::as_str).collect();
    assert_eq!(kept, names.into_iter().chain(["other"]).collect());
}

#[test]
fn no_format_tells_the_product() {
    let mut runs = vec![all_groups("our PostgreSQL", "2025-postgres", 1.0), run("maria", "run-nvme", 1.4)];
    let other = &mut runs[1].manifest.target;
    (other.product, other.version, other.kind) =
        ("MariaDB".to_owned(), "11.4.2-MariaDB-log".to_owned(), "mysql".to_owned());
    other.settings.insert("innodb_flush_log_at_trx_commit".to_owned(), "1".to_owned());
    runs[1].manifest.plan.target = "mysql://u@h/x".to_owned();
    for record in runs.iter_mut().flat_map(|r| &mut r.records) {
        record.error_texts.insert("ORA-00060: deadlock".to_owned(), 1);
        record.waits.sessions.insert("wait/io/file/innodb/innodb_log_file".to_owned(), 5);
        record.waits.sessions.insert("LWLock:WALWrite".to_owned(), 5);
        record.notes.push("InnoDB flushed".to_owned());
        let name = "builtin:tpcb-like".to_owned();
        record.kinds.push(KindFigures { name, weight: 1, tps: 1.0, transaction_ns: None });
        record.add_check(Check::new(CheckId::ClientCpu, Outcome::Failed, "pg_stat_io has no counter"));
    }
    anonymise(&mut runs, &known).unwrap();
    let products = [
        "postgres", "mariadb", "mysql", "oracle", "sqlite", "innodb", "pg_", "lwlock", "wait/io", "ora-0", "11.4.2",
        "15.8-0", "v$", "wal_", "walsync", "pl/pgsql", "exadata", "tpcb",
    ];
    assert_gone(&runs, &products);
    let page = text(&runs, Format::Html);
    assert!(page.contains("Database A") && page.contains("Database B"));
}

#[test]
fn a_run_of_arms_is_not_anonymous() {
    let mut runs = vec![run("a", "run-a", 1.0)];
    runs[0].manifest.plan.levels = serde_json::from_value(serde_json::json!({
        "levels": ["remote_apply"], "delays_ms": [1.0], "jitter_ms": 0.0, "replicas": 1, "pairs": 3, "seed": 1
    }))
    .unwrap();
    assert!(anonymise(&mut runs, &known).unwrap_err().to_string().contains("run-a"));
}
