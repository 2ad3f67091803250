//! Names, literals and parameters of PostgreSQL's SQL, and settings of parallel queries; `dialect.rs` writes tables and statements.

use loadline_workload::{Table, Template, VarType};

use super::knowledge::KNOWLEDGE;
use super::protocol::{BYTEA, INT8};
use crate::work::Work;

pub(super) const SCHEMA: &str = "loadline";

/// Fill factor of tables whose rows are updated in place, %.
pub(super) const IN_PLACE_PCT: u64 = 45;

pub(super) fn literal(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

/// Beginning of loadline's own queries, by which they are left out of the statements. (The server cuts off comments before one.)
pub(super) const OWN: &str = "SELECT /* loadline */";

/// `sql` with that beginning.
pub(super) fn own(sql: &str) -> String {
    sql.replacen("SELECT", OWN, 1)
}

pub(super) fn parameter_types(work: &Work, template: &Template) -> Vec<u32> {
    let vars = work.program.vars();
    let kind = |name: &str| vars.iter().find(|(v, _)| *v == name).map_or(VarType::Int, |(_, g)| g.var_type());
    template
        .vars()
        .map(|name| match kind(name) {
            VarType::Int => INT8,
            VarType::Bytes => BYTEA,
        })
        .collect()
}

/// Settings of a job's session for queries with `workers`, the session itself included. With more than one, the planner's costs of
/// parallel plans are 0, like a hint; [`parallel_tables`] sets the number.
pub(super) fn parallel_settings(workers: u32) -> Vec<(&'static str, String)> {
    let mut settings = vec![
        ("max_parallel_workers_per_gather", workers.saturating_sub(1).to_string()),
        // The session itself builds indexes, without workers.
        ("max_parallel_maintenance_workers", "0".to_owned()),
    ];
    if workers > 1 {
        let zero = ["min_parallel_table_scan_size", "parallel_setup_cost", "parallel_tuple_cost"];
        settings.extend(zero.map(|name| (name, "0".to_owned())));
        settings.push(("parallel_leader_participation", "on".to_owned()));
    }
    settings
}

/// Statements that set the planner's number of workers for each of the workload's tables; otherwise it depends on the table's size. The
/// session's setting stays the limit, so other workloads on the same tables run without workers.
pub(super) fn parallel_tables(work: &Work) -> Vec<String> {
    let Some(workers) = work.parallel_workers().map(|n| n.saturating_sub(1)) else { return Vec::new() };
    let name = |table: &Table| KNOWLEDGE.dialect.table_name(work, &table.name);
    let set = |table: &Table| format!("ALTER TABLE {} SET (parallel_workers = {workers});", name(table));
    work.workload.tables.iter().map(set).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fill_factor_is_the_reported_one() {
        let work = Work::from_catalogue("LGWR-LAT1", &[]).unwrap();
        let sql = KNOWLEDGE.dialect.create(&work, &work.workload.tables[0]).concat();
        assert!(sql.contains(&format!("fillfactor = {IN_PLACE_PCT},")), "{sql}");
    }

    #[test]
    fn texts_are_quoted() {
        assert_eq!(literal("it's"), "'it''s'");
    }

    #[test]
    fn one_process_has_no_workers_and_no_hints() {
        assert_eq!(parallel_settings(1)[0], ("max_parallel_workers_per_gather", "0".to_owned()));
        let four = parallel_settings(4);
        assert!(four.contains(&("max_parallel_workers_per_gather", "3".to_owned())) && four.len() == 6);
        assert!(four.contains(&("parallel_leader_participation", "on".to_owned())));
    }
}
