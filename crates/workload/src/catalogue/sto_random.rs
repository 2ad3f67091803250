//! STO-RANDOM: random reads and updates with a minimal cache.

use loadline_model::{Capability, column};

use super::sto;
use crate::instrument::Instrument;
use crate::limit::Limit;
use crate::named_for::{Component, NamedFor, ONE_WRITER};
use crate::params::{Param, Params};
use crate::program::{Commit, Effect, Generator, Program, Statement, Step};
use crate::workload::{Kpi, Sweep, Workload};

const PARAMS: &[Param] = &[Param {
    name: "write-pct",
    default: 20,
    min: 2,
    max: 50,
    meaning: "updates as a share of all statements, % (50: one read per update, 20: four)",
}];

/// Reads per update.
fn reads(params: &Params) -> u32 {
    let percent = params.get("write-pct").clamp(1, 100);
    ((100 + percent / 2) / percent - 1).max(1) as u32
}

/// STO-RANDOM.
pub(super) static WORKLOAD: Workload = Workload {
    code: "STO-RANDOM",
    summary: "random reads and updates of a table much larger than the cache, 80/20 and 50/50",
    description: "Each transaction reads random rows of a large table by primary key and changes one other random row: four reads per change (80/20), or one (50/50). The cache is so small that nearly every statement reads a block, and every change leaves a dirty block that must be written before its buffer is free again. The figures are reads and writes of data files per second, and the share of the jobs' time spent waiting for a free buffer or freeing one by writing a block. The commit does not wait: the log is not measured. One update per transaction, so deadlocks are impossible. First one job with both mixes, then a sweep over jobs with 80/20.",
    named_for: NamedFor {
        components: &[Component::DeviceReads, Component::DeviceWrites],
        doing: "random reads of single blocks, and writes of changed ones to make room for them",
        instead: &[sto::FEW_CPUS, ONE_WRITER],
    },
    kpis: &[
        Kpi { column: column::IO_PER_S, title: "reads and writes" },
        Kpi { column: column::PHYSICAL_WRITES_PER_S, title: "writes" },
        Kpi { column: column::BUFFER_WAIT_PCT, title: "time waiting for buffers" },
    ],
    tables: &[sto::BLOCKS],
    params: PARAMS,
    needs: &[Capability::Rows, Capability::ReadRows, Capability::CommitNowait],
    sweep: Sweep::Parameter { name: "write-pct", values: &[20, 50], column: column::WRITE_PCT, then_jobs: true },
    instruments: &[
        Instrument::Device,
        Instrument::Limit(&[Limit::BlockReads, Limit::BlockWrites, Limit::WriteBandwidth]),
    ],
    program: |params| {
        let rows = sto::rows(params);
        let one = Statement::fixed("SELECT id, n, payload FROM {blocks} WHERE id = :id", Effect::Read(1));
        Program {
            statements: vec![one, sto::update()],
            body: vec![
                Step::Repeat {
                    times: reads(params),
                    body: vec![
                        Step::bind("seq", Generator::Sequence),
                        sto::key(rows, 0),
                        Step::Execute { statement: 0 },
                    ],
                },
                Step::bind("seq", Generator::Sequence),
                sto::key(rows, 0),
                sto::payload(),
                Step::Execute { statement: 1 },
            ],
            commit: Commit::Nowait,
        }
    },
    ..sto::BASE
};

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn the_mix_is_as_asked() {
        for (percent, expected) in [(20, 4), (50, 1), (10, 9), (25, 3), (2, 49), (33, 2)] {
            let params = WORKLOAD.params(&BTreeMap::from([("write-pct".to_owned(), percent)])).unwrap();
            assert_eq!(reads(&params), expected, "{percent} %");
            let program = (WORKLOAD.program)(&params);
            assert_eq!(program.statements_per_tx(), u64::from(expected) + 1);
            assert_eq!(program.rows_changed_per_tx(), 1);
        }
    }
}
