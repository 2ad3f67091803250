//! `--redact` and `--anonymous`: what stays is a list, and nothing else is in any format.

use std::collections::BTreeSet;

use crate::common::*;
use loadline_analyze::sweeps;
use loadline_model::column::COLUMNS;
use loadline_model::record::KindFigures;
use loadline_model::{CheckId, Detail, TestRecord};
use loadline_report::{Format, Options, RunData, redact};
use serde_json::{Value, json};

const ALL: [Format; 5] = [Format::Html, Format::Markdown, Format::Csv, Format::Json, Format::Text];
const POISON: &str = "acme";

fn known(word: &str) -> bool {
    word.starts_with("LGWR") && !word.contains(POISON)
}

/// That none of `words` is in any format, whole or short.
fn assert_gone(runs: &[RunData], words: &[&str]) {
    let escapes = [("&#x2f;", "/"), ("&#x27;", "'"), ("&quot;", "\""), ("&amp;", "&")];
    for (format, short) in ALL.into_iter().flat_map(|format| [(format, false), (format, true)]) {
        let options = Options { summary: short, paper: short, ..Options::default() };
        let text = with(runs, format, &options);
        let mut text = escapes.iter().fold(text, |text, (from, to)| text.replace(from, to)).to_lowercase();
        // What a column means is the same in every report, whatever was measured.
        for column in COLUMNS.iter() {
            text = text.replace(&column.meaning.to_lowercase(), "");
        }
        for word in words {
            let at = text.find(word).map(|at| text.get(at.saturating_sub(80)..at + 80));
            assert_eq!(at, None, "{format:?}, {short}: '{word}' is in it");
        }
    }
}

/// Fields with [`POISON`] in them, `at` being the path of `value`.
fn poisoned(value: &Value, at: &str, found: &mut BTreeSet<String>) {
    if at.contains(POISON) || value.as_str().is_some_and(|text| text.contains(POISON)) {
        found.insert(at.to_owned());
    }
    match value {
        Value::Array(items) => items.iter().for_each(|item| poisoned(item, at, found)),
        Value::Object(map) => map.iter().for_each(|(name, item)| poisoned(item, &format!("{at}.{name}"), found)),
        _ => {}
    }
}

/// A run with every field of manifest and record, and a name in each text and as a key of each map, where it can be read.
fn full() -> RunData {
    let mut full: Value = serde_json::from_str(include_str!("full.json")).unwrap();
    let record: TestRecord = serde_json::from_value(full["test"].take()).unwrap();
    let manifest = serde_json::from_value(full["manifest"].take()).unwrap();
    RunData::new(manifest, vec![record], vec![POISON.to_owned()])
}

#[test]
fn only_listed_texts_stay() {
    let mut run = full();
    run.notes.insert(POISON.to_owned(), POISON.to_owned());
    run.records[0].figures.insert(POISON.to_owned(), 1.0);
    let holds = |run: &RunData| -> BTreeSet<String> {
        let mut found = BTreeSet::new();
        poisoned(&json!(run.manifest), "manifest", &mut found);
        poisoned(&json!(run.records[0]), "test", &mut found);
        found
    };
    let before = holds(&run).len();
    assert!(before > 150, "{before}");
    redact(std::slice::from_mut(&mut run), false, &known).unwrap();
    let stays = include_str!("stays.txt").lines().map(str::to_owned).collect();
    assert_eq!(holds(&run), stays, "the fields in which any text stays");
    assert!(run.warnings.iter().chain(run.notes.keys()).chain(run.notes.values()).all(|text| !text.contains(POISON)));
}

#[test]
fn names_are_in_no_format_and_what_differs_still_differs() {
    let mut runs = two_platforms();
    let waits =
        ["IO:WALSync", "wait/io/file/sql/binlog", "log file switch (checkpoint incomplete)", "Disk operations I/O"];
    let own = [["worker", "/tmp/loadline-pg-1/s"], ["io_uring", "/tmp/loadline-pg-2/s"]];
    for (run, [method, folder]) in runs.iter_mut().zip(own) {
        let settings = json!({"cluster_name": "artemis-prod", "primary_conninfo": "host=10.9.8.7 user=charon port=5432",
            "port": "599912345", "work_mem": "4MB", "wal_level": "replica", "io_method": method,
            "unix_socket_directories": folder});
        let url = "postgres://hermes@styx:5432/orders";
        let target = json!({"url": url, "settings": settings, "notes": ["hera-3 is a standby of zeus12"]});
        run.manifest = patched(
            &run.manifest,
            json!({"machine": {"host": "Zeus12"}, "target": target,
            "plan": {"platform": "zeus12, new disks"}, "command": ["loadline", "run", "--results", "/home/apollo"]}),
        );
        let sessions: Value =
            waits.iter().chain(&["ops@athena.example"]).map(|of| ((*of).to_owned(), json!(3))).collect();
        for record in &mut run.records {
            record.waits.sessions.clear();
            *record = patched(
                record,
                json!({"platform": "zeus12, new disks", "target": url,
                "error_texts": {"relation nyx does not exist": 3}, "waits": {"sessions": sessions}}),
            );
            record.add_check(failed(CheckId::Settings, "cluster_name is artemis-prod"));
        }
    }
    redact(&mut runs, false, &known).unwrap();
    let names = [
        "zeus", "hera-3", "hermes", "styx", "orders", "apollo", "artemis", "10.9.8.7", "charon", "599912345", "nyx",
        "athena", "new disks",
    ];
    assert_gone(&runs, &names);
    let kept: BTreeSet<&str> = runs[0].records[0].waits.sessions.keys().map(String::as_str).collect();
    assert_eq!(kept, waits.into_iter().chain(["other"]).collect());
    assert_says(
        &text(&runs, Format::Html),
        &[
            "4MB", "replica", "AMD EPYC 7543", "PostgreSQL", "15.8 (Debian 15.8-0+deb12u1)", "platform-1", "nvme0n1",
            "LGWR-LAT1", "failed: settings", "write back", "≠ io_method", "cluster_name", "!≠ unix_socket_directories",
            "!≠ cluster_name",
        ],
    );
}

