//! DBL-STREAM: small steady batches, and the delay until others see them.

use loadline_model::{Capability, column};

use super::dbl;
use crate::instrument::{Instrument, Visible};
use crate::limit::Limit;
use crate::named_for::{Component, NamedFor};
use crate::params::Param;
use crate::program::{Program, Step};
use crate::workload::{Kpi, Sweep, Workload};

const PARAMS: &[Param] = &[
    Param { name: "rows", default: 50, min: 1, max: dbl::MAX_ROWS as i64, meaning: "rows per batch" },
    Param { name: "batches", default: 20, min: 1, max: 10_000, meaning: "batches started per second" },
];

/// DBL-STREAM.
pub(super) static WORKLOAD: Workload = Workload {
    code: "DBL-STREAM",
    summary: "small steady batches at a given rate, and the delay until another session sees them",
    description: "One job starts 20 batches of 50 rows per second, whether or not earlier ones have ended; each is one INSERT and a durable commit. A second session queries for the last row of the next batch repeatedly, at most about 5,000 times a second. The delay from the intended start of a batch until this session sees its row is what a consumer of the stream waits, including a backlog of batches. It can be shorter than the batch itself: some databases show rows once they are committed in memory, before the log is on disk. The figures are rows inserted per second, and the median and 99th percentile of the delay. If rows per second are below rows × batches, the database does not keep up. A test is invalid if more than 1 % of the batches due in its window were not seen within a second after its end. The parameter sets the rate; --rate is for workloads without a rate of their own.",
    named_for: NamedFor {
        components: &[Component::Rate],
        doing: "a stream at this rate; its figure is the delay",
        instead: &[],
    },
    spoiled_by: "Other work on the log, a client whose timer fires late, a reader that sees its row only at its next query (one round trip, which is the resolution of the delay).",
    kpis: &[
        Kpi { column: column::ROWS_PER_S, title: "rows inserted" },
        Kpi { column: column::VISIBLE_DELAY_NS_P50, title: "median delay until visible" },
        Kpi { column: column::VISIBLE_DELAY_NS_P99, title: "99th percentile of the delay" },
    ],
    params: PARAMS,
    needs: &[Capability::Rows, Capability::Redo, Capability::CommitWait, Capability::ReadRows],
    sweep: Sweep::Once,
    instruments: &[
        Instrument::Visible(Visible { rate: "batches", rows: "rows", query: "SELECT id FROM {entry} WHERE id = :id" }),
        Instrument::Limit(&[Limit::Statements, Limit::Log, Limit::Copy]),
    ],
    program: |params| {
        let program = dbl::one_statement(params.get("rows"));
        // A repetition, so that COMMIT is a separate statement: every database can then distinguish the reader's
        // queries from commits.
        Program { body: vec![Step::Repeat { times: 1, body: program.body }], ..program }
    },
    ..dbl::BASE
};
