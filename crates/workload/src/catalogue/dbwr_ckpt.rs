//! DBWR-CKPT: transaction times through a checkpoint.

use loadline_model::{Capability, column};

use super::sto;
use crate::instrument::Instrument;
use crate::limit::Limit;
use crate::named_for::{Component, NamedFor, ONE_WRITER};
use crate::program::Commit;
use crate::workload::{Kpi, Workload};

/// DBWR-CKPT.
pub(super) static WORKLOAD: Workload = Workload {
    code: "DBWR-CKPT",
    group: "database-writer",
    summary: "transaction times during and outside a checkpoint",
    description: "Each transaction changes one random row of a large table and waits for its commit. A third of the way into the window loadline requests a checkpoint: the database then writes all blocks changed since the last one, while the jobs continue. The figures are transactions per second and the 99th percentile of their times during the checkpoint and in the rest of the window. With a good database writer the two hardly differ.",
    named_for: NamedFor {
        components: &[Component::Log],
        doing: "durable commits of single rows, through a checkpoint",
        instead: &[ONE_WRITER],
    },
    spoiled_by: "Checkpoints that the database starts by itself in the rest of the window (their number is noted), and a checkpoint that lasts only a few milliseconds because little was changed: use a longer warm-up.",
    kpis: &[
        Kpi { column: column::CHECKPOINT_TPS, title: "throughput in the checkpoint" },
        Kpi { column: column::CALM_TPS, title: "throughput outside" },
        Kpi { column: column::CHECKPOINT_TIME_NS_P99, title: "p99 in the checkpoint" },
        Kpi { column: column::CALM_TIME_NS_P99, title: "p99 outside" },
    ],
    tables: &[sto::BLOCKS],
    needs: &[Capability::Rows, Capability::CommitWait, Capability::Checkpoint],
    instruments: &[Instrument::Checkpoint, Instrument::Limit(&[Limit::Statements, Limit::Log])],
    program: |params| sto::update_one(params, Commit::Wait),
    ..Workload::BASE
};
