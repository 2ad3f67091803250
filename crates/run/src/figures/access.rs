//! Access pattern of a workload's transactions.

use loadline_database::Work;
use loadline_workload::{Effect, RowCount, Step};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Access {
    /// Single blocks at random.
    Random,
    /// Sequential: the device reads several adjacent blocks at once.
    Sequential,
}

impl Access {
    pub(crate) fn of(work: &Work) -> Access {
        let volume = work.workload.volume(&work.params);
        if volume.is_some_and(|v| v.share > 0.0) { Access::Sequential } else { Access::Random }
    }
}

/// Whether a transaction is a single query for one row.
pub(crate) fn is_one_read(work: &Work) -> bool {
    let program = &work.program;
    let executed = |step: &Step| match step {
        Step::Execute { statement } => program.statements.get(*statement).map(|s| s.effect),
        _ => None,
    };
    work.workload.volume(&work.params).is_none()
        && program.is_single_statement()
        && program.body.iter().filter_map(executed).all(|e| e == Effect::Read(1))
}

/// Whether its transactions only add rows and read none.
#[must_use]
pub fn only_adds(work: &Work) -> bool {
    work.program.rows_changed_per_tx() > 0 && work.workload.tables.iter().all(|t| t.rows == RowCount::Empty)
}
