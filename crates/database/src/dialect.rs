//! How a database writes SQL, as data: `[dialect]` of `postgres.toml`, `mysql.toml`, `oracle.toml`, `sqlite.toml` and `duckdb.toml`, and
//! what is written by it: names, tables, statements and queries. `data_set.rs` loads rows by it, `procedure.rs` writes procedures.

use std::collections::BTreeMap;

use loadline_workload::{ColumnDef, Fill, IndexAtom, LogicalType, Piece, Scope, Table, Template, limit, swapped};
use serde::Deserialize;

use crate::descriptor::fill;
use crate::error::TargetError;
use crate::loading::table_stem;
use crate::work::Work;

/// Beginning of the comments that mark objects as loadline's.
pub(crate) const MARK: &str = "made by loadline";
pub(crate) fn mark() -> String {
    format!("{MARK} {}; loadline clean removes it", env!("CARGO_PKG_VERSION"))
}

/// Longest binary string of the type `short-bytes`.
const SHORT_BYTES: i64 = 8000;

/// The words of a database. `{name}` is the full name of a table, `{plain}` that without schema and quotes, `{column}`, `{key}` and
/// `{index}` are names in quotes.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct Dialect {
    quote: String,
    capitals: bool,
    /// The schema of loadline's objects; empty: that of the user.
    schema: String,
    prefix: String,
    /// Name of the index on `{column}` of the table `{stem}`.
    index_name: String,
    drop_index: String,
    /// Variable number `{n}` of a client's statement.
    pub(crate) placeholder: String,
    /// The first `{rows}` rows of a query, also after `{after}` others; empty: [`limit`].
    first_rows: Vec<String>,
    /// See [`Piece::Renew`]: what becomes of each column; empty: [`swapped`].
    renewed: String,
    /// Whether INSERT takes one row of values: several are an INSERT ALL.
    insert_all: bool,
    /// Between statements, and after the last of several.
    separator: String,
    end: String,
    /// Types of columns by their logical type; `short-bytes` are binary strings of up to [`SHORT_BYTES`].
    types: BTreeMap<String, String>,
    create: Create,
    pub(crate) load: Load,
    pub(crate) language: Language,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
