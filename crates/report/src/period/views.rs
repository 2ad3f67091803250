//! The database's own statistics views.

use loadline_model::activity::{Kind, Topic, Unit, Value, View, ViewColumn};
use loadline_model::format::duration_ns;
use minijinja::context;

use super::{Period, amount, heading, name, ratio, shown};
use crate::doc::{Block, Head, Table};
use crate::spec::TableSpec;
use crate::templates::items;
use crate::words::{cut, distinct, grouped};

const MOST_TEXT: usize = 110;

pub(super) fn id(topic: Topic) -> &'static str {
    match topic {
        Topic::Waits => "waits-timed",
        Topic::Statements => "statements",
        Topic::Io => "io",
        Topic::Objects => "objects",
        Topic::Cache => "cache",
        Topic::Locks => "locks",
        Topic::Replication => "replication",
        Topic::Sessions => "sessions",
        Topic::Settings => "settings",
    }
}

/// Views of `topic` that have rows; those of several periods in one table.
pub(super) fn blocks(topic: Topic, periods: &[Period]) -> Vec<Block> {
    let all: Vec<&[View]> = periods.iter().map(|p| p.activity.as_ref().map_or(&[][..], |a| &a.views)).collect();
    let shown = all.iter().copied().flatten().filter(|v| v.topic == topic && !v.rows.is_empty());
    let table = |title: &str| {
        let views: Vec<Option<&View>> = all.iter().map(|views| views.iter().find(|v| v.title == title)).collect();
        match (views.as_slice(), periods) {
            ([Some(view)], [period]) => Some(table(view, period)),
            (views, _) => side_by_side(views, periods),
        }
    };
    distinct(shown.map(|view| view.title.as_str())).into_iter().filter_map(table).map(Block::Table).collect()
}

/// The keys of a row.
type Key = Vec<String>;

/// Rows of all periods by name: the column by which they are sorted per second, and what it is each; or the first state.
fn side_by_side(views: &[Option<&View>], periods: &[Period]) -> Option<Table> {
    let first = views.iter().flatten().next()?;
    let by = first.order.or_else(|| first.columns.iter().position(|c| c.kind == Kind::State))?;
    let column = first.columns.get(by)?;
    let counted = column.kind == Kind::Counter;
    let row = |key: &Key, at: usize| views[at].and_then(|view| view.rows.iter().find(|row| view.key(row) == *key));
    let per_second = |n: Option<f64>, at: usize| {
        let seconds = periods[at].activity.as_ref().map_or(0.0, |a| a.seconds);
        if seconds > 0.0 { n.map(|n| n / seconds) } else { None }
    };
    let number = |key: &Key, at: usize, column: usize| row(key, at).and_then(|row| View::number(row, column));
    let rate = |key: &Key, at: usize| per_second(number(key, at, by), at);
    let state = |key: &Key, at: usize| match row(key, at).and_then(|row| row.get(by)) {
        Some(Some(Value::Text(text))) => cut(text, MOST_TEXT),
        _ => shown(if counted { rate(key, at) } else { number(key, at, by) }, column.unit),
    };
    let mut keys: Vec<Key> =
        distinct(views.iter().flatten().flat_map(|view| view.rows.iter().map(|row| view.key(row))));
    // Equal settings say nothing.
    let differs = |key: &Key| (1..periods.len()).any(|at| state(key, at) != state(key, 0));
    keys.retain(|key| first.topic != Topic::Settings || differs(key));
    let mut table = TableSpec::<&Key>::new("figures views", &keys);
    for (n, of) in first.columns.iter().filter(|c| c.kind == Kind::Key).enumerate() {
        table = table.text(&of.title, |key| key.get(n).map(|k| cut(k, MOST_TEXT)).unwrap_or_default());
    }
    for (at, period) in periods.iter().enumerate() {
        let what = if counted { format!("{} per second", column.title) } else { column.title.clone() };
        let title = heading(period, periods, &what);
        let head = if column.unit == Unit::Text { Head::text(&title) } else { Head::number(&title, "") };
        table = table.column(head, |key| state(key, at));
        let Some((per, times)) = column.per.and_then(|per| Some((per, first.columns.get(per)?))) else { continue };
        let times_of = |key: &Key| number(key, at, per).filter(|n| *n > 0.0);
        let each = |key: &Key| Some(duration_ns(number(key, at, by)? / times_of(key)? * 1e6));
        table = table
            .number(&heading(period, periods, &format!("{} per second", times.title)), "", |key| {
                per_second(times_of(key), at).map(|n| amount(n, Unit::Count))
            })
            .number(&heading(period, periods, "each"), "", each);
    }
    if counted && periods.len() == 2 {
        table = table.number("B / A", "", |key| ratio(rate(key, 0), rate(key, 1)));
    }
    let sub = views.iter().zip(periods).filter_map(|(view, period)| {
        let said = left_out((*view)?).join("; ");
        (!said.is_empty()).then(|| format!("{}: {said}", period.label))
    });
    table.caption(&first.title).sub(sub.collect::<Vec<_>>().join(". ")).if_rows()
}

