//! Common parts of the procedural-code workloads: computations, and a commit with nothing to make durable.

use loadline_model::{Capability, column};

use crate::instrument::Instrument;
use crate::limit::Limit;
use crate::named_for::{Component, NamedFor};
use crate::params::Params;
use crate::program::{Commit, Generator, Kernel, Program, Step};
use crate::workload::{Kpi, Volume, Workload};

/// Common fields.
pub(super) const BASE: Workload = Workload {
    group: "procedural-code",
    named_for: NamedFor { components: &[Component::Cpu], doing: "the database's own language", instead: &[] },
    spoiled_by: "Other work on the CPUs, a changing CPU clock, an active debugger or profiler of the database's language. The transactions read and write no rows.",
    kpis: &[
        Kpi { column: column::MOPS_PER_S, title: "operations of all jobs" },
        Kpi { column: column::MOPS_PER_S_PER_JOB, title: "operations of a job" },
        Kpi { column: column::COMMIT_LATENCY_MS, title: "time of a transaction" },
    ],
    needs: &[Capability::Procedures],
    instruments: &[Instrument::Limit(&[Limit::Kernel])],
    ..Workload::BASE
};

fn times(params: &Params, param: &str) -> u32 {
    params.get(param).max(1) as u32
}

/// A transaction that does each of `parts` as often as its parameter says.
pub(super) fn program(params: &Params, parts: &[(Kernel, &'static str)]) -> Program {
    let mut body = vec![Step::bind("seq", Generator::Sequence)];
    body.extend(parts.iter().map(|(kernel, param)| Step::Compute { kernel: *kernel, times: times(params, param) }));
    Program { statements: Vec::new(), body, commit: Commit::Wait }
}

/// The operations of such a transaction.
pub(super) fn volume(params: &Params, parts: &[(Kernel, &'static str)]) -> Volume {
    let operations = program(params, parts).operations_per_tx() as f64;
    Volume { operations, ..Volume::default() }
}
