//! The part of docs/truth.md that shows how every way came out.

use std::collections::BTreeSet;

use super::Tried;
use super::way::{Must, Way};
use super::ways::Ways;
use crate::arena::Outcome;

const BEGIN: &str = "<!-- Written by `cargo run -p loadline-bench -- spoil --docs docs/truth.md`: from here -->\n";
const END: &str = "<!-- to here -->\n";
const RUN_ON: &str = "Run on ";
const AND_SQLITE: &str = " (and SQLite, which is part of loadline)";
/// Longest text of a cell.
const CELL: usize = 80;

/// `page` with these outcomes between its markers. Rows of ways that were not tried stay.
pub(super) fn with(page: &str, ways: &Ways, all: &[Tried]) -> Outcome<String> {
    let (before, rest) = page.split_once(BEGIN).ok_or("the page has no marker")?;
    let (former, after) = rest.split_once(END).ok_or("the page has no end marker")?;
    Ok(format!("{before}{BEGIN}\n{}\n{END}{after}", part(ways, all, former)))
}

fn part(ways: &Ways, all: &[Tried], former: &str) -> String {
    let rows: Vec<String> = ways.all.iter().map(|way| row(way, all, former)).collect();
    let escapes = |way: &Way| matches!(way.must, Must::Escape(_));
    let good = ways.all.iter().zip(&rows).filter(|(way, row)| !escapes(way) && !row.contains("| **")).count();
    let servers = former.trim().strip_prefix(RUN_ON).and_then(|rest| rest.split_once(AND_SQLITE));
    let servers = servers.into_iter().flat_map(|(servers, _)| servers.split(", "));
    let servers: BTreeSet<&str> = servers.chain(all.iter().map(|t| t.server.as_str())).collect();
    let servers: Vec<&str> = servers.into_iter().filter(|server| !server.is_empty()).collect();
    let mut out = format!(
        "{RUN_ON}{}{AND_SQLITE}. {} ways: {good} were caught or changed nothing, with a control run that is proved and \
         unmarked; not caught: {}.\n\n\
         | way | what is done | how it must come out | seen | control run | date |\n| --- | --- | --- | --- | --- | --- |\n",
        servers.join(", "),
        ways.all.len(),
        ways.all.iter().filter(|way| escapes(way)).count(),
    );
    rows.iter().for_each(|row| out += row);
    out += "\nChecks without a way:\n\n";
    ways.without.iter().for_each(|(id, why)| out += &format!("- {id}: {why}\n"));
    out
}

/// The row of a way: as it came out, or as it is on the page.
fn row(way: &Way, all: &[Tried], former: &str) -> String {
    let begin = format!("{} {} |", begin(way), must(&way.must));
    let Some(t) = all.iter().find(|t| t.name == way.name) else {
        let former = former.lines().find(|line| line.starts_with(&begin));
        return former.map_or_else(|| format!("{begin} **not tried** | – | – |\n"), |line| format!("{line}\n"));
    };
    let seen = if t.holds { cell(&t.seen) } else { format!("**otherwise**: {}", cell(&t.seen)) };
    let control = match t.clean {
        None => format!("**marked**: {}", cell(&t.unclean)),
        Some(1) => "passes".to_owned(),
        Some(n) => format!("passes in run {n}"),
    };
    format!("{begin} {seen} | {control} | {} |\n", t.date)
}

/// The beginning of a way's row, which does not depend on how it came out.
fn begin(way: &Way) -> String {
    format!("| {} | {} |", way.name, way.does)
}

/// In words, how a way must come out.
fn must(must: &Must) -> String {
    match must {
        Must::Fail(id) if id.is_of_disturbance() => format!("disturbed by {id}"),
        Must::Fail(id) => format!("refused by {id}"),
        Must::Note(id) => format!("noted by {id}"),
        Must::Say(text) => format!("marked: '{text}'"),
        Must::Refuse(code, text) => format!("refused with exit code {code}: '{text}'"),
        Must::Show(column, least) => format!("shown by `{column}`, {:.0} ms at least", least / 1e6),
        Must::Withstand(why) => format!("no effect: {why}"),
        Must::Escape(why) => format!("**not caught**: {why}"),
    }
}

/// `text` as a cell of a table, without the folders of this machine.
fn cell(text: &str) -> String {
    let short =
        |word: &str| match word.trim_start_matches('\'').strip_prefix('/').and_then(|path| path.rsplit_once('/')) {
            Some((_, file)) => format!("…/{file}"),
            None => word.replace('|', "/"),
        };
    let line = text.split_whitespace().map(short).collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(CELL) {
        Some((end, _)) => format!("{} …", &line[..end]),
        None => line,
    }
}

#[cfg(test)]
mod tests {
    use loadline_model::CheckId;

    use super::*;
    use crate::spoil::ways::ways;

    #[test]
    fn each_check_has_a_way_or_a_reason() {
        let of_way = |way: &Way| match way.must {
            Must::Fail(id) | Must::Note(id) => Some(id),
            _ => None,
        };
        let ways = ways().unwrap();
        let with: BTreeSet<CheckId> = ways.all.iter().filter_map(of_way).collect();
        let without: BTreeSet<CheckId> = ways.without.iter().map(|(id, _)| *id).collect();
        assert_eq!(with.intersection(&without).next(), None, "a way, and a reason why there is none");
        let named: BTreeSet<CheckId> = with.union(&without).copied().collect();
        assert_eq!(named, CheckId::ALL.iter().copied().collect(), "checks with a way or a reason, and all checks");
    }

    #[test]
    fn the_page_has_every_way() {
        let (page, ways) = (include_str!("../../../docs/truth.md"), ways().unwrap().all);
        let (_, part) = page.split_once(BEGIN).expect("the marker");
        let (part, _) = part.split_once(END).expect("the end marker");
        let (table, _) = part.split_once("Checks without").expect("the list of checks");
        let rows: Vec<&str> = table.lines().filter(|l| l.starts_with("| ")).skip(2).collect();
        assert_eq!(
            rows.len(),
            ways.len(),
            "renew it: cargo run -p loadline-bench -- spoil --only-docs --docs docs/truth.md"
        );
        for (row, way) in rows.iter().zip(&ways) {
            assert!(row.starts_with(&begin(way)) && row.contains(&must(&way.must)), "{}: {row}", way.name);
            assert!(!row.contains("**not tried**"), "{} was never run", way.name);
        }
    }
}