fn left_out(view: &View) -> Vec<String> {
    let smaller = (view.left_out > 0).then(|| format!("{} smaller ones are left out", view.left_out));
    let reset = (view.reset > 0).then(|| format!("of {} more the counters were reset meanwhile", view.reset));
    smaller.into_iter().chain(reset).collect()
}

fn table(view: &View, period: &Period) -> Table {
    let counted = view.columns.iter().any(|c| c.kind == Kind::Counter);
    let whole = if period.record.is_some() { "the whole test, with its warm-up" } else { "the time watched" };
    let seconds = period.activity.as_ref().map_or(0.0, |a| a.seconds);
    let growth = counted.then(|| format!("growth in {seconds:.1} s, {whole}"));
    let mut said: Vec<String> = growth.into_iter().collect();
    said.extend(left_out(view));
    // Columns in which nothing happened in any row are left out.
    let used = |i: &usize| {
        view.columns[*i].kind != Kind::Counter
            || view.rows.iter().any(|r| View::number(r, *i).is_some_and(|n| n != 0.0))
    };
    let mut table = TableSpec::<&Vec<Option<Value>>>::new("figures views", &view.rows);
    for (i, ViewColumn { title, unit, per, .. }) in view.columns.iter().enumerate().filter(|(i, _)| used(i)) {
        let times = move |row: &Vec<Option<Value>>| per.and_then(|per| View::number(row, per));
        // A time of 0 for many calls was not measured.
        let timed = move |row: &Vec<Option<Value>>| {
            View::number(row, i).filter(|n| *unit != Unit::Ms || *n > 0.0 || times(row).is_none_or(|t| t == 0.0))
        };
        let head = if *unit == Unit::Text { Head::text(title) } else { Head::number(title, "") };
        let each = move |row: &Vec<Option<Value>>| {
            timed(row).zip(times(row)).filter(|(_, t)| *t > 0.0).map(|(n, t)| duration_ns(n / t * 1e6))
        };
        table = table
            .column(head, move |row| match row.get(i) {
                Some(Some(Value::Text(text))) => cut(text, MOST_TEXT),
                _ => shown(timed(row), *unit),
            })
            .number("each", "", each)
            .when(per.is_some());
    }
    table.caption(&view.title).sub(said.join("; ")).build()
}

pub(super) fn missing(periods: &[Period]) -> Vec<Block> {
    let one = |period: &Period| {
        let activity = period.activity.as_ref();
        let views = || activity.iter().flat_map(|a| &a.views);
        let absent = grouped(views().filter_map(|v| Some((v.absent.as_deref()?, v.title.as_str()))), |(why, _)| *why);
        let titles = |of: Vec<(&str, &str)>| of.into_iter().map(|(_, title)| title.to_owned()).collect::<Vec<_>>();
        let none = Topic::ALL.iter().filter(|topic| !views().any(|v| v.topic == **topic));
        context! {
            name => name(period, periods),
            stored => activity.is_some(),
            unread => activity.and_then(|a| a.unread.as_deref()),
            absent => absent.into_iter().map(|(why, of)| (why, titles(of))).collect::<Vec<_>>(),
            none => none.map(|topic| topic.title().to_lowercase()).collect::<Vec<_>>(),
            quiet => views().filter(|v| v.absent.is_none() && v.rows.is_empty()).map(|v| &v.title).collect::<Vec<_>>(),
        }
    };
    let periods: Vec<_> = periods.iter().map(one).collect();
    Block::list(items("not-here", context! { periods })).into_iter().collect()
}
