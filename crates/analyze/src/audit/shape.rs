//! Tables in other shapes than a row per test: figures in rows, and platforms side by side.

use crate::audit::header::Header;
use crate::audit::names;
use crate::audit::names::{SETTINGS, is_text};
use crate::audit::sheet::{Mapping, Sheet};
use crate::audit::table::Table;
use crate::audit::table::number;

/// Rows and columns of a table that is turned; more is no table that people made.
const LARGEST: usize = 200;

/// `table` with a row per test, if it has another shape.
pub(crate) fn per_test(table: &Table, mapping: &Mapping) -> Option<Table> {
    if table.headers.len() > LARGEST || table.rows() > LARGEST || *mapping != Mapping::default() {
        return None;
    }
    let figures = |t: &Table| Sheet::new(t, mapping).columns.iter().filter(|c| !is_text(c.id)).count();
    if figures(table) == 0 {
        let turned = turned(table)?;
        let turned = below_each_other(&turned).unwrap_or(turned);
        return (figures(&turned) >= 2).then_some(turned);
    }
    below_each_other(table)
}

/// Rows become columns, named by the first cells.
fn turned(table: &Table) -> Option<Table> {
    let first = table.headers.first()?;
    let tests = table.headers.get(1..)?;
    // "1 client", "8 clients": the columns are named by what is swept.
    let style = Sheet::new(table, &Mapping::default()).style;
    let swept: Option<Vec<&str>> = tests.iter().map(|t| Some(number::parse(t, style)?.suffix)).collect();
    let name = swept.and_then(|all| all.into_iter().max_by_key(|s| s.len())).filter(|s| !s.is_empty());
    let mut headers = vec![name.unwrap_or(first).to_owned()];
    headers.extend((0..table.rows()).map(|row| table.cell(row, 0).trim_end_matches(':').to_owned()));
    let mut turned = Table::new(headers);
    turned.name.clone_from(&table.name);
    for (column, test) in tests.iter().enumerate() {
        let label = match (name, number::parse(test, style)) {
            (Some(_), Some(printed)) => test.trim_end_matches(printed.suffix).trim(),
            _ => test,
        };
        let cells = std::iter::once(label).chain((0..table.rows()).map(|row| table.cell(row, column + 1)));
        turned.push(cells).ok()?;
    }
    turned.remark(None, "it has a column per test: rows and columns were exchanged".to_owned());
    Some(turned)
}

/// What a header says of one of several platforms: `Old array TPS`.
struct Side {
    column: usize,
    platform: String,
    figure: String,
    id: &'static str,
}

fn side(column: usize, text: &str) -> Option<Side> {
    let known = |text: &str| {
        names::read(&Header::parse(text)).map(|m| m.id).filter(|id| !is_text(id) && !SETTINGS.contains(id))
    };
    if known(text).is_some() {
        return None;
    }
    // "Old array TPS", "TPS (new)"
    let split = |at: usize, first: bool| {
        let (before, after) = (text.get(..at)?, text.get(at + 1..)?);
        let (platform, figure) = if first { (before, after) } else { (after, before) };
        let id = known(figure)?;
        let platform = platform.trim_matches([' ', ':', '-', '_', '(', ')', '[', ']']).to_owned();
        (!platform.is_empty() && !names::is_kind(&platform)).then(|| Side {
            column,
            platform,
            figure: figure.to_owned(),
            id,
        })
    };
    let breaks = || text.match_indices([' ', '_']).map(|(at, _)| at);
    breaks().find_map(|at| split(at, true)).or_else(|| breaks().rev().find_map(|at| split(at, false)))
}

/// Platforms side by side become rows, one platform after the other.
fn below_each_other(table: &Table) -> Option<Table> {
    let sides: Vec<Side> = table.headers.iter().enumerate().filter_map(|(i, h)| side(i, h)).collect();
    let mut platforms: Vec<&str> = Vec::new();
    for side in &sides {
        if !platforms.contains(&side.platform.as_str()) {
            platforms.push(&side.platform);
        }
    }
    let of = |platform: &str| -> Vec<&Side> { sides.iter().filter(|s| s.platform == platform).collect() };
    let first = of(platforms.first()?);
    let same = platforms.iter().all(|p| of(p).iter().map(|s| s.id).eq(first.iter().map(|s| s.id)));
    // Of other figures, such as the CPU of client and server, nobody knows that the names before them are platforms.
    let rate =
        first.iter().any(|s| matches!(s.id, "commit_throughput_tps" | "tx_per_s" | "queries_per_s" | "rows_per_s"));
    if sides.len() < 2 || !same || !rate {
        return None;
    }
    let shared: Vec<usize> = (0..table.headers.len()).filter(|i| !sides.iter().any(|s| s.column == *i)).collect();
    // One name before all figures tells no platforms apart.
    let several = platforms.len() > 1;
    let mut headers: Vec<String> = several.then(|| "platform".to_owned()).into_iter().collect();
    headers.extend(shared.iter().map(|i| table.headers[*i].clone()));
    headers.extend(first.iter().map(|s| s.figure.clone()));
    let mut long = Table::new(headers);
    long.name.clone_from(&table.name);
    for platform in &platforms {
        let columns: Vec<usize> = shared.iter().copied().chain(of(platform).iter().map(|s| s.column)).collect();
        for row in 0..table.rows() {
            let cells = columns.iter().map(|column| table.cell(row, *column));
            long.push(several.then_some(*platform).into_iter().chain(cells)).ok()?;
        }
    }
    let (count, rows) = (platforms.len(), table.rows());
    let text = if several {
        format!("{} stand side by side: they were read as {count} × {rows} rows below each other", platforms.join(", "))
    } else {
        format!("'{}' is in the name of each figure: they were read without it", platforms.join(""))
    };
    long.remark(None, text);
    Some(long)
}
