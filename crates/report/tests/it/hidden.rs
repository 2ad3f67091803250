//! Nothing that `--redact` and `--anonymous` hide is in any format.

use crate::common::groups::all_groups;
use crate::common::{run, text, two_platforms};
use loadline_model::column::COLUMNS;
use loadline_model::record::AgentFigures;
use loadline_model::{Check, Manifest, Outcome, TestRecord};
use loadline_report::{Format, Options, RunData, anonymise, redact, render};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

const ALL: [Format; 5] = [Format::Html, Format::Markdown, Format::Csv, Format::Json, Format::Text];

/// What tells whose platform it is, as people write it.
const POISON: &[(&str, &[&str])] = &[
    ("on the CPU 74 % (most: acme-billing 0.87 CPUs, ledger (x) 0.51 CPUs); noted", &["acme", "ledger"]),
    ("postgres://alice:pw@db07.acme.example:5432/ledger?host=/run/acme", &["alice", "acme", "ledger", "db07"]),
    ("--target=mysql://carol@10.20.30.40/books", &["carol", "10.20.30.40", "books"]),
    ("/home/alice/results/run.db", &["alice"]),
    ("sqlite:/srv/acme/ledger.db", &["acme", "ledger"]),
    ("filer3:/export/acme on /mnt/acme", &["filer3", "acme"]),
    ("address 192.168.7.9:5432, [2001:db8::7], 10.1.0.0/16.", &["192.168.7.9", "2001:db8::7", "10.1.0.0"]),
    ("Access denied for user 'carol'@'web-3.acme.example'", &["carol", "web-3", "acme"]),
    (
        "instance i-0abc12345678def0 of arn:aws:rds:eu-1:998877665544:db:acme",
        &["0abc12345678def0", "998877665544", "acme"],
    ),
    ("disk 6fa459ea-ee8a-3ca4-894e-db77e160355e, 52:54:00:ab:cd:ef", &["6fa459ea", "52:54:00"]),
    ("ops@acme.example", &["acme"]),
    ("lowerdir=/var/lib/acme/l1:/var/lib/acme/l2,addr=10.9.8.7", &["acme", "10.9.8.7"]),
    ("role \"ledger_owner\" of database `books` at mailhub.acme.internal.", &["ledger_owner", "books", "mailhub"]),
];

/// `value` with `poison` after each text in which it may stand.
fn poisoned<T: Serialize + DeserializeOwned>(value: &T, poison: &str) -> (T, usize) {
    let mut json = serde_json::to_value(value).unwrap();
    let mut paths = Vec::new();
    texts(&json, String::new(), &mut paths);
    let mut planted = 0;
    for path in paths {
        let mut tried = json.clone();
        let text = tried.pointer_mut(&path).unwrap();
        *text = Value::from(format!("{} {poison}", text.as_str().unwrap()));
        if serde_json::from_value::<T>(tried.clone()).is_ok() {
            json = tried;
            planted += 1;
        }
    }
    (serde_json::from_value(json).unwrap(), planted)
}

/// Pointers to all texts, but those that loadline itself writes in words of its own.
fn texts(value: &Value, at: String, out: &mut Vec<String>) {
    match value {
        Value::String(_) => out.push(at),
        Value::Array(items) => items.iter().enumerate().for_each(|(n, item)| texts(item, format!("{at}/{n}"), out)),
        Value::Object(map) => {
            let own = ["started_at", "loadline_version", "group", "kpis", "swept", "fingerprint", "version"];
            for (key, item) in map.iter().filter(|(key, _)| !own.contains(&key.as_str())) {
                texts(item, format!("{at}/{}", key.replace('~', "~0").replace('/', "~1")), out);
            }
        }
        _ => {}
    }
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

#[test]
fn nothing_of_a_name_is_in_any_format_wherever_it_stood() {
    for (poison, forbidden) in POISON.iter().copied() {
        let mut runs = vec![all_groups("disk", "run-disk", 1.0), run("nvme", "run-nvme", 1.4)];
        for run in &mut runs {
            let (manifest, planted) = poisoned::<Manifest>(&run.manifest, poison);
            assert!(planted > 30, "{planted}");
            run.manifest = manifest;
            for record in &mut run.records {
                *record = poisoned::<TestRecord>(record, poison).0;
                record.error_texts.insert(format!("ERROR: {poison}"), 3);
                record.waits.sessions.insert(poison.to_owned(), 3);
            }
            run.warnings.push(poison.to_owned());
            run.notes.insert(String::new(), poison.to_owned());
        }
        assert!(outputs(&runs).iter().all(|(_, text)| !text.contains("redacted")));
        redact(&mut runs).unwrap();
        assert_gone(&runs, forbidden);
    }
}

#[test]
fn names_of_the_record_are_hidden_where_they_stand_alone() {
    let mut runs = two_platforms();
    for run in &mut runs {
        let m = &mut run.manifest;
        m.machine.host = "Zeus12".to_owned();
        m.target.host = Some("hera-3.olymp.example".to_owned());
        m.target.url = "postgres://hermes@styx:5432/orders".to_owned();
        m.plan.platform = "zeus12, new disks".to_owned();
        m.command =
            ["loadline", "run", "--target", "postgres://hermes@styx/orders", "--results", "apollo", "--jobs", "1,2"]
                .map(String::from)
                .into();
        for (name, value) in [
            ("cluster_name", "artemis-prod"),
            ("primary_conninfo", "host=nyx user=charon port=5432"),
            ("archive_command", "scp %p persephone:/x"),
            ("log_line_prefix", "%m athena "),
            ("work_mem", "4MB"),
        ] {
            m.target.settings.insert(name.to_owned(), value.to_owned());
        }
        m.target.notes.push("hera-3 is a standby of zeus12; orders belongs to hermes".to_owned());
        for record in &mut run.records {
            record.platform = m.plan.platform.clone();
            record.target = m.target.url.clone();
            record.add_check(Check::new("settings", Outcome::Passed, "cluster_name is artemis-prod"));
            record.by_agent.push(AgentFigures {
                name: "ares".to_owned(),
                host: "ares.olymp.example".to_owned(),
                failed: Some("ares was lost".to_owned()),
                ..AgentFigures::default()
            });
        }
    }
    redact(&mut runs).unwrap();
    let forbidden = [
        "zeus", "hera-3", "olymp", "hermes", "styx", "orders", "apollo", "artemis", "nyx", "charon", "persephone",
        "athena",
    ];
    assert_gone(&runs, &forbidden);
    let page = text(&runs, Format::Html);
    for kept in [
        "4MB", "AMD EPYC 7543", "PostgreSQL", "15.8 (Debian 15.8-0+deb12u1)", "--jobs 1,2", "host-1, new disks",
        "nvme0n1",
    ] {
        assert!(page.contains(kept), "'{kept}' is gone");
    }
}

#[test]
fn figures_stay_as_they_are() {
    let (before, mut after) = (two_platforms(), two_platforms());
    redact(&mut after).unwrap();
    anonymise(&mut after).unwrap();
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
        record.add_check(Check::new("client-cpu", Outcome::Failed, "pg_stat_io has no counter"));
    }
    anonymise(&mut runs).unwrap();
    let products = [
        "postgres", "mariadb", "mysql", "oracle", "sqlite", "innodb", "pg_", "lwlock", "wait/io", "ora-0", "11.4.2",
        "15.8-0", "v$", "wal_", "walsync", "pl/pgsql", "exadata",
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
    assert!(anonymise(&mut runs).unwrap_err().to_string().contains("run-a"));
}
