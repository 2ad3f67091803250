//! Statements of scripts, compared with the server's log of pgbench 15.18 with the same seed
//! (`pgbench -n -t 4 -c 1 --random-seed=4711`, `log_statement=all`; builtin scripts at scale 2).

use loadline_workload::script::{Client, Event, Script, builtin};

use crate::mix;

/// The only client of a script.
fn client(text: &str, scale: i64) -> Client {
    mix(&[(text, 1)], &[]).unwrap().client(0, 1, 4711, scale)
}

/// The statements of four transactions, words apart by one blank.
fn sent(text: &str, scale: i64) -> Vec<String> {
    let mut client = client(text, scale);
    let (mut statements, mut ended) = (Vec::new(), 0);
    while ended < 4 {
        match client.advance().unwrap() {
            Event::Statement(sql, None) => statements.push(words(&sql)),
            event => ended += i32::from(event == Event::End),
        }
    }
    statements
}

fn words(sql: &str) -> String {
    sql.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn logged(log: &str) -> Vec<String> {
    format!("\n{log}").split("\n> ").skip(1).map(words).collect()
}

#[test]
fn builtin_scripts_send_what_pgbench_sends() {
    for (name, log) in [
        ("tpcb-like", include_str!("scripts/tpcb-like.log")),
        ("simple-update", include_str!("scripts/simple-update.log")),
        ("select-only", include_str!("scripts/select-only.log")),
    ] {
        assert_eq!(sent(builtin(name).unwrap().1, 2), logged(log), "{name}");
    }
    assert_eq!((builtin("s"), builtin("nosuch")), (None, None));
}

#[test]
fn a_script_that_cannot_run_is_refused_with_its_place() {
    for (text, place, says) in [
        ("SELECT 1;\n\\set x 1 +", "f:2:11:", "an operand"),
        ("\\set x nosuch(1)", "f:1:8:", "unknown function"),
        ("SELECT 1;\n  \\shell ls", "f:2:3:", "refused"),
        ("\\setshell x ls", "f:1:1:", "refused"),
        ("\\startpipeline", "f:1:1:", "refused"),
        ("\\frob", "f:1:1:", "unknown command"),
        ("\\if 1\nSELECT 1;", "f:1:1:", "without \\endif"),
        ("\\if 1\n\\else\n\\elif 2\n\\endif", "f:3:1:", "after \\else"),
        ("\\endif", "f:1:1:", "without \\if"),
        ("\\gset", "f:1:1:", "must follow"),
        ("SELECT 1 \\gset\n\\gset", "f:2:1:", "must follow"),
        ("\\if 1\nSELECT 1;\n\\endif\n\\gset", "f:4:1:", "must follow"),
        ("SELECT 'open", "f:1:8:", "never ends"),
        ("\\sleep 5 h", "f:1:1:", "units"),
        ("\\set 9-x 1", "f:1:6:", "name"),
        (" \n", "f:1:1:", "no command"),
    ] {
        let message = Script::read("f", text).expect_err(text).to_string();
        assert!(message.starts_with(place) && message.contains(says), "{text:?}: {message}");
    }
    let deep = [format!("\\set x {}1", "(".repeat(100_000)), format!("\\set x 1{}", " + 1".repeat(100_000))];
    for text in deep {
        assert!(Script::read("f", &text).unwrap_err().to_string().contains("too deep"));
    }
    // Doubled quotes are no depth.
    Script::read("f", &format!("SELECT E'{}';\n", "''".repeat(150_000))).unwrap();
}

#[test]
fn gset_needs_one_row() {
    let mut client = client("SELECT 1 AS a \\gset", 1);
    let Ok(Event::Statement(_, Some(keep))) = client.advance() else { panic!("no statement") };
    assert!(client.keep(&keep, &["a".into()], &[]).is_err());
    assert!(client.keep(&keep, &["a".into()], &[vec![None], vec![None]]).is_err());
}

#[test]
fn no_text_panics() {
    let seeds: Vec<&str> = include_str!("features.txt")
        .split("#### ")
        .filter_map(|part| part.split_once('\n'))
        .map(|(_, text)| text.strip_suffix("\n####-\n").unwrap_or(text))
        .collect();
    for text in &seeds {
        Script::read("f", text).unwrap();
    }
    let spice: Vec<char> = "\\;:'\"$/*-(\n \u{e9}\u{1f600}9eE.%~<>".chars().collect();
    let mut random = loadline_model::random::Random::new(1);
    let mut place = |n: usize| random.below(n as u64) as usize;
    let (mut read, mut refused) = (0, 0);
    for n in 0..2000 {
        let mut text: Vec<char> = seeds[n % seeds.len()].chars().collect();
        for _ in 0..=n % 4 {
            let (at, with) = (place(text.len()), spice[place(spice.len())]);
            text[at] = with;
        }
        let text: String = text.into_iter().collect();
        if Script::read("f", &text).is_err() {
            refused += 1;
        } else {
            read += 1;
            let mut client = client(&text, 1);
            (0..20).for_each(|_| drop(client.advance()));
        }
    }
    assert!(read > 100 && refused > 100, "{read} read, {refused} refused");
}