#[test]
fn figures_stay_as_they_are() {
    let (before, mut after) = (two_platforms(), two_platforms());
    redact(&mut after, true, &known).unwrap();
    let figures = |runs: &[RunData]| -> Vec<Value> {
        let of = |r: &TestRecord| {
            json!([r.figures, r.valid, r.jobs, r.workload, r.kpis, r.waits.sessions.values().sum::<u64>()])
        };
        runs.iter().flat_map(|run| &run.records).map(of).collect()
    };
    assert_eq!(figures(&before), figures(&after));
    assert!(before.iter().zip(&after).all(|(a, b)| a.over_time == b.over_time));
    before[0].manifest.clone_into(&mut after[0].manifest);
    after[0].manifest.plan.paired = Some(Box::default());
    assert!(redact(&mut after, true, &known).is_err(), "levels are a product's own words");
}

#[test]
fn tests_are_pooled_as_before() {
    let ways = [
        json!({"forced": "a"}),
        json!({"forced": "b"}),
        json!({"forced": "a; --allow-cached: not the device's figures"}),
        json!({"forced": "b; --allow-cached: not the device's figures"}),
        json!({"imported": {"tool": "fio", "version": "3.35.1", "files": []}}),
        json!({"imported": {"tool": "fio", "version": "3.35.2", "files": []}}),
    ];
    let mut runs = two_platforms();
    for run in &mut runs {
        let first = run.records[0].clone();
        // Each two that differ are of one point, where one of them is set aside.
        let record = |(test, way): (u32, &Value)| {
            patched(&TestRecord { test, jobs: 1 + (test - 1) % 6 / 2, ..first.clone() }, way.clone())
        };
        run.records = (1..).zip(ways.iter().cycle().take(12)).map(record).collect();
    }
    let pools = |runs: &[RunData]| -> Vec<(u32, Vec<u32>, Vec<u32>)> {
        let points = runs.iter().flat_map(|run| sweeps(&run.records)).flat_map(|sweep| sweep.points);
        points.map(|p| (p.jobs, p.tests, p.set_aside.iter().map(|aside| aside.test).collect())).collect()
    };
    let before = pools(&runs);
    assert!(before.iter().all(|(_, _, aside)| !aside.is_empty()), "{before:?}");
    redact(&mut runs, false, &known).unwrap();
    assert_eq!(pools(&runs), before);
}

fn kind(name: &str) -> KindFigures {
    let name = name.to_owned();
    KindFigures { name, weight: 1, transactions: None, tps: 1.0, transaction_ns: None, p95_ns: None }
}

#[test]
fn names_agree() {
    let mut run = full();
    "acme's B".clone_into(&mut run.manifest.plan.paired.as_mut().unwrap().variants[1].label);
    "acme's B".clone_into(&mut run.records[0].platform);
    run.records[0].details = vec![Detail::Kinds(["own.sql", "builtin:select-only"].map(kind).into())];
    redact(std::slice::from_mut(&mut run), false, &known).unwrap();
    assert_eq!(run.records[0].platform, run.manifest.plan.paired.unwrap().variants[1].label);
    let names: Vec<&str> = run.records[0].kinds().iter().map(|kind| kind.name.as_str()).collect();
    assert_eq!(names, ["script-1", "builtin:select-only"]);
}

#[test]
fn no_format_tells_the_product() {
    let mut runs = vec![all_groups("our PostgreSQL", "2025-postgres", 1.0), run("maria", "run-nvme", 1.4)];
    runs[1].manifest = patched(
        &runs[1].manifest,
        json!({"plan": {"target": "mysql://u@h/x"}, "target": {"product": "MariaDB",
        "version": "11.4.2-MariaDB-log", "kind": "mysql", "settings": {"innodb_flush_log_at_trx_commit": "1"}}}),
    );
    let kinds = [kind("builtin:tpcb-like")];
    for record in runs.iter_mut().flat_map(|r| &mut r.records) {
        let sessions = json!({"wait/io/file/innodb/innodb_log_file": 5, "LWLock:WALWrite": 5});
        *record = patched(
            record,
            json!({"error_texts": {"ORA-00060: deadlock": 1}, "waits": {"sessions": sessions},
            "notes": ["InnoDB flushed"]}),
        );
        record.details.push(Detail::Kinds(kinds.to_vec()));
        record.add_check(failed(CheckId::ClientCpu, "pg_stat_io has no counter"));
    }
    redact(&mut runs, true, &known).unwrap();
    let products = [
        "postgres", "mariadb", "mysql", "oracle", "sqlite", "innodb", "pg_", "lwlock", "wait/io", "ora-0", "11.4.2",
        "15.8-0", "v$", "wal_", "walsync", "pl/pgsql", "exadata", "tpcb",
    ];
    assert_gone(&runs, &products);
    assert_says(&text(&runs, Format::Html), &["Database A", "Database B"]);
}
