//! Reads `oracle.toml`, which holds what loadline knows about Oracle: counters, views, the doctor's questions
//! and its rules of one value.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use loadline_model::Severity;
use loadline_model::activity::{Kind, Topic, Unit};
use serde::Deserialize;

use crate::view::{self, ViewQuery};

const TEXT: &str = include_str!("oracle.toml");

/// All of the file. A test reads it, so that a build with an error in it fails there.
pub(super) static KNOWLEDGE: LazyLock<Knowledge> = LazyLock::new(|| toml::from_str(TEXT).unwrap_or_default());

/// The file.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Knowledge {
    pub(super) counters: Vec<Counter>,
    fragments: BTreeMap<String, String>,
    #[serde(rename = "view")]
    pub(super) views: Vec<View>,
    #[serde(rename = "question")]
    pub(super) questions: Vec<Question>,
    #[serde(rename = "rule")]
    pub(super) rules: Vec<Rule>,
    statistics: Vec<StatisticsView>,
}

/// A neutral counter and its sources.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Counter {
    pub(super) name: String,
    pub(super) view: String,
    /// Names of statistics or events; `*` stands for any text.
    names: Vec<String>,
    #[serde(default = "one")]
    factor: f64,
    #[serde(default)]
    need: Need,
}

/// Which sources a counter needs.
#[derive(Clone, Copy, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Need {
    /// All of them, and a sum above 0.
    #[default]
    All,
    /// One of them.
    Any,
    /// Rows of the view: a missing source is 0.
    Sum,
}

const fn one() -> f64 {
    1.0
}

impl Counter {
    /// Value from the names and amounts of a view's rows, if they have its sources.
    pub(super) fn value(&self, rows: &BTreeMap<&str, f64>) -> Option<f64> {
        let found: Vec<Vec<f64>> = self
            .names
            .iter()
            .map(|source| rows.iter().filter(|(name, _)| fits(source, name)).map(|(_, amount)| *amount).collect())
            .collect();
        let sum: f64 = found.iter().flatten().sum();
        let known = match self.need {
            Need::All => found.iter().all(|amounts| !amounts.is_empty()) && sum > 0.0,
            Need::Any => found.iter().any(|amounts| !amounts.is_empty()),
            Need::Sum => !rows.is_empty(),
        };
        known.then_some(sum * self.factor)
    }
}

fn fits(pattern: &str, name: &str) -> bool {
    match pattern.split_once('*') {
        Some((begin, end)) => name.starts_with(begin) && name.ends_with(end),
        None => name == pattern,
    }
}

/// A view of counters or sessions.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct View {
    /// Name without `V$` and `GV$`.
    pub(super) name: String,
    /// What is missing without it, beside columns.
    #[serde(default)]
    pub(super) also_missing: String,
    /// The query of name, value and perhaps a second value; `{view}` stands for the view.
    pub(super) select: String,
}

/// A question of the doctor to the server.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Question {
    pub(super) id: String,
    pub(super) sql: String,
    /// What is unknown without it.
    pub(super) without: String,
    /// What to ask the administrator for.
    #[serde(default = "public")]
    pub(super) grant: String,
}

/// Advice if a question is refused that every user may ask.
pub(super) const PUBLIC: &str = "every user may query this: tell us what the server said";

fn public() -> String {
    PUBLIC.to_owned()
}

/// A finding of the doctor.
#[derive(Deserialize)]
#[serde(untagged)]
pub(super) enum Rule {
    Computed { computed: Computed },
    Value(ValueRule),
}

/// Findings that need more than one value, or arithmetic.
#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Computed {
    Database,
    Instances,
    RedoLogSize,
    LogWriterStatistics,
    User,
    Driver,
}

/// A finding that follows from one value.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ValueRule {
    pub(super) id: String,
    pub(super) question: String,
    /// Column of the first row.
    #[serde(default)]
    pub(super) column: usize,
    /// Instead: the second column of the row with this name.
    pub(super) named: Option<String>,
    /// The value if there is no such row.
    pub(super) unset: Option<String>,
    cases: Vec<Case>,
}

/// What a value means.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Case {
    /// The value; without it, all others.
    is: Option<String>,
    /// Without it nothing is said.
    pub(super) severity: Option<Severity>,
    #[serde(default)]
    pub(super) advice: String,
}

impl ValueRule {
    /// The case of `value`.
    pub(super) fn case(&self, value: &str) -> Option<&Case> {
        self.cases.iter().find(|case| case.is.as_deref().is_none_or(|is| is == value))
    }
}

/// A statistics view of the test pages.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct StatisticsView {
    topic: Topic,
    title: String,
    order: Option<usize>,
    columns: Columns,
    sql: String,
}

