//! Expressions and random numbers compared with what pgbench 15 sent to a server with the same seed.

use loadline_workload::script::Event;

use crate::mix;

/// Statements that two clients with the same seed send in three transactions each; `None` if the script is refused or fails.
fn sent(expression: &str) -> Option<Vec<String>> {
    let given = [("text", "41"), ("yes", "y"), ("half", "0.5"), ("bad", "abc")];
    let mix = mix(&[(&format!("\\set v {expression}\nSELECT ':v';\n"), 1)], &given)?;
    let mut statements = Vec::new();
    for id in 0..2 {
        let mut client = mix.client(id, 2, 4711, 1);
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
    let golden = include_str!("pgbench15.txt").lines().filter(|l| !l.starts_with('#'));
    let cases: Vec<(&str, &str)> = golden.map(|l| l.split_once('\t').unwrap()).collect();
    assert!(cases.len() > 150);
    let mut wrong = Vec::new();
    for (expression, expected) in cases {
        let sorted = || {
            let mut values: Vec<String> = expected.trim_end_matches('|').split('|').map(str::to_owned).collect();
            values.sort();
            values
        };
        let (ours, expected) = (sent(expression), (expected != "error").then(sorted));
        if ours != expected {
            wrong.push(format!("{expression}: pgbench {expected:?}, ours {ours:?}"));
        }
    }
    assert!(wrong.is_empty(), "{} differ\n{}", wrong.len(), wrong.join("\n"));
}
