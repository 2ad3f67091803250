//! The example file is valid, and every way to break it is reported with its position.

use std::collections::BTreeMap;

use proptest::prelude::*;

use loadline_model::Capability;

use super::*;
use crate::limit::Limit;
use crate::params::ParamError;
use crate::program::{Effect, Generator, Step};
use crate::table::{Fill, RowCount};
use crate::{Workloads, find};
use loadline_model::plan::WorkloadFile;

const EXAMPLE: &str = include_str!("../../../../examples/queue.toml");

/// The error of `text`, and the text that it points at.
fn error(text: &str) -> (UserError, String) {
    let e = read("mine.toml", text, &[("TP-LIGHT", "the catalogue")]).expect_err(text);
    let line = text.lines().nth(e.line - 1).unwrap_or_default();
    assert!(e.to_string().starts_with(&format!("mine.toml:{}:{}: ", e.line, e.column)));
    let pointed = line.chars().skip(e.column - 1).collect();
    (e, pointed)
}

/// The example with `from` replaced by `to`.
fn with(from: &str, to: &str) -> String {
    assert!(EXAMPLE.contains(from), "the example has no '{from}'");
    EXAMPLE.replacen(from, to, 1)
}

#[derive(serde::Deserialize)]
struct Broken {
    cases: Vec<Case>,
}

#[derive(serde::Deserialize)]
struct Case {
    from: String,
    to: String,
    at: String,
    says: Vec<String>,
}

#[test]
fn what_is_wrong_is_named_at_its_place_with_what_is_allowed() {
    let broken: Broken = toml::from_str(include_str!("broken.toml")).unwrap();
    let mut missed = Vec::new();
    for Case { from, to, at, says } in broken.cases {
        let (e, pointed) = error(&with(&from, &to));
        let unsaid: Vec<String> = says.into_iter().filter(|part| !e.message.contains(part)).collect();
        if !pointed.starts_with(&at) || !unsaid.is_empty() {
            missed.push(format!("'{from}' → '{to}': '{e}' points at '{pointed}' and does not say {unsaid:?}"));
        }
    }
    assert!(missed.is_empty(), "{}", missed.join("\n"));
}

#[test]
fn texts_are_kept_without_the_blanks_around_them() {
    let visible = "visible = { rate = \"puts \", rows = \"batch\", query = \" SELECT 1 \" }";
    let w = read("queue.toml", &with("commit = \"wait\"", visible), &[]).unwrap();
    let visible = w.visible.unwrap();
    assert_eq!((visible.rate.as_str(), visible.query.as_str()), ("puts", "SELECT 1"));
}

#[test]
fn a_number_of_rows_may_lie_between_two() {
    let w = read("queue.toml", &with("{ change = 1 }", "{ change = [0, 1] }"), &[]).unwrap();
    let program = w.make(&w.params(&BTreeMap::new()).unwrap());
    assert!(program.statements.iter().any(|s| s.effect == Effect::ChangeBetween(0, 1)));
    assert!(w.needs.contains(&Capability::CountChanges) && program.varies());
}

#[test]
fn a_column_takes_what_fits_its_type() {
    for (kind, fill, expected) in [
        ("text", "{ words = 760 }", Fill::Words { length: 760, salt: 0, range: i64::MAX as u64 }),
        ("json", "{ words = 40, distinct = 7, salt = 3 }", Fill::Words { length: 40, salt: 3, range: 7 }),
        ("timestamp", "{ scattered = 3155760000 }", Fill::Scattered { salt: 0, range: 3_155_760_000 }),
        ("numeric", "{ constant = -999999999999999999 }", Fill::Constant(-999_999_999_999_999_999)),
        ("boolean", "{ scattered = 2, salt = 999 }", Fill::Scattered { salt: 999, range: 2 }),
        ("bytes", "{ payload = 2000 }", Fill::PayloadOf(2000)),
        ("bytes", "{ first-half = \"bytes\" }", Fill::FirstHalf("bytes".to_owned())),
    ] {
        let text = with("type = \"int\", fill = { constant = 5 }", &format!("type = \"{kind}\", fill = {fill}"));
        assert_eq!(read("x.toml", &text, &[]).unwrap().tables[1].columns[2].fill, expected, "{kind} {fill}");
    }
}

