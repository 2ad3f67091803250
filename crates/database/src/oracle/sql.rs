//! A workload in Oracle's SQL: tables, statements, commits, evidence.

use loadline_workload::{Commit, Generator, IndexAtom, LogicalType, Piece, Step, Table, Template, swapped};

use crate::error::TargetError;
use crate::loading::table_stem;
use crate::work::Work;

/// Prefix of the names of loadline's tables, which are in the user's schema.
pub(super) const PREFIX: &str = "LOADLINE_";
/// Longest RAW that a column holds whatever MAX_STRING_SIZE is (Database Limits).
pub(super) const MAX_RAW: u32 = 2000;

/// A quoted name. Identifiers cannot contain double quotes.
pub(super) fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', ""))
}

/// Name of a table of the workload: `LOADLINE_LGWR_LAT1_REDO`. In capitals, which unquoted
/// names of portable SQL mean.
pub(super) fn table_name(work: &Work, table: &str) -> String {
    if let Some(index) = IndexAtom::parse(table) {
        // Named like the indexes of `create_table`; DROP INDEX takes the name only.
        return format!("{PREFIX}{}_{}", table_stem(work, index.table), index.column).to_uppercase();
    }
    format!("{PREFIX}{}", table_stem(work, table)).to_uppercase()
}

/// The statements that create `table`: the second marks it as loadline's.
pub(super) fn create_table(work: &Work, table: &Table) -> Vec<String> {
    let name = table_name(work, &table.name);
    let mut lines: Vec<String> = table
        .columns
        .iter()
        .map(|column| {
            let kind = match column.logical {
                LogicalType::Int => "NUMBER(19)".to_owned(),
                LogicalType::Bytes => format!("RAW({MAX_RAW})"),
                LogicalType::Text => format!("VARCHAR2({})", column.value_bytes(&work.params).max(255)),
                LogicalType::Timestamp => "TIMESTAMP(0)".to_owned(),
                LogicalType::Numeric => "NUMBER(18,2)".to_owned(),
                LogicalType::Boolean => "NUMBER(1)".to_owned(),
                LogicalType::Json => {
                    let name = quoted(&column.name.to_uppercase());
                    format!("VARCHAR2(4000) CHECK ({name} IS JSON)")
                }
            };
            format!("  {} {kind} NOT NULL", quoted(&column.name.to_uppercase()))
        })
        .collect();
    if let Some(key) = table.primary_key() {
        let key = quoted(&key.to_uppercase());
        lines.push(format!("  CONSTRAINT {} PRIMARY KEY ({key})", quoted(&format!("{name}_PK"))));
    }
    // INITRANS: the rows of neighbouring jobs share a block, which then needs entries for both transactions.
    // PCTFREE: rows may grow at their first change; later changes keep their length.
    let storage = if table.updated_in_place { " PCTFREE 40 INITRANS 8" } else { " INITRANS 8" };
    let mut statements = vec![
        format!("CREATE TABLE {} (\n{}\n){storage} LOGGING", quoted(&name), lines.join(",\n")),
        format!("COMMENT ON TABLE {} IS '{}'", quoted(&name), mark()),
    ];
    statements.extend(table.indexes.iter().map(|column| {
        let index = quoted(&format!("{name}_{}", column.to_uppercase()));
        format!("CREATE INDEX {index} ON {} ({})", quoted(&name), quoted(&column.to_uppercase()))
    }));
    statements
}

/// Beginning of the comment that marks a table as loadline's.
pub(super) const MARK: &str = "made by loadline";

/// The comment on a table.
pub(super) fn mark() -> String {
    format!("{MARK} {}; loadline clean removes it", env!("CARGO_PKG_VERSION"))
}

