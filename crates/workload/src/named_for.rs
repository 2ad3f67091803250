//! Name-giving components of workloads: those that bound them at their peak.
//!
//! A workload that something else bounds measures that. So each states its component, and, for databases or machines on
//! which another one bounds it, why that is so and what would be needed.

use serde::Deserialize;

use crate::source::{Node, UserError};

loadline_model::named! {
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
    #[serde(rename_all = "kebab-case")]
    pub enum Component {
        /// The CPUs that execute queries, code or loads.
        Cpu: "CPU";
        Log: "log";
        DeviceReads: "reads from the data device";
        DeviceWrites: "writes to the data files";
        /// A database that executes changes of one session at a time.
        SingleWriter: "single writer";
        Rate: "requested rate";
    }
    pub fn phrase;
}

/// Component that a workload is named for; nothing, if its file does not say.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NamedFor {
    /// The components, one of which bounds it at its peak. Several only if the workload is named for a path through
    /// them; none if its file does not say.
    pub components: Vec<Component>,
    /// Purpose of its use, after their names: `executing queries by key`.
    pub doing: String,
    /// Components that bound it on some databases or machines instead.
    #[serde(default)]
    pub instead: Vec<Instead>,
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Instead {
    pub component: Component,
    /// Why, and what would be needed; sentences. They name abilities, not databases.
    #[serde(default)]
    pub why: String,
}

/// Why a single writer bounds work that changes rows: there is no more to say than what it is.
const ONE_WRITER: &str = "A database with one writer at a time makes the other jobs wait until its commit is \
    done, so neither log, device nor CPUs have more than one job's work. Needed: a database whose sessions write at the \
    same time.";

impl NamedFor {
    pub(crate) fn read(node: Node<'_>) -> Result<NamedFor, UserError> {
        let mut read: NamedFor = node.read()?;
        for (instead, node) in read.instead.iter_mut().zip(node.all("instead", Ok)?) {
            match instead.component {
                _ if !instead.why.is_empty() => {}
                Component::SingleWriter => ONE_WRITER.clone_into(&mut instead.why),
                _ => return Err(node.error("another component needs the key 'why'")),
            }
        }
        Ok(read)
    }

    /// The components in words: `CPU or log`.
    pub fn phrase(&self) -> String {
        self.components.iter().map(|c| c.phrase()).collect::<Vec<_>>().join(" or ")
    }
}
