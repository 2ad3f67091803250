//! The catalogue of workloads: one file each in `catalogue/`, in the language that users write too.
//!
//! To add a workload, write its file and list it here.

use std::sync::{Arc, LazyLock};

use crate::file::read_built_in;
use crate::workload::Workload;

macro_rules! files {
    ($($code:literal),* $(,)?) => { &[$(($code, include_str!(concat!("../catalogue/", $code, ".toml")))),*] };
}

/// Codes and files, in the order in which a study runs them.
const FILES: &[(&str, &str)] = files![
    "SRV-QUERY1", "SRV-QUERY25", "SRV-SCAN", "SRV-MIXED", "STO-READ", "STO-READ-ASYNC", "STO-WRITE", "STO-SCAN",
    "STO-RANDOM", "LGWR-LAT1", "LGWR-LAT25", "LGWR-LAT125", "LGWR-THR", "LGWR-MIXED", "LGWR-SIZE", "DBWR-THR",
    "DBWR-CKPT", "DBL-11", "DBL-12", "DBL-22", "DBL-STREAM", "DBL-INDEX", "DA-SCAN", "DA-AGG", "DA-JOIN", "DA-SORT",
    "DA-WINDOW", "DA-PARALLEL", "TP-LOOKUP", "TP-REPORT", "TP-LIGHT", "TP-MEDIUM", "TP-HEAVY", "TP-MIXED", "PLS-ADD",
    "PLS-FIBO", "PLS-PRIME", "PLS-STRING", "PLS-BUILTIN", "PLS-MIXED",
];
/// File of [`LOG_APPENDS`].
const APPENDS: &[(&str, &str)] = files!["LOG-APPENDS"];

/// The catalogue. A file that cannot be read is not in it, which its tests detect.
pub static CATALOGUE: LazyLock<Vec<Arc<Workload>>> = LazyLock::new(|| read(FILES));

/// Transactions of any redo, with which the reference log writer measures the limit of other workloads' commits.
pub static LOG_APPENDS: LazyLock<Arc<Workload>> = LazyLock::new(|| read(APPENDS).pop().unwrap_or_default());

fn read(files: &[(&str, &str)]) -> Vec<Arc<Workload>> {
    files.iter().filter_map(|(code, text)| read_built_in(code, text).ok()).map(Arc::new).collect()
}

#[cfg(test)]
mod tests;
