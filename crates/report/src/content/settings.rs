//! The databases' settings side by side; those that differ come first.

use loadline_model::Manifest;
use loadline_model::format::ABSENT;

use crate::doc::{Block, Head, Row, Section, Table};
use crate::platform_run::PlatformRun;
use crate::words::{cut, distinct};

/// Before the name of a setting that differs.
const DIFFERS: &str = "≠ ";
/// Most settings, and characters of a value, in the short table; the full one has them all.
const FEW: usize = 30;
const SHORT: usize = 40;

/// Whether a value names the folder of a private server: another one for each.
pub(crate) fn of_private_server(value: &str) -> bool {
    ["loadline-pg-", "loadline-mariadb-", "loadline-mysql-"].iter().any(|prefix| value.contains(prefix))
}

/// All settings of `sides`, those that differ first and marked.
pub(super) fn all(sides: &[PlatformRun<'_>]) -> Facts {
    let (mut first, same) = split(sides);
    first.iter_mut().for_each(|(name, _)| name.insert_str(0, DIFFERS));
    first.into_iter().chain(same).collect()
}

/// The settings that differ, where the figures are compared.
pub(crate) fn section(sides: &[PlatformRun<'_>]) -> Section {
    let (mut differing, _) = split(sides);
    let more = differing.len().saturating_sub(FEW);
    differing.truncate(FEW);
    differing.iter_mut().flat_map(|(_, values)| values).for_each(|value| *value = cut(value, SHORT));
    let left_out = format!("And {more} more: see the settings of the platforms in the HTML report.");
    let left_out = (more > 0).then(|| Block::para(left_out));
    let blocks = Block::table(side_by_side(sides, differing)).into_iter().chain(left_out).collect();
    Section::of("settings", "Settings that differ", blocks)
}

/// The settings that differ between platforms, and the others. One that a platform lacks differs if all are of one product:
/// others have settings of their own.
fn split(sides: &[PlatformRun<'_>]) -> (Facts, Facts) {
    let target = |s: &PlatformRun<'_>| s.run.manifest.target.product.clone();
    let one_product = sides.windows(2).all(|pair| target(&pair[0]) == target(&pair[1]));
    let all = collect(sides, |m| m.target.settings.clone().into_iter().collect());
    all.into_iter().partition(|(_, values)| {
        let mut known = values.iter().filter(|v| one_product || *v != ABSENT);
        let first = known.next();
        known.any(|v| Some(v) != first) && !values.iter().all(|v| of_private_server(v))
    })
}

/// Names, each with its value on every platform.
pub(super) type Facts = Vec<(String, Vec<String>)>;

/// Rows of all manifests by name, in the order in which names first appear.
pub(super) fn collect(sides: &[PlatformRun<'_>], of: impl Fn(&Manifest) -> Vec<(String, String)>) -> Facts {
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
