//! InnoDB's reads and writes of tables and indexes, from SHOW GLOBAL STATUS.
//!
//! InnoDB writes a page to its doublewrite buffer and then to its place: both are writes of data files.
//! On MariaDB `Innodb_data_written` is their sum (10.11: 2,000 pages and 14 doublewritten ones gave
//! 32,997,376 bytes). On MySQL it includes the log, so loadline computes the sum.

use std::collections::BTreeMap;

use loadline_model::snapshot::counter;

/// Status variables that only this file reads.
pub(super) const STATUS: &str = "'Innodb_pages_read', 'Innodb_page_size', 'Innodb_rows_read', 'Innodb_rows_inserted', \
     'Innodb_rows_updated', 'Innodb_rows_deleted', 'Handler_write', 'Handler_delete', 'Handler_read_first', \
     'Handler_read_key', 'Handler_read_last', 'Handler_read_next', 'Handler_read_prev', 'Handler_read_rnd', \
     'Handler_read_rnd_next'";

/// Neutral counter, the status variables that it sums up, and whether to convert pages to bytes.
const SUMS: &[(&str, &[&str], bool)] = &[
    (counter::BLOCK_GETS, &["Innodb_buffer_pool_read_requests"], false),
    // `Innodb_buffer_pool_reads` excludes read-ahead.
    (counter::BLOCK_READS, &["Innodb_pages_read"], false),
    (counter::READ_CALLS, &["Innodb_pages_read"], false),
    (counter::READ_BYTES, &["Innodb_pages_read"], true),
    (counter::BLOCK_WRITES, &["Innodb_pages_written"], false),
    (counter::SYNCED_WRITES, &["Innodb_dblwr_pages_written"], false),
    (counter::WRITE_CALLS, &["Innodb_pages_written", "Innodb_dblwr_writes"], false),
    (counter::WRITE_BYTES, &["Innodb_pages_written", "Innodb_dblwr_pages_written"], true),
];

/// MySQL counts InnoDB's rows. MariaDB 10.6 dropped these counters; its handlers count for all engines, and
/// `Handler_write` excludes temporary tables (`Handler_tmp_write`).
const ROWS: [(&str, &[&str]); 4] = [
    (counter::ROWS_READ, &["Innodb_rows_read"]),
    (counter::ROWS_CHANGED, &["Innodb_rows_inserted", "Innodb_rows_updated", "Innodb_rows_deleted"]),
    (
        counter::ROWS_READ,
        &[
            "Handler_read_first", "Handler_read_key", "Handler_read_last", "Handler_read_next", "Handler_read_prev",
            "Handler_read_rnd", "Handler_read_rnd_next",
        ],
    ),
    (counter::ROWS_CHANGED, &["Handler_write", "Handler_update", "Handler_delete"]),
];

/// Adds each neutral counter whose sources are all in `counters`.
pub(super) fn fill(counters: &mut BTreeMap<String, f64>) {
    let sum = |counters: &BTreeMap<String, f64>, sources: &[&str]| {
        sources.iter().map(|name| counters.get(*name).copied()).sum::<Option<f64>>()
    };
    let page = counters.get("Innodb_page_size").copied();
    for (neutral, sources, in_bytes) in SUMS {
        let factor = if *in_bytes { page } else { Some(1.0) };
        if let Some(value) = sum(counters, sources).zip(factor).map(|(pages, factor)| pages * factor) {
            counters.insert((*neutral).to_owned(), value);
        }
    }
    if let Some(ms) = counters.get("Innodb_row_lock_time").copied() {
        counters.insert(counter::LOCK_WAIT_NS.to_owned(), ms * 1e6);
    }
    for (neutral, sources) in ROWS {
        if let Some(value) = sum(counters, sources)
            && !counters.contains_key(neutral)
        {
            counters.insert(neutral.to_owned(), value);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filled(pairs: &[(&str, f64)]) -> BTreeMap<String, f64> {
        let mut counters = pairs.iter().map(|(n, v)| ((*n).to_owned(), *v)).collect();
        fill(&mut counters);
        counters.retain(|name, _| name.starts_with("loadline."));
        counters
    }

    #[test]
    fn pages_become_blocks_and_bytes() {
        let c = filled(&[
            ("Innodb_page_size", 16384.0),
            ("Innodb_pages_written", 2000.0),
            ("Innodb_dblwr_pages_written", 14.0),
            ("Innodb_dblwr_writes", 1.0),
            ("Innodb_pages_read", 3.0),
        ]);
        // Figures of a server, with its Innodb_data_written and Innodb_data_writes.
        assert_eq!((c[counter::WRITE_BYTES], c[counter::WRITE_CALLS]), (32_997_376.0, 2001.0));
        assert_eq!((c[counter::BLOCK_READS], c[counter::READ_BYTES]), (3.0, 49_152.0));
        assert!(!c.contains_key(counter::BLOCK_GETS) && !c.contains_key(counter::ROWS_READ), "absent, not 0");
    }

    #[test]
    fn rows_come_from_the_engine_or_else_from_the_handlers() {
        let handlers = [("Handler_write", 5.0), ("Handler_update", 2.0), ("Handler_delete", 1.0)];
        assert_eq!(filled(&handlers)[counter::ROWS_CHANGED], 8.0);
        let mut both = handlers.to_vec();
        both.extend([("Innodb_rows_inserted", 4.0), ("Innodb_rows_updated", 2.0), ("Innodb_rows_deleted", 1.0)]);
        assert_eq!(filled(&both)[counter::ROWS_CHANGED], 7.0);
        assert!(filled(&handlers[..2]).is_empty(), "an incomplete sum is left out");
    }
}
