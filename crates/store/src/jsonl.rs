//! `tests.jsonl`: one record per line. The file is only appended to, so only its end may be torn.
//!
//! The last field of a line is a checksum of the others. It shows a line that was edited by hand. It is no signature: who can
//! edit a line can make its checksum anew, or remove it, as lines of older versions have none.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::path::Path;

use loadline_model::column::NOT_FINITE;
use loadline_model::disturbance::judge_kept;
use loadline_model::record::RECORD_SCHEMA;
use loadline_model::{Check, CheckId, Detail, Json as _, Outcome, TestRecord};
use serde::de::IgnoredAny;
use sha2::{Digest as _, Sha256};

use crate::error::{RESTORE_OR_CUT, StoreError, json_text};
use crate::layout;
use crate::snapshots::newer;

#[derive(Debug)]
pub(crate) struct Tests {
    pub(crate) records: Vec<TestRecord>,
    /// Length of the file up to the last complete record, bytes.
    pub(crate) whole_bytes: u64,
    /// Line number and length of the torn last line, if there is one.
    pub(crate) torn: Option<(usize, usize)>,
}

/// Parses the file; `path` is for messages.
///
/// The last line is torn if it has no newline (the process was killed during the append) or is not JSON (the machine lost
/// power during it). Its test was never reported as stored.
/// Any other damage is an error with its line, and so is a record of a newer layout.
pub(crate) fn parse(path: &Path, bytes: &[u8]) -> Result<Tests, StoreError> {
    let mut tests = Tests { records: Vec::new(), whole_bytes: 0, torn: None };
    let mut line_of: BTreeMap<u32, usize> = BTreeMap::new();
    let lines: Vec<&[u8]> = bytes.split_inclusive(|b| *b == b'\n').collect();
    for (i, line) in lines.iter().enumerate() {
        let (number, last) = (i + 1, i + 1 == lines.len());
        let Some(json) = line.strip_suffix(b"\n") else {
            tests.torn = Some((number, line.len()));
            break;
        };
        let record = match record(path, number, json) {
            Ok(record) => record,
            Err(StoreError::Damaged { .. }) if last && serde_json::from_slice::<IgnoredAny>(json).is_err() => {
                tests.torn = Some((number, line.len()));
                break;
            }
            Err(e) => return Err(e),
        };
        if let Some(before) = line_of.insert(record.test, number) {
            return Err(damaged(path, number, format!("test {} is already on line {before}", record.test)));
        }
        tests.records.push(record);
        tests.whole_bytes += line.len() as u64;
    }
    Ok(tests)
}

fn record(path: &Path, line: usize, json: &[u8]) -> Result<TestRecord, StoreError> {
    if let Some(found) = newer(json, RECORD_SCHEMA) {
        return Err(StoreError::Newer { path: path.to_owned(), line: Some(line), found, known: RECORD_SCHEMA });
    }
    let (json, sum) = without_checksum(json);
    let mut record: TestRecord = TestRecord::from_json(&json).map_err(|e| damaged(path, line, json_text(&e)))?;
    if record.schema == 0 {
        return Err(damaged(path, line, "its 'schema' is 0, which is invalid".to_owned()));
    }
    judge_kept(&mut record);
    // A program that sorts the fields changes the line, too.
    if record.figures.remove(CHECKSUM).is_some() || sum.is_some_and(|sum| sum != checksum(&json)) {
        let why = format!("changed after it was measured: line {line} of {}", layout::TESTS);
        record.add_check(Check::new(CHANGED, Outcome::Noted, why));
    }
    Ok(record)
}

const CHANGED: CheckId = CheckId::Record;

/// Warnings about lines that were changed after they were measured. Their tests stay valid: a program may have written the same
/// anew, and a reader decides.
pub(crate) fn changed_warnings(records: &[TestRecord]) -> impl Iterator<Item = String> {
    let changed = |r: &TestRecord| {
        let check = r.checks.iter().find(|c| c.id == CHANGED)?;
        Some(format!("test {} was {}", r.test, check.detail))
    };
    records.iter().filter_map(changed)
}

/// The field. A number, because versions that do not know it read it as a figure.
const CHECKSUM: &str = "checksum";

/// The first 52 bits of the SHA-256 of a line without its checksum: every program reads as many exactly in a JSON number.
fn checksum(json: &[u8]) -> u64 {
    let first = Sha256::digest(json).iter().take(8).fold(0, |sum, byte| sum << 8 | u64::from(*byte));
    first >> 12
}

