//! DA-PARALLEL: one grouping, done by ever more workers together.

use loadline_model::{Capability, column};

use super::da;
use crate::instrument::Instrument;
use crate::workload::{Kpi, Param, Sweep, Workload};

const PARAMS: &[Param] = &[
    Param {
        name: "workers",
        default: 2,
        min: 1,
        max: 1024,
        meaning: "processes that work on a query together, the session's own among them",
    },
    Param {
        name: "groups",
        default: 10_000,
        min: 10,
        max: 1_000_000,
        meaning: "values of the column that is grouped by",
    },
];

/// DA-PARALLEL.
pub(super) static WORKLOAD: Workload = Workload {
    code: "DA-PARALLEL",
    summary: "DA-AGG over 10⁴ groups by 1, 2, 4, … parallel workers",
    description: "Each transaction is the query of DA-AGG over 10,000 groups, run by one session with 1, 2, 4, … processes that work on it together, the session's own among them: with one it is not parallel. The sweep ends where the server gives no more. The figure is the rate, and the speed-up against one worker in the same run. Costs and thresholds by which the database would rather not run a query in parallel are switched off in the sessions, as a hint would do; how many workers really came is checked before each test, and in its window: by the database's own count where it has one, else by looking at what the processes do, some ten times a second. A test that got fewer than it asked for, or in which nothing proves that they came, is invalid. Where a database is asked for a degree of parallelism, that is the number; its session then only coordinates, and a grouping has two sets of so many processes. More workers than CPUs are allowed, and said.",
    spoiled_by: "Workers that other sessions hold; fewer CPUs than workers; a table that is small for the time that it takes to start a worker (a few ms).",
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
    instruments: &[Instrument::Workers("workers")],
    volume: Some(da::aggregation_volume),
    program: da::aggregation,
    ..da::BASE
};
