//! What no hardware does.

use super::{Check, Law};
use crate::context::Context;
use crate::finding::{Findings, Severity, shown};

pub(crate) static HARDWARE: Law = Law {
    id: "hardware",
    name: "What hardware can do",
    formula: "bandwidth per node ≤ that of the fastest device, network or memory; time of a durable write ≥ that of memory",
    needs: &[
        &["redo_mib_per_s"],
        &["physical_written_mib_per_s"],
        &["read_mib_per_s"],
        &["data_mib_per_s"],
        &["device_write_mib_per_s"],
        &["device_read_mib_per_s"],
        &["replica_link_mib_per_s"],
        &["log_file_sync_ms"],
        &["redo_write_time_us"],
        &["redo_sync_time_us"],
        &["read_time_us_mean"],
    ],
    tolerance: "a warning above what one device or link does, an error above what a whole machine does",
    meaning: "A wrong unit or digit, figures from a cache, or a cluster that is not in the table",
    check: Check::Own(check),
};

/// A limit: column, what one of its kind does, what a machine does (MiB/s), and what that is.
const RATES: [(&str, f64, f64, &str); 7] = [
    // PCIe 6.0 with 16 lanes: 121 GB/s. 128 lanes of it: 0.97 TB/s.
    ("device_write_mib_per_s", 115_000.0, 925_000.0, "a device with 16 lanes of PCIe 6.0 does 115,000 MiB/s"),
    ("device_read_mib_per_s", 115_000.0, 925_000.0, "a device with 16 lanes of PCIe 6.0 does 115,000 MiB/s"),
    ("redo_mib_per_s", 115_000.0, 925_000.0, "a device with 16 lanes of PCIe 6.0 does 115,000 MiB/s"),
    ("physical_written_mib_per_s", 460_000.0, 925_000.0, "64 lanes of PCIe 6.0 do 460,000 MiB/s"),
    // What a page cache gives is bounded by memory: 12 channels of DDR5-8800 in two sockets do 1.7 TB/s, HBM up to 8 TB/s.
    ("read_mib_per_s", 1_600_000.0, 7_600_000.0, "the memory of a server with two sockets does 1,600,000 MiB/s"),
    ("data_mib_per_s", 1_600_000.0, 7_600_000.0, "the memory of a server with two sockets does 1,600,000 MiB/s"),
    // 800 Gbit/s: 95,000 MiB/s in each direction.
    ("replica_link_mib_per_s", 190_000.0, 925_000.0, "a link of 800 Gbit/s does 190,000 MiB/s in both directions"),
];

/// A shortest time: column, what persistent memory takes, and what a CPU's cache takes, in the unit of the id.
const TIMES: [(&str, f64, f64); 4] = [
    ("log_file_sync_ms", 1e-3, 1e-5),
    ("redo_write_time_us", 0.3, 0.01),
    ("redo_sync_time_us", 0.3, 0.01),
    ("read_time_us_mean", 0.1, 0.01),
];

fn check(context: &Context<'_>, findings: &mut Findings) {
    for (id, one, machine, what) in RATES.into_iter().filter(|(id, ..)| context.has(id)) {
        for row in context.rows() {
            let nodes = context.value("nodes", row).unwrap_or(1.0).max(1.0);
            let Some(rate) = context.value(id, row).map(|rate| rate / nodes).filter(|rate| *rate > one) else {
                continue;
            };
            let severity = if rate > machine { Severity::Error } else { Severity::Warning };
            let text =
                format!("{} MiB/s per node: {what}; a wrong unit, a cache, or more nodes than printed", shown(rate, 4));
            findings.push(context.about_row(HARDWARE.id, severity, row, &[id], id, Some(one * nodes), text));
        }
    }
    for (id, durable, cache) in TIMES.into_iter().filter(|(id, ..)| context.has(id)) {
        for row in context.rows() {
            let figure = context.resolve(id).and_then(|id| context.sheet.figure(id, row));
            let Some(high) = figure.filter(|f| f.value > 0.0).map(|f| f.value + f.loose()) else { continue };
            if high >= durable {
                continue;
            }
            let severity = if high < cache { Severity::Error } else { Severity::Warning };
            let text = "shorter than persistent memory takes: not durable, or a wrong unit".to_owned();
            findings.push(context.about_row(HARDWARE.id, severity, row, &[id], id, Some(durable), text));
        }
    }
}
