//! Records made by hand or read from a published study.

#![allow(dead_code, clippy::unwrap_used)]

pub(crate) mod made;

use std::collections::BTreeMap;

use loadline_model::{Column, Driver, TestRecord, column};
use made::merge;
use serde_json::Value;

/// A valid record of `LGWR-LAT1` without figures.
pub(crate) fn record(platform: &str, test: u32, jobs: u32) -> TestRecord {
    TestRecord {
        platform: platform.to_owned(),
        run: format!("run-{platform}"),
        test,
        group: "log-writer".to_owned(),
        driver: Driver::Database,
        jobs,
        ..TestRecord::blank("LGWR-LAT1")
    }
}

pub(crate) fn with(mut record: TestRecord, figures: &[(&Column, f64)]) -> TestRecord {
    figures.iter().for_each(|(column, value)| record.set(column, *value));
    record
}

pub(crate) struct Line {
    pub(crate) base: &'static str,
    /// A test for each patch, and what the patch says beside its record (`side`).
    pub(crate) tests: Vec<TestRecord>,
    pub(crate) sides: Vec<Value>,
    pub(crate) expected: &'static str,
}

/// The lines of a table: `BASE PATCH… EXPECTED`, where `base NAME OTHER PATCH` makes a base of another; `one` is the first.
pub(crate) fn lines(text: &'static str, one: &TestRecord) -> Vec<Line> {
    let mut bases = BTreeMap::from([("one", serde_json::to_value(one).unwrap())]);
    let mut all = Vec::new();
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let Some(mut end) = line.find(" {") else { continue };
        let names: Vec<&str> = line[..end].split(' ').collect();
        let (mut patched, text) = (Vec::new(), &line[end..]);
        let mut patches = serde_json::Deserializer::from_str(text).into_iter::<Value>();
        while let Some(Ok(patch)) = patches.next() {
            end = line.len() - text.len() + patches.byte_offset();
            let mut value = bases[names[names.len() - 1]].clone();
            merge(&mut value, patch);
            patched.push(value);
        }
        if let ["base", name, _] = names[..] {
            bases.insert(name, patched.remove(0));
            continue;
        }
        let beside = |value: &mut Value| value.as_object_mut().unwrap().remove("side").unwrap_or_default();
        let sides = patched.iter_mut().map(beside).collect();
        let tests = patched.into_iter().map(|value| serde_json::from_value(value).unwrap()).collect();
        all.push(Line { base: names[0], tests, sides, expected: line[end..].trim() });
    }
    all
}

/// Whether `said` is as `expected`, in which `…` stands for anything.
pub(crate) fn is_as(said: &str, expected: &str) -> bool {
    let mut rest = said;
    let is_next = |(n, part): (usize, &str)| match rest.find(part) {
        Some(at) if n > 0 || at == 0 => {
            rest = &rest[at + part.len()..];
            true
        }
        _ => false,
    };
    expected.split('…').enumerate().all(is_next) && (rest.is_empty() || expected.ends_with('…'))
}

/// A record with throughput (tps) and latency (ms), and equal work.
pub(crate) fn measured(platform: &str, test: u32, jobs: u32, tps: f64, ms: f64) -> TestRecord {
    let work = [(column::REDO_KIB_PER_TX, 1.9), (column::ROWS_PER_TX, 1.0), (column::STATEMENTS_PER_TX, 1.0)];
    let r = with(record(platform, test, jobs), &work);
    with(r, &[(column::COMMIT_THROUGHPUT_TPS, tps), (column::COMMIT_LATENCY_MS, ms)])
}

/// The records of `platform` in the published log-writer study.
pub(crate) fn study_1(platform: &str) -> Vec<TestRecord> {
    let mut all =
        made::tests(&record(platform, 1, 1), include_str!("../../../../../references/log-writer-exadata.csv"));
    all.retain(|r| r.platform == platform);
    all
}