/// A line without its checksum, and the checksum, if it ends with one.
fn without_checksum(json: &[u8]) -> (Cow<'_, [u8]>, Option<u64>) {
    let field = format!(",\"{CHECKSUM}\":");
    let found = json.strip_suffix(b"}").and_then(|json| {
        let at = json.windows(field.len()).rposition(|part| part == field.as_bytes())?;
        let sum = std::str::from_utf8(json.get(at + field.len()..)?).ok()?.parse().ok()?;
        Some((json.get(..at)?, sum))
    });
    match found {
        Some((rest, sum)) => (Cow::Owned([rest, b"}"].concat()), Some(sum)),
        None => (Cow::Borrowed(json), None),
    }
}

fn damaged(path: &Path, line: usize, what: String) -> StoreError {
    StoreError::Damaged { path: path.to_owned(), line: Some(line), what, advice: RESTORE_OR_CUT }
}

/// The line of `record`, with newline. Figures that are not finite are left out with a reason, because JSON cannot hold
/// them. Fails if the line would not read back as the same record.
pub(crate) fn line(record: &TestRecord) -> Result<Vec<u8>, String> {
    let mut record = record.clone();
    record.details.sort_by_key(Detail::place);
    let odd: Vec<String> = record.figures.iter().filter(|(_, v)| !v.is_finite()).map(|(id, _)| id.clone()).collect();
    for id in odd {
        record.figures.remove(&id);
        record.absent.insert(id, NOT_FINITE.to_owned());
    }
    let mut line = serde_json::to_vec(&record).map_err(|e| format!("its record cannot be encoded: {e}"))?;
    // A figure under the name of a field would make a line that no one can read any more.
    match TestRecord::from_json(&line) {
        Ok(back) if back == record => {}
        Ok(_) => return Err("its record would not read back as it is".to_owned()),
        Err(e) => return Err(format!("its record would not read back: {}", json_text(&e))),
    }
    if record.validity().is_none() {
        line = unchecked(line);
    }
    let sum = checksum(&line);
    line.pop();
    line.extend_from_slice(format!(",\"{CHECKSUM}\":{sum}}}\n").as_bytes());
    Ok(line)
}