#[test]
fn the_example_is_a_workload() {
    let w = read("queue.toml", EXAMPLE, &[]).unwrap();
    assert_eq!((w.code.as_str(), w.tables.len(), w.params.len()), ("QUEUE", 2, 4));
    assert_eq!(w.group, "transaction-processing");
    assert_eq!(w.needs, [Capability::Rows, Capability::ReadRows, Capability::CommitWait]);
    assert_eq!((&w.tables[0].rows, &w.tables[1].rows), (&RowCount::Fixed(100), &RowCount::Empty));
    let program = w.make(&w.params(&BTreeMap::new()).unwrap());
    program.check().unwrap();
    assert_eq!((program.statements_per_tx(), program.rows_changed_per_tx()), (4, 4));
    assert!((program.writing_share() - 0.75).abs() < 1e-9, "three in four put");
    assert_eq!(w.limits, [Limit::Statements, Limit::Log]);
    assert_eq!(program.statements[0].effect, Effect::Change(1));
    let of = |given: [(&str, i64); 2]| {
        let given = given.into_iter().map(|(n, v)| (n.to_owned(), v)).collect();
        w.make(&w.params(&given).unwrap())
    };
    assert_eq!(of([("batch", 10), ("looks", 1)]).rows_changed_per_tx(), 11);
    let only_puts = of([("batch", 1), ("looks", 0)]);
    assert!((only_puts.writing_share() - 1.0).abs() < 1e-9, "what has no share is left out");
    let bytes = only_puts.vars().into_iter().find(|(v, _)| *v == "body").unwrap().1;
    assert_eq!(*bytes, Generator::Payload { bytes: 200 });
    assert!(matches!(only_puts.body.last(), Some(Step::Choose { arms, .. }) if arms.len() == 1));
}

#[test]
fn what_bounds_a_workload_follows_from_its_steps() {
    let limits = |step: &str, statement: &str| {
        let text = format!(
            "code = \"BOUND\"\nsummary = \"s\"\nprogram = [{{ bind = \"n\", to = \"sequence\" }}, {{ {step} }}]\n\
             [[table]]\nname = \"t\"\nrows = \"empty\"\ncolumn = [{{ name = \"id\", type = \"int\", fill = \"key\" }}]\n\
             {statement}"
        );
        read("mine.toml", &text, &[]).unwrap().limits
    };
    let look = "[[statement]]\nname = \"look\"\nsql = \"SELECT id FROM {t} WHERE id < :n\"\neffect = \"read-any\"\n";
    assert_eq!(limits("execute = \"look\"", look), [Limit::Statements]);
    assert_eq!(limits("bulk = \"t\", rows = 10", ""), [Limit::Log, Limit::Copy]);
    // Its parameters decide whether it writes.
    let put = format!(
        "{look}[[statement]]\nname = \"put\"\nsql = \"INSERT INTO {{t}} (id) VALUES (:n)\"\neffect = {{ change = 1 }}\n\
         [[parameter]]\nname = \"puts\"\ndefault = 0\nmin = 0\nmax = 9\nmeaning = \"rows\"\n"
    );
    let puts = "repeat = \"puts\", steps = [{ execute = \"put\" }] }, { execute = \"look\"";
    assert_eq!(limits(puts, &put), [Limit::Statements, Limit::Log]);
}

#[test]
fn parameters_that_do_not_fit_together_are_refused_with_the_line() {
    let text = EXAMPLE.replacen("{ repeat = \"batch\"", "{ repeat = \"max(9 / (batch - 500), 1)\"", 1);
    let w = read("mine.toml", &text, &[]).unwrap();
    let of = |batch| w.params(&BTreeMap::from([("batch".to_owned(), batch)]));
    assert_eq!(w.make(&of(502).unwrap()).rows_changed_per_tx(), 1 + 4);
    assert!(matches!(of(500), Err(ParamError::Unfit { why }) if why.starts_with("mine.toml:26:")));
}

#[test]
fn a_program_has_one_turn() {
    let by_turn = |inner: &str| {
        EXAMPLE
            .replacen("program = [", "program = [\n", 1)
            .replacen("{ choose = [", "{ by = \"turn\", choose = [", 1)
            .replacen("{ repeat = \"batch\", steps = [", "{ repeat = 1, steps = [", 1)
            .replacen("        { bind = \"seq\", to = \"sequence\" },\n", "", 1)
            .replacen("{ execute = \"look\" }", inner, 1)
    };
    read("mine.toml", &by_turn("{ execute = \"look\" }"), &[]).unwrap();
    let choose = |by: &str| {
        format!("{{ choose = [{{ share = 1, steps = [{{ execute = \"look\" }}] }}, {{ share = 1, steps = [] }}]{by} }}")
    };
    read("mine.toml", &by_turn(&choose("")), &[]).unwrap();
    let text = by_turn(&choose(", by = \"turn\""));
    let (e, pointed) = error(&text);
    let first = text.lines().position(|l| l.contains("by = \"turn\"")).unwrap() + 1;
    assert!(pointed.starts_with("\"turn\" }"), "{e} points at '{pointed}'");
    assert!(e.message.contains(&format!("line {first}")), "{e}");
}

