//! Tests as a table or a patch says them, and a measured scan; also in the tests of `report` and `live`.

#![allow(dead_code, clippy::unwrap_used)]

use loadline_model::{SizePoint, TestRecord};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

/// Tests like `one`, numbered from 1, with the fields of the stored record that the first line names (`parameters.rows` is one of a map;
/// `jobs=4` is the same in all). Cells stand two blanks apart, or between commas; `-` changes nothing, and `null` takes a field out.
pub(crate) fn tests(one: &TestRecord, table: &str) -> Vec<TestRecord> {
    let (head, lines) = table.split_once('\n').unwrap();
    let apart = if head.contains("  ") { "  " } else { "," };
    let cells = |line: &'_ str| line.split(apart).map(|c| c.trim().to_owned()).filter(|c| !c.is_empty()).collect();
    let head: Vec<String> = cells(head);
    let (constants, keys): (Vec<&str>, Vec<&str>) = head.iter().map(String::as_str).partition(|key| key.contains('='));
    let made = |(number, line): (usize, &str)| {
        let mut all = serde_json::to_value(TestRecord { test: number as u32 + 1, ..one.clone() }).unwrap();
        let cells: Vec<String> = cells(line);
        assert_eq!(cells.len(), keys.len(), "{line}");
        let of_line = keys.iter().copied().zip(cells.iter().map(String::as_str));
        for (key, cell) in constants.iter().filter_map(|pair| pair.split_once('=')).chain(of_line) {
            set(&mut all, key, cell);
        }
        serde_json::from_value(all).unwrap()
    };
    lines.lines().enumerate().map(made).collect()
}

fn set(all: &mut Value, key: &str, cell: &str) {
    let (into, key) = key.split_once('.').map_or((None, key), |(map, key)| (Some(map), key));
    let place = into.into_iter().fold(all, |all, map| &mut all[map]);
    let text = place[key].is_string();
    match cell {
        "-" => {}
        "null" => drop(place.as_object_mut().unwrap().remove(key)),
        _ if text => place[key] = json!(cell),
        _ => place[key] = serde_json::from_str(cell).unwrap_or_else(|_| json!(cell)),
    }
}

/// Merges a patch (RFC 7396): null takes a key out.
pub(crate) fn merge(into: &mut Value, patch: Value) {
    let Value::Object(patch) = patch else { return *into = patch };
    if !into.is_object() {
        *into = Value::Object(Default::default());
    }
    for (key, value) in patch {
        match value {
            Value::Null => drop(into.as_object_mut().unwrap().remove(&key)),
            value => merge(&mut into[&key], value),
        }
    }
}

/// `of` as it is stored, with a patch.
pub(crate) fn patched<T: Serialize + DeserializeOwned>(of: &T, patch: Value) -> T {
    let mut stored = serde_json::to_value(of).unwrap();
    merge(&mut stored, patch);
    serde_json::from_value(stored).unwrap()
}

/// Commit times measured on a virtual disk busy with other work (most commits met a stall): a file written in 64 KiB
/// pieces, flushed by a second thread after each `rule` pieces, and fdatasync as the commit, which also waits for a
/// running flush. Sizes in random order, 20, 8 and 6 commits each.
pub(crate) fn scanned(rule: &str) -> Vec<SizePoint> {
    let rows = include_str!("../../data/commit-time-by-redo.csv").lines();
    let point = |row: &str| {
        let (bytes, times) = row.strip_prefix(rule)?.strip_prefix(',')?.split_once(',')?;
        let commit_ns: Vec<u64> = times.split(' ').map(|ns| ns.parse().unwrap()).collect();
        Some(SizePoint { idle_s: 0.0, redo_bytes: bytes.parse().unwrap(), commit_ns, write_ns: Vec::new() })
    };
    rows.filter_map(point).collect()
}
