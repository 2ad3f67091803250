//! The example file is valid, and every way to break it is reported with its position.

use std::collections::BTreeMap;

use proptest::prelude::*;

use loadline_model::Capability;

use super::*;
use crate::limit::Limit;
use crate::params::ParamError;
use crate::program::{Effect, Generator, Step};
use crate::table::RowCount;
use crate::{find, register};

const EXAMPLE: &str = include_str!("../../../../docs/examples/queue.toml");

/// The error of the example with `from` replaced by `to`.
fn broken(from: &str, to: &str) -> UserError {
    assert!(EXAMPLE.contains(from), "the example has no '{from}'");
    let text = EXAMPLE.replacen(from, to, 1);
    read("mine.toml", &text, &[("TP-LIGHT", "the catalogue")]).expect_err(&format!("'{from}' → '{to}' is taken"))
}

/// Checks that this error points at `at` and contains `parts`.
fn says(from: &str, to: &str, at: &str, parts: &[&str]) {
    let e = broken(from, to);
    let text = EXAMPLE.replacen(from, to, 1);
    let line = text.lines().nth(e.line - 1).unwrap_or_default();
    let pointed: String = line.chars().skip(e.column - 1).collect();
    assert!(pointed.starts_with(at), "'{from}' → '{to}': {e} points at '{pointed}' instead of '{at}'");
    for part in parts {
        assert!(e.message.contains(part), "'{from}' → '{to}': '{e}' does not say '{part}'");
    }
    assert!(e.to_string().starts_with(&format!("mine.toml:{}:{}: ", e.line, e.column)));
}

#[test]
fn a_number_of_rows_may_lie_between_two() {
    let effect = |effect: &str| {
        let text = EXAMPLE.replacen("{ change = 1 }", effect, 1);
        assert_ne!(text, EXAMPLE);
        let w = read("queue.toml", &text, &[])?;
        let program = w.make(&w.params(&BTreeMap::new()).unwrap());
        let of = program.statements.iter().map(|s| s.effect).find(|e| matches!(e, Effect::ChangeBetween(..)));
        Ok::<_, UserError>((of, w.needs.contains(&Capability::CountChanges), program.varies()))
    };
    assert_eq!(effect("{ change = [0, 1] }").unwrap(), (Some(Effect::ChangeBetween(0, 1)), true, true));
    for wrong in [
        "{ change = [0] }", "{ change = [-1, 2] }", "{ change = [0, \"x\"] }", "{ change = [0, 0] }",
        "{ change = [5, 1] }",
    ] {
        assert!(effect(wrong).is_err(), "{wrong}");
    }
}

#[test]
fn a_fill_that_does_not_fit_its_type_is_refused() {
    let column = |kind: &str, fill: &str| {
        let text = format!(
            "code = \"X\"\nsummary = \"x\"\nprogram = [{{ execute = \"s\" }}]\n[[table]]\nname = \"t\"\nrows = 1\n\
             column = [{{ name = \"c\", type = \"int\", fill = \"key\" }}, {{ name = \"x\", type = \"{kind}\", fill = {fill} }}]\n\
             {}[[statement]]\nname = \"s\"\nsql = \"SELECT c FROM {{t}}\"\neffect = \"read-any\"\n",
            if fill.contains("words") { "indexes = [\"x\"]\n" } else { "" }
        );
        read("x.toml", &text, &[]).map(drop).map_err(|e| e.to_string())
    };
    for (kind, fill) in [
        ("text", "{ words = 760 }"),
        ("timestamp", "{ scattered = 3155760000 }"),
        ("numeric", "{ constant = -999999999999999999 }"),
        ("boolean", "{ scattered = 2 }"),
    ] {
        assert_eq!(column(kind, fill), Ok(()), "{kind} {fill}");
    }
    for (kind, fill) in [
        ("text", "{ words = 761 }"),
        ("text", "{ words = 39 }"),
        ("text", "{ words = 2001 }"),
        ("text", "\"zero\""),
        ("json", "{ words = 50 }"),
        ("timestamp", "{ scattered = 3155760001 }"),
        ("timestamp", "{ constant = -1 }"),
        ("numeric", "{ constant = 1000000000000000000 }"),
        ("boolean", "{ payload = 5 }"),
        ("date", "\"zero\""),
        ("int", "{ words = 50 }"),
        ("text", "{ words = 50, distinct = 0 }"),
        ("boolean", "\"key\""),
    ] {
        assert!(column(kind, fill).is_err(), "{kind} {fill}");
    }
}

