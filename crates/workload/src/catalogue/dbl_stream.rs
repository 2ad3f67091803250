//! DBL-STREAM: small steady batches, and when others see them.

use loadline_model::{Capability, column};

use super::dbl;
use crate::instrument::{Instrument, Visible};
use crate::program::{Program, Step};
use crate::workload::{Kpi, Param, Sweep, Workload};

const PARAMS: &[Param] = &[
    Param { name: "rows", default: 50, min: 1, max: dbl::MOST_ROWS as i64, meaning: "rows per batch" },
    Param { name: "batches", default: 20, min: 1, max: 10_000, meaning: "batches that begin per second" },
];

/// DBL-STREAM.
pub(super) static WORKLOAD: Workload = Workload {
    code: "DBL-STREAM",
    group: "data-load",
    summary: "small steady batches at a given rate, and how long until another session sees them",
    description: "One job begins 20 batches of 50 rows per second, whether those before have ended or not; each is one INSERT and a durable commit. A second session asks for the last row of the next batch over and over, some 5,000 times a second at most, and the delay from the moment at which a batch was meant to begin until it sees the row is measured: what a consumer of the stream has to wait, a backlog of batches included (it can be less than the batch's own time: some databases show rows as soon as they are committed in memory, before the log is on disk). The figures are the rows per second that came in, and the median and 99th percentile of the delay; where rows per second are below rows × batches, the database does not keep up. A test is invalid if more than 1 % of the batches that were due in its window were not seen within a second after its end. The rate is that of the parameter: --rate is for workloads that have none of their own.",
    spoiled_by: "Other work on the log, a client whose clock ticks are late, a reader that finds its row only at its next look (its queries take the time of one round trip each and that is the resolution of the delay).",
    kpis: &[
        Kpi { column: column::ROWS_PER_S, title: "rows inserted" },
        Kpi { column: column::VISIBLE_DELAY_NS_P50, title: "median delay until visible" },
        Kpi { column: column::VISIBLE_DELAY_NS_P99, title: "99th percentile of the delay" },
    ],
    tables: dbl::ENTRIES,
    params: PARAMS,
    needs: &[Capability::Rows, Capability::Redo, Capability::CommitWait, Capability::ReadRows],
    sweep: Sweep::Once,
    evidence: Some(dbl::ENTRIES_EVIDENCE),
    instruments: &[Instrument::Visible(Visible {
        rate: "batches",
        rows: "rows",
        query: "SELECT id FROM {entry} WHERE id = :id",
    })],
    program: |params| {
        let program = dbl::one_statement(params.get("rows"));
        // A repetition, so that COMMIT is sent by itself: the reader's queries are then told from commits by
        // every database.
        Program { body: vec![Step::Repeat { times: 1, body: program.body }], ..program }
    },
    ..Workload::BASE
};
