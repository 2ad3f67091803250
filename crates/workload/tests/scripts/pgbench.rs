//! Expressions and random numbers compared with what pgbench 15 sent to a server with the same seed.

use std::sync::Arc;

use loadline_workload::script::{Event, Mix, Script};

const SEED: u64 = 4711;

/// Statements of two clients in three transactions each; `None` if the script is refused or fails.
fn sent(expression: &str) -> Option<Vec<String>> {
    let script = Script::read("test", &format!("\\set v {expression}\nSELECT ':v';\n")).ok()?;
    let given = [("text", "41"), ("yes", "y"), ("half", "0.5"), ("bad", "abc")];
    let given = given.map(|(name, text)| (name.to_owned(), text.to_owned())).to_vec();
    let mix = Arc::new(Mix::new(vec![(script, 1)], given)?);
    let mut statements = Vec::new();
    for id in 0..2 {
        let mut client = mix.client(id, 2, SEED, 1);
        for _ in 0..3 {
            match client.advance().ok()? {
                Event::Statement(sql, None) => statements.push(sql["SELECT '".len()..sql.len() - 2].to_owned()),
                other => panic!("{other:?}"),
            }
            assert_eq!(client.advance(), Ok(Event::End));
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