/// The line of an imported test with `null` as its validity. The first such text is the field: quotes in strings are escaped.
fn unchecked(line: Vec<u8>) -> Vec<u8> {
    const VALID: &[u8] = b"\"valid\":true,";
    match line.windows(VALID.len()).position(|part| part == VALID) {
        Some(at) => {
            [line.get(..at).unwrap_or_default(), b"\"valid\":null,", line.get(at + VALID.len()..).unwrap_or_default()]
                .concat()
        }
        None => line,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::record as sample;
    use loadline_model::column;
    use proptest::prelude::*;

    fn file(tests: &[u32]) -> Vec<u8> {
        tests.iter().flat_map(|t| line(&sample(*t)).unwrap()).collect()
    }

    fn parse(bytes: &[u8]) -> Result<Tests, StoreError> {
        super::parse(Path::new("/r/tests.jsonl"), bytes)
    }

    #[test]
    fn an_imported_test_is_stored_without_validity() {
        let tool = "\"valid\":true,";
        let imported = loadline_model::Imported { tool: tool.to_owned(), ..Default::default() };
        let record = TestRecord { details: vec![Detail::Imported(imported)], target: tool.to_owned(), ..sample(1) };
        let line = line(&record).unwrap();
        let read: serde_json::Value = serde_json::from_slice(&line).unwrap();
        assert!(read["valid"].is_null() && read["imported"]["tool"] == tool && read["target"] == tool);
        assert_eq!(parse(&line).unwrap().records, [record]);
    }

    #[test]
    fn details_are_stored_in_one_order_however_they_were_made() {
        let [nodes, aging] = [Detail::Nodes(vec![Default::default()]), Detail::Aging(vec![Default::default()])];
        let of = |details: Vec<Detail>| line(&TestRecord { details, ..sample(1) }).unwrap();
        assert_eq!(of(vec![aging.clone(), nodes.clone()]), of(vec![nodes, aging]));
    }

    #[test]
    fn a_changed_line_is_marked() {
        let whole = String::from_utf8(file(&[1, 2])).unwrap();
        let changed = |text: &str| {
            let records = parse(text.as_bytes()).unwrap().records;
            assert!(records.iter().all(|r| !r.figures.contains_key(CHECKSUM) && r.valid));
            let said = |r: &TestRecord| changed_warnings(std::slice::from_ref(r)).next();
            records.iter().map(said).collect::<Vec<_>>()
        };
        assert_eq!(changed(&whole), [None, None]);
        let (first, second) = whole.split_once('\n').unwrap();
        let edited = second.replacen("\"jobs\":", "\"jobs\":1", 1);
        let reason = Some("test 2 was changed after it was measured: line 2 of tests.jsonl".to_owned());
        assert_eq!(changed(&format!("{first}\n{edited}")), [None, reason.clone()]);
        let last_digit = whole.trim_end().strip_suffix('}').unwrap();
        assert_eq!(changed(&format!("{last_digit}0}}\n")), [None, reason.clone()]);
        // Other programs may put it elsewhere. Lines of older versions have none.
        let (rest, sum) = second.trim_end().rsplit_once(",\"checksum\":").unwrap();
        let moved = format!("{{\"checksum\":{},{}}}\n", sum.trim_end_matches('}'), &rest[1..]);
        assert_eq!(changed(&format!("{first}\n{moved}")), [None, reason]);
        assert_eq!(changed(&format!("{first}\n{rest}}}\n")), [None, None]);
    }

    #[test]
    fn versions_that_know_no_checksum_read_a_figure() {
        let line = line(&sample(1)).unwrap();
        let mut old: TestRecord = serde_json::from_slice(&line).unwrap();
        let sum = old.figures.remove(CHECKSUM).unwrap();
        assert_eq!((old, sum.fract(), sum < 2f64.powi(53)), (sample(1), 0.0, true));
    }

    #[test]
    fn zeros_at_the_end_are_a_torn_line() {
        for tail in [&b"\0\0\0\0"[..], b"\0\0\n", b"{\"schema\":1,\n", b"\xff\xfe\n", b"\n"] {
            let mut bytes = file(&[1, 2]);
            bytes.extend_from_slice(tail);
            let tests = parse(&bytes).unwrap();
            assert_eq!((tests.records.len(), tests.torn), (2, Some((3, tail.len()))));
        }
    }

    #[test]
    fn other_damage_is_named_by_file_and_line() {
        let whole = String::from_utf8(file(&[1, 2, 3])).unwrap();
        let lines: Vec<&str> = whole.lines().collect();
        let cases = [
            (format!("{}\ngarbage\n{}\n", lines[0], lines[2]), "line 2", "expected value"),
            (format!("{}\n\n{}\n", lines[0], lines[2]), "line 2", "EOF"),
            (format!("{}\n{}\n{}\n", lines[0], lines[1], lines[0]), "line 3", "test 1 is already on line 1"),
            // Valid JSON was written on purpose: it is no torn line.
            (format!("{}\n{{\"schema\":1}}\n", lines[0]), "line 2", "missing field"),
            (whole.replacen("\"schema\":2", "\"schema\":0", 1), "line 1", "schema"),
        ];
        for (text, line, what) in cases {
            let error = parse(text.as_bytes()).unwrap_err().to_string();
            assert!(error.contains("'/r/tests.jsonl'") && error.contains(line) && error.contains(what), "{error}");
        }
        let newer = whole.replacen("\"schema\":2", "\"schema\":7", 1);
        let error = parse(newer.as_bytes()).unwrap_err().to_string();
        assert!(error.contains("line 1, has layout 7") && error.contains("up to 2"), "{error}");
    }

    #[test]
    fn a_figure_that_is_no_number_is_left_out_with_its_reason() {
        let mut odd = sample(1);
        odd.figures.insert("log_file_sync_ms".to_owned(), f64::INFINITY);
        let tests = parse(&line(&odd).unwrap()).unwrap();
        assert_eq!(tests.records[0].figure(column::LOG_FILE_SYNC_MS), None);
        assert!(tests.records[0].absent.contains_key("log_file_sync_ms"));
    }

    #[test]
    fn a_record_that_would_not_read_back_is_refused() {
        let mut odd = sample(1);
        odd.figures.insert("jobs".to_owned(), 3.0);
        assert!(line(&odd).unwrap_err().contains("duplicate field"));
    }

    proptest! {
        #[test]
        fn no_bytes_panic(bytes in prop::collection::vec(any::<u8>(), 0..200), at in 0usize..2000) {
            let mut whole = file(&[1, 2]);
            let at = at.min(whole.len());
            whole.splice(at..at, bytes);
            let _ = parse(&whole);
        }

        #[test]
        fn figures_keep_every_bit(value in any::<f64>()) {
            let mut record = sample(1);
            record.set(column::COMMIT_THROUGHPUT_TPS, value);
            let tests = parse(&line(&record).unwrap()).unwrap();
            prop_assert_eq!(tests.records[0].figure(column::COMMIT_THROUGHPUT_TPS), Some(value).filter(|v| v.is_finite()));
        }
    }
}
