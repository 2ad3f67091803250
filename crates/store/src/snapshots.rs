//! `snapshots/<test>.json`: the database's counters at window start and end.

use loadline_model::Snapshot;
use serde::{Deserialize, Serialize};

use crate::error::json_text;

/// Version of the file's layout.
pub(crate) const SNAPSHOTS_SCHEMA: u32 = 1;

#[derive(Serialize, Deserialize)]
struct File {
    schema: u32,
    snapshots: Vec<Named>,
}

#[derive(Serialize, Deserialize)]
struct Named {
    edge: String,
    #[serde(flatten)]
    snapshot: Snapshot,
}

/// Why a file of snapshots cannot be read.
pub(crate) enum Unreadable {
    /// It has this newer layout.
    Newer(u64),
    /// Anything else.
    Damaged(String),
}

/// The file's text, without counters that are not finite.
pub(crate) fn write(snapshots: &[(String, Snapshot)]) -> Result<Vec<u8>, String> {
    let named = |(edge, snapshot): &(String, Snapshot)| {
        let mut snapshot = snapshot.clone();
        snapshot.counters.retain(|_, value| value.is_finite());
        Named { edge: edge.clone(), snapshot }
    };
    let file = File { schema: SNAPSHOTS_SCHEMA, snapshots: snapshots.iter().map(named).collect() };
    let mut text = serde_json::to_vec_pretty(&file).map_err(|e| format!("its snapshots cannot be encoded: {e}"))?;
    text.push(b'\n');
    Ok(text)
}

/// Reads what [`write`] wrote, in the same order.
pub(crate) fn read(text: &[u8]) -> Result<Vec<(String, Snapshot)>, Unreadable> {
    if let Some(found) = newer(text, SNAPSHOTS_SCHEMA) {
        return Err(Unreadable::Newer(found));
    }
    let file: File = serde_json::from_slice(text).map_err(|e| Unreadable::Damaged(json_text(&e)))?;
    Ok(file.snapshots.into_iter().map(|n| (n.edge, n.snapshot)).collect())
}

/// The `schema` of a JSON object, if it is newer than `known`. Checked first, because a newer layout may fail to parse.
pub(crate) fn newer(json: &[u8], known: u32) -> Option<u64> {
    #[derive(Deserialize)]
    struct Schema {
        schema: u64,
    }
    let found = serde_json::from_slice::<Schema>(json).ok()?.schema;
    (found > u64::from(known)).then_some(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn snapshots_read_back_in_order() {
        let mut open = Snapshot { at_ns: u64::MAX, proc_stat: Some("cpu  1 2 3\n".to_owned()), ..Snapshot::default() };
        open.counters.insert("pg_stat_wal.wal_sync".to_owned(), 0.1 + 0.2);
        let pair = vec![("open".to_owned(), open.clone()), ("close".to_owned(), Snapshot::default())];
        assert!(read(&write(&pair).unwrap()).is_ok_and(|back| back == pair));

        open.counters.insert("nonsense".to_owned(), f64::NAN);
        let back = read(&write(&[("open".to_owned(), open)]).unwrap()).ok().unwrap();
        assert_eq!(back[0].1.counters.len(), 1);
    }

    #[test]
    fn newer_and_broken_files_are_distinguished() {
        assert!(matches!(read(br#"{"schema":2,"anything":[]}"#), Err(Unreadable::Newer(2))));
        assert!(matches!(read(br#"{"schema":1"#), Err(Unreadable::Damaged(_))));
    }
}
