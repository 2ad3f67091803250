//! Reads and writes of tables and indexes, from `V$SYSSTAT` and `V$SYSTEM_EVENT` (Database Reference,
//! "Statistics Descriptions" and "Descriptions of Wait Events"). Never run against a live server.

use std::collections::BTreeMap;

use loadline_model::snapshot::counter;

/// Statistics that this file reads.
pub(super) const STATISTICS: &str =
    "'session logical reads', 'table scan rows gotten', 'table fetch by rowid', 'DBWR checkpoints'";

/// Wait events that this file reads.
pub(super) const EVENTS: &str = "EVENT IN ('free buffer waits', 'write complete waits') OR EVENT LIKE 'db file %read' \
     OR EVENT LIKE 'cell %physical read' OR EVENT LIKE 'direct path read%'";

/// A neutral counter, the statistics that it sums up, and their factor. `physical reads` and `physical writes`
/// are blocks; `physical write bytes` is for data files only, the `total` ones include the log. `redo
/// synch time (usec)` belongs to `redo synch writes`, the commits that waited.
const STATISTIC_SUMS: &[(&str, &[&str], f64)] = &[
    (counter::BLOCK_GETS, &["session logical reads"], 1.0),
    (counter::BLOCK_READS, &["physical reads"], 1.0),
    (counter::READ_BYTES, &["physical read bytes"], 1.0),
    (counter::READ_CALLS, &["physical read IO requests"], 1.0),
    (counter::BLOCK_WRITES, &["physical writes"], 1.0),
    (counter::WRITE_BYTES, &["physical write bytes"], 1.0),
    (counter::WRITE_CALLS, &["physical write IO requests"], 1.0),
    (counter::REDO_SYNC_NS, &["redo synch time (usec)"], 1e3),
    (counter::ROWS_READ, &["table scan rows gotten", "table fetch by rowid"], 1.0),
    (counter::CHECKPOINTS, &["DBWR checkpoints"], 1.0),
];

/// Fills the neutral counters from the statistics `seen`. Every open database has done all of this, so 0 means
/// that the container does not see the statistic.
pub(super) fn from_statistics(seen: &BTreeMap<&str, f64>, counters: &mut BTreeMap<String, f64>) {
    for (neutral, sources, factor) in STATISTIC_SUMS {
        let sum: Option<f64> = sources.iter().map(|s| seen.get(s).copied()).sum();
        if let Some(sum) = sum.filter(|s| *s > 0.0) {
            counters.insert((*neutral).to_owned(), sum * factor);
        }
    }
}

/// Fills the neutral counters from wait events: name and time waited, µs. An event is in the view from
/// its first wait on, so a missing one took no time.
pub(super) fn from_events(micros: &BTreeMap<&str, f64>, counters: &mut BTreeMap<String, f64>) {
    let sum = |is: fn(&str) -> bool| micros.iter().filter(|(name, _)| is(name)).map(|(_, us)| us * 1e3).sum::<f64>();
    // An open database has waited for its control files and dictionary: no rows means not visible.
    if !micros.is_empty() {
        let waits = sum(|name| matches!(name, "free buffer waits" | "write complete waits"));
        counters.insert(counter::BUFFER_WAIT_NS.to_owned(), waits);
        let reads = sum(|name| {
            (name.starts_with("db file ") && name.ends_with(" read"))
                || (name.starts_with("cell ") && name.ends_with(" physical read"))
                || name == "direct path read"
        });
        counters.insert(counter::READ_NS.to_owned(), reads);
    }
    if let Some(us) = micros.get("log file parallel write") {
        counters.insert(counter::REDO_WRITE_NS.to_owned(), us * 1e3);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statistics_are_added_up_if_all_exist() {
        let mut c = BTreeMap::new();
        let seen = [
            ("session logical reads", 500.0),
            ("physical reads", 20.0),
            ("physical writes", 0.0),
            ("table fetch by rowid", 7.0),
            ("redo synch time (usec)", 3.0),
        ];
        from_statistics(&seen.into(), &mut c);
        assert_eq!((c[counter::BLOCK_GETS], c[counter::BLOCK_READS], c[counter::REDO_SYNC_NS]), (500.0, 20.0, 3000.0));
        assert!(!c.contains_key(counter::BLOCK_WRITES), "0 means that the container does not see it");
        assert!(!c.contains_key(counter::ROWS_READ), "an incomplete sum is left out");
    }

    #[test]
    fn events_become_times() {
        let mut c = BTreeMap::new();
        from_events(&BTreeMap::new(), &mut c);
        assert!(c.is_empty(), "a view without rows says nothing");
        let micros =
            [("db file sequential read", 70.0), ("cell single block physical read", 5.0), ("db file sync", 900.0)];
        from_events(&micros.into(), &mut c);
        assert_eq!((c[counter::READ_NS], c[counter::BUFFER_WAIT_NS]), (75_000.0, 0.0));
        from_events(&[("free buffer waits", 2.0), ("log file parallel write", 4.0)].into(), &mut c);
        assert_eq!((c[counter::BUFFER_WAIT_NS], c[counter::REDO_WRITE_NS]), (2000.0, 4000.0));
    }
}
