//! Facts of all platforms side by side.

use loadline_model::Manifest;
use loadline_model::format::ABSENT;

use crate::doc::{Head, Row, Table};
use crate::platform_run::PlatformRun;
use crate::words::distinct;

/// Names, each with its value on every platform.
pub(super) type Facts = Vec<(String, Vec<String>)>;

/// Rows of all manifests by name, in the order in which names first appear.
pub(super) fn collect(sides: &[PlatformRun<'_>], of: fn(&Manifest) -> Vec<(String, String)>) -> Facts {
    let each: Vec<Vec<(String, String)>> = sides.iter().map(|side| of(&side.run.manifest)).collect();
    let value = |facts: &Vec<(String, String)>, name: &String| {
        facts.iter().find(|(n, _)| n == name).map_or(ABSENT.to_owned(), |(_, v)| v.clone())
    };
    let names = distinct(each.iter().flatten().map(|(name, _)| name));
    names.into_iter().map(|name| (name.clone(), each.iter().map(|facts| value(facts, name)).collect())).collect()
}

/// The table of `rows`, a column for each of `sides`.
pub(super) fn side_by_side(sides: &[PlatformRun<'_>], rows: Facts) -> Table {
    let head = std::iter::once(Head::text("")).chain(sides.iter().map(|s| Head::text(&s.label)));
    let rows = rows.into_iter().map(|(name, values)| Row::of(std::iter::once(name).chain(values)));
    Table::of("facts manifest", head, rows)
}

/// A row of one manifest.
pub(super) fn fact(name: &str, value: impl Into<String>) -> (String, String) {
    (name.to_owned(), value.into())
}
