//! Expressions and random numbers held against what pgbench 15 sent to a server with the same seed.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use loadline_script::{Event, Machine, Random, Script, Value, Variables};

const SEED: u64 = 4711;

/// What two clients send in three transactions each; `None` if the script is refused or fails.
fn sent(expression: &str) -> Option<Vec<String>> {
    let script = Script::read("test", &format!("\\set v {expression}\nSELECT ':v';\n")).ok()?;
    let mut base = Random::new(SEED);
    let clients: Vec<Random> = (0..2).map(|_| base.split()).collect();
    let default_seed = base.next_u64().cast_signed();
    let mut statements = Vec::new();
    for (id, random) in clients.into_iter().enumerate() {
        let mut variables = Variables::default();
        for (name, text) in [("text", "41"), ("yes", "y"), ("half", "0.5"), ("bad", "abc")] {
            variables.set_text(name, text);
        }
        variables.set("scale", Value::Int(1));
        variables.set("client_id", Value::Int(i64::try_from(id).unwrap()));
        variables.set("random_seed", Value::Int(SEED.cast_signed()));
        variables.set("default_seed", Value::Int(default_seed));
        let mut machine = Machine::new(variables, random);
        for _ in 0..3 {
            match machine.next(&script).ok()? {
                Event::Statement(sql, None) => statements.push(sql["SELECT '".len()..sql.len() - 2].to_owned()),
                other => panic!("{other:?}"),
            }
            assert_eq!(machine.next(&script), Ok(Event::End));
        }
    }
    statements.sort();
    Some(statements)
}

#[test]
fn expressions_have_the_values_that_pgbench_sends() {
    let golden = include_str!("pgbench15.txt");
    let cases: Vec<(&str, &str)> =
        golden.lines().filter(|l| !l.starts_with('#')).map(|l| l.split_once('\t').unwrap()).collect();
    assert!(cases.len() > 150);
    let mut wrong = Vec::new();
    for (expression, expected) in cases {
        let mut expected: Option<Vec<String>> =
            (expected != "error").then(|| expected.trim_end_matches('|').split('|').map(str::to_owned).collect());
        if let Some(values) = &mut expected {
            values.sort();
        }
        let ours = sent(expression);
        if ours != expected {
            wrong.push(format!("{expression}: pgbench {expected:?}, ours {ours:?}"));
        }
    }
    assert!(wrong.is_empty(), "{} differ\n{}", wrong.len(), wrong.join("\n"));
}
