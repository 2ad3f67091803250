//! Portable SQL with placeholders: `{table}` is a table of the workload, `:name` a variable, `{first 10}` at the end of a
//! query limits it to ten rows, `{first 10 after 500}` to the ten after the first 500, `{renew a b}` in the SET of an UPDATE
//! gives two columns of bytes new content without new bytes.

use thiserror::Error;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Template {
    pub pieces: Vec<Piece>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Piece {
    /// SQL that is the same for every database.
    Sql(String),
    Table(String),
    Var(String),
    /// A limit of a query's rows.
    First {
        rows: u64,
        /// Rows to skip before them.
        after: u64,
    },
    /// An index to create or drop, because databases name it differently: `{new index t.c}` is the name in CREATE INDEX,
    /// `{old index t.c}` everything that follows DROP INDEX.
    Index(String),
    /// Assignments that give two columns of bytes new content, together of the same length, that needs neither a value from
    /// the client nor another table: where a database can, the columns change places.
    Renew([String; 2]),
}

/// Parses `first 10` and `first 10 after 500`; `None` for a table's name.
fn first(text: &str) -> Option<Piece> {
    let mut words = text.split_whitespace();
    let number = |word: Option<&str>| word.and_then(|n| n.parse::<u64>().ok());
    match (words.next(), number(words.next()), words.next(), number(words.next()), words.next()) {
        (Some("first"), Some(rows), None, None, None) => Some(Piece::First { rows, after: 0 }),
        (Some("first"), Some(rows), Some("after"), Some(after), None) => Some(Piece::First { rows, after }),
        _ => None,
    }
}

/// Parses `renew a b`; `None` for a table's name.
fn renew(text: &str) -> Option<Piece> {
    let (a, b) = text.strip_prefix("renew ")?.split_once(' ')?;
    Some(Piece::Renew([a.to_owned(), b.to_owned()]))
}

pub fn limit(rows: u64, after: u64) -> String {
    if after == 0 { format!("LIMIT {rows}") } else { format!("LIMIT {rows} OFFSET {after}") }
}

/// [`Piece::Renew`] in most databases: an assignment sees the values from before the statement.
pub fn swapped([a, b]: &[String; 2]) -> String {
    format!("{a} = {b}, {b} = {a}")
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IndexAtom<'a> {
    /// Whether it is created, not dropped.
    pub new: bool,
    pub table: &'a str,
    pub column: &'a str,
}

impl<'a> IndexAtom<'a> {
    /// Parses the text in the braces; `None` for a table's name.
    pub fn parse(text: &'a str) -> Option<IndexAtom<'a>> {
        let (new, rest) = match (text.strip_prefix("new index "), text.strip_prefix("old index ")) {
            (Some(rest), _) => (true, rest),
            (_, Some(rest)) => (false, rest),
            _ => return None,
        };
        let (table, column) = rest.split_once('.')?;
        Some(IndexAtom { new, table, column })
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum TemplateError {
    #[error("'{0}' has an opening brace without a closing one")]
    Unclosed(String),
    #[error("'{0}' has a quote that is not closed")]
    Quote(String),
}

impl Template {
    /// Parses `text`. Text in single quotes is copied; `::` is not a variable.
    pub fn parse(text: &str) -> Result<Template, TemplateError> {
        let mut pieces = Vec::new();
        let mut sql = String::new();
        let mut rest = text;
        while let Some(c) = rest.chars().next() {
            let after = &rest[c.len_utf8()..];
            let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
            match c {
                '\'' => {
                    let end = after.find('\'').ok_or_else(|| TemplateError::Quote(text.to_owned()))?;
                    sql.push_str(&rest[..end + 2]);
                    rest = &after[end + 1..];
                }
                '{' => {
                    let end = after.find('}').ok_or_else(|| TemplateError::Unclosed(text.to_owned()))?;
                    flush(&mut sql, &mut pieces);
                    let name = &after[..end];
                    let index = || IndexAtom::parse(name).map(|_| Piece::Index(name.to_owned()));
                    let atom = first(name).or_else(|| renew(name)).or_else(index);
                    pieces.push(atom.unwrap_or_else(|| Piece::Table(name.to_owned())));
                    rest = &after[end + 1..];
                }
                ':' if after.starts_with(':') => {
                    sql.push_str("::");
                    rest = &after[1..];
                }
                ':' if after.starts_with(|c: char| c.is_ascii_alphabetic()) => {
                    let end = after.find(|c| !is_name(c)).unwrap_or(after.len());
                    flush(&mut sql, &mut pieces);
                    pieces.push(Piece::Var(after[..end].to_owned()));
                    rest = &after[end..];
                }
                _ => {
                    sql.push(c);
                    rest = after;
                }
            }
        }
        flush(&mut sql, &mut pieces);
        Ok(Template { pieces })
    }

    /// Names of the variables, in order and with repetitions.
    pub fn vars(&self) -> impl Iterator<Item = &str> {
        self.pieces.iter().filter_map(|p| if let Piece::Var(v) = p { Some(v.as_str()) } else { None })
    }

    /// The statement with tables and variables written by the caller; `table` also writes indexes (see
    /// [`IndexAtom::parse`]).
    pub fn render(&self, table: impl FnMut(&str) -> String, var: impl FnMut(&str) -> String) -> String {
        self.render_with(table, var, limit, swapped)
    }

    /// Renders with other words than [`limit`] and [`swapped`].
    pub fn render_with(
        &self,
        mut table: impl FnMut(&str) -> String,
        mut var: impl FnMut(&str) -> String,
        mut first: impl FnMut(u64, u64) -> String,
        mut renew: impl FnMut(&[String; 2]) -> String,
    ) -> String {
        self.pieces
            .iter()
            .map(|piece| match piece {
                Piece::Sql(sql) => sql.clone(),
                Piece::Table(name) | Piece::Index(name) => table(name),
                Piece::Var(name) => var(name),
                Piece::First { rows, after } => first(*rows, *after),
                Piece::Renew(columns) => renew(columns),
            })
            .collect()
    }
}

fn flush(sql: &mut String, pieces: &mut Vec<Piece>) {
    if !sql.is_empty() {
        pieces.push(Piece::Sql(std::mem::take(sql)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn texts_are_taken_apart_and_rendered_with_their_atoms() {
        let variables = "UPDATE {redo} SET n = n + 1, t = ':no {no}', p = :payload WHERE id = :id::bigint";
        assert_eq!(Template::parse(variables).unwrap().vars().collect::<Vec<_>>(), ["payload", "id"]);
        for (text, sql) in [
            (variables, "UPDATE <redo> SET n = n + 1, t = ':no {no}', p = $payload WHERE id = $id::bigint"),
            (
                "SELECT a FROM {first} ORDER BY a {first 10 after 500}",
                "SELECT a FROM <first> ORDER BY a LIMIT 10 OFFSET 500",
            ),
            ("UPDATE {renew} SET {renew p q}", "UPDATE <renew> SET p = q, q = p"),
        ] {
            let t = Template::parse(text).unwrap();
            assert_eq!(t.render(|name| format!("<{name}>"), |var| format!("${var}")), sql);
        }
        let other = |rows, after| format!("OFFSET {after} ROWS FETCH NEXT {rows} ROWS ONLY");
        let turn = |[a, b]: &[String; 2]| format!("turn({a}, {b})");
        let t = Template::parse("{first 3} {first x} {first 3 after} {renew p q}").unwrap();
        assert_eq!(
            t.render_with(str::to_owned, str::to_owned, other, turn),
            "OFFSET 0 ROWS FETCH NEXT 3 ROWS ONLY first x first 3 after turn(p, q)"
        );
    }

    #[test]
    fn says_what_is_not_closed() {
        assert!(matches!(Template::parse("SELECT {redo"), Err(TemplateError::Unclosed(_))));
        assert!(matches!(Template::parse("SELECT 'x"), Err(TemplateError::Quote(_))));
    }

    #[test]
    fn indexes_are_told_from_tables() {
        let t = Template::parse("CREATE INDEX {new index load.k} ON {load} (k)").unwrap();
        assert_eq!(t.pieces[1], Piece::Index("new index load.k".into()));
        assert_eq!(t.pieces[3], Piece::Table("load".into()));
        let atom = IndexAtom::parse("old index load.k").unwrap();
        assert_eq!((atom.new, atom.table, atom.column), (false, "load", "k"));
        assert_eq!(IndexAtom::parse("load"), None);
    }

    proptest! {
        #[test]
        fn never_panics(text in "\\PC{0,60}") {
            let _ = Template::parse(&text);
        }
    }
}
