//! What headers that are no ids of ours may mean: our own headings, and the words of other benchmarks and of reports.

use std::collections::HashMap;
use std::sync::LazyLock;

use loadline_model::column::{COLUMNS, column};

use crate::header;
use crate::unit::{self, Dimension, Of, Per, Unit};

/// Columns that others print and we do not: percentiles of the transaction time.
const MORE: [&str; 6] = [
    "transaction_time_ns_min",
    "transaction_time_ns_p75",
    "transaction_time_ns_p90",
    "transaction_time_ns_p95",
    "transaction_time_ns_p999",
    "transaction_time_ns_p9999",
];

/// Other words for a column, without their units.
const SYNONYMS: &[(&str, &[&str])] = &[
    (
        "platform",
        &["system", "database", "db", "dbms", "engine", "machine", "product", "configuration", "config", "server"],
    ),
    ("workload", &["benchmark", "scenario", "load", "test name", "script"]),
    ("test", &["test no", "test nr", "test number", "test id", "no", "nr"]),
    ("run", &["run id", "run no"]),
    ("nodes", &["instances", "hosts", "number of nodes", "node count"]),
    (
        "jobs",
        &[
            "clients",
            "client count",
            "number of clients",
            "connections",
            "conns",
            "users",
            "virtual users",
            "vusers",
            "vus",
            "vu",
            "active virtual users",
            "sessions",
            "concurrency",
            "concurrent clients",
            "concurrent users",
            "terminals",
            "warehouse terminals",
            "processes",
            "load processes",
            "job count",
            "number of jobs",
            "num clients",
            "numjobs",
            "nr clients",
            "workers",
        ],
    ),
    (
        "commit_throughput_tps",
        &[
            "tps",
            "throughput",
            "commits",
            "commit rate",
            "transaction rate",
            "transaction throughput",
            "tps including connections",
            "tps excluding connections",
            "tps without initial connection time",
            "txn",
            "trx",
            "xacts",
            "user commits",
            "avg tps",
            "mean tps",
            "average tps",
            "tpm",
            "nopm",
            "tpmc",
            "ktps",
        ],
    ),
    ("tx_per_s", &["transactions", "user transactions", "total transactions", "number of transactions"]),
    ("queries_per_s", &["qps", "query rate", "statements", "selects", "kqps"]),
    (
        "commit_latency_ms",
        &[
            "latency",
            "lat",
            "average latency",
            "latency average",
            "avg latency",
            "latency avg",
            "mean latency",
            "latency mean",
            "response time",
            "average response time",
            "avg commit latency",
            "average commit latency",
            "mean commit latency",
            "avg response time",
            "mean response time",
            "transaction latency",
            "tx latency",
            "avg",
            "average",
            "mean",
            "lat avg",
            "avg lat",
            "transaction time",
            "average transaction time",
            "time transaction",
        ],
    ),
    (
        "elapsed_s",
        &[
            "duration",
            "time",
            "run time",
            "runtime",
            "elapsed time",
            "test duration",
            "wall time",
            "total time",
            "window",
            "seconds",
        ],
    ),
    (
        "cpu_busy_pct",
        &["cpu", "cpu utilization", "cpu utilisation", "cpu usage", "cpu util", "cpu load", "host cpu", "busy"],
    ),
    ("cpu_user_pct", &["user", "usr", "cpu usr", "user cpu"]),
    ("cpu_sys_pct", &["sys", "system cpu", "cpu system", "kernel", "cpu kernel", "sys cpu"]),
    ("cpu_idle_pct", &["idle", "idle cpu"]),
    ("cpu_iowait_pct", &["iowait", "wait", "wio", "io wait", "cpu wait", "cpu io wait", "cpu wio", "wa"]),
    (
        "redo_mib_per_s",
        &[
            "redo",
            "redo rate",
            "redo size",
            "redo generated",
            "redo generation",
            "redo throughput",
            "wal",
            "wal rate",
            "wal written",
            "wal data",
            "log rate",
            "log data",
            "log throughput",
            "binlog",
        ],
    ),
    ("redo_kib_per_tx", &["redo", "redo size", "wal", "wal size", "log", "redo record", "redo data"]),
    (
        "redo_writes_per_s",
        &["log writes", "wal writes", "redo write", "log file parallel writes", "redo write requests"],
    ),
    (
        "redo_sync_writes_per_s",
        &[
            "syncs",
            "fsyncs",
            "wal syncs",
            "log syncs",
            "redo syncs",
            "redo synch writes",
            "log fsyncs",
            "wal fsyncs",
            "sync writes",
        ],
    ),
    ("redo_blocks_per_s", &["redo blocks written", "log blocks", "wal blocks"]),
    (
        "log_file_sync_ms",
        &["log sync", "log file sync time", "log file sync wait", "lfs", "wal sync time", "avg log file sync"],
    ),
    ("redo_write_time_us", &["log file parallel write", "log write time", "wal write time"]),
    ("rows_per_tx", &["rows", "batch size", "batch", "rows per commit", "rows per batch", "array size"]),
    ("rows_per_s", &["rows", "row rate", "inserts", "rows inserted", "insert rate", "rows loaded", "load rate"]),
    ("sql_service_time_s", &["service time"]),
    ("physical_writes_per_s", &["writes", "disk writes", "write iops", "write requests", "data writes"]),
    ("physical_written_mib_per_s", &["write", "write throughput", "write bandwidth", "written", "disk write"]),
    (
        "block_reads_per_s",
        &["reads", "physical reads", "disk reads", "read iops", "single block reads", "read requests"],
    ),
    ("read_mib_per_s", &["read", "read throughput", "read bandwidth", "disk read"]),
    (
        "read_time_us_mean",
        &["read latency", "read time", "average read time", "avg read latency", "db file sequential read"],
    ),
    ("io_per_s", &["iops", "ios", "io requests", "kiops"]),
    ("block_bytes", &["bs", "block size", "page size", "io size"]),
    ("data_mib_per_s", &["bw", "bandwidth", "scan rate", "scan throughput", "data rate"]),
    ("errors", &["failed", "failures", "failed transactions", "aborts", "errors count"]),
    ("rate_tps", &["target rate", "requested rate", "target tps"]),
    ("threads", &["parallel degree", "dop", "parallelism"]),
    ("repetition", &["rep", "iteration", "round"]),
    ("cache_hit_pct", &["cache hit ratio", "buffer hit ratio", "hit ratio", "hit rate", "buffer cache hit ratio"]),
];

