//! What tells which product was measured: names, versions, settings, names of waits, a product's own words.

use std::collections::BTreeMap;

use loadline_model::Manifest;

use crate::RunData;

/// A product of the runs, and its letter.
#[derive(Debug)]
pub(super) struct Product {
    letter: String,
    /// Words of its name and version, in lower case.
    words: Vec<String>,
}

/// Parts of words that only one product, or few, have. In lower case.
const TELLING: &[&str] = &[
    "postgres", "pgsql", "pg_", "pg-", "pgbench", "psql", "mysql", "mariadb", "innodb", "galera", "wsrep", "oracle",
    "exadata", "pl/sql", "plsql", "sqlite", "aurora", "alloydb", "cockroach", "yugabyte", "citus", "timescale",
    "percona", "tidb", "singlestore", "xtradb", "neon", "lwlock", "binlog", "binary log", "vacuum", "v$",
    "performance_schema", "information_schema", "bgwriter", "checkpointer", "wal_", "walsync", "walwrite", "full_page",
    "sga", "pga", "awr", "load data", "copy binary", "copy, binary", "smart scan", "flash cache", "wal log",
];
/// The same as whole words.
const TELLING_WORDS: &[&str] = &["wal", "copy", "rds", "pg", "adw", "atp", "rac", "mvcc", "toast"];
/// Instead of a text that tells the product.
const LEFT_OUT: &str = "left out: it tells the product";

/// The products of `runs`, one for each; equal ones have the same letter.
pub(super) fn of(runs: &[RunData]) -> Vec<Product> {
    let key = |m: &Manifest| (m.target.product.clone(), m.target.version.clone());
    let mut known: Vec<(String, String)> = Vec::new();
    let of_run = |run: &RunData| {
        let key = key(&run.manifest);
        let at = known.iter().position(|k| *k == key).unwrap_or_else(|| {
            known.push(key.clone());
            known.len() - 1
        });
        let trimmed = |text: &str| text.trim_matches(['(', ')', ',']).to_lowercase();
        let of_name = key.0.split_whitespace().map(trimmed).chain([key.0.to_lowercase()]);
        // A version has words of the system as well, which stay.
        let of_version = key.1.split_whitespace().map(trimmed).filter(|w| w.contains(|c: char| c.is_ascii_digit()));
        // A major version alone is a number like others.
        let common = ["engine", "database", "server", "writer", "reference"];
        let words = of_name.chain(of_version).filter(|w| w.len() > 3 && !common.contains(&w.as_str()));
        Product { letter: letter(at), words: words.collect() }
    };
    runs.iter().map(of_run).collect()
}

/// `A`, `B`, … `Z`, `AA`, ….
fn letter(n: usize) -> String {
    let last = char::from(b'A' + (n % 26) as u8);
    if n < 26 { last.to_string() } else { format!("{}{last}", letter(n / 26 - 1)) }
}

/// Replaces and leaves out the fields that tell the product.
pub(super) fn leave_out(run: &mut RunData, product: &Product) {
    let name = format!("Database {}", product.letter);
    let m = &mut run.manifest;
    m.run = format!("run-{}", product.letter);
    m.command.clear();
    m.doctor.clear();
    m.calibration.values_mut().for_each(|c| c.note = None);
    m.data_set.iter_mut().for_each(|t| t.path.clear());
    m.plan.platform.clone_from(&name);
    m.plan.target.clear();
    m.plan.settings.clear();
    m.plan.workload_files.clear();
    m.plan.nodes.iter_mut().enumerate().for_each(|(n, node)| *node = format!("node {}", n + 2));
    for workload in &mut m.plan.workloads {
        workload.driver_reason.clear();
        rename(&mut workload.code);
    }
    m.plan.skipped.iter_mut().for_each(|s| s.reason = "it cannot run on this platform".to_owned());
    let t = &mut m.target;
    t.product.clone_from(&name);
    (t.settings, t.notes) = (BTreeMap::new(), Vec::new());
    [&mut t.kind, &mut t.version, &mut t.url].into_iter().for_each(String::clear);
    (t.log_dir, t.data_dir) = (None, None);
    run.notes.clear();
    for record in &mut run.records {
        rename(&mut record.workload);
        record.platform.clone_from(&name);
        record.run.clone_from(&m.run);
        record.target.clear();
        record.notes.clear();
        let errors = std::mem::take(&mut record.error_texts);
        record.error_texts =
            errors.into_values().enumerate().map(|(n, count)| (format!("error {}", n + 1), count)).collect();
        let waits = std::mem::take(&mut record.waits.sessions);
        for (event, count) in waits {
            *record.waits.sessions.entry(class(&event).to_owned()).or_default() += count;
        }
        // Why a figure is missing tells what a product cannot do.
        record.absent.values_mut().for_each(|why| {
            "not available on this platform, or not measured".clone_into(why);
        });
    }
}

/// A workload of pgbench scripts has a name without it.
fn rename(code: &mut String) {
    *code = code.replacen("PGBENCH", "SCRIPTS", 1);
}

/// The class of a wait, from the words in its name.
pub(crate) fn class(event: &str) -> &'static str {
    const CLASSES: [(&str, &[&str]); 6] = [
        ("CPU", &["cpu", "running"]),
        ("replica", &["syncrep", "replic", "standby", "semi"]),
        ("log", &["wal", "redo", "log", "sync", "commit"]),
        ("locks", &["lock", "latch", "mutex", "enq", "pin", "content"]),
        ("client", &["client", "net", "sock"]),
        ("data", &["read", "write", "file", "io", "data", "buffer"]),
    ];
    let event = event.to_lowercase();
    CLASSES.iter().find(|(_, parts)| parts.iter().any(|p| event.contains(p))).map_or("other", |(class, _)| class)
}

/// Whether `text` has an error as a server writes it, with its code: `ERROR 42P01`, `ERROR 1213 (40001)`.
fn cites_error(text: &str) -> bool {
    let words: Vec<&str> = text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).collect();
    let code =
        |word: &str| word.len() > 3 && word.contains(|c: char| c.is_ascii_digit()) && word.to_uppercase() == word;
    words.windows(2).any(|pair| matches!(pair, ["ERROR" | "FATAL" | "SQLSTATE", next] if code(next)))
}

/// `text`, or if it tells one of `products`, that it is left out.
pub(super) fn without(text: &str, products: &[Product]) -> String {
    let lower = text.to_lowercase();
    let words = || lower.split(|c: char| !c.is_alphanumeric());
    let telling = TELLING.iter().any(|part| lower.contains(part))
        || words().any(|word| TELLING_WORDS.contains(&word))
        || cites_error(text)
        || products.iter().flat_map(|p| &p.words).any(|word| lower.contains(word.as_str()));
    // Their own names are given anew.
    if telling { LEFT_OUT.to_owned() } else { text.to_owned() }
}
