//! The part of docs/truth.md that shows how every way came out.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use super::Tried;
use super::percentiles::{CASES, Percentiles};
use super::way::{Must, Way};
use super::ways::{WAYS, WITHOUT};
use crate::arena::Outcome;

const BEGIN: &str = "<!-- Written by `cargo run -p loadline-bench -- spoil --docs docs/truth.md`: from here -->\n";
const END: &str = "<!-- to here -->\n";
/// Longest text of a cell.
const CELL: usize = 240;

/// What is kept of all ways.
pub(super) struct Outcomes {
    pub(super) ways: Vec<Tried>,
    pub(super) percentiles: Vec<Percentiles>,
}

/// `page` with these outcomes between its markers.
pub(super) fn with(page: &str, all: &Outcomes) -> Outcome<String> {
    let (before, rest) = page.split_once(BEGIN).ok_or("the page has no marker")?;
    let (_, after) = rest.split_once(END).ok_or("the page has no end marker")?;
    Ok(format!("{before}{BEGIN}\n{}\n{END}{after}", part(all)))
}

fn part(all: &Outcomes) -> String {
    let tried = |name: &str| all.ways.iter().find(|t| t.name == name);
    let escapes = |way: &&Way| matches!(way.must, Must::Escape(_));
    let good = |way: &&Way| !escapes(way) && tried(way.name).is_some_and(|t| t.holds && t.clean.is_some());
    let of_all = |of: fn(&Tried) -> &str| {
        let all: BTreeSet<&str> = all.ways.iter().map(of).filter(|text| !text.is_empty()).collect();
        all.into_iter().collect::<Vec<_>>().join(", ")
    };
    let mut out = format!(
        "Run on {} (and SQLite, which is part of loadline), {}. {} ways: {} were caught or changed nothing, with a clean twin that is valid and unmarked; not caught: {}.\n\n\
         | way | what is done | how it must come out | seen | clean twin |\n| --- | --- | --- | --- | --- |\n",
        of_all(|t| &t.server),
        of_all(|t| &t.date),
        WAYS.len(),
        WAYS.iter().filter(good).count(),
        WAYS.iter().filter(escapes).count(),
    );
    for way in WAYS {
        let (seen, twin) = tried(way.name).map_or(("not tried".into(), "–".into()), |t| {
            let seen = if t.holds { cell(&t.seen) } else { format!("**otherwise**: {}", cell(&t.seen)) };
            let twin = match t.clean {
                None => format!("**marked**: {}", cell(&t.unclean)),
                Some(1) => "passes".to_owned(),
                Some(n) => format!("passes in run {n}"),
            };
            (seen, twin)
        });
        let _ = writeln!(out, "{} {} | {seen} | {twin} |", begin(way), must(&way.must));
    }
    out += "\nChecks without a way:\n\n";
    WITHOUT.iter().for_each(|(id, why)| out += &format!("- {id}: {why}\n"));
    out + "\n### Percentiles\n\n" + &percentiles(&all.percentiles)
}

/// The beginning of a way's row, which does not depend on how it came out.
fn begin(way: &Way) -> String {
    format!("| {} | {} |", way.name, way.does)
}

/// In words, how a way must come out.
fn must(must: &Must) -> String {
    match must {
        Must::Fail(id) => format!("invalid by {id}"),
        Must::Note(id) => format!("noted by {id}"),
        Must::Say(text) => format!("marked: '{text}'"),
        Must::Refuse(code, text) => format!("refused with exit code {code}: '{text}'"),
        Must::Show(column, least) => format!("shown by `{}`, {:.0} ms at least", column.id, least / 1e6),
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

fn percentiles(all: &[Percentiles]) -> String {
    let mut out = "| loop | stalls, s | transactions | percentile | must be, ms | loadline says, ms | ratio |\n\
                   | --- | --- | --- | --- | --- | --- | --- |\n"
        .to_owned();
    for case in CASES {
        let Some(p) = all.iter().find(|p| p.name == case.name) else { continue };
        let stalls = p.stalls_s.iter().map(|s| format!("{s:.3}")).collect::<Vec<_>>().join(", ");
        for (name, must, said) in &p.rows {
            let does = case.does;
            let _ = writeln!(
                out,
                "| {does} | {stalls} | {} | {name} | {must:.1} | {said:.1} | {:.3} |",
                p.count,
                said / must
            );
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use loadline_model::check::CHECKS;

    use super::*;

    #[test]
    fn each_check_has_a_way_or_a_reason() {
        let of_way = |way: &Way| match way.must {
            Must::Fail(id) | Must::Note(id) => Some(id),
            _ => None,
        };
        let with: BTreeSet<&str> = WAYS.iter().filter_map(of_way).collect();
        let without: BTreeSet<&str> = WITHOUT.iter().map(|(id, _)| *id).collect();
        assert_eq!(with.intersection(&without).next(), None, "a way, and a reason why there is none");
        let named: BTreeSet<&str> = with.union(&without).copied().collect();
        assert_eq!(
            named,
            CHECKS.into_iter().map(|(id, _)| id).collect(),
            "checks with a way or a reason, and all checks"
        );
    }

    #[test]
    fn the_page_has_every_way() {
        let page = include_str!("../../../docs/truth.md");
        let (_, part) = page.split_once(BEGIN).expect("the marker");
        let (part, _) = part.split_once(END).expect("the end marker");
        let (table, _) = part.split_once("Checks without").expect("the list of checks");
        let rows: Vec<&str> = table.lines().filter(|l| l.starts_with("| ")).skip(2).collect();
        assert_eq!(
            rows.len(),
            WAYS.len(),
            "renew it: cargo run -p loadline-bench -- spoil --only-docs --docs docs/truth.md"
        );
        for (row, way) in rows.iter().zip(WAYS) {
            assert!(row.starts_with(&begin(way)) && row.contains(&must(&way.must)), "{}: {row}", way.name);
            assert!(!row.contains("not tried"), "{} was never run", way.name);
        }
    }
}
