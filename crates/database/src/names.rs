//! What a workload's own tables are called in a database, before the target's own prefix.

use loadline_workload::{Scope, Workload};

/// Name of `table`, which is `workload`'s own: its code goes before it.
pub(crate) fn own(workload: &Workload, table: &str) -> String {
    format!("{}_{table}", workload.code.to_lowercase().replace('-', "_"))
}

/// The tables that `workload` makes for itself, each with its name in a database: no two workloads of a plan may
/// have the same.
#[must_use]
pub fn table_names(workload: &Workload) -> Vec<(&'static str, String)> {
    let tables = workload.tables.iter().filter(|t| t.scope == Scope::Workload);
    tables.map(|t| (t.name, own(workload, t.name))).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use loadline_workload::CATALOGUE;

    use super::table_names;

    #[test]
    fn no_two_workloads_of_the_catalogue_share_a_table() {
        let mut seen = BTreeMap::new();
        for w in CATALOGUE {
            for (table, name) in table_names(w) {
                let before = seen.insert(name.clone(), w.code);
                assert!(before.is_none(), "{name}: {table} of {} and of {before:?}", w.code);
            }
        }
        assert!(
            seen.contains_key("tp_light_account") && !seen.keys().any(|name| name.starts_with("data_")),
            "{seen:?}"
        );
    }
}