/// Families of times: the beginning of their ids, and words for them. No words at all mean the first.
const TIMES: [(&str, &[&str]); 3] = [
    (
        "transaction_time_ns",
        &[
            "",
            "latency",
            "lat",
            "response time",
            "transaction time",
            "transaction latency",
            "tx time",
            "tx latency",
            "commit latency",
            "rt",
        ],
    ),
    ("commit_time_ns", &["commit time", "commit", "commit wait"]),
    ("read_time_us", &["read time", "read latency", "read"]),
];

/// All columns that audits know: ours, and [`MORE`].
pub(crate) fn known() -> impl Iterator<Item = &'static str> {
    COLUMNS.iter().map(|c| c.id).chain(MORE)
}

/// The column with this id.
#[must_use]
pub fn find(id: &str) -> Option<&'static str> {
    known().find(|k| *k == id)
}

/// Words -> columns that they may mean.
static BY_WORDS: LazyLock<HashMap<String, Vec<&'static str>>> = LazyLock::new(|| {
    let mut all: HashMap<String, Vec<&'static str>> = HashMap::new();
    let mut add = |words: String, id: &'static str| {
        if words.is_empty() {
            return;
        }
        let ids = all.entry(words).or_default();
        if !ids.contains(&id) {
            ids.push(id);
        }
    };
    for id in known() {
        let words: Vec<&str> = id.split('_').collect();
        add(unit::take_unit(&words).0.join(" "), id);
    }
    for c in COLUMNS {
        add(header::Header::parse(c.title).words.join(" "), c.id);
    }
    for (id, words) in SYNONYMS {
        if let Some(id) = find(id) {
            words.iter().for_each(|w| add((*w).to_owned(), id));
        }
    }
    all
});

/// Dimension in which a column is looked for: a rate that is counted in anything is a rate.
fn fits(id: &str, unit: Option<&Unit>) -> bool {
    let own = Unit::of_id(id).dimension;
    let Some(printed) = unit.map(|u| u.dimension) else { return true };
    // A size of redo without "per transaction" is that of a transaction.
    own == printed
        || (own == Dimension { of: Of::Bytes, per: Per::Transaction }
            && printed.of == Of::Bytes
            && printed.per == Per::Whole)
}

/// The column that a header's words and unit mean.
pub(crate) fn by_words(words: &[String], unit: Option<&Unit>) -> Option<&'static str> {
    if let Some((rest, which)) = quantile(words) {
        let rest = rest.join(" ");
        let (family, _) = TIMES.iter().find(|(_, names)| names.contains(&rest.as_str()))?;
        let id = find(&format!("{family}_{which}"))?;
        return fits(id, unit).then_some(id);
    }
    let ids = BY_WORDS.get(&words.join(" ")).or_else(|| {
        // A name that is only a unit: tps, IOPS, "%". The unit is its word.
        let alone = unit.filter(|_| words.is_empty())?;
        BY_WORDS.get(&alone.text.to_lowercase())
    })?;
    let same = |id: &&&str| unit.is_some_and(|u| u.size == Unit::of_id(id).size);
    // Words that need their unit to mean anything.
    if unit.is_none() && words.len() == 1 && ["rate", "limit", "data", "written"].contains(&words[0].as_str()) {
        return None;
    }
    let fitting: Vec<&'static str> = ids.iter().copied().filter(|id| fits(id, unit)).collect();
    // Without a unit, columns of text and plain numbers come first, as their headers need none.
    let plain = |id: &&&str| unit.is_none() && column(id).is_some_and(|c| c.unit.is_empty());
    fitting.iter().find(same).or_else(|| fitting.iter().find(plain)).or(fitting.first()).copied()
}

/// A percentile or an extreme among words: what is left, and the end of its column's id.
fn quantile(words: &[String]) -> Option<(Vec<&str>, String)> {
    let is = |word: &str| -> Option<String> {
        let digits = |text: &str| {
            let digits: String = text.chars().filter(char::is_ascii_digit).collect();
            let only = text.chars().all(|c| c.is_ascii_digit() || c == '.') && digits.len() > 1;
            only.then(|| format!("p{digits}"))
        };
        match word {
            "median" => Some("p50".to_owned()),
            "max" | "maximum" | "longest" | "highest" => Some("max".to_owned()),
            "min" | "minimum" | "shortest" | "lowest" => Some("min".to_owned()),
            _ => {
                let ordinal = ["th", "st", "nd", "rd", "%"].iter().find_map(|end| word.strip_suffix(end));
                word.strip_prefix('p').and_then(digits).or_else(|| ordinal.and_then(digits))
            }
        }
    };
    let at = words.iter().position(|w| is(w).is_some())?;
    let which = is(&words[at])?;
    let rest =
        words.iter().enumerate().filter(|(i, w)| *i != at && *w != "percentile" && *w != "pctl" && *w != "percentiles");
    Some((rest.map(|(_, w)| w.as_str()).collect(), which))
}
