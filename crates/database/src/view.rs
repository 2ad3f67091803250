//! A statistics view of a database as data: its query, and what its columns are.

use loadline_model::activity::{Kind, Topic, Unit, Value, View, ViewColumn};

use crate::error::TargetError;
use crate::statement::{DoubleQuotes, without_secrets};

/// Longest text of a cell, characters: statements can have megabytes.
const LONGEST_TEXT: usize = 300;
/// Title of columns with statements, which are shown without secrets.
pub(crate) const STATEMENT: &str = "statement";

/// A column: heading, kind, unit, and the column by which its mean is shown.
pub(crate) type Column = (&'static str, Kind, Unit, Option<usize>);

/// Part of the row's name.
pub(crate) const fn key(title: &'static str) -> Column {
    (title, Kind::Key, Unit::Text, None)
}

/// A counter.
pub(crate) const fn count(title: &'static str) -> Column {
    (title, Kind::Counter, Unit::Count, None)
}

/// A counter of bytes.
pub(crate) const fn bytes(title: &'static str) -> Column {
    (title, Kind::Counter, Unit::Bytes, None)
}

/// A sum of times in ms, shown with its mean by column `per`.
pub(crate) const fn ms(title: &'static str, per: usize) -> Column {
    (title, Kind::Counter, Unit::Ms, Some(per))
}

/// A value at the time of reading.
pub(crate) const fn state(title: &'static str, unit: Unit) -> Column {
    (title, Kind::State, unit, None)
}

/// A view: its query returns one column for each of `columns`.
pub(crate) struct ViewQuery {
    pub(crate) topic: Topic,
    pub(crate) title: &'static str,
    pub(crate) columns: &'static [Column],
    /// The column by which rows are sorted.
    pub(crate) order: Option<usize>,
    pub(crate) sql: String,
}

/// A view with its query.
pub(crate) fn query(
    topic: Topic,
    title: &'static str,
    columns: &'static [Column],
    order: Option<usize>,
    sql: impl Into<String>,
) -> ViewQuery {
    ViewQuery { topic, title, columns, order, sql: sql.into() }
}

impl ViewQuery {
    /// The view with `rows`, which the query returned. An error of the statement is why there are none.
    ///
    /// # Errors
    /// When the session is lost.
    pub(crate) fn view(&self, rows: Result<Vec<Vec<Option<String>>>, TargetError>) -> Result<View, TargetError> {
        let rows = match rows {
            Ok(rows) => rows,
            Err(TargetError::Server(why)) => return Ok(self.absent(why.text)),
            Err(e) => return Err(e),
        };
        let row = |row: Vec<Option<String>>| row.into_iter().zip(self.columns).map(|(v, c)| cell(v, c)).collect();
        Ok(View { rows: rows.into_iter().map(row).collect(), ..self.absent_view(None) })
    }

    /// The view without rows, and why.
    pub(crate) fn absent(&self, why: impl Into<String>) -> View {
        self.absent_view(Some(why.into()))
    }

    /// All of it as a text.
    #[cfg(test)]
    pub(crate) fn described(&self) -> String {
        format!("{:?} {} {:?} {:?}\n{}", self.topic, self.title, self.order, self.absent_view(None).columns, self.sql)
    }

    fn absent_view(&self, absent: Option<String>) -> View {
        let column = |(title, kind, unit, per): &Column| ViewColumn {
            title: (*title).to_owned(),
            kind: *kind,
            unit: *unit,
            per: *per,
        };
        View {
            topic: self.topic,
            title: self.title.to_owned(),
            columns: self.columns.iter().map(column).collect(),
            order: self.order,
            rows: Vec::new(),
            left_out: 0,
            reset: 0,
            epoch: None,
            absent,
        }
    }
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

fn cell(value: Option<String>, (title, _, unit, _): &Column) -> Option<Value> {
    let value = value?;
    match unit {
        Unit::Text if *title == STATEMENT => Some(Value::Text(plain(&without_secrets(&value, DoubleQuotes::Name)))),
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
    use crate::error::{Cause, Refusal};

    use super::*;

    const COLUMNS: &[Column] = &[key(STATEMENT), count("calls"), ms("time", 1)];

    fn timed() -> ViewQuery {
        query(Topic::Statements, "t", COLUMNS, Some(2), "")
    }

    #[test]
    fn rows_become_texts_and_numbers() {
        let row = vec![Some("SELECT\n  1".to_owned()), Some("7".to_owned()), Some("none".to_owned())];
        let view = timed().view(Ok(vec![row])).unwrap();
        assert_eq!(view.rows, [[Some(Value::Text("SELECT …".into())), Some(Value::Number(7.0)), None]]);
        let refusal = Refusal { cause: Cause::Privilege, code: "42501".into(), text: "permission denied".into() };
        let refused = timed().view(Err(refusal.into())).unwrap();
        assert_eq!(refused.absent.as_deref(), Some("permission denied"));
        assert!(timed().view(Err(TargetError::Lost("gone".into()))).is_err());
    }

    #[test]
    fn only_statements_lose_their_literals_and_all_texts_are_short() {
        const NAMES: &[Column] = &[key("name")];
        let text = |columns, text: &str| {
            let view = ViewQuery { columns, ..timed() }.view(Ok(vec![vec![Some(text.to_owned())]])).unwrap();
            view.key(&view.rows[0]).concat()
        };
        assert_eq!(text(COLUMNS, "SELECT 'geheim'"), "SELECT '…'");
        assert_eq!(text(NAMES, "it's a password file"), "it's a password file");
        assert_eq!(text(NAMES, &"x".repeat(400)).chars().count(), LONGEST_TEXT + 1);
    }
}