#[test]
fn what_is_reckoned_from_a_new_key_is_one() {
    let text = with("rows = \"empty\"", "rows = 100").replacen(
        "{ bind = \"id\", to = \"new-key\" },",
        "{ bind = \"k\", to = \"new-key\" }, { bind = \"id\", to = { plus = [\"k\", 1] } },",
        1,
    );
    assert!(error(&text).0.message.contains("':id'"));
    // Rows that were taken out can be put back.
    read("x", &text.replacen("{ plus = [\"k\", 1] }", "{ row = \"message\" }", 1), &[]).unwrap();
}

#[test]
fn transactions_that_never_end_are_refused() {
    for (n, times, said) in [(4, 65_536, "10^19"), (2, 4_000, "steps"), (8, 1_000_000, "10^19")] {
        let open = format!("{{ repeat = {times}, steps = [").repeat(n);
        let deep = format!("{open}{{ execute = \"put\" }}{},", "] }".repeat(n));
        let (e, _) = error(&with("{ execute = \"put\" },", &deep));
        assert!(e.message.contains("10000000") && e.message.contains(said), "{e}");
    }
}

#[test]
fn a_text_is_one_workload_and_its_code_is_its_own() {
    let text = EXAMPLE.replacen("\"QUEUE\"", "\"QUEUE-ONCE\"", 1);
    let of = |texts: [&str; 2]| {
        let files = ["a.toml", "b.toml"].into_iter().zip(texts);
        Workloads::read(
            &files.map(|(name, text)| WorkloadFile { name: name.into(), text: text.into() }).collect::<Vec<_>>(),
        )
    };
    let one = of([&text, &text]).unwrap();
    assert_eq!(one.own.len(), 1, "the same text is the same workload");
    assert_eq!(one.find("queue-once").unwrap().code, "QUEUE-ONCE");
    assert!(one.find("lgwr-lat1").is_ok() && find("QUEUE-ONCE").is_err(), "the catalogue does not know it");
    let e = of([&text, &text.replacen("looks", "glances", 1)]).unwrap_err();
    assert!(e.file == "b.toml" && e.line > 1, "{e}");
    let e = of([&text, &text.replacen("puts batches", "puts many", 1)]).unwrap_err();
    assert!(e.message.contains("another workload file"), "{e}");
}

proptest! {
    #[test]
    fn never_panics(text in "\\PC{0,80}") {
        let _ = read("x", &text, &[]);
    }

    /// The example with a piece cut out, or another put in.
    #[test]
    fn never_panics_on_what_is_nearly_a_workload(at in 0..EXAMPLE.len(), len in 0..40_usize, put in "[\\[\\]{}=\"a-z0-9, \n]{0,6}") {
        if let (Some(head), Some(tail)) = (EXAMPLE.get(..at), EXAMPLE.get((at + len).min(EXAMPLE.len())..)) {
            let _ = read("x", &format!("{head}{put}{tail}"), &[]);
        }
    }
}

#[test]
fn an_arm_is_named_by_itself_or_by_the_parameter_of_its_share() {
    let names = |text: &str| -> Vec<String> {
        let workload = read("mine.toml", text, &[]).unwrap();
        let program = workload.make(&workload.params(&Default::default()).unwrap());
        program.kinds().into_iter().map(|(name, _)| name.to_owned()).collect()
    };
    let all: std::collections::BTreeSet<String> = names(EXAMPLE).into_iter().collect();
    assert!(all.len() > 1 && all.len() == names(EXAMPLE).len(), "{all:?}");
    let named = EXAMPLE.replacen("{ share = ", "{ name = \"first\", share = ", 1);
    assert_eq!(names(&named)[0], "first");
    let twice = EXAMPLE.replace("{ share = ", "{ name = \"first\", share = ");
    assert!(error(&twice).0.message.contains("'first'"));
}
