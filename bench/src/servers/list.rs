//! The servers: where each comes from (`list.toml`).

use std::collections::BTreeMap;

use serde::Deserialize;

use crate::arena::Outcome;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct List {
    #[serde(rename = "server")]
    pub(super) servers: Vec<Server>,
    /// Servers that loadline has never been run against, and why.
    pub(super) never: Vec<(String, String)>,
}

impl List {
    /// # Errors
    /// The file is not as it must be.
    pub(super) fn read() -> Outcome<List> {
        Ok(toml::from_str(include_str!("list.toml"))?)
    }
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Server {
    pub(super) name: String,
    pub(super) scheme: String,
    /// Product and version, as people say it.
    pub(super) version: String,
    pub(super) source: Source,
    /// The directory of its programs in the unpacked tree.
    pub(super) bin: String,
    #[serde(default)]
    pub(super) settings: BTreeMap<String, String>,
}

/// Where a server comes from.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(super) enum Source {
    Installed {},
    Maven {
        artifact: String,
        sha256: String,
        inner: Option<String>,
        #[serde(default)]
        without: Vec<String>,
    },
    Debian {
        suite: String,
        package: String,
    },
}

impl Server {
    /// Source, for people.
    pub(super) fn place(&self) -> String {
        match &self.source {
            Source::Installed {} => format!("the machine's package, `{}`", self.bin),
            Source::Maven { artifact, .. } => format!("Maven, `{artifact}`"),
            Source::Debian { suite, package } => format!("Debian {suite}, `{package}`"),
        }
    }

    pub(super) fn from(&self) -> String {
        format!("{} from {}", self.version, self.place())
    }
}
