//! Statistics views of the test pages as data: `[[statistics]]` in `postgres.toml`, `mysql.toml` and `oracle.toml`.

use std::collections::BTreeMap;

use loadline_model::activity::{Kind, Topic, Unit, Value, View, ViewColumn};
use serde::Deserialize;

use crate::descriptor::{Release, Versioned, Versions};
use crate::error::TargetError;
use crate::statement::{DoubleQuotes, without_secrets};

/// Longest text of a cell, characters: statements can have megabytes.
const LONGEST_TEXT: usize = 300;
/// Title of columns with statements, which are shown without secrets.
const STATEMENT: &str = "statement";

/// Parts of titles and SQL, by the names that stand for them in braces. What a version does not have is empty.
pub(crate) type Fragments = BTreeMap<String, Versioned>;

/// A view as a file describes it. `N`: what it needs of the server, in words of the database's module.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct StatisticsView<N> {
    topic: Topic,
    title: String,
    #[serde(default)]
    versions: Versions,
    /// The column by which rows are sorted, from 0.
    order: Option<usize>,
    columns: Columns,
    /// The query, which returns one value for each column.
    #[serde(default)]
    sql: String,
    #[serde(default)]
    pub(crate) needs: N,
}

#[derive(Deserialize)]
#[serde(try_from = "Vec<String>")]
struct Columns(Vec<ViewColumn>);

impl TryFrom<Vec<String>> for Columns {
    type Error = String;

    fn try_from(texts: Vec<String>) -> Result<Columns, String> {
        let parsed = texts.iter().map(|text| {
            column(text).ok_or_else(|| {
                format!(
                    "'{text}' is no column: write its kind (key, count, bytes, ms, ms/N, text, number, bytes-now, ms-now) and title"
                )
            })
        });
        parsed.collect::<Result<_, _>>().map(Columns)
    }
}

/// A column, written as its kind and title: `count rows` grows, or `ms/2 time` with its mean by column 2; `text state`, `number held`
/// and `bytes-now behind` are as read last.
pub(crate) fn column(text: &str) -> Option<ViewColumn> {
    let (kind, title) = text.split_once(' ')?;
    let (kind, unit, per) = match kind {
        "key" => (Kind::Key, Unit::Text, None),
        "count" => (Kind::Counter, Unit::Count, None),
        "bytes" => (Kind::Counter, Unit::Bytes, None),
        "ms" => (Kind::Counter, Unit::Ms, None),
        "text" => (Kind::State, Unit::Text, None),
        "number" => (Kind::State, Unit::Count, None),
        "bytes-now" => (Kind::State, Unit::Bytes, None),
        "ms-now" => (Kind::State, Unit::Ms, None),
        _ => (Kind::Counter, Unit::Ms, Some(kind.strip_prefix("ms/")?.parse().ok()?)),
    };
    Some(ViewColumn { title: title.to_owned(), kind, unit, per })
}

impl<N> StatisticsView<N> {
    /// The view of this release, if it has it, with `parts` behind the fragments in place of their names in braces.
    pub(crate) fn at(&self, release: Release, fragments: &Fragments, parts: &[(&str, &str)]) -> Option<ViewQuery> {
        if !self.versions.has(release) {
            return None;
        }
        let fill = |text: &str, name: &str, part: &str| text.replace(&format!("{{{name}}}"), part);
        let filled = |text: &String| {
            let parts = parts.iter().copied();
            let fragments =
                fragments.iter().map(|(name, texts)| (name.as_str(), texts.at(release).unwrap_or_default()));
            fragments.chain(parts).fold(text.clone(), |text, (name, part)| fill(&text, name, part))
        };
        let empty = ViewQuery::new(self.topic, &filled(&self.title), self.columns.0.clone());
        Some(ViewQuery { sql: filled(&self.sql), empty: View { order: self.order, ..empty.empty } })
    }
}

/// A view without its rows, and the query that returns them.
pub(crate) struct ViewQuery {
    pub(crate) sql: String,
    pub(crate) empty: View,
}

impl ViewQuery {
    /// A view whose rows come from elsewhere.
    pub(crate) fn new(topic: Topic, title: &str, columns: Vec<ViewColumn>) -> ViewQuery {
        let empty = View {
            topic,
            title: title.to_owned(),
            columns,
            order: None,
            rows: Vec::new(),
            left_out: 0,
            reset: 0,
            epoch: None,
            absent: None,
        };
        ViewQuery { sql: String::new(), empty }
    }

    /// The view with `rows`, which the query returned. An error of the statement is why there are none.
    pub(crate) fn view(&self, rows: Result<Vec<Vec<Option<String>>>, TargetError>) -> Result<View, TargetError> {
        match rows {
            Ok(rows) => Ok(self.with(rows)),
            Err(TargetError::Server(why)) => Ok(self.absent(why.text)),
            Err(e) => Err(e),
        }
    }

    pub(crate) fn with(&self, rows: Vec<Vec<Option<String>>>) -> View {
        let row =
            |row: Vec<Option<String>>| row.into_iter().zip(&self.empty.columns).map(|(v, c)| cell(v, c)).collect();
        View { rows: rows.into_iter().map(row).collect(), ..self.empty.clone() }
    }

