//! DBWR-THR: the rate at which changed blocks reach storage.

use loadline_model::{Capability, column};

use super::sto;
use crate::instrument::Instrument;
use crate::limit::Limit;
use crate::named_for::{Component, Instead, NamedFor, ONE_WRITER};
use crate::params::{Param, Params};
use crate::program::{Commit, Effect, Generator, Program, Statement, Step};
use crate::workload::{Kpi, Workload};

const PARAMS: &[Param] = &[Param {
    name: "blocks",
    default: 32,
    min: 1,
    max: 500,
    meaning: "blocks changed per transaction, one row in each",
}];

/// Distance between the keys that a transaction changes: they are spread evenly over the table.
fn distance(params: &Params) -> u64 {
    (sto::rows(params) / params.get("blocks").max(1) as u64).max(1)
}

/// One statement that adds 1 to a row in each of many blocks.
fn change(params: &Params) -> Statement {
    let blocks = params.get("blocks").max(1) as u64;
    let keys = (0..blocks).map(|i| match i * distance(params) {
        0 => ":id".to_owned(),
        by => format!(":id + {by}"),
    });
    let keys = keys.collect::<Vec<_>>().join(", ");
    Statement::fixed(&format!("UPDATE {{blocks}} SET n = n + 1 WHERE id IN ({keys})"), Effect::Change(blocks))
}

/// DBWR-THR.
pub(super) static WORKLOAD: Workload = Workload {
    code: "DBWR-THR",
    group: "database-writer",
    summary: "one row changed in each of many blocks, more than the cache may hold: blocks written per second",
    description: "Each transaction adds 1 to a row in each of 32 blocks by one statement; the rows are spread evenly over a large table, from a random one on. So a change costs little CPU and few bytes of log, but makes a block dirty. The cache has room for few dirty blocks, so they must be written to the data files as fast as they are changed. The figures are blocks and MiB per second that the database wrote to its data files, by background writer, page cleaner or the sessions themselves. Blocks that it reads back before it changes them may come from the operating system's page cache: writes are measured. The commit does not wait, and no checkpoint is made before a test: a database that logs whole blocks after a checkpoint has logged most of them before.",
    named_for: NamedFor {
        components: &[Component::DeviceWrites],
        doing: "the database writer, which writes changed blocks to the data files",
        instead: &[
            Instead {
                component: Component::DeviceReads,
                why: "A database that reads past the operating system's page cache reads each block from the device before it changes it, if its own cache does not hold the table. Needed: a page cache between database and device, or a cache that holds the table and few changed blocks, so that sessions wait when these become too many.",
            },
            Instead {
                component: Component::Cpu,
                why: "With few CPUs, or small blocks, changing a block and handing it to the operating system takes longer than the device takes to write it. Needed: more CPUs for the same device.",
            },
            ONE_WRITER,
        ],
    },
    spoiled_by: "A cache that absorbs the changes: the database's own (a private server's is made small for these tests; on another server use a --size of at least ten times its cache, and a long warm-up) or the operating system's (loadline starts to write changed blocks all the time, if it runs on the same machine and may read the files). A checkpoint shortly before or in the test, if the database then logs whole blocks. Memory that does not hold the table, or direct I/O, if the cache is too small for it: changed blocks are then read from the device first. The check data-written compares the blocks written with the rows changed, and the device's writes with both. Other writes to that device make the comparison too good and the figures too low.",
    kpis: &[
        Kpi { column: column::PHYSICAL_WRITTEN_BLOCKS_PER_S, title: "blocks written" },
        Kpi { column: column::PHYSICAL_WRITTEN_MIB_PER_S, title: "data written" },
        Kpi { column: column::COMMIT_THROUGHPUT_TPS, title: "transactions" },
    ],
    tables: &[sto::BLOCKS],
    params: PARAMS,
    needs: &[Capability::Rows, Capability::CommitNowait],
    instruments: &[Instrument::Device, Instrument::Limit(&[Limit::BlockWrites])],
    program: |params| Program {
        statements: vec![change(params)],
        body: vec![
            Step::bind("seq", Generator::Sequence),
            sto::key(distance(params), 0),
            Step::Execute { statement: 0 },
        ],
        commit: Commit::Nowait,
    },
    ..Workload::BASE
};

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn every_key_of_a_transaction_exists_and_is_in_another_block() {
        for (blocks, bytes) in [(32, 1 << 20), (32, 96 << 20), (1, 32 << 20), (500, 1 << 30)] {
            let params = WORKLOAD.params(&BTreeMap::from([("blocks".to_owned(), blocks)])).unwrap().with_size(bytes);
            let program = (WORKLOAD.program)(&params);
            assert_eq!(program.rows_changed_per_tx(), blocks as u64);
            let (rows, distance) = (sto::rows(&params), distance(&params));
            let last = distance - 1 + (blocks as u64 - 1) * distance;
            assert!(last < rows, "{last} of {rows} rows");
            // 16 KiB hold at most 64 rows of 256 bytes.
            assert!(blocks == 1 || distance >= 64, "{distance}");
        }
    }
}
