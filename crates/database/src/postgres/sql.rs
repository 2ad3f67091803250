//! Names, literals and parameters of PostgreSQL's SQL; `dialect.rs` writes tables and statements.

use loadline_workload::{Template, VarType};

use super::protocol::{BYTEA, INT8};
use crate::work::Work;

/// The schema that holds everything loadline makes.
pub(super) const SCHEMA: &str = "loadline";

/// Fill factor of tables whose rows are updated in place, %.
pub(super) const IN_PLACE_PCT: u64 = 45;

/// Quotes a text as an SQL literal.
pub(super) fn literal(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

/// Beginning of loadline's own queries while something is watched: they are left out of the statements. (The server cuts off
/// comments before a statement.)
pub(super) const OWN: &str = "SELECT /* loadline */";

/// `sql` with that beginning.
pub(super) fn own(sql: &str) -> String {
    sql.replacen("SELECT", OWN, 1)
}

/// Types of a statement's parameters.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::postgres::knowledge::KNOWLEDGE;

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
}
