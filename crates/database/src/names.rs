//! Names of workload tables in a database, without the target's prefix.

use loadline_workload::{Scope, Workload};

/// Name of the table or procedure `object` of a workload: its code is the prefix.
pub(crate) fn own(workload: &Workload, object: &str) -> String {
    format!("{}_{object}", workload.code.to_lowercase().replace('-', "_"))
}

/// The workload tables of `workload`, each with its name in a database: unique within a plan.
pub fn table_names(workload: &Workload) -> Vec<(&str, String)> {
    let tables = workload.tables.iter().filter(|t| t.scope == Scope::Workload);
    tables.map(|t| (t.name.as_str(), own(workload, &t.name))).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use loadline_workload::CATALOGUE;

    use super::table_names;

    #[test]
    fn no_two_workloads_of_the_catalogue_share_a_table() {
        let all: Vec<String> = CATALOGUE.iter().flat_map(|w| table_names(w)).map(|(_, name)| name).collect();
        assert_eq!(all.iter().collect::<BTreeSet<_>>().len(), all.len(), "{all:?}");
        assert!(all.contains(&"tp_light_account".to_owned()) && !all.iter().any(|name| name.starts_with("data_")));
    }
}
