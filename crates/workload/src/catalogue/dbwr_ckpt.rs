//! DBWR-CKPT: transaction times through a checkpoint.

use loadline_model::{Capability, column};

use super::sto;
use crate::instrument::Instrument;
use crate::program::{Commit, Generator, Program, Step};
use crate::workload::{Kpi, Workload};

/// DBWR-CKPT.
pub(super) static WORKLOAD: Workload = Workload {
    code: "DBWR-CKPT",
    group: "database-writer",
    summary: "transaction times inside and outside of a checkpoint",
    description: "Each transaction changes one random row of a large table and waits for its commit. A third of the window after it has opened loadline asks for a checkpoint: the database then writes out all blocks that have been changed since the last one, while the jobs go on. The figures are transactions per second and the 99th percentile of their times while that checkpoint was under way, and in the rest of the window. A good database writer is not noticed.",
    spoiled_by: "Checkpoints that the database makes of its own accord in the rest of the window (their number is noted), and a checkpoint that is over in a few milliseconds because little was changed: give a longer warm-up.",
    kpis: &[
        Kpi { column: column::CHECKPOINT_TPS, title: "throughput in the checkpoint" },
        Kpi { column: column::CALM_TPS, title: "throughput outside" },
        Kpi { column: column::CHECKPOINT_TIME_NS_P99, title: "p99 in the checkpoint" },
        Kpi { column: column::CALM_TIME_NS_P99, title: "p99 outside" },
    ],
    tables: &[sto::BLOCKS],
    needs: &[Capability::Rows, Capability::CommitWait, Capability::Checkpoint],
    instruments: &[Instrument::Checkpoint],
    program: |params| Program {
        statements: vec![sto::update()],
        body: vec![
            Step::bind("seq", Generator::Sequence),
            sto::key(sto::rows(params), 0),
            sto::payload(),
            Step::Execute { statement: 0 },
        ],
        commit: Commit::Wait,
    },
    ..Workload::BASE
};
