//! The rules, each with a breach of it to plant.

use std::collections::BTreeMap;

use crate::budget::{come_back, one_that_is_gone, over};
use crate::circles::circles;
use crate::ignored::differences;
use crate::links::dead;
use crate::tree::{Breach, Tree, breach, code, has_word, is_test};

pub(crate) struct Rule {
    pub(crate) says: &'static str,
    pub(crate) breaches: fn(&Tree) -> Vec<Breach>,
    /// Whether the rule is for the crate in this folder.
    pub(crate) applies: fn(&str) -> bool,
    /// Files that break it if they stand in this crate: path in the crate, and text. `{n}` becomes a number of the rule's
    /// own. The rule reports each of them.
    pub(crate) planted: fn(&str) -> Vec<(&'static str, String)>,
}

const EVERYWHERE: fn(&str) -> bool = |_| true;

pub(crate) const RULES: &[Rule] = &[
    Rule {
        says: "A file begins with a line of //! that says what it is.",
        breaches: |tree| {
            let bare = tree.rust().filter(|(path, text)| !text.starts_with("//!") && !path.ends_with("tests.rs"));
            bare.map(|(path, _)| breach(path, "no //! at its beginning")).collect()
        },
        applies: EVERYWHERE,
        planted: |_| vec![("src/planted{n}.rs", "fn f() {}\n".to_owned())],
    },
    Rule {
        says: "A file has 800 lines at most, or 'Long because …' in its header.",
        breaches: |tree| {
            let excused =
                |text: &str| text.lines().take_while(|l| l.starts_with("//!")).any(|l| l.contains("Long because"));
            let long = tree.rust().filter(|(_, text)| text.lines().count() > 800 && !excused(text));
            long.map(|(path, text)| breach(path, format!("{} lines: split it", text.lines().count()))).collect()
        },
        applies: EVERYWHERE,
        planted: |_| vec![("src/planted{n}.rs", format!("//! Long.\n{}", "// A line.\n".repeat(801)))],
    },
    Rule {
        says: "A file has 400 KiB at most: what is larger is not source, and stays in the history for ever.",
        breaches: |tree| {
            let large = tree.sizes.iter().filter(|(_, bytes)| **bytes > 400 << 10);
            large
                .map(|(path, bytes)| breach(path, format!("{bytes} bytes: fetch or make it where it is needed")))
                .collect()
        },
        applies: EVERYWHERE,
        planted: |_| vec![("planted{n}.bin", "x".repeat((400 << 10) + 1))],
    },
    Rule {
        says: "A crate keeps to its lines in budget.toml, and the budget falls with it.",
        breaches: over,
        // The peers of the log writer count as lines of `bench`.
        applies: |folder| folder != "bench/logwriter-peers",
        planted: |_| vec![("src/planted{n}.rs", format!("//! Long.\n{}", "\n".repeat(100_000)))],
    },
    Rule {
        says: "What is gone by budget.toml does not come back.",
        breaches: come_back,
        applies: EVERYWHERE,
        planted: |_| {
            let text = one_that_is_gone();
            vec![("src/planted{n}.rs", format!("//! {text}\n")), ("planted{n}.md", text)]
        },
    },
    Rule {
        says: "Nothing is left to do in comments: finish it, or file an issue.",
        breaches: |tree| {
            each_line(tree, EVERYWHERE, |line| unfinished().iter().any(|word| line.contains(word.as_str())))
        },
        applies: EVERYWHERE,
        planted: |_| vec![("src/planted{n}.rs", format!("//! A file.\n// {} later\n", unfinished()[0]))],
    },
    Rule {
        says: "Quotes are straight: '…' in messages, `…` in docs.",
        breaches: |tree| each_line(tree, EVERYWHERE, |line| line.contains(['\u{ab}', '\u{bb}'])),
        applies: EVERYWHERE,
        planted: |_| vec![("src/planted{n}.rs", "//! A \u{ab}file\u{bb}.\n".to_owned())],
    },
    Rule {
        says: "Names and words are the field's, and a doc comment begins with its thing: 'Commits per second', not 'The same, per second'.",
        breaches: home_made,
        applies: EVERYWHERE,
        planted: |_| {
            let text = |line: &str| format!("//! A file.\n{line}\n");
            vec![
                ("src/planted{n}a.rs", text("fn of(n: u32) -> u32 { n }")),
                ("src/planted{n}b.rs", text("    /// Its name.")),
                ("src/planted{n}c.rs", "//! What a file holds.\n".to_owned()),
                ("planted{n}.md", "A way and its twin.\n".to_owned()),
            ]
        },
    },
    Rule {
        says: "A workload never names a database.",
        breaches: |tree| {
            const DATABASES: [&str; 7] = ["postgres", "sqlite", "duckdb", "mysql", "mariadb", "oracle", "innodb"];
            let names = |line: &str| DATABASES.iter().any(|name| line.to_lowercase().contains(name));
            // pgbench is PostgreSQL's own, and its scripts are a language.
            let ours = |path: &str| path.starts_with("crates/workload/src/") && !path.contains("/script");
            each_line(tree, ours, names)
        },
        applies: |folder| folder == "crates/workload",
        planted: |_| vec![("src/planted{n}.rs", "//! Faster on PostgreSQL.\n".to_owned())],
    },
    Rule {
        says: "A database never branches on a workload's code: it goes by what the work needs.",
        breaches: |tree| {
            let of_database = |path: &str| path.starts_with("crates/database/src/") && !is_test(path);
            let files = tree.rust().filter(|(path, _)| of_database(path));
            let branching = |(path, text)| code(text).find(|l| branches_on_code(l)).map(|line| breach(path, line));
            files.filter_map(branching).collect()
        },
        applies: |folder| folder == "crates/database",
        planted: |_| {
            let text = |line: &str| format!("//! A file.\n{line}\n");
            vec![
                ("src/planted{n}a.rs", text("if work.code == \"LGWR-THR\" {}")),
                ("src/planted{n}b.rs", text("    \"DBL-22\" => 1,")),
                ("src/mysql/planted{n}c.rs", text("matches!(code, \"TP-MIXED\" | \"TP-HEAVY\")")),
                ("src/planted{n}d.rs", text("work.workload.code.starts_with(\"STO-\")")),
            ]
        },
    },
    Rule {
        says: "A reason is a value: its text is not compared, split or searched. Words of a server or another tool are not of ours.",
        breaches: |tree| {
            let ours = tree.rust().filter(|(path, _)| !is_test(path));
            let searching = |(path, text)| code(text).find(|l| searches_a_reason(l)).map(|line| breach(path, line));
            ours.filter_map(searching).collect()
        },
        applies: EVERYWHERE,
        planted: |_| {
            let text = |line: &str| format!("//! A file.\nfn f(note: &Note) -> bool {{ {line} }}\n");
            vec![
                ("src/planted{n}a.rs", text("note.to_string().contains(\"late\")")),
                ("src/planted{n}b.rs", text("check.detail.starts_with(\"3 of\")")),
                ("src/planted{n}c.rs", text("record.invalid_reason.as_deref() == Some(\"late\")")),
                ("src/planted{n}d.rs", text("why.split_once(\": \").is_some()")),
            ]
        },
    },
    Rule {
        says: "The text of a note, check or validity is made where it is printed: in report, live, cli and bench.",
        breaches: |tree| {
            let elsewhere = tree.rust().filter(|(path, _)| {
                !is_test(path) && path.split_once("/src/").is_some_and(|(folder, _)| prints_nothing(folder))
            });
            let making = |(path, text)| code(text).find(|l| makes_a_text(l)).map(|line| breach(path, line));
            elsewhere.filter_map(making).collect()
        },
        applies: prints_nothing,
        planted: |_| {
            let text = |line: &str| format!("//! A file.\nfn f() -> String {{ {line} }}\n");
            vec![("src/planted{n}a.rs", text("note.to_string()")), ("src/planted{n}b.rs", text("check.id.to_string()"))]
        },
    },
    Rule {
        says: "A crate uses only what lies below it (docs/ARCHITECTURE.md).",
        breaches: |tree| {
            let uses = uses(&tree.files["docs/ARCHITECTURE.md"]);
            let mut found = Vec::new();
            for folder in tree.crates().into_iter().filter(|folder| is_library(folder)) {
                let path = format!("{folder}/Cargo.toml");
                let Some(may) = uses.get(folder) else {
                    found.push(breach(&path, "its crate is not in the table"));
                    continue;
                };
                let used =
                    tree.files[&path].lines().filter_map(|l| l.strip_prefix("loadline-")?.split(['.', ' ']).next());
                found.extend(used.filter(|used| !may.contains(used)).map(|used| breach(&path, format!("uses {used}"))));
            }
            found
        },
        applies: is_library,
        planted: |_| vec![("Cargo.toml", "\n[dependencies.planted]\nloadline-cli.workspace = true\n".to_owned())],
    },
    Rule {
        says: "Files do not import each other in circles (a module and those inside it excepted): what both need goes below.",
        breaches: |tree| {
            let circles = tree.crates().into_iter().flat_map(|folder| circles(tree, folder));
            circles.map(|circle| Breach { paths: circle.members(), what: circle.to_string() }).collect()
        },
        applies: EVERYWHERE,
        planted: |_| {
            let imports = |other: &str| format!("//! A file.\nuse crate::planted{{n}}{other}::X;\npub struct X;\n");
            vec![
                ("src/planted{n}a.rs", imports("b")),
                ("src/planted{n}b.rs", "//! A file.\nuse super::{planted{n}c as c, y::Z};\n".to_owned()),
                ("src/planted{n}c/mod.rs", "//! A file.\nfn f() { crate::planted{n}a::X }\n".to_owned()),
            ]
        },
    },
    Rule {
        says: "A link in a document leads to a file of the tree and a heading in it; a page of the book, to one in docs/.",
        breaches: |tree| {
            let of = |path| dead(tree, path).into_iter().map(move |link| breach(path, format!("leads to {link}")));
            tree.documents().flat_map(of).collect()
        },
        applies: EVERYWHERE,
        planted: |_| {
            let page = |link: &str| format!("# A page\n[a page]({link})\n");
            vec![
                ("planted{n}a.md", page("nowhere.md")),
                ("planted{n}b.md", page("planted{n}a.md#a-heading")),
                ("planted{n}c.md", page("../../../../outside.md")),
            ]
        },
    },
    Rule {
        says: "A test that ./test leaves out is in docs/testing.md, with its cause.",
        breaches: |tree| differences(tree).into_iter().map(|(path, what)| breach(&path, what)).collect(),
        applies: EVERYWHERE,
        planted: |_| {
            let test = |attribute: &str| format!("//! A file.\n{attribute}\nfn planted() {{}}\n");
            vec![
                ("src/planted{n}a.rs", test("#[ignore]")),
                ("src/planted{n}b.rs", test("#[ignore = \"nightly: planted\"]")),
            ]
        },
    },
];

/// Home-made words and names, and the field's.
const HOME_MADE: [(&str, &str); 15] = [
    ("fn of", "a name with a subject"),
    ("struct Args", "the command's name before it, as several may be in a module tree"),
    ("calm", "outside checkpoints"),
    ("twin", "control run"),
    ("twins", "duplicates, control runs"),
    ("own tables", "workload tables"),
    ("told apart", "distinguished"),
    ("gone on with", "resumed"),
    ("held against", "compared with"),
    ("edges of the window", "window start and window end"),
    ("window's edge", "window start or window end"),
    ("passed_open", "after the window start"),
    ("passed_close", "after the window end"),
    ("come_in", "authenticate"),
    ("most_together", "max_parallel_workers"),
];

/// Uses of [`HOME_MADE`] outside of this file and of histories, and doc comments that do not begin with their thing.
fn home_made(tree: &Tree) -> Vec<Breach> {
    const NOT_READ: [&str; 4] =
        ["CHANGELOG.md", "budget.toml", "crates/cli/tests/net/kept/changed.toml", "crates/cli/tests/tidy/rules.rs"];
    let mut found = Vec::new();
    for (path, text) in tree.files.iter().filter(|(path, _)| !NOT_READ.contains(&path.as_str())) {
        let words = HOME_MADE.iter().filter(|(word, _)| has_word(text, word));
        found.extend(words.map(|(word, field)| breach(path, format!("'{word}': write {field}"))));
        let doc = |line: &str| {
            let said = line.trim_start();
            let said = said.strip_prefix("/// ").or_else(|| said.strip_prefix("//! "));
            said.is_some_and(|said| ["The same", "Its ", "What "].iter().any(|begin| said.starts_with(begin)))
        };
        found.extend(text.lines().filter(|line| doc(line)).map(|line| breach(path, line.trim_start())));
    }
    found
}

/// Names of what holds the text of a reason.
const REASONS: [&str; 11] = [
    "detail", "reason", "invalid_reason", "why", "note", "notes", "remark", "remarks", "because", "disturbed_by",
    "sentence",
];

/// Whether a line of code compares, splits or searches the text of a reason.
fn searches_a_reason(line: &str) -> bool {
    const BY: [&str; 8] =
        [".contains(", ".starts_with(", ".ends_with(", ".split", ".strip_", ".find(", " == \"", " == Some(\""];
    let bare =
        [".as_str()", ".as_deref()", ".to_string()", ".sentence()"].iter().fold(line.to_owned(), |line, as_text| {
            line.replace(as_text, if *as_text == ".sentence()" { ".sentence" } else { "" })
        });
    REASONS.iter().any(|name| BY.iter().any(|by| has_name(&bare, &format!("{name}{by}"))))
}

/// Whether `line` has `begin`, not as the end of a longer name.
fn has_name(line: &str, begin: &str) -> bool {
    line.match_indices(begin).any(|(at, _)| !line[..at].ends_with(|c: char| c.is_alphanumeric() || c == '_'))
}

/// Whether a line of code makes a text of a note, a check or a validity.
fn makes_a_text(line: &str) -> bool {
    ["note", "notes", "remark", "check.id", "c.id", "validity", "validity()", "data_source"]
        .iter()
        .any(|name| has_name(line, &format!("{name}.to_string()")))
}

/// Whether the crate in this folder makes no texts for readers.
fn prints_nothing(folder: &str) -> bool {
    folder.starts_with("crates/") && !["crates/report", "crates/live", "crates/cli"].contains(&folder)
}

/// All but the program and what is about it may use only some crates.
fn is_library(folder: &str) -> bool {
    folder.starts_with("crates/") && folder != "crates/cli"
}

/// Which crates each crate may use, by the table on the page about the architecture.
fn uses(page: &str) -> BTreeMap<String, Vec<&str>> {
    let of_row = |row| {
        let cells: Vec<&str> = str::split(row, " | ").collect();
        let [name, _, uses] = cells.as_slice() else { return None };
        let name = name.strip_prefix("| `")?.strip_suffix('`')?;
        Some((format!("crates/{name}"), uses.split('`').skip(1).step_by(2).collect()))
    };
    let table = page.lines().skip_while(|line| !line.starts_with("| crate |")).take_while(|line| line.starts_with('|'));
    table.filter_map(of_row).collect()
}

fn each_line(tree: &Tree, of: fn(&str) -> bool, bad: impl Fn(&str) -> bool) -> Vec<Breach> {
    let files = tree.rust().filter(|(path, _)| of(path));
    let lines = files.flat_map(|(path, text)| text.lines().enumerate().map(move |(i, line)| (path, i, line)));
    lines
        .filter(|(.., line)| bad(line))
        .map(|(path, i, line)| breach(path, format!("line {}: {line}", i + 1)))
        .collect()
}

/// Words that mark something unfinished, put together so that this file does not hold them.
fn unfinished() -> [String; 3] {
    [["TO", "DO"].concat(), ["FIX", "ME"].concat(), ["XX", "X:"].concat()]
}

/// Whether a line of code compares something with a workload's code. A message may name one for the reader.
fn branches_on_code(line: &str) -> bool {
    const GROUPS: [&str; 8] = ["SRV-", "STO-", "LGWR-", "DBWR-", "DBL-", "DA-", "TP-", "PLS-"];
    let names = GROUPS.iter().any(|group| line.contains(&format!("\"{group}")));
    names && ["==", "!=", "=>", "matches!(", "starts_with(", "contains("].iter().any(|by| line.contains(by))
}
