//! The laws. `table.rs` is the table of all of them, the other files check them.

mod blocks;
pub(crate) mod cells;
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
pub(crate) mod relations;
pub(crate) mod sessions;
mod shares;
mod sweep;
mod table;
pub(crate) mod units;
mod waits;
mod work;

use crate::audit::context::Context;
use crate::audit::finding::Findings;
pub use table::LAWS;

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
    /// Sets of columns, with semicolons between them: with any of them the law can be checked.
    pub needs: &'static str,
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
    /// Sets of columns: with any of them the law can be checked.
    pub fn sets(&self) -> impl Iterator<Item = Vec<&'static str>> + use<> {
        self.needs.split(';').map(|set| set.split_whitespace().collect::<Vec<_>>()).filter(|set| !set.is_empty())
    }

    /// Whether the table has what the law needs.
    pub(crate) fn applies(&self, context: &Context<'_>) -> bool {
        let has = |id: &'static str| context.has(id) || id == "jobs" && context.sessions.is_some();
        self.sets().any(|set| set.into_iter().all(has))
    }

    pub(crate) fn check(&self, context: &Context<'_>, findings: &mut Findings) {
        match &self.check {
            Check::Product(product) => product.check(self, context, findings),
            Check::Own(check) => check(context, findings),
        }
    }
}

/// The law with this id.
pub(crate) fn find(id: &str) -> Option<&'static Law> {
    LAWS.iter().copied().find(|law| law.id == id)
}