/// Columns, each written as its kind and title: `count rows`, or `ms/2 time` for a time with its mean by column 2.
#[derive(Clone, Copy, Deserialize)]
#[serde(try_from = "Vec<String>")]
struct Columns(&'static [view::Column]);

impl TryFrom<Vec<String>> for Columns {
    type Error = String;

    fn try_from(texts: Vec<String>) -> Result<Columns, String> {
        let columns: Result<Vec<view::Column>, String> = texts.into_iter().map(column).collect();
        Ok(Columns(columns?.leak()))
    }
}

fn column(text: String) -> Result<view::Column, String> {
    let text: &'static str = text.leak();
    let wrong = || format!("'{text}' is no column: write its kind (key, count, bytes, ms, ms/N, text) and title");
    let (kind, title) = text.split_once(' ').ok_or_else(wrong)?;
    Ok(match kind {
        "key" => view::key(title),
        "count" => view::count(title),
        "bytes" => view::bytes(title),
        "ms" => (title, Kind::Counter, Unit::Ms, None),
        "text" => view::state(title, Unit::Text),
        "number" => view::state(title, Unit::Count),
        _ => {
            let per = kind.strip_prefix("ms/").and_then(|n| n.parse().ok()).ok_or_else(wrong)?;
            view::ms(title, per)
        }
    })
}

impl Knowledge {
    /// The question of this id.
    pub(super) fn question(&self, id: &str) -> Option<&Question> {
        self.questions.iter().find(|question| question.id == id)
    }

    /// The queries of the statistics views. `v` begins the names of views; `whose` is the condition of sessions.
    pub(super) fn statistics_views(&'static self, v: &str, whose: &str) -> Vec<ViewQuery> {
        let sql = |view: &StatisticsView| {
            let parts = self
                .fragments
                .iter()
                .fold(view.sql.clone(), |sql, (name, part)| sql.replace(&format!("{{{name}}}"), part));
            parts.replace("{v}", v).replace("{whose}", whose)
        };
        let query =
            |view: &'static StatisticsView| view::query(view.topic, &view.title, view.columns.0, view.order, sql(view));
        self.statistics.iter().map(query).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_can_be_read() {
        if let Err(e) = toml::from_str::<Knowledge>(TEXT) {
            panic!("src/oracle/oracle.toml: {e}");
        }
    }

    #[test]
    fn rules_ask_questions_and_counters_read_views_that_exist() {
        for rule in &KNOWLEDGE.rules {
            if let Rule::Value(rule) = rule {
                assert!(KNOWLEDGE.question(&rule.question).is_some(), "{}", rule.id);
            }
        }
        for counter in &KNOWLEDGE.counters {
            assert!(KNOWLEDGE.views.iter().any(|view| view.name == counter.view), "{}", counter.name);
        }
    }

    /// The number of expressions that a query selects.
    fn selected(sql: &str) -> usize {
        let list = &sql["SELECT ".len()..sql.find(" FROM ").unwrap()];
        let mut depth = 0;
        let mut between = |c: char| {
            depth += i32::from(c == '(') - i32::from(c == ')');
            c == ',' && depth == 0
        };
        1 + list.chars().filter(|c| between(*c)).count()
    }

    #[test]
    fn each_query_selects_the_columns_of_its_view() {
        assert_eq!(selected("SELECT A, NVL(B, 'x'), C FROM D"), 3);
        for query in KNOWLEDGE.statistics_views("GV$", "1 = 1") {
            assert_eq!(selected(&query.sql), query.columns.len(), "{}", query.sql);
            assert!(query.order.is_none_or(|i| query.columns[i].1 == Kind::Counter), "{}", query.title);
            assert!(!query.sql.contains('{'), "{}", query.sql);
        }
    }

    #[test]
    fn counters_are_sums_of_what_the_container_sees() {
        let value = |name: &str, rows: &[(&str, f64)]| {
            let counter = KNOWLEDGE.counters.iter().find(|c| c.name == format!("loadline.{name}")).unwrap();
            counter.value(&rows.iter().copied().collect())
        };
        let (scan, fetch) = (("table scan rows gotten", 5.0), ("table fetch by rowid", 7.0));
        for (name, rows, want) in [
            ("block_gets", &[("session logical reads", 500.0)][..], Some(500.0)),
            ("block_writes", &[("physical writes", 0.0)], None),
            ("redo_sync_ns", &[("redo synch time (usec)", 3.0)], Some(3000.0)),
            ("rows_read", &[fetch], None),
            ("rows_read", &[scan, fetch], Some(12.0)),
            ("flash_writes", &[("physical write requests optimized", 0.0)], None),
            ("parallel_whole", &[("Parallel operations not downgraded", 0.0)], Some(0.0)),
            (
                "parallel_less",
                &[
                    ("Parallel operations not downgraded", 40.0),
                    ("Parallel operations downgraded to serial", 2.0),
                    ("Parallel operations downgraded 25 to 50 pct", 3.0),
                ],
                Some(5.0),
            ),
            ("buffer_wait_ns", &[], None),
            ("buffer_wait_ns", &[("db file sync", 900.0)], Some(0.0)),
            ("buffer_wait_ns", &[("free buffer waits", 2.0)], Some(2000.0)),
            ("redo_write_ns", &[("log file parallel write", 4.0)], Some(4000.0)),
            ("redo_write_ns", &[("free buffer waits", 2.0)], None),
            (
                "read_ns",
                &[("db file sequential read", 70.0), ("cell single block physical read", 5.0), ("db file sync", 9.0)],
                Some(75_000.0),
            ),
        ] {
            assert_eq!(value(name, rows), want, "{name}");
        }
    }
}