#[test]
fn the_example_is_a_workload() {
    let w = read("queue.toml", EXAMPLE, &[]).unwrap();
    assert_eq!((w.code, w.group, w.tables.len(), w.params.len()), ("QUEUE", "transaction-processing", 2, 4));
    assert_eq!(w.needs, [Capability::Rows, Capability::ReadRows, Capability::CommitWait]);
    assert_eq!((w.tables[0].rows, w.tables[1].rows), (RowCount::Fixed(100), RowCount::Empty));
    let program = w.make(&w.params(&BTreeMap::new()).unwrap());
    program.check().unwrap();
    assert_eq!((program.statements_per_tx(), program.rows_changed_per_tx()), (4, 4));
    assert!((program.writing_share() - 0.75).abs() < 1e-9, "three in four put");
    assert_eq!(w.limits(), [Limit::Statements, Limit::Log]);
    assert_eq!(program.statements[0].effect, Effect::Change(1));
    let of = |given: [(&str, i64); 2]| {
        let given = given.into_iter().map(|(n, v)| (n.to_owned(), v)).collect();
        w.make(&w.params(&given).unwrap())
    };
    assert_eq!(of([("batch", 10), ("looks", 1)]).rows_changed_per_tx(), 11);
    let only_puts = of([("batch", 1), ("looks", 0)]);
    assert!((only_puts.writing_share() - 1.0).abs() < 1e-9, "what has no share is left out");
    let bytes = only_puts.vars().into_iter().find(|(v, _)| *v == "body").unwrap().1;
    assert_eq!(bytes, Generator::Payload { bytes: 200 });
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
        read("mine.toml", &text, &[]).unwrap().limits()
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
fn names_and_keys_that_are_wrong_get_the_nearest() {
    says("summary =", "sumary =", "sumary", &["no key 'sumary'", "did you mean 'summary'", "known: code"]);
    says("updated-in-place = true", "updated = true", "updated", &["a table has no key 'updated'"]);
    says(
        "type = \"int\", fill = \"key\"",
        "type = \"integer\", fill = \"key\"",
        "\"integer\"",
        &["'integer'", "int, bytes"],
    );
    says("fill = \"zero\"", "fill = \"null\"", "\"null\"", &["'null'", "key, zero"]);
    says("{ execute = \"count\" }", "{ execute = \"cuont\" }", "\"cuont\"", &["'cuont'", "did you mean 'count'"]);
    says("{ repeat = \"batch\"", "{ repeat = \"batsh\"", "\"batsh\"", &["parameter 'batsh'", "did you mean 'batch'"]);
    says("INTO {message}", "INTO {mesage}", "\"INSERT", &["table 'mesage'", "did you mean 'message'"]);
    says("to = { row = \"channel\" }", "to = { row = \"chanel\" }", "\"chanel\"", &["'chanel'", "channel"]);
    says("indexes = [\"channel\"]", "indexes = [\"chanel\"]", "\"chanel\"", &["column", "did you mean 'channel'"]);
    says(
        "column = \"rows_per_s\"",
        "column = \"row_per_s\"",
        "\"row_per_s\"",
        &["no column 'row_per_s'", "rows_per_s"],
    );
    says("commit = \"wait\"", "commit = \"later\"", "\"later\"", &["'later'", "wait, nowait"]);
    says("commit = \"wait\"", "group = \"queues\"", "\"queues\"", &["'queues'", "transaction-processing"]);
    says("{ execute = \"count\" }", "{ exec = \"count\" }", "exec", &["no key 'exec'", "did you mean 'execute'"]);
    says("to = \"new-key\"", "to = \"newkey\"", "\"newkey\"", &["'newkey'", "did you mean 'new-key'"]);
}

#[test]
fn variables_statements_and_effects_must_fit() {
    let unbound = "{ bind = \"messages\", to = { constant = \"batch\" } },\n      ";
    says(unbound, "", "\"UPDATE", &["variable 'messages'", "'count'", "not bound"]);
    says("effect = { read = 1 }", "effect = { change = 1 }", "{ change", &["'look'", "SELECT", "read = ROWS"]);
    says("effect = { change = 1 }", "effect = \"read-any\"", "\"read-any\"", &["'count'", "UPDATE", "change = ROWS"]);
    says("effect = { change = 1 }", "effect = { change = 0 }", "0", &["is 0", "between 1"]);
    says(
        "WHERE id = :channel\"\neffect = { change",
        "WHERE id = {channel\"\neffect = { change",
        "\"UPDATE",
        &["opening brace"],
    );
    says(
        "sql = \"SELECT topic",
        "sql = \"DROP topic",
        "\"DROP",
        &["starts with 'DROP'", "SELECT, INSERT, UPDATE or DELETE"],
    );
    says(
        "WHERE id = :channel\"\neffect = { read",
        "WHERE id = :channel; COMMIT\"\neffect = { read",
        "\"SELECT",
        &["semicolon"],
    );
    says(
        "{ share = \"looks\", steps = [{ execute = \"look\" }] }",
        "{ share = \"looks\", steps = [] }",
        "\"look\"",
        &["never executed"],
    );
    says("{ bind = \"seq\", to = \"sequence\" },\n  {", "{", "{ row", &["'channel' depends on the sequence"]);
    says("{ execute = \"count\" },", "{ execute = \"count\", steps = [] },", "steps", &["no key 'steps'"]);
    says(
        "to = { payload = \"bytes\" } },",
        "to = { payload = \"bytes\" } }, { bind = \"body\", to = \"new-key\" },",
        "\"body\"",
        &["to numbers and to bytes"],
    );
    says("INTO {message}", "INTO {renew body body}", "\"INSERT", &["only an UPDATE can renew columns"]);
    says("to = { row = \"channel\" }", "to = { row = \"message\" }", "\"message\"", &["'row' needs"]);
    says("to = { row = \"channel\" }", "to = { own-row = \"channel\" }", "\"channel\"", &["own no rows", "'row'"]);
    says("uniform = [1, 9]", "uniform = [9, 1]", "[9, 1]", &["first is above"]);
    says(
        "FROM {message}) m\"\ncounts",
        "FROM {message} WHERE id = :id) m\"\ncounts",
        "\"SELECT",
        &["variable 'id'", "use only parameters"],
    );
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
fn one_turn_and_no_name_of_loadlines_own() {
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
    let e = read("mine.toml", &text, &[]).unwrap_err();
    let line = text.lines().nth(e.line - 1).unwrap();
    let pointed: String = line.chars().skip(e.column - 1).collect();
    let first = text.lines().position(|l| l.contains("by = \"turn\"")).unwrap() + 1;
    assert!(pointed.starts_with("\"turn\" }"), "{e} points at '{pointed}'");
    assert!(e.message.contains(&format!("line {first}")) && e.message.contains("one turn"), "{e}");
    says(
        "{ bind = \"priority\", to",
        "{ bind = \"choice_1\", to",
        "\"choice_1\"",
        &["'choice_1' is not allowed", "loadline's own"],
    );
}

#[test]
fn new_keys_take_an_empty_table_without_bulks() {
    says(
        "rows = \"empty\"",
        "rows = 100",
        "\"INSERT INTO {message}",
        &["'put'", "new key ':id'", "'message'", "not emptied", "\"empty\""],
    );
    let bulk = "{ execute = \"put\" },\n        { bulk = \"message\", rows = 2 },";
    says("{ execute = \"put\" },", bulk, "\"INSERT INTO {message}", &["'put'", "'message'", "in bulk"]);
    // What is reckoned from a new key is one.
    let text = EXAMPLE.replacen("rows = \"empty\"", "rows = 100", 1).replacen(
        "{ bind = \"id\", to = \"new-key\" },",
        "{ bind = \"k\", to = \"new-key\" }, { bind = \"id\", to = { plus = [\"k\", 1] } },",
        1,
    );
    assert!(read("x", &text, &[]).unwrap_err().message.contains("new key ':id'"));
    // Rows that were taken out can be put back.
    let text = text.replacen("{ plus = [\"k\", 1] }", "{ row = \"message\" }", 1);
    read("x", &text, &[]).unwrap();
}

#[test]
fn transactions_that_never_end_are_refused() {
    let deep = |n: usize, times: u32| {
        let open = format!("{{ repeat = {times}, steps = [").repeat(n);
        format!("{open}{{ execute = \"put\" }}{},", "] }".repeat(n))
    };
    for (n, times, said) in [(4, 65_536, "more than 10^19"), (2, 4_000, "steps"), (8, 1_000_000, "more than")] {
        let to = deep(n, times);
        says("{ execute = \"put\" },", &to, "[", &["the limit is 10000000", said]);
    }
    let empty = "{ execute = \"put\" }, { repeat = 1000000, steps = [{ repeat = 1000000, steps = [] }] },";
    says("{ execute = \"put\" },", empty, "[", &["the limit is 10000000"]);
}

#[test]
fn tables_and_parameters_must_fit() {
    says("name = \"message\"", "name = \"channel\"", "\"channel\"", &["table 'channel' is defined twice"]);
    says("name = \"bytes\"", "name = \"batch\"", "\"batch\"", &["parameter 'batch' is defined twice"]);
    says("name = \"topic\"", "name = \"id\"", "\"id\"", &["column 'id' is defined twice"]);
    says("name = \"put\"", "name = \"count\"", "\"count\"", &["statement 'count' is defined twice"]);
    says(
        "type = \"int\", fill = \"key\"",
        "type = \"int\", fill = \"zero\"",
        "\"zero\"",
        &["'channel' needs a primary key"],
    );
    says(
        "type = \"bytes\", fill = { payload = \"bytes\" }",
        "type = \"bytes\", fill = \"zero\"",
        "\"zero\"",
        &["'body'", "bytes take a payload"],
    );
    says("rows = 100", "rows = -5", "-5", &["rows", "is -5", "between 1"]);
    says("rows = 100", "rows = \"many\"", "\"many\"", &["'many'", "empty"]);
    says("rows = 100", "rows = { total = \"looks\" }", "\"looks\"", &["'looks' can be 0 to 100", "narrow"]);
    says(
        "default = 3\nmin = 1\nmax = 1000",
        "default = 0\nmin = 1\nmax = 1000",
        "0",
        &["default", "is 0", "between 1 and 1000"],
    );
    says("max = 2000", "max = 5000", "\"bytes\"", &["between 1 and 2000", "'bytes' can be 1 to 5000"]);
    says("name = \"topic\"", "name = \"to\\\"pic\"", "\"to", &["is not allowed", "a to z"]);
    says("name = \"topic\"", "name = \"a_name_that_no_database_takes\"", "\"a_name", &["the limit is 20"]);
    says("code = \"QUEUE\"", "code = \"QUEUE; DROP\"", "\"QUEUE; DROP\"", &["A to Z"]);
    says("code = \"QUEUE\"", "code = \"TP-LIGHT\"", "\"TP-LIGHT\"", &["the catalogue has a workload TP-LIGHT"]);
    says("code = \"QUEUE\"", "code = 7", "7", &["a string in quotes", "integer"]);
    says("code = \"QUEUE\"\n", "", "", &["needs the key 'code'"]);
    says("code = \"QUEUE\"", "code = \"QUEUE", "", &[]);
}

#[test]
fn a_file_is_registered_once_and_its_code_is_its_own() {
    let text = EXAMPLE.replacen("\"QUEUE\"", "\"QUEUE-ONCE\"", 1);
    let w = register("a.toml", &text).unwrap();
    assert!(std::ptr::eq(w, register("b.toml", &text).unwrap()), "the same text is the same workload");
    assert!(std::ptr::eq(w, find("queue-once").unwrap()));
    let other = text.replacen("looks", "glances", 1);
    let e = register("c.toml", &other).unwrap_err();
    assert!(e.file == "c.toml" && e.line > 1, "{e}");
    let other = text.replacen("puts batches", "puts many", 1);
    assert!(register("c.toml", &other).unwrap_err().message.contains("another workload file"));
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
