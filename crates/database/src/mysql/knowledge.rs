//! Knowledge of MariaDB and MySQL: `mysql.toml`, in the language of [`crate::descriptor`]; and which version a server has.

use std::collections::BTreeMap;

use serde::Deserialize;

use crate::descriptor::{self, Counter, Embedded, Product, Release, Routines, Versioned, Versions};
use crate::dialect::Dialect;
use crate::error::{Causes, Meaning, TargetError};
use crate::facts::WaitEvents;
use crate::role::Use;
use crate::rules::Rule;
use crate::temp::settings::SERVERS;
use crate::view::{Fragments, StatisticsView};

pub(super) static KNOWLEDGE: Embedded<Knowledge> = Embedded::new("src/mysql.toml", include_str!("../mysql.toml"));

/// The file, which describes its parts.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Knowledge {
    pub(super) counters: Vec<Counter>,
    pub(super) causes: Causes,
    pub(super) errors: Vec<Meaning>,
    pub(super) waits: WaitEvents,
    pub(super) waits_with_pool: WaitEvents,
    pub(super) of_mean_node: Vec<String>,
    pub(super) session: Versioned,
    pub(super) sessions: Versioned,
    pub(super) threads: Versioned,
    pub(super) at_work_for_the_server: Versioned,
    pub(super) ignore_read_only: Versioned,
    pub(super) log_files: Versioned,
    pub(super) metrics: Versioned,
    pub(super) queries: Routines,
    pub(super) status: Vec<String>,
    pub(super) galera_status: Vec<String>,
    pub(super) member_status: Vec<String>,
    pub(super) recorded: Vec<String>,
    pub(super) recorded_beginnings: Vec<String>,
    pub(super) recorded_provider_options: Vec<String>,
    pub(super) secret: Vec<String>,
    pub(super) no_secret: Vec<String>,
    pub(super) set_by_loadline: BTreeMap<String, String>,
    pub(super) replica_names: Vec<Vec<String>>,
    pub(super) process_list: ProcessList,
    #[serde(rename = "rule")]
    pub(super) rules: Vec<Rule>,
    pub(super) grants: Vec<Grant>,
    pub(super) notes: Routines,
    pub(super) messages: BTreeMap<String, String>,
    pub(super) routines: Routines,
    pub(super) fragments: Fragments,
    pub(super) statistics: Vec<StatisticsView<ViewNeeds>>,
    pub(super) dialect: Dialect,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ProcessList {
    pub(super) working: Vec<String>,
    pub(super) resting: Vec<String>,
    pub(super) no_client: Vec<String>,
    pub(super) no_user: Vec<String>,
}

/// A privilege that loadline uses.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Grant {
    pub(super) sql: String,
    pub(super) before: Option<String>,
    pub(super) shown: Vec<String>,
    #[serde(default)]
    pub(super) versions: Versions,
    #[serde(default)]
    pub(super) performance_schema: bool,
    pub(super) gives: String,
    pub(super) used: Use,
}

/// Requirements of a statistics view beside its query.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct ViewNeeds {
    pub(super) rows: ViewRows,
    pub(super) performance_schema: Vec<Versions>,
    pub(super) instruments: String,
    pub(super) consumers: Vec<String>,
    pub(super) only_userstat: Option<bool>,
    pub(super) galera: String,
}

/// Where the rows of a statistics view come from.
#[derive(Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum ViewRows {
    #[default]
    Query,
    Replica,
    Sessions,
    Running,
    Settings,
}

/// Product and version from the server's greeting.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Version {
    pub(super) release: Release,
    /// As the server writes it.
    pub(super) text: String,
}

/// Supported versions, for messages.
pub(super) const SUPPORTED: &str = "MariaDB 10.6 and newer, MySQL 8.0 and newer";

