//! Activity of a database in a period, beyond its plain counters: rows of its own statistics views (statements, files, tables,
//! waits), background work, and what the sampling cost. The page of a test is made of it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::manifest::TargetInfo;
use crate::snapshot::{Series, Snapshot, WaitProfile};

/// Version of the layout of a stored [`Activity`].
pub const ACTIVITY_SCHEMA: u32 = 1;

/// Most rows kept of a view whose rows have counters; the smaller ones are left out.
pub const MOST_ROWS: usize = 25;

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Activity {
    pub schema: u32,
    /// Time between the two readings of the views, s. It holds the whole test: warm-up, window and end.
    pub seconds: f64,
    /// The views, as they grew from one reading to the other.
    pub views: Vec<View>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unread: Option<String>,
    /// Which snapshots the page's rates are computed from; `None` if the counters could not be read.
    pub counted: Option<Counted>,
    /// Background work of the database in the window; `None` if it is not known.
    pub spans: Option<Vec<Span>>,
    #[serde(default)]
    pub sampling: Sampling,
}

/// Two snapshots, by name, and the time between them. Figures of the test are of the same two.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Counted {
    pub open: String,
    pub close: String,
    /// Time between them, s.
    pub seconds: f64,
}

crate::named! {
    /// Part of a page that a view belongs to, in the order of the page.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
    #[serde(rename_all = "kebab-case")]
    pub enum Topic {
        Waits: "Waits timed by the database";
        Statements: "Top statements";
        /// Reads and writes by kind of file and by object.
        Io: "I/O by file and object";
        /// Tables and indexes: accesses, changes, vacuum or purge.
        Objects: "Tables and indexes";
        Cache: "Cache";
        Locks: "Locks";
        Replication: "Replication";
        Sessions: "Sessions";
        Settings: "Settings that differ from their defaults";
    }
    pub fn title;
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// Part of the row's name.
    Key,
    /// A number that only grows; shown is its growth.
    Counter,
    /// Value at the second reading.
    State,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Unit {
    Text,
    Count,
    Ms,
    Bytes,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ViewColumn {
    pub title: String,
    pub kind: Kind,
    pub unit: Unit,
    /// The column by which its mean is shown (`total time` by `calls`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub per: Option<usize>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Value {
    Number(f64),
    Text(String),
}

/// Rows of a statistics view, or why there are none.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct View {
    pub topic: Topic,
    /// Meaning of its rows, with the view that they come from.
    pub title: String,
    pub columns: Vec<ViewColumn>,
    /// The column by which the rows are sorted, the largest first; `None` for the order of the database.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub order: Option<usize>,
    /// Rows; a cell that the database does not have is `None`.
    pub rows: Vec<Vec<Option<Value>>>,
    /// Rows that did something but were left out.
    #[serde(default)]
    pub left_out: usize,
    /// Rows whose counters were reset between the readings: their growth is unknown.
    #[serde(default)]
    pub reset: usize,
    /// When the database last reset the statistics of the view; `None` if never or unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub epoch: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub absent: Option<String>,
}

impl View {
    pub fn number(row: &[Option<Value>], column: usize) -> Option<f64> {
        match row.get(column)? {
            Some(Value::Number(n)) => Some(*n),
            _ => None,
        }
    }

    pub fn key(&self, row: &[Option<Value>]) -> Vec<String> {
        let keys = self.columns.iter().zip(row).filter(|(c, _)| c.kind == Kind::Key);
        let text = |value: &Option<Value>| match value {
            Some(Value::Text(text)) => text.clone(),
            Some(Value::Number(n)) => n.to_string(),
            None => String::new(),
        };
        keys.map(|(_, value)| text(value)).collect()
    }

    /// Growth from `self` to `later`, the same view read later. A row that is new counts from 0; rows whose counters did
    /// not move are left out, and of the others the largest [`MOST_ROWS`] are kept.
    pub fn growth(&self, later: View) -> View {
        if later.absent.is_some() || !later.columns.iter().any(|c| c.kind == Kind::Counter) {
            return later;
        }
        if self.absent.is_some() {
            return View { rows: Vec::new(), absent: self.absent.clone(), ..later };
        }
        if self.epoch != later.epoch {
            let at = later.epoch.as_ref().map_or(String::new(), |at| format!(" at {at}"));
            return View {
                rows: Vec::new(),
                absent: Some(format!("its statistics were reset{at} in between")),
                ..later
            };
        }
        let before: BTreeMap<Vec<String>, &Vec<Option<Value>>> = self.rows.iter().map(|r| (self.key(r), r)).collect();
        let View { columns, order, .. } = &later;
        let (mut rows, mut reset) = (Vec::new(), 0);
        for row in &later.rows {
            let old = before.get(&later.key(row));
            let (mut grown, mut growths) = (row.clone(), Vec::new());
            for (i, _) in columns.iter().enumerate().filter(|(_, column)| column.kind == Kind::Counter) {
                let from = old.map_or(Some(0.0), |old| View::number(old, i));
                let growth = View::number(row, i).zip(from).map(|(to, from)| to - from);
                growths.extend(growth);
                grown.get_mut(i).into_iter().for_each(|cell| *cell = growth.map(Value::Number));
            }
            if growths.iter().any(|n| *n < 0.0) {
                reset += 1;
            } else if growths.iter().any(|n| *n > 0.0) {
                rows.push(grown);
            }
        }
        if let Some(order) = *order {
            let by = |row: &[Option<Value>]| View::number(row, order).unwrap_or(0.0);
            rows.sort_by(|a, b| by(b).total_cmp(&by(a)));
        }
        let left_out = rows.len().saturating_sub(MOST_ROWS);
        rows.truncate(MOST_ROWS);
        View { rows, left_out, reset, ..later }
    }
}

pub fn growth(before: &[View], after: Vec<View>) -> Vec<View> {
    let grown = |later: View| match before.iter().find(|v| v.title == later.title) {
        Some(earlier) => earlier.growth(later),
        None => View { rows: Vec::new(), absent: Some("it could not be read at first".to_owned()), ..later },
    };
    after.into_iter().map(grown).collect()
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Span {
    /// Kind: `checkpoint`, `autovacuum`.
    pub what: String,
    /// First and last time at which it was seen, s since the window start.
    pub from_s: f64,
    pub to_s: f64,
}

/// Questions to the database by sampling a window.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Sampling {
    pub readings: u32,
    /// Samples of the sessions' waits.
    pub samples: u32,
    /// Time until the database had answered them, ms: an upper bound of the CPU time that they took of its one session.
    pub answer_ms: f64,
    /// Share of the window, %.
    pub answer_pct: f64,
}

/// Version of the layout of a stored [`Watched`].
pub const WATCHED_SCHEMA: u32 = 1;

/// Contents of a file of `loadline snapshot`: a running database that was watched for a while, without any load of loadline's own.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Watched {
    pub schema: u32,
    pub loadline_version: String,
    /// Wall-clock time of its start, RFC 3339, UTC.
    pub taken_at: String,
    /// Length, s.
    pub seconds: f64,
    pub target: TargetInfo,
    pub open: Snapshot,
    pub close: Snapshot,
    /// Sampled waits of all clients but loadline.
    pub waits: WaitProfile,
    pub series: Series,
    /// Figures of the machine by column id.
    #[serde(default)]
    pub figures: BTreeMap<String, f64>,
    /// Statistics views, background work, and what the sampling cost.
    pub activity: Activity,
    /// Whether the database answered until the end.
    #[serde(default)]
    pub complete: bool,
    /// Notes for the reader, e.g. on views that could not be read.
    #[serde(default)]
    pub notes: Vec<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn view(rows: &[(&str, f64, f64)]) -> View {
        let column = |title: &str, kind| ViewColumn { title: title.to_owned(), kind, unit: Unit::Count, per: None };
        let number = |n: f64| Some(Value::Number(n));
        let row = |row: &(&str, f64, f64)| vec![Some(Value::Text(row.0.to_owned())), number(row.1), number(row.2)];
        View {
            topic: Topic::Io,
            title: "files".to_owned(),
            columns: vec![column("file", Kind::Key), column("reads", Kind::Counter), column("open", Kind::State)],
            order: Some(1),
            rows: rows.iter().map(row).collect(),
            left_out: 0,
            reset: 0,
            epoch: None,
            absent: None,
        }
    }

    #[test]
    fn counters_grow_states_stay_and_the_largest_come_first() {
        let before = view(&[("a", 10.0, 1.0), ("b", 5.0, 1.0), ("idle", 7.0, 1.0), ("restarted", 9.0, 1.0)]);
        let after =
            view(&[("a", 11.0, 3.0), ("b", 9.0, 2.0), ("idle", 7.0, 9.0), ("new", 2.0, 1.0), ("restarted", 1.0, 1.0)]);
        let grown = before.growth(after);
        assert_eq!(grown.rows, view(&[("b", 4.0, 2.0), ("new", 2.0, 1.0), ("a", 1.0, 3.0)]).rows);
        assert_eq!((grown.reset, grown.left_out), (1, 0));
    }

    #[test]
    fn small_rows_are_counted_and_absent_views_stay_absent() {
        let many: Vec<String> = (0..MOST_ROWS + 4).map(|i| format!("f{i}")).collect();
        let rows: Vec<(&str, f64, f64)> = many.iter().map(|n| (n.as_str(), 1.0, 0.0)).collect();
        let grown = view(&[]).growth(view(&rows));
        assert_eq!((grown.rows.len(), grown.left_out), (MOST_ROWS, 4));
        let absent = View { absent: Some("no privilege".to_owned()), ..view(&[]) };
        assert_eq!(absent.growth(view(&rows)).absent.as_deref(), Some("no privilege"));
        assert!(growth(&[], vec![view(&rows)])[0].absent.is_some());
    }

    #[test]
    fn the_growth_over_a_reset_is_unknown() {
        let at = |epoch: Option<&str>, reads| View { epoch: epoch.map(str::to_owned), ..view(&[("a", reads, 1.0)]) };
        for (before, after) in [(None, Some("noon")), (Some("morning"), Some("noon")), (Some("noon"), None)] {
            let grown = at(before, 1.0).growth(at(after, 9.0));
            assert!(grown.rows.is_empty(), "{grown:?}");
            let why = grown.absent.unwrap();
            assert!(why.contains("were reset") && after.is_none_or(|at| why.contains(at)), "{why}");
        }
        assert_eq!(at(Some("noon"), 1.0).growth(at(Some("noon"), 9.0)).rows.len(), 1);
    }
}
