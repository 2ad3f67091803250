//! LGWR-SIZE: how long a commit takes by the redo written since the last one.

use loadline_model::{Capability, column};

use super::lgwr;
use crate::instrument::{Instrument, SizeScan};
use crate::params::Param;
use crate::workload::{Kpi, Workload};

const KPIS: &[Kpi] = &[
    Kpi { column: column::COMMIT_TIME_NS_P50, title: "median commit time over all sizes" },
    Kpi { column: column::COMMIT_TIME_NS_MAX, title: "longest commit" },
];

const PARAMS: &[Param] = &[
    Param { name: "rows", default: 32, min: 1, max: 65536, meaning: "rows whose change writes 64 KiB of redo" },
    Param {
        name: "payload",
        default: 1800,
        min: 16,
        max: 1900,
        meaning: "bytes of new payload per changed row (calibrated before the scan)",
    },
    Param {
        // More than the largest transaction changes: none changes a row twice.
        name: "own-rows",
        default: 8192,
        min: 1,
        max: 1 << 20,
        meaning: "rows that the session owns and changes in turn",
    },
    Param { name: "most-kib", default: 6144, min: 64, max: 1 << 20, meaning: "redo of the largest transaction, KiB" },
    Param { name: "step-kib", default: 64, min: 4, max: 1 << 16, meaning: "step between sizes, KiB" },
    Param {
        // Real sources of redo compute in between. Without a limit the reference log writer gets redo faster than any
        // device takes it, and a commit waits for all of it whatever the rules.
        name: "pace-mib",
        default: 128,
        min: 0,
        max: 1 << 20,
        meaning: "highest rate of redo, MiB/s (0: no limit)",
    },
    Param { name: "samples", default: 16, min: 3, max: 1000, meaning: "transactions of each size" },
];

/// LGWR-SIZE.
pub(super) static WORKLOAD: Workload = Workload {
    code: "LGWR-SIZE",
    summary: "commit time by redo since the last commit: one session, 0 to 6 MiB in steps of 64 KiB, in random order",
    description: "One session changes as many rows as write X KiB of redo, and commits; X takes all sizes in random order, several times. A log writer that writes in the background leaves only the unwritten rest to the commit: commit time over X is then a sawtooth whose period is the amount at which the log writer starts to write. If nothing is written before a commit, commit time is a straight line over X, and its slope is the time of large sequential writes. Rows are changed one by one, so that redo can be generated at a limited rate. Not swept over jobs; runs only if requested by name or group.",
    spoiled_by: "Other sessions that write redo, checkpoints during the scan (samples with too much or too little redo are left out and counted), a commit that does not wait for the log.",
    kpis: KPIS,
    params: PARAMS,
    at_most: &[],
    needs: &[Capability::Redo, Capability::CommitWait, Capability::RedoKnown],
    redo: lgwr::redo_kib(60.0, 64.0, 68.0),
    instruments: &[Instrument::SizeScan(SizeScan {
        pace_mib: "pace-mib",
        most_kib: "most-kib",
        step_kib: "step-kib",
        samples: "samples",
        rows: "rows",
    })],
    // Not by one statement: redo is generated at a limited rate, and a statement cannot be slowed down.
    ..lgwr::ROW_BY_ROW
};
