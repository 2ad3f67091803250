//! `snapshots/<test>.json`: the database's counters at window start and end.

use loadline_model::Snapshot;
use serde::{Deserialize, Serialize};

pub(crate) const SNAPSHOTS_SCHEMA: u32 = 1;

#[derive(Serialize, Deserialize)]
pub(crate) struct File {
    schema: u32,
    snapshots: Vec<Named>,
}

impl File {
    /// Rows that [`write`] wrote, in the same order.
    pub(crate) fn named(self) -> Vec<(String, Snapshot)> {
        self.snapshots.into_iter().map(|n| (n.name, n.snapshot)).collect()
    }
}

#[derive(Serialize, Deserialize)]
struct Named {
    #[serde(rename = "edge")]
    name: String,
    #[serde(flatten)]
    snapshot: Snapshot,
}

/// The file's text, without counters that are not finite.
pub(crate) fn write(snapshots: &[(String, Snapshot)]) -> Result<Vec<u8>, String> {
    let named = |(name, snapshot): &(String, Snapshot)| {
        let mut snapshot = snapshot.clone();
        snapshot.counters.retain(|_, value| value.is_finite());
        Named { name: name.clone(), snapshot }
    };
    let file = File { schema: SNAPSHOTS_SCHEMA, snapshots: snapshots.iter().map(named).collect() };
    let mut text = serde_json::to_vec_pretty(&file).map_err(|e| format!("its snapshots cannot be encoded: {e}"))?;
    text.push(b'\n');
    Ok(text)
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
        let read = |pair: &[(String, Snapshot)]| serde_json::from_slice::<File>(&write(pair).unwrap()).unwrap().named();
        let pair = vec![("open".to_owned(), open.clone()), ("close".to_owned(), Snapshot::default())];
        assert_eq!(read(&pair), pair);

        open.counters.insert("nonsense".to_owned(), f64::NAN);
        assert_eq!(read(&[("open".to_owned(), open)])[0].1.counters.len(), 1);
    }
}
