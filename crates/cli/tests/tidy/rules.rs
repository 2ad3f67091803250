//! The rules, each with a breach of it to plant.

use std::collections::BTreeMap;

use crate::budget::{come_back, one_that_is_gone, over};
use crate::circles::circles;
use crate::ignored::differences;
use crate::links::dead;
use crate::spine::bent;
use crate::tree::{Breach, Tree, breach, code, has_word, is_test};

pub(crate) struct Rule {
    pub(crate) says: &'static str,
    pub(crate) breaches: fn(&Tree) -> Vec<Breach>,
    /// Whether the rule is for the crate in this folder.
    pub(crate) applies: fn(&str) -> bool,
    /// Files that break it if they stand in such a crate: path in the crate, and text. `{n}` becomes a number of the rule's
    /// own. The rule reports each of them.
    pub(crate) planted: fn() -> Vec<(String, String)>,
}

/// A rule for every crate.
const fn rule(says: &'static str, breaches: fn(&Tree) -> Vec<Breach>, planted: fn() -> Vec<(String, String)>) -> Rule {
    Rule { says, breaches, applies: |_| true, planted }
}

pub(crate) const RULES: &[Rule] = &[
    rule(
        "A file begins with a line of //! that says what it is.",
        |tree| {
            let bare = tree.rust().filter(|(path, text)| !text.starts_with("//!") && !path.ends_with("tests.rs"));
            bare.map(|(path, _)| breach(path, "no //! at its beginning")).collect()
        },
        || vec![file("src/planted{n}.rs", "fn f() {}\n")],
    ),
    rule(
        "A file has 800 lines at most, or 'Long because …' in its header.",
        |tree| {
            let excused =
                |text: &str| text.lines().take_while(|l| l.starts_with("//!")).any(|l| l.contains("Long because"));
            let long = tree.rust().filter(|(_, text)| text.lines().count() > 800 && !excused(text));
            long.map(|(path, text)| breach(path, format!("{} lines: split it", text.lines().count()))).collect()
        },
        || each(&[&"// A line.\n".repeat(801)]),
    ),
    rule(
        "A file has 400 KiB at most: what is larger is not source, and stays in the history for ever.",
        |tree| {
            let large = tree.sizes.iter().filter(|(_, bytes)| **bytes > 400 << 10);
            large
                .map(|(path, bytes)| breach(path, format!("{bytes} bytes: fetch or make it where it is needed")))
                .collect()
        },
        || vec![file("planted{n}.bin", &"x".repeat((400 << 10) + 1))],
    ),
    rule("A crate keeps to its lines in budget.toml, and the budget falls with it.", over, || {
        each(&[&"\n".repeat(100_000)])
    }),
    rule("What is gone by budget.toml does not come back.", come_back, || {
        ["src/planted{n}.rs", "planted{n}.md"].map(|path| file(path, &format!("//! {}\n", one_that_is_gone()))).into()
    }),
    rule(
        "Nothing is left to do in comments: finish it, or file an issue.",
        |tree| each_line(tree, |_| true, |line| unfinished().iter().any(|word| line.contains(word.as_str()))),
        || each(&[&format!("// {} later", unfinished()[0])]),
    ),
    rule(
        "Names and words are the field's, and a doc comment begins with its thing: 'Commits per second', not 'The same, per second'.",
        home_made,
        || {
            let mut planted = each(&[&["fn ", "of(n: u32) -> u32 { n }"].concat(), "    /// Its name."]);
            planted.push(file("src/planted{n}c.rs", "//! What a file holds.\n"));
            planted.push(file("planted{n}.md", &["A way and its tw", "in.\n"].concat()));
            planted
        },
    ),
    rule(
        "Quotes are straight: '…' in messages, `…` in docs.",
        |tree| each_line(tree, |_| true, |line| line.contains(['\u{ab}', '\u{bb}'])),
        || each(&["//! A \u{ab}file\u{bb}."]),
    ),
    Rule {
        applies: |folder| folder == "crates/workload",
        ..rule(
            "A workload never names a database.",
            |tree| {
                const DATABASES: [&str; 7] = ["postgres", "sqlite", "duckdb", "mysql", "mariadb", "oracle", "innodb"];
                let names = |line: &str| DATABASES.iter().any(|name| line.to_lowercase().contains(name));
                // pgbench is PostgreSQL's own, and its scripts are a language.
                let ours = |path: &str| path.starts_with("crates/workload/src/") && !path.contains("/script");
                each_line(tree, ours, names)
            },
            || each(&["//! Faster on PostgreSQL."]),
        )
    },
    Rule {
        applies: |folder| folder == "crates/database",
        ..rule(
            "A database never branches on a workload's code: it goes by what the work needs.",
            |tree| in_code(tree, |path| path.starts_with("crates/database/src/"), branches_on_code),
            || {
                each(&[
                    "if work.code == \"LGWR-THR\" {}",
                    "    \"DBL-22\" => 1,",
                    "matches!(code, \"TP-MIXED\" | \"TP-HEAVY\")",
                    "work.workload.code.starts_with(\"STO-\")",
                ])
            },
        )
    },
    rule(
        "A condition is an if, a match guard or a branch: no `.filter` of what is not looked at.",
        |tree| in_code(tree, |_| true, |line| line.contains("filter(|_|")),
        || each(&["found.filter(|_| wanted)"]),
    ),
    rule(
        "A reason is a value: its text is not compared, split or searched. Words of a server or another tool are not of ours.",
        |tree| in_code(tree, |_| true, searches_a_reason),
        || {
            each(&[
                "note.to_string().contains(\"late\")",
                "check.detail.starts_with(\"3 of\")",
                "record.invalid_reason.as_deref() == Some(\"late\")",
                "why.split_once(\": \").is_some()",
            ])
        },
    ),
    Rule {
        applies: prints_nothing,
        ..rule(
            "The text of a note, check or validity is made where it is printed: in report, live, cli and bench.",
            |tree| {
                let of = |path: &str| path.split_once("/src/").is_some_and(|(folder, _)| prints_nothing(folder));
                in_code(tree, of, makes_a_text)
            },
            || each(&["note.to_string()", "check.id.to_string()"]),
        )
    },
    Rule {
        applies: is_library,
        ..rule("A crate uses only what lies below it (docs/ARCHITECTURE.md).", uses_above, || {
            vec![file("Cargo.toml", "\n[dependencies.planted]\nloadline-cli.workspace = true\n")]
        })
    },
    rule(
        "Files do not import each other in circles (a module and those inside it excepted): what both need goes below.",
        |tree| tree.crates().into_iter().flat_map(|folder| circles(tree, folder)).collect(),
        || {
            vec![
                file("src/planted{n}a.rs", "//! A file.\nuse crate::planted{n}b::X;\npub struct X;\n"),
                file("src/planted{n}b.rs", "//! A file.\nuse super::{planted{n}c as c, y::Z};\n"),
                file("src/planted{n}c/mod.rs", "//! A file.\nfn f() { crate::planted{n}a::X }\n"),
            ]
        },
    ),
    Rule {
        applies: |folder| folder == "crates/load",
        ..rule(
            "The spine is short, and none of its files names what only a feature knows (docs/spine.toml).",
            bent,
            || vec![file("src/lib.rs", "// Agents run others.\n")],
        )
    },
    rule(
        "A link in a document leads to a file of the tree and a heading in it; a page of the book, to one in docs/.",
        |tree| {
            let of = |path| dead(tree, path).into_iter().map(move |link| breach(path, format!("leads to {link}")));
            tree.documents().flat_map(of).collect()
        },
        || {
            let page = |path, link: &str| file(path, &format!("# A page\n[a page]({link})\n"));
            vec![
                page("planted{n}a.md", "nowhere.md"),
                page("planted{n}b.md", "planted{n}a.md#a-heading"),
                page("planted{n}c.md", "../../../../outside.md"),
            ]
        },
    ),
    rule(
        "A test that ./test leaves out is in docs/testing.md, with its cause.",
        |tree| differences(tree).into_iter().map(|(path, what)| breach(&path, what)).collect(),
        || each(&["#[ignore]\nfn planted() {}", "#[ignore = \"nightly: planted\"]\nfn planted() {}"]),
    ),
];

