//! The laws. Each is an item of [`LAWS`]; docs/audit.md and `loadline audit --laws` are drawn from it.

mod blocks;
mod cells;
pub(crate) mod counts;
mod cpu;
mod elapsed;
mod group_commit;
mod hardware;
mod little;
mod neighbours;
mod order;
mod outlier;
mod percentiles;
pub(crate) mod products;
mod shares;
mod sweep;
pub(crate) mod units;
mod waits;
mod work;

use crate::context::Context;
use crate::finding::Findings;

/// A law that the figures of a test obey.
#[derive(Debug)]
#[non_exhaustive]
pub struct Law {
    /// Stable id, in the column `law` of findings.
    pub id: &'static str,
    /// Name.
    pub name: &'static str,
    /// What holds, in ids of columns; `tps` is `commit_throughput_tps`, or `tx_per_s`.
    pub formula: &'static str,
    /// Sets of columns: with any of them the law can be checked.
    pub needs: &'static [&'static [&'static str]],
    /// What is more than a warning.
    pub tolerance: &'static str,
    /// What it likely means if it is broken.
    pub meaning: &'static str,
    pub(crate) check: Check,
}

/// How a law is checked.
pub(crate) enum Check {
    /// Two products of columns that are equal.
    Product(products::Product),
    /// Anything else.
    Own(fn(&Context<'_>, &mut Findings)),
}

impl std::fmt::Debug for Check {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(if matches!(self, Check::Product(_)) { "Product" } else { "Own" })
    }
}

impl Law {
    /// Whether the table has what the law needs.
    pub(crate) fn applies(&self, context: &Context<'_>) -> bool {
        self.needs.iter().any(|set| set.iter().all(|id| context.has(id)))
    }

    pub(crate) fn check(&self, context: &Context<'_>, findings: &mut Findings) {
        match &self.check {
            Check::Product(product) => product.check(self, context, findings),
            Check::Own(check) => check(context, findings),
        }
    }
}

/// All laws, in the order of the docs.
pub static LAWS: &[&Law] = &[
    &little::LITTLE,
    &little::DILUTION,
    &waits::WAITS,
    &waits::TIME_PARTS,
    &units::KILOBYTE,
    &products::REDO_RATE,
    &products::REDO_BYTES,
    &products::READ_RATE,
    &products::IO_RATE,
    &products::ROWS,
    &products::COMMITS,
    &products::COMMITS_DATABASE,
    &products::REDO_SYNCS,
    &products::COMMITS_PER_SYNC,
    &products::TX_RATE,
    &products::MEAN_TIME,
    &products::LIMIT_SHARE,
    &products::OPERATIONS,
    &products::DEVICE_SHARE,
    &blocks::REDO_BLOCKS,
    &blocks::DATA_BLOCKS,
    &group_commit::GROUP_COMMIT,
    &group_commit::SYNCS,
    &cpu::CPU_PARTS,
    &cpu::CPU_SUM,
    &shares::SHARES,
    &shares::CACHE_HITS,
    &percentiles::PERCENTILES,
    &percentiles::MEAN,
    &percentiles::INSIDE,
    &hardware::HARDWARE,
    &elapsed::ELAPSED,
    &work::WORK,
    &work::NOMINAL,
    &neighbours::NEIGHBOURS,
    &sweep::SATURATION,
    &order::JOB_ORDER,
    &order::GAPS,
    &order::DUPLICATES,
    &cells::CELLS,
];

/// Whether the jobs are those of one node.
pub(crate) fn little_per_node(context: &Context<'_>) -> bool {
    little::jobs_are_per_node(context)
}

/// Checks what every table can be checked for.
pub(crate) fn check_cells(context: &Context<'_>, findings: &mut Findings) {
    cells::CELLS.check(context, findings);
}
