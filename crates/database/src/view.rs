//! A statistics view of a database as data: its query, and what its columns are.

use loadline_model::activity::{Kind, Topic, Unit, Value, View, ViewColumn};

use crate::error::TargetError;

/// Longest text of a cell, characters: statements can have megabytes.
const LONGEST_TEXT: usize = 300;
/// Words after which a statement may hold a secret: some databases keep such statements with their values.
const SECRET: [&str; 5] = ["password", "identified", "conninfo", "user mapping", "secret"];

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

impl ViewQuery {
    /// The view with `rows`, which the query returned. An error of the statement is why there are none.
    ///
    /// # Errors
    /// When the session is lost.
    pub(crate) fn view(&self, rows: Result<Vec<Vec<Option<String>>>, TargetError>) -> Result<View, TargetError> {
        let rows = match rows {
            Ok(rows) => rows,
            Err(TargetError::Statement(why)) => return Ok(self.absent(why)),
            Err(e) => return Err(e),
        };
        let row = |row: Vec<Option<String>>| row.into_iter().zip(self.columns).map(|(v, c)| cell(v, c)).collect();
        Ok(View { rows: rows.into_iter().map(row).collect(), ..self.absent_view(None) })
    }

    /// The view without rows, and why.
    pub(crate) fn absent(&self, why: impl Into<String>) -> View {
        self.absent_view(Some(why.into()))
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

fn cell(value: Option<String>, (_, _, unit, _): &Column) -> Option<Value> {
    let value = value?;
    match unit {
        Unit::Text => Some(Value::Text(plain(&value))),
        // What is no number is not shown as one.
        Unit::Count | Unit::Ms | Unit::Bytes => value.parse().ok().filter(|n: &f64| n.is_finite()).map(Value::Number),
    }
}

/// `text` on one line, shortened, without what follows a word that may introduce a secret.
fn plain(text: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let lower = line.to_ascii_lowercase();
    let secret = SECRET.iter().filter_map(|word| Some(lower.find(word)? + word.len())).min();
    let kept = secret.and_then(|end| line.get(..end)).unwrap_or(&line);
    let mut out: String = kept.chars().take(LONGEST_TEXT).collect();
    if out.len() < line.len() {
        out.push('…');
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    const COLUMNS: &[Column] = &[key("statement"), count("calls"), ms("time", 1)];

    fn query() -> ViewQuery {
        ViewQuery { topic: Topic::Statements, title: "t", columns: COLUMNS, order: Some(2), sql: String::new() }
    }

    #[test]
    fn rows_become_texts_and_numbers() {
        let row = vec![Some("SELECT\n  1".to_owned()), Some("7".to_owned()), Some("none".to_owned())];
        let view = query().view(Ok(vec![row])).unwrap();
        assert_eq!(view.rows, [[Some(Value::Text("SELECT 1".into())), Some(Value::Number(7.0)), None]]);
        let refused = query().view(Err(TargetError::Statement("permission denied".into()))).unwrap();
        assert_eq!(refused.absent.as_deref(), Some("permission denied"));
        assert!(query().view(Err(TargetError::Lost("gone".into()))).is_err());
    }

    #[test]
    fn secrets_in_statements_are_cut_off() {
        assert_eq!(plain("ALTER ROLE a PASSWORD 'geheim'"), "ALTER ROLE a PASSWORD…");
        assert_eq!(plain("CREATE USER u IDENTIFIED BY 'geheim'"), "CREATE USER u IDENTIFIED…");
        assert_eq!(plain("SELECT 'ß' FROM passwords WHERE x = 'y'"), "SELECT 'ß' FROM password…");
        assert_eq!(plain(&"x".repeat(400)).chars().count(), LONGEST_TEXT + 1);
    }
}