/// An INSERT of several rows as INSERT ALL, because VALUES takes one row before 23ai; `None` for all other
/// statements. The values of such an INSERT are variables only.
pub(super) fn insert_all(template: &Template) -> Option<Template> {
    let [Piece::Sql(insert), Piece::Table(table), Piece::Sql(columns), rows @ ..] = template.pieces.as_slice() else {
        return None;
    };
    let between = |p: &Piece| matches!(p, Piece::Sql(sql) if sql == "), (");
    if insert != "INSERT INTO " || !columns.ends_with(" VALUES (") || !rows.iter().any(between) {
        return None;
    }
    let into = |first: bool| {
        let begin = if first { "INSERT ALL INTO " } else { ") INTO " };
        [Piece::Sql(begin.to_owned()), Piece::Table(table.clone()), Piece::Sql(columns.clone())]
    };
    let mut pieces: Vec<Piece> = into(true).into();
    for piece in rows {
        match piece {
            p if between(p) => pieces.extend(into(false)),
            Piece::Sql(end) if end == ")" => pieces.push(Piece::Sql(") SELECT 1 FROM DUAL".to_owned())),
            other => pieces.push(other.clone()),
        }
    }
    Some(Template { pieces })
}

/// A statement of the program with `:1`, `:2` … in the order of its variables, as a client sends it.
pub(super) fn statement(work: &Work, template: &Template) -> String {
    let (mut n, several) = (0, insert_all(template));
    several.as_ref().unwrap_or(template).render_with(
        |table| quoted(&table_name(work, table)),
        |_| {
            n += 1;
            format!(":{n}")
        },
        first_rows,
        swapped,
    )
}

/// The first rows of a query (SQL Language Reference, `SELECT`, row_limiting_clause).
pub(super) fn first_rows(rows: u64, after: u64) -> String {
    if after == 0 {
        return format!("FETCH FIRST {rows} ROWS ONLY");
    }
    format!("OFFSET {after} ROWS FETCH NEXT {rows} ROWS ONLY")
}

/// The commit (SQL Language Reference, `COMMIT`, write_clause).
pub(super) fn commit(commit: Commit) -> &'static str {
    match commit {
        Commit::Wait => "COMMIT WRITE WAIT IMMEDIATE",
        Commit::Nowait => "COMMIT WRITE NOWAIT BATCH",
    }
}

/// The first statements of a job's session (SQL Language Reference, `ALTER SESSION`): no result cache, and the
/// degree of parallelism, whatever the defaults of instance and tables.
pub(super) fn session_settings(work: &Work) -> [String; 2] {
    let degree = match work.parallel_workers() {
        Some(n) if n > 1 => format!("ALTER SESSION FORCE PARALLEL QUERY PARALLEL {n}"),
        _ => "ALTER SESSION DISABLE PARALLEL QUERY".to_owned(),
    };
    ["ALTER SESSION SET RESULT_CACHE_MODE = MANUAL".to_owned(), degree]
}

/// A query about the workload's tables.
pub(super) fn query(work: &Work, query: &str) -> Result<String, TargetError> {
    work.query(query, |table| quoted(&table_name(work, table)))
}

/// Longest payload that the program binds, bytes.
pub(super) fn longest_payload(steps: &[Step]) -> u32 {
    steps
        .iter()
        .map(|step| match step {
            Step::Bind { generator: Generator::Payload { bytes }, .. } => *bytes,
            Step::Repeat { body, .. } => longest_payload(body),
            Step::Choose { arms, .. } => arms.iter().map(|arm| longest_payload(&arm.body)).max().unwrap_or(0),
            _ => 0,
        })
        .max()
        .unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::sync::Arc;

    use loadline_workload::CATALOGUE;

    use super::*;

    #[test]
    fn every_payload_fits_a_column_and_every_name_fits() {
        for workload in CATALOGUE.iter() {
            let most: BTreeMap<_, _> = workload.params.iter().map(|p| (p.name.to_owned(), p.max)).collect();
            let work = Work::new(Arc::clone(workload), workload.params(&most).unwrap(), 1, 0.0);
            assert!(longest_payload(&work.program.body) <= MAX_RAW, "{}", workload.code);
            for table in &workload.tables {
                // 128 bytes from 12.2 on.
                assert!(table_name(&work, &table.name).len() + "_PK".len() <= 128);
            }
        }
    }
}