    /// The view without rows, and why.
    pub(crate) fn absent(&self, why: impl Into<String>) -> View {
        View { absent: Some(why.into()), ..self.empty.clone() }
    }

    /// Asserts that the query selects a value for each column, and that rows are sorted by what grows.
    #[cfg(test)]
    pub(crate) fn assert_whole(&self) {
        let View { title, order, columns, .. } = &self.empty;
        assert!(!self.sql.starts_with("SELECT ") || selected(&self.sql) == columns.len(), "{title}: {}", self.sql);
        assert!(order.is_none_or(|i| columns[i].kind == Kind::Counter), "{title}");
    }

    #[cfg(test)]
    pub(crate) fn described(&self) -> String {
        self.assert_whole();
        let View { topic, title, order, columns, .. } = &self.empty;
        format!("{topic:?} {title} {order:?} {columns:?}\n{}", self.sql)
    }
}

/// The number of expressions that a query selects.
#[cfg(test)]
pub(crate) fn selected(sql: &str) -> usize {
    let (mut depth, mut expressions) = (0, 1);
    for (at, c) in sql.char_indices() {
        match c {
            '(' => depth += 1,
            ')' => depth -= 1,
            ',' if depth == 0 => expressions += 1,
            ' ' if depth == 0 && sql[at..].starts_with(" FROM ") => break,
            _ => {}
        }
    }
    expressions
}

/// The views of all servers; those of several are named by `kind` and number.
pub(crate) fn of_servers(mut all: Vec<Vec<View>>, kind: &str) -> Vec<View> {
    if all.len() > 1 {
        for (views, number) in all.iter_mut().zip(1..) {
            views.iter_mut().for_each(|view| view.title.push_str(&format!(", {kind} {number}")));
        }
    }
    all.concat()
}

fn cell(value: Option<String>, column: &ViewColumn) -> Option<Value> {
    let value = value?;
    match column.unit {
        Unit::Text if column.title == STATEMENT => {
            Some(Value::Text(plain(&without_secrets(&value, DoubleQuotes::Name))))
        }
        Unit::Text => Some(Value::Text(plain(&value))),
        // What is no number is not shown as one.
        Unit::Count | Unit::Ms | Unit::Bytes => value.parse().ok().filter(|n: &f64| n.is_finite()).map(Value::Number),
    }
}

/// `text` on one line, shortened.
fn plain(text: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let mut out: String = line.chars().take(LONGEST_TEXT).collect();
    if out.len() < line.len() {
        out.push('…');
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::descriptor::Product;
    use crate::error::{Cause, Refusal};

    fn timed(columns: &str) -> ViewQuery {
        let text = format!(
            "topic = 'statements'\ntitle = 't{{new}}'\norder = 2\ncolumns = {columns}\nsql = 'SELECT {{new}}, {{of}}'"
        );
        let fragments = toml::from_str("new = [{ versions = '19-', text = ' new' }]").unwrap();
        let view = toml::from_str::<StatisticsView<()>>(&text).unwrap();
        view.at(Release { product: Product::Oracle, number: [19, 0, 0] }, &fragments, &[("of", "x")]).unwrap()
    }

    #[test]
    fn a_view_is_filled_and_a_mistake_is_named() {
        let query = timed("['key statement', 'count calls', 'ms/1 time']");
        assert_eq!((query.sql.as_str(), query.empty.title.as_str()), ("SELECT  new, x", "t new"));
        assert_eq!(selected("SELECT A, NVL(B, (SELECT C, D FROM E)), F FROM G, H"), 3);
        for wrong in ["'rows'", "'counts rows'", "'ms/x time'"] {
            let text = format!("topic = 'io'\ntitle = 't'\ncolumns = [{wrong}]");
            let e = toml::from_str::<StatisticsView<()>>(&text).err().unwrap().to_string();
            assert!(e.contains("line 3") && e.contains("is no column: write its kind (key, count"), "{e}");
        }
    }

    #[test]
    fn rows_become_texts_and_numbers() {
        let timed = timed("['key statement', 'count calls', 'ms/1 time']");
        let row = vec![Some("SELECT\n  1".to_owned()), Some("7".to_owned()), Some("none".to_owned())];
        let view = timed.view(Ok(vec![row])).unwrap();
        assert_eq!(view.rows, [[Some(Value::Text("SELECT …".into())), Some(Value::Number(7.0)), None]]);
        let refusal = Refusal { cause: Cause::Privilege, code: "42501".into(), text: "permission denied".into() };
        let refused = timed.view(Err(refusal.into())).unwrap();
        assert_eq!(refused.absent.as_deref(), Some("permission denied"));
        assert!(timed.view(Err(TargetError::Lost("gone".into()))).is_err());
    }

    #[test]
    fn only_statements_lose_their_literals_and_all_texts_are_short() {
        let text = |columns, text: &str| {
            let view = timed(columns).with(vec![vec![Some(text.to_owned())]]);
            view.key(&view.rows[0]).concat()
        };
        assert_eq!(text("['key statement']", "SELECT 'geheim'"), "SELECT '…'");
        assert_eq!(text("['key name']", "it's a password file"), "it's a password file");
        assert_eq!(text("['key name']", &"x".repeat(400)).chars().count(), LONGEST_TEXT + 1);
    }
}