/// Home-made words and names, and the field's.
const HOME_MADE: &str = include_str!("words.txt");

/// Uses of [`HOME_MADE`] outside of that file and of histories, and doc comments that do not begin with their thing.
fn home_made(tree: &Tree) -> Vec<Breach> {
    const NOT_READ: [&str; 4] =
        ["CHANGELOG.md", "budget.toml", "crates/cli/tests/net/kept/changed.toml", "crates/cli/tests/tidy/words.txt"];
    let mut found = Vec::new();
    for (path, text) in tree.files.iter().filter(|(path, _)| !NOT_READ.contains(&path.as_str())) {
        let words = HOME_MADE.lines().filter_map(|line| line.split_once(": ")).filter(|(word, _)| has_word(text, word));
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

fn file(path: &str, text: &str) -> (String, String) {
    (path.to_owned(), text.to_owned())
}

/// A file to plant for each of these texts, after a line that says what it is.
fn each(texts: &[&str]) -> Vec<(String, String)> {
    let planted = |(text, name)| file(&format!("src/planted{{n}}{name}.rs"), &format!("//! A file.\n{text}\n"));
    texts.iter().zip('a'..).map(planted).collect()
}

/// Crates that use what does not lie below them.
fn uses_above(tree: &Tree) -> Vec<Breach> {
    let uses = uses(&tree.files["docs/ARCHITECTURE.md"]);
    let mut found = Vec::new();
    for folder in tree.crates().into_iter().filter(|folder| is_library(folder)) {
        let path = format!("{folder}/Cargo.toml");
        let Some(may) = uses.get(folder) else {
            found.push(breach(&path, "its crate is not in the table"));
            continue;
        };
        let used = tree.files[&path].lines().filter_map(|l| l.strip_prefix("loadline-")?.split(['.', ' ']).next());
        found.extend(used.filter(|used| !may.contains(used)).map(|used| breach(&path, format!("uses {used}"))));
    }
    found
}

/// Files outside of tests of which a line of code is `bad`, with the first such line.
fn in_code(tree: &Tree, of: fn(&str) -> bool, bad: fn(&str) -> bool) -> Vec<Breach> {
    let files = tree.rust().filter(|(path, _)| !is_test(path) && of(path));
    files.filter_map(|(path, text)| code(text).find(|line| bad(line)).map(|line| breach(path, line))).collect()
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