struct Create {
    /// The statement, with its `{lines}` and `{options}`.
    table: String,
    /// The line of a column of this `{type}`, and `key` behind that of the primary key.
    column: String,
    key: String,
    between: String,
    /// Lines of the primary key and of an index, if they have their own.
    key_line: String,
    index_line: String,
    /// Options of tables that are updated in place, of the data set, and of others.
    in_place: String,
    data_set: String,
    options: String,
    /// Further statements; one with `{bytes}` stands for one for each column of bytes.
    further: Vec<String>,
    index: String,
    /// Keys and indexes that a table which is loaded as a whole gets after that; all indexes may be one statement.
    later_key: String,
    later_index: String,
    later_indexes: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct Load {
    /// Whether statements that belong together are sent as one message.
    pub(crate) one_message: bool,
    pub(crate) transactions: bool,
    /// The query of tables in loadline's schema or with its prefix, and their comments if those say whose they are.
    pub(crate) tables: String,
    /// Removes a table if it exists, whosever it is; empty: a table that is not loadline's is refused.
    pub(crate) drop_existing: String,
    pub(crate) drop: String,
    pub(crate) empty: String,
    pub(crate) record: Vec<String>,
    pub(crate) hex: String,
    /// The query of the numbers of batches (`{key}` divided by `{size}`) and of their rows.
    pub(crate) batches: String,
    /// The query of the number of indexes of a table; empty: all are made with it.
    pub(crate) keys: String,
    pub(crate) counts_primary_key: bool,
    /// Suffixes of rows that jobs own, and of those of a whole table: statements, `{later}` keys and indexes, and `{complete}`, which
    /// never runs if an earlier one failed. With `{bytes}` as in [`Create::further`].
    pub(crate) finish: Vec<String>,
    pub(crate) finish_whole: Vec<String>,
    /// Statements, the last of them the query of a table's size, bytes.
    pub(crate) size: Vec<String>,
    /// Queries of the size of all of loadline's tables and of what is unused in them, by column id: the first that has an answer counts.
    /// Then why there is none.
    pub(crate) wear: BTreeMap<String, Vec<String>>,
    pub(crate) no_wear: BTreeMap<String, String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct Language {
    pub(crate) number: String,
    pub(crate) bytes: String,
    pub(crate) declare: String,
    pub(crate) assign: String,
    /// The sequence number of the current transaction before it is taken (−1 for the first) and after.
    pub(crate) sequence: [String; 2],
    /// Number of the transaction as a function of the loop's own counter, for programs that take one number per transaction, before all else.
    pub(crate) counter: Option<String>,
    /// Parameters of a job: see [`loadline_workload::JobStart`].
    pub(crate) first_key: String,
    pub(crate) new_key: String,
    pub(crate) first_draw: String,
    /// `{bytes}` bytes of the pool at the offset of [`loadline_workload::payload_offset`], which is below `{offsets}`.
    pub(crate) payload: String,
    pub(crate) modulo: String,
    /// The arithmetic of [`loadline_workload::draw`] as a function; empty: it is written out.
    pub(crate) draw: String,
    /// In place of SELECT at the beginning of a query, if another word must be there.
    pub(crate) select: String,
    /// Executes query number `{number}` and fetches all rows.
    pub(crate) read: String,
    /// Fails the transaction if a query or another statement, called `{place}`, did not touch `{rows}` rows.
    pub(crate) check_read: String,
    pub(crate) check: String,
    /// A statement that creates or drops an object, as a literal; empty: it is a statement like others.
    pub(crate) command: String,
    /// Before and after a block that runs `{times}` times, with `{depth}` open loops, this one included.
    pub(crate) repeat: String,
    pub(crate) end_repeat: String,
    /// Before a block that runs while `{condition}` holds; after it is [`Language::end_repeat`].
    pub(crate) repeat_while: String,
    pub(crate) nothing: String,
    pub(crate) else_if: String,
    /// Texts and words of `kernels.toml`; empty: it computes nothing.
    pub(crate) kernels: [String; 2],
    /// The declaration of the recursive function in a block; empty: it is one of loadline's objects.
    pub(crate) fibonacci: String,
}

impl Dialect {
    /// A name in quotes, safe whatever it contains.
    pub(crate) fn quoted(&self, name: &str) -> String {
        let name = name.replace(&self.quote, &self.quote.repeat(2));
        format!("{0}{1}{0}", self.quote, self.cased(name))
    }

    fn cased(&self, name: String) -> String {
        if self.capitals { name.to_uppercase() } else { name }
    }

    /// Name of loadline's table `stem` as the catalogue has it.
    pub(crate) fn plain_name(&self, stem: &str) -> String {
        self.cased(format!("{}{stem}", self.prefix))
    }

    /// Full name of the object with this name in the catalogue.
    pub(crate) fn qualified(&self, name: &str) -> String {
        let name = self.quoted(name);
        if self.schema.is_empty() { name } else { format!("{}.{name}", self.quoted(&self.schema)) }
    }

    pub(crate) fn full_name(&self, stem: &str) -> String {
        self.qualified(&self.plain_name(stem))
    }

    /// Full name of a table of the workload, or of an index ([`IndexAtom`]).
    pub(crate) fn table_name(&self, work: &Work, table: &str) -> String {
        let Some(index) = IndexAtom::parse(table) else { return self.full_name(&table_stem(work, table)) };
        let name = self.index_name(work, index.table, index.column);
        if index.new {
            return name;
        }
        fill(&self.drop_index, &[("index", &name), ("table", &self.table_name(work, index.table))])
    }

    fn index_name(&self, work: &Work, table: &str, column: &str) -> String {
        self.quoted(&fill(&self.index_name, &[("stem", &table_stem(work, table)), ("column", column)]))
    }

    /// `text` for `table`; one with `{bytes}` for each column of bytes.
    pub(crate) fn for_table(&self, text: &str, work: &Work, table: &Table) -> Vec<String> {
        let (name, plain) = (self.table_name(work, &table.name), self.plain_name(&table_stem(work, &table.name)));
        let mark = mark();
        let parts = [("name", name.as_str()), ("plain", &plain), ("mark", &mark)];
        if !text.contains("{bytes}") {
            return vec![fill(text, &parts)];
        }
        let columns = table.columns.iter().filter(|c| c.logical == LogicalType::Bytes);
        let quoted = columns.map(|c| self.quoted(&c.name));
        quoted.map(|bytes| fill(text, &[&parts[..], &[("bytes", bytes.as_str())]].concat())).collect()
    }

    fn index(&self, text: &str, work: &Work, table: &Table, column: &str) -> String {
        let (name, index) = (self.table_name(work, &table.name), self.index_name(work, &table.name, column));
        fill(text, &[("name", &name), ("index", &index), ("column", &self.quoted(column))])
    }

    fn column_type(&self, work: &Work, column: &ColumnDef) -> String {
        let is_bytes = column.logical == LogicalType::Bytes;
        let longest = match &column.fill {
            Fill::Payload(size) | Fill::FirstHalf(size) | Fill::SecondHalf(size) if is_bytes => {
                Some(work.workload.params.iter().find(|p| p.name == *size).map_or(SHORT_BYTES, |p| p.max))
            }
            Fill::PayloadOf(bytes) if is_bytes => Some(i64::from(*bytes)),
            _ if is_bytes => None,
            _ => Some(column.value_bytes(&work.params).max(255) as i64),
        };
        let kind = format!("{:?}", column.logical).to_lowercase();
        let is_short = is_bytes && longest.is_some_and(|bytes| bytes <= SHORT_BYTES);
        let short = if is_short { self.types.get("short-bytes") } else { None };
        let text = short.or_else(|| self.types.get(&kind)).map_or("", String::as_str);
        let longest = longest.unwrap_or(0).to_string();
        fill(text, &[("longest", &longest), ("column", &self.quoted(&column.name))])
    }

    /// The statements that create `table`. One that is loaded as a whole gets the rest from [`Dialect::later`].
    pub(crate) fn create(&self, work: &Work, table: &Table) -> Vec<String> {
        let Create { column, key, between, key_line, index_line, later_key, later_index, .. } = &self.create;
        let (name, stem) = (self.table_name(work, &table.name), table_stem(work, &table.name));
        let primary = if table.is_whole() && !later_key.is_empty() { None } else { table.primary_key() };
        let line = |of: &ColumnDef| {
            let key = if primary == Some(of.name.as_str()) { key.as_str() } else { "" };
            fill(column, &[("column", &self.quoted(&of.name)), ("type", &self.column_type(work, of)), ("key", key)])
        };
        let mut lines: Vec<String> = table.columns.iter().map(line).collect();
        if !key_line.is_empty()
            && let Some(key) = primary
        {
            let constraint = self.quoted(&self.plain_name(&format!("{stem}_pk")));
            lines.push(fill(key_line, &[("key", &self.quoted(key)), ("constraint", &constraint)]));
        }
        let at_once: &[String] = if table.is_whole() && !later_index.is_empty() { &[] } else { &table.indexes };
        if !index_line.is_empty() {
            lines.extend(at_once.iter().map(|column| self.index(index_line, work, table, column)));
        }
        let options = match (table.updated_in_place, table.scope == Scope::DataSet) {
            (true, _) => &self.create.in_place,
            (_, true) => &self.create.data_set,
            _ => &self.create.options,
        };
        let parts = [("name", name.as_str()), ("lines", &lines.join(between)), ("options", options)];
        let mut statements = vec![fill(&self.create.table, &parts)];
        statements.extend(self.create.further.iter().flat_map(|text| self.for_table(text, work, table)));
        if !self.create.index.is_empty() {
            statements.extend(at_once.iter().map(|column| self.index(&self.create.index, work, table, column)));
        }
        statements
    }

    /// The statements that add keys and indexes to a table that was loaded as a whole.
    pub(crate) fn later(&self, work: &Work, table: &Table) -> Vec<String> {
        let Create { later_key, later_index, later_indexes, .. } = &self.create;
        if !table.is_whole() {
            return Vec::new();
        }
        let name = self.table_name(work, &table.name);
        let key = if later_key.is_empty() { None } else { table.primary_key() };
        let key = key.map(|key| fill(later_key, &[("name", &name), ("key", &self.quoted(key))]));
        let mut statements: Vec<String> = key.into_iter().collect();
        if !later_index.is_empty() && !table.indexes.is_empty() {
            let indexes = table.indexes.iter().map(|column| self.index(later_index, work, table, column));
            let indexes: Vec<String> = indexes.collect();
            if later_indexes.is_empty() {
                statements.extend(indexes);
            } else {
                statements.push(fill(later_indexes, &[("name", &name), ("indexes", &indexes.join(", "))]));
            }
        }
        statements
    }

    pub(crate) fn text(&self, statements: &[String]) -> String {
        let end = if statements.is_empty() { "" } else { &self.end };
        statements.join(&self.separator) + end
    }

    /// A statement of the program with placeholders in the order of its variables, as a client sends it.
    pub(crate) fn statement(&self, work: &Work, template: &Template) -> String {
        let mut n = 0;
        self.rendered(work, template, |_| {
            n += 1;
            fill(&self.placeholder, &[("n", &n.to_string())])
        })
    }

    /// A statement of the program with `variable` in place of its variables.
    pub(crate) fn rendered(&self, work: &Work, template: &Template, variable: impl FnMut(&str) -> String) -> String {
        let several = if self.insert_all { insert_all(template) } else { None };
        several.as_ref().unwrap_or(template).render_with(
            |table| self.table_name(work, table),
            variable,
            |rows, after| match self.first_rows.get(usize::from(after > 0)) {
                Some(text) => fill(text, &[("rows", &rows.to_string()), ("after", &after.to_string())]),
                None => limit(rows, after),
            },
            |columns| match self.renewed.as_str() {
                "" => swapped(columns),
                text => columns.each_ref().map(|column| fill(text, &[("column", column)])).join(", "),
            },
        )
    }

    pub(crate) fn query(&self, work: &Work, query: &str) -> Result<String, TargetError> {
        work.query(query, |table| self.table_name(work, table))
    }
}

/// An INSERT of several rows as INSERT ALL; `None` for all other statements. The values of such an INSERT are variables only.
fn insert_all(template: &Template) -> Option<Template> {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_cannot_end_its_quotes() {
        for (quote, name, quoted) in [("\"", "a\"b", "\"a\"\"b\""), ("`", "a`b", "`a``b`")] {
            let dialect = Dialect { quote: quote.to_owned(), ..Dialect::default() };
            assert_eq!(dialect.quoted(name), quoted);
        }
    }
}
