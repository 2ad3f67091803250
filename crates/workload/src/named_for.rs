//! Name-giving components of workloads: those that bound them at their peak.
//!
//! A workload that something else bounds measures that. So each states its component, and, for databases or machines on
//! which another one bounds it, why that is so and what would be needed.

use serde::Deserialize;

use crate::source::{Node, UserError};

loadline_model::named! {
    /// A component that can bound a workload.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
    #[serde(rename_all = "kebab-case")]
    pub enum Component {
        /// The CPUs that execute queries, code or loads.
        Cpu: "CPU";
        /// The log: its syncs or its bandwidth.
        Log: "log";
        /// Reads from the data device.
        DeviceReads: "reads from the data device";
        /// Writes of changed or new blocks to the data files and their device.
        DeviceWrites: "writes to the data files";
        /// A database that executes changes of one session at a time.
        SingleWriter: "single writer";
        /// The rate that is asked for.
        Rate: "requested rate";
    }
    /// In words: `reads from the data device`.
    pub fn phrase;
}

/// Component that a workload is named for; nothing, if its file does not say.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NamedFor {
    /// The components, one of which bounds it at its peak. Several only if the workload is named for a path through
    /// them; none if its file does not say.
    pub components: Vec<Component>,
    /// Purpose of its use, after their names: `executing queries by key`.
    pub doing: String,
    /// Components that bound it on some databases or machines instead.
    pub instead: Vec<Instead>,
}

/// Another component that can bound a workload.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Instead {
    pub component: Component,
    /// Why, and what would be needed; sentences. They name abilities, not databases.
    pub why: String,
}

/// Why a single writer bounds work that changes rows: there is no more to say than what it is.
const ONE_WRITER: &str = "A database with one writer at a time makes the other jobs wait until its commit is \
    done, so neither log, device nor CPUs have more than one job's work. Needed: a database whose sessions write at the \
    same time.";

impl NamedFor {
    pub(crate) fn read(node: Node<'_>) -> Result<NamedFor, UserError> {
        node.fields(&["components", "doing", "instead"])?;
        Ok(NamedFor {
            components: node.need("components")?.items()?.into_iter().map(Node::word).collect::<Result<_, _>>()?,
            doing: node.need("doing")?.owned()?,
            instead: node.all("instead", Instead::read)?,
        })
    }

    /// The components in words: `CPU or log`.
    pub fn phrase(&self) -> String {
        self.components.iter().map(|c| c.phrase()).collect::<Vec<_>>().join(" or ")
    }
}

impl Instead {
    fn read(node: Node<'_>) -> Result<Instead, UserError> {
        node.fields(&["component", "why"])?;
        let component = node.need("component")?.word()?;
        let why = match node.get("why") {
            None if component == Component::SingleWriter => ONE_WRITER.to_owned(),
            Some(why) => why.owned()?,
            None => return Err(node.error("another component needs the key 'why'")),
        };
        Ok(Instead { component, why })
    }
}
