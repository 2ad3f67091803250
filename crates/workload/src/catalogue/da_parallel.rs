//! DA-PARALLEL: one grouping with more and more parallel workers.

use loadline_model::{Capability, column};

use super::da;
use crate::instrument::Instrument;
use crate::limit::{Limit, Loop};
use crate::params::Param;
use crate::workload::{Kpi, Sweep, Workload};

const PARAMS: &[Param] = &[
    Param {
        name: "workers",
        default: 2,
        min: 1,
        max: 1024,
        meaning: "parallel processes of a query, the session's own included",
    },
    da::GROUPS_PARAM,
];

/// DA-PARALLEL.
pub(super) static WORKLOAD: Workload = Workload {
    code: "DA-PARALLEL",
    summary: "DA-AGG over 10⁴ groups by 1, 2, 4, … parallel workers",
    description: "Each transaction is the query of DA-AGG over 10,000 groups, run by one session with 1, 2, 4, … parallel processes, the session's own included: with one it is not parallel. The sweep ends at the server's limit. The figures are the rate and the speed-up against one worker in the same run. The sessions switch off the costs and thresholds that make the database avoid parallel queries, as a hint would. The actual number of workers is checked before each test and in its window: by the database's own count if it has one, otherwise by sampling the state of the processes about ten times a second. A test with fewer workers than requested, or without proof of them, is invalid. If a database takes a degree of parallelism, the number is that degree; its session then only coordinates, and a grouping has two sets of that many processes. More workers than CPUs are allowed and noted.",
    spoiled_by: "Workers used by other sessions, fewer CPUs than workers, a table too small for the time to start a worker (a few ms).",
    kpis: &[
        Kpi { column: column::ROWS_PER_S, title: "rows of the fact table" },
        Kpi { column: column::SPEED_UP, title: "speed-up against one worker" },
        Kpi { column: column::DATA_MIB_PER_S, title: "data" },
        Kpi { column: column::COMMIT_LATENCY_MS, title: "time of a query" },
    ],
    params: PARAMS,
    choices: &[("groups", da::GROUPS)],
    needs: &[Capability::Rows, Capability::ReadRows, Capability::ParallelQuery],
    sweep: Sweep::Parameter {
        name: "workers",
        values: &[1, 2, 4, 8, 16, 32, 64, 128, 256],
        column: column::THREADS,
        then_jobs: false,
    },
    instruments: &[Instrument::Workers("workers"), Instrument::Limit(&[Limit::Loop(Loop::Group)])],
    volume: Some(da::aggregation_volume),
    program: da::aggregation,
    ..da::BASE
};
