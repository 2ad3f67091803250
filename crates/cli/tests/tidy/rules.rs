//! The rules, each with a breach of it to plant.

use crate::circles::circles;
use crate::dependencies::unused;
use crate::links::dead;
use crate::tree::{Tree, code, is_test};

/// What breaks a rule: a file, or several together.
pub(crate) struct Breach {
    pub(crate) paths: Vec<String>,
    pub(crate) what: String,
}

/// A rule of the tree.
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

/// All rules.
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
        says: "A workload never names a database.",
        breaches: |tree| {
            const DATABASES: [&str; 6] = ["postgres", "sqlite", "mysql", "mariadb", "oracle", "innodb"];
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
        says: "A crate uses only what lies below it (docs/ARCHITECTURE.md).",
        breaches: |tree| {
            let may =
                |folder: &str| USES.iter().find(|(name, _)| folder == format!("crates/{name}")).map(|(_, may)| *may);
            let checked = tree.crates().into_iter().filter_map(|folder| Some((folder, may(folder)?)));
            let wrong = |(folder, may): (&str, &[&str])| {
                let path = format!("{folder}/Cargo.toml");
                let used =
                    tree.files[&path].lines().filter_map(|l| l.strip_prefix("loadline-")?.split(['.', ' ']).next());
                let wrong = used.filter(|used| !may.contains(used)).map(|used| breach(&path, format!("uses {used}")));
                wrong.collect::<Vec<_>>()
            };
            checked.flat_map(wrong).collect()
        },
        applies: |folder| USES.iter().any(|(name, _)| folder == format!("crates/{name}")),
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
        says: "A crate uses each dependency that its Cargo.toml names.",
        breaches: |tree| {
            let of = |folder| unused(tree, folder).into_iter().map(move |what| (format!("{folder}/Cargo.toml"), what));
            tree.crates().into_iter().flat_map(of).map(|(path, what)| breach(&path, what)).collect()
        },
        applies: EVERYWHERE,
        planted: |_| vec![("Cargo.toml", "\n[dev-dependencies.planted_{n}]\nversion = \"1\"\n".to_owned())],
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
];

/// Which crates each crate may use; `cli` and `bench` may use all.
const USES: &[(&str, &[&str])] = &[
    ("model", &[]),
    ("workload", &["model"]),
    ("storage", &["model"]),
    ("logwriter", &["storage"]),
    ("database", &["model", "workload", "logwriter", "storage", "fibers"]),
    ("collect", &["model", "storage", "database"]),
    ("store", &["model"]),
    ("fibers", &["storage"]),
    ("load", &["model", "storage", "fibers", "workload", "database", "collect"]),
    ("agents", &["model", "storage", "workload", "database", "collect", "load"]),
    ("run", &["model", "workload", "storage", "database", "collect", "store", "load", "analyze"]),
    ("analyze", &["model"]),
    // The log writer in tests only: the simulated one is held against it.
    ("simulate", &["model", "logwriter"]),
    ("report", &["model", "store", "analyze", "simulate"]),
    ("exchange", &["model"]),
    ("live", &["model", "analyze", "storage", "report", "store"]),
    // In its tests only: loadline's own sessions are its clients.
    ("peer", &["database", "workload"]),
];

fn breach(path: &str, what: impl Into<String>) -> Breach {
    Breach { paths: vec![path.to_owned()], what: what.into() }
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