impl Version {
    /// Reads `10.11.6-MariaDB-0+deb12u1` (with or without `5.5.5-` before it) or `8.0.36`.
    pub(super) fn parse(text: &str) -> Version {
        let product = if text.contains("MariaDB") { Product::Mariadb } else { Product::Mysql };
        // MariaDB before 11 adds this prefix for old replicas.
        let text = if product == Product::Mariadb { text.strip_prefix("5.5.5-").unwrap_or(text) } else { text };
        Version { release: Release::new(product, text), text: text.to_owned() }
    }

    pub(super) fn is_mariadb(&self) -> bool {
        self.release.product == Product::Mariadb
    }

    pub(super) fn product(&self) -> &'static str {
        if self.is_mariadb() { "MariaDB" } else { "MySQL" }
    }

    pub(super) fn check(&self, place: &str) -> Result<(), TargetError> {
        let private = if self.is_mariadb() { &SERVERS.mariadb } else { &SERVERS.mysql };
        if self.release.is_from(&private.oldest) {
            return Ok(());
        }
        let parts = [("place", place), ("product", self.product()), ("version", &self.text), ("supported", SUPPORTED)];
        Err(refusal("not-supported", &parts))
    }
}

/// The message of this name with `parts` for their names in braces.
pub(super) fn message(name: &str, parts: &[(&str, &str)]) -> String {
    descriptor::message(&KNOWLEDGE.messages, name, parts)
}

pub(super) fn refusal(name: &str, parts: &[(&str, &str)]) -> TargetError {
    TargetError::Refused(message(name, parts))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cases::cases;
    use crate::descriptor::BlockBytes;

    const MYSQL_8: Release = Release { product: Product::Mysql, number: [8, 0, 36] };

    #[test]
    fn the_file_can_be_read() {
        let file = KNOWLEDGE.checked(|file| &file.counters);
        let block = BlockBytes { data: 16384.0, log: 512.0 };
        for (name, source, _) in Counter::sources(&file.counters, MYSQL_8, block) {
            let status = file.status.iter().chain(&file.galera_status).any(|read| read == source);
            let of_files = file.log_files.at(MYSQL_8).is_some_and(|sql| sql.contains(source));
            assert!(status || of_files, "{name} of {source}");
        }
        let releases =
            [(Product::Mariadb, &["10.6", "10.11", "11.8", "13.0"]), (Product::Mysql, &["8.0", "8.4", "9.7", "10.0"])];
        for (product, version) in releases.into_iter().flat_map(|(product, all)| all.map(|version| (product, version)))
        {
            for texts in [&file.metrics, &file.sessions, &file.threads, &file.session] {
                assert!(texts.at(Release::new(product, version)).is_some(), "{product:?} {version}");
            }
        }
    }

    #[test]
    fn counters_are_sums_in_their_units() {
        for (mut counters, sums) in cases::<(BTreeMap<String, f64>, BTreeMap<String, f64>)>("mysql-counters") {
            Counter::fill(&KNOWLEDGE.counters, MYSQL_8, BlockBytes { data: 16384.0, log: 512.0 }, &mut counters);
            counters.retain(|name, _| name.starts_with("loadline."));
            assert_eq!(counters, sums);
        }
    }

    #[test]
    fn every_message_of_the_code_is_in_the_file() {
        for file in std::fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/src/mysql")).unwrap() {
            let text = std::fs::read_to_string(file.unwrap().path()).unwrap_or_default();
            let text: String = text.split_whitespace().collect();
            for used in ["message(\"", "refusal(\""].iter().flat_map(|call| text.split(call).skip(1)) {
                let name = used.split('"').next().unwrap();
                assert!(KNOWLEDGE.messages.contains_key(name), "{name}");
            }
        }
    }

    #[test]
    fn versions_are_parsed_and_checked() {
        for (text, product, major, minor, fine) in cases::<(String, String, u32, u32, bool)>("mysql-versions") {
            let v = Version::parse(&text);
            assert_eq!((v.product(), &v.release.number[..2]), (product.as_str(), &[major, minor][..]), "{text}");
            assert_eq!(v.check("here").is_ok(), fine, "{text}");
        }
    }
}
