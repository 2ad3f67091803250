//! LGWR-SIZE: how long a commit takes by the redo written since the last one.

use loadline_model::{Capability, column};

use super::lgwr;
use crate::instrument::{Instrument, SizeScan};
use crate::program::Commit;
use crate::workload::{Kpi, Param, RedoSize, Workload};

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
        // More than the largest transaction changes: none meets a row twice.
        name: "own-rows",
        default: 8192,
        min: 1,
        max: 1 << 20,
        meaning: "rows that the session owns and changes in turn",
    },
    Param { name: "most-kib", default: 6144, min: 64, max: 1 << 20, meaning: "redo of the largest transaction, KiB" },
    Param { name: "step-kib", default: 64, min: 4, max: 1 << 16, meaning: "from one size to the next, KiB" },
    Param {
        // What generates redo in earnest computes in between. Without a limit the reference log writer is
        // given redo faster than any device takes it, and a commit waits for all of it whatever the rules.
        name: "pace-mib",
        default: 128,
        min: 0,
        max: 1 << 20,
        meaning: "redo is generated no faster than this, MiB/s (0: as fast as the target takes it)",
    },
    Param { name: "samples", default: 16, min: 3, max: 1000, meaning: "transactions of each size" },
];

/// LGWR-SIZE.
pub(super) static WORKLOAD: Workload = Workload {
    code: "LGWR-SIZE",
    group: "log-writer",
    summary: "commit time by redo since the last commit: one session, 0 to 6 MiB in steps of 64 KiB, in random order",
    description: "One session changes as many rows as write X KiB of redo, and commits; X goes through all sizes in random order, several times. A log writer that writes in the background leaves a commit only what is not yet written: commit time then rises with X in a sawtooth whose period is the amount at which it begins to write. Where nothing is written before a commit, commit time is a straight line over X, and its slope is what the device takes for large sequential writes. It is not swept over jobs, and is run when it is asked for by name or group.",
    spoiled_by: "Other sessions that write redo, checkpoints in the middle of the scan (samples whose redo is not what it should be are left out and counted), a commit that does not wait for the log.",
    kpis: KPIS,
    tables: lgwr::TABLES,
    params: PARAMS,
    needs: &[Capability::Redo, Capability::CommitWait, Capability::RedoKnown],
    redo: Some(RedoSize {
        min: 60.0 * 1024.0,
        nominal: 64.0 * 1024.0,
        max: 68.0 * 1024.0,
        payload: "payload",
        rows: "rows",
    }),
    evidence: Some(lgwr::EVIDENCE),
    instruments: &[Instrument::SizeScan(SizeScan {
        pace_mib: "pace-mib",
        most_kib: "most-kib",
        step_kib: "step-kib",
        samples: "samples",
        rows: "rows",
    })],
    program: |params| lgwr::program(params, Commit::Wait),
    ..Workload::BASE
};
