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
    use std::collections::BTreeMap;

    use loadline_workload::CATALOGUE;

    use super::table_names;

    #[test]
    fn no_two_workloads_of_the_catalogue_share_a_table() {
        let mut seen = BTreeMap::new();
        for w in CATALOGUE.iter() {
            for (table, name) in table_names(w) {
                let before = seen.insert(name.clone(), &w.code);
                assert!(before.is_none(), "{name}: {table} of {} and of {before:?}", w.code);
            }
        }
        assert!(
            seen.contains_key("tp_light_account") && !seen.keys().any(|name| name.starts_with("data_")),
            "{seen:?}"
        );
    }
}
