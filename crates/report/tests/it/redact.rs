//! `--redact` and `--anonymous`: what stays is a list, and nothing else is in any format.

use std::collections::BTreeSet;

use crate::common::*;
use loadline_analyze::sweeps;
use loadline_model::Forced;
use loadline_model::column::COLUMNS;
use loadline_model::record::KindFigures;
use loadline_model::{Check, CheckId, Detail, Imported, Outcome, TestRecord};
use loadline_report::{Format, Options, RunData, redact, render};
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
        let text = String::from_utf8(render(runs, format, &options).unwrap()).unwrap();
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
        let m = &mut run.manifest;
        m.machine.host = "Zeus12".to_owned();
        m.target.url = "postgres://hermes@styx:5432/orders".to_owned();
        m.plan.platform = "zeus12, new disks".to_owned();
        m.command = ["loadline", "run", "--results", "/home/apollo"].map(String::from).into();
        let settings = [
            ("cluster_name", "artemis-prod"),
            ("primary_conninfo", "host=10.9.8.7 user=charon port=5432"),
            ("port", "599912345"),
            ("work_mem", "4MB"),
            ("wal_level", "replica"),
            ("io_method", method),
            ("unix_socket_directories", folder),
        ];
        m.target.settings.extend(settings.map(|(name, value)| (name.to_owned(), value.to_owned())));
        m.target.notes.push("hera-3 is a standby of zeus12".to_owned());
        for record in &mut run.records {
            record.platform = m.plan.platform.clone();
            record.target = m.target.url.clone();
            record.error_texts.insert("relation nyx does not exist".to_owned(), 3);
            record.waits.sessions =
                waits.iter().chain(&["ops@athena.example"]).map(|of| ((*of).to_owned(), 3)).collect();
            record.add_check(Check::new(CheckId::Settings, Outcome::Failed, "cluster_name is artemis-prod"));
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
    let page = text(&runs, Format::Html);
    for kept in [
        "4MB", "replica", "AMD EPYC 7543", "PostgreSQL", "15.8 (Debian 15.8-0+deb12u1)", "platform-1", "nvme0n1",
        "LGWR-LAT1", "failed: settings", "write back", "≠ io_method", "cluster_name",
    ] {
        assert!(page.contains(kept), "'{kept}' is gone");
    }
    assert!(!page.contains("≠ unix_socket_directories") && !page.contains("≠ cluster_name"));
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
    let versions = ["3.35.1", "3.35.2"].map(|version| {
        Some(Imported { tool: "fio".to_owned(), version: Some(version.to_owned()), ..Imported::default() })
    });
    let mut runs = two_platforms();
    for run in &mut runs {
        let first = run.records[0].clone();
        let ways = [("a", false), ("b", false), ("a", true), ("b", true)]
            .map(|(why, not_the_devices)| (Forced { refused: Some(why.to_owned()), not_the_devices }, None));
        let all = ways.into_iter().chain(versions.clone().map(|imported| (Forced::default(), imported)));
        // Each two that differ are of one point, where one of them is set aside.
        let record = |(test, (forced, imported)): (u32, (Forced, Option<Imported>))| TestRecord {
            test,
            jobs: 1 + (test - 1) % 6 / 2,
            forced,
            details: imported.map(Detail::Imported).into_iter().collect(),
            ..first.clone()
        };
        run.records = (1..).zip(all.cycle().take(12)).map(record).collect();
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

#[test]
fn names_agree() {
    let mut run = full();
    "acme's B".clone_into(&mut run.manifest.plan.paired.as_mut().unwrap().variants[1].label);
    "acme's B".clone_into(&mut run.records[0].platform);
    let kinds = ["own.sql", "builtin:select-only"].map(|name| (name, run.records[0].kinds()[0].clone()));
    let kinds = kinds.map(|(name, kind)| KindFigures { name: name.to_owned(), ..kind }).into();
    run.records[0].details = vec![Detail::Kinds(kinds)];
    redact(std::slice::from_mut(&mut run), false, &known).unwrap();
    assert_eq!(run.records[0].platform, run.manifest.plan.paired.unwrap().variants[1].label);
    let names: Vec<&str> = run.records[0].kinds().iter().map(|kind| kind.name.as_str()).collect();
    assert_eq!(names, ["script-1", "builtin:select-only"]);
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
        record.notes.push("InnoDB flushed".into());
        let name = "builtin:tpcb-like".to_owned();
        record.details.push(Detail::Kinds(vec![KindFigures {
            name,
            weight: 1,
            transactions: None,
            tps: 1.0,
            transaction_ns: None,
            p95_ns: None,
        }]));
        record.add_check(Check::new(CheckId::ClientCpu, Outcome::Failed, "pg_stat_io has no counter"));
    }
    redact(&mut runs, true, &known).unwrap();
    let products = [
        "postgres", "mariadb", "mysql", "oracle", "sqlite", "innodb", "pg_", "lwlock", "wait/io", "ora-0", "11.4.2",
        "15.8-0", "v$", "wal_", "walsync", "pl/pgsql", "exadata", "tpcb",
    ];
    assert_gone(&runs, &products);
    let page = text(&runs, Format::Html);
    assert!(page.contains("Database A") && page.contains("Database B"));
}
