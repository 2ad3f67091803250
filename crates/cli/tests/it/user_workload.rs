//! Workloads of users: the documented example runs end to end, is resumed without its file, and a broken file
//! starts nothing.

use std::path::{Path, PathBuf};

use crate::common::figures::{all_passed, check, passed};
use crate::common::{Ran, Server, leftovers, ok, on, printed, report, results, run, sound_tests, tests_of};

fn example() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/examples/queue.toml").canonicalize().unwrap()
}

/// Runs a workload file for a moment; `more` are further words.
fn run_file(file: &Path, target: &str, results: &Path, more: &str) -> Ran {
    let short = "--duration 500ms --warmup 200ms --no-probe";
    on(target, results, &format!("--workload-file {} {short} {more}", file.display()))
}

#[test]
fn every_part_of_the_language_is_proved_on_every_database_with_tables() {
    let (dir, files) = (results(), results());
    let (unix, json) = ("EXTRACT(EPOCH FROM at) - 946684800", "doc ->> 'id'");
    for (target, driver, at, doc) in [
        ("sqlite:", "client", "unixepoch(at) - 946684800", "CONCAT(doc ->> 'id', '')"),
        ("postgres-temp:", "client", unix, json),
        ("postgres-temp:", "database", unix, json),
        ("mariadb-temp:", "client", "TIMESTAMPDIFF(SECOND, '2000-01-01', at)", "JSON_VALUE(doc, '$.id')"),
    ] {
        let mut texts = vec![("typed", TYPED.replace("{{at}}", at).replace("{{doc}}", doc))];
        // Only a client counts rows and writes them in bulk; MariaDB returns no changed row.
        if driver == "client" {
            texts.push(("rest", REST.to_owned()));
        }
        if driver == "client" && target != "mariadb-temp:" {
            texts.push(("maybe", MAYBE.to_owned()));
        }
        let mut more = format!("--jobs 3 --driver {driver}");
        for (name, text) in &texts {
            let file = files.path().join(format!("{name}.toml"));
            std::fs::write(&file, text).unwrap();
            more += &format!(" --workload-file {}", file.display());
        }
        let tests = sound_tests(&run_file(&example(), target, dir.path(), &more));
        assert_eq!(tests.len(), texts.len() + 1, "{target} {driver}");
        all_passed(&tests, &["work-evidence"]);
        for t in tests.iter().filter(|t| t["workload"] == "TYPED" || t["workload"] == "QUEUE") {
            passed(t, "consistency");
        }
        let queue = tests.iter().find(|t| t["workload"] == "QUEUE").unwrap();
        assert_eq!((&queue["driver"], &queue["kpis"][2]), (&driver.into(), &"transaction_time_ns_p99".into()));
        assert_eq!((&queue["facts"]["sized"], &queue["facts"]["writes"]), (&false.into(), &true.into()), "{target}");
    }
    assert_eq!(leftovers(dir.path()), Vec::<String>::new());
}

/// A table with a column of each type, whose values follow from `n`; `{{at}}` and `{{doc}}` are the database's own functions.
const TYPED: &str = r#"
code = "TYPED"
summary = "a column of each type"
program = [{ bind = "seq", to = "sequence" }, { bind = "id", to = { uniform = [0, 4999] } }, { execute = "change" }, { execute = "get" }]
[evidence]
query = "SELECT SUM(changes) FROM {t}"
counts = "changes"
[[table]]
name = "t"
rows = 5000
indexes = ["name", "at"]
column = [
  { name = "id", type = "int", fill = "key" }, { name = "changes", type = "int", fill = "zero" },
  { name = "n", type = "int", fill = { scattered = 3000000000, salt = 7 } },
  { name = "name", type = "text", fill = { words = 60, distinct = 3000000000, salt = 7 } },
  { name = "at", type = "timestamp", fill = { scattered = 3000000000, salt = 7 } },
  { name = "amount", type = "numeric", fill = { scattered = 3000000000, salt = 7 } },
  { name = "less", type = "numeric", fill = { constant = -5 } },
  { name = "flag", type = "boolean", fill = { scattered = 3000000000, salt = 7 } },
  { name = "doc", type = "json", fill = { words = 200, distinct = 3000000000, salt = 7 } },
]
[[statement]]
name = "change"
sql = "UPDATE {t} SET changes = changes + 1, amount = amount + 1 - 1, name = CONCAT(name, '') WHERE id = :id"
effect = { change = 1 }
[[statement]]
name = "get"
sql = "SELECT name, at, amount, flag, doc FROM {t} WHERE id = :id"
effect = { read = 1 }
[[consistency]]
query = "SELECT COUNT(*) FROM {t} WHERE name NOT LIKE CONCAT(n, ' %') OR LENGTH(name) <> 60 OR ROUND(amount * 100) <> n OR ROUND(less * 100) <> -5 OR CASE WHEN flag THEN 1 ELSE 0 END <> n % 2"
what = "text, numeric and boolean are what n says"
[[consistency]]
query = "SELECT COUNT(*) FROM {t} WHERE {{at}} <> n OR {{doc}} <> CONCAT(n, '')"
what = "timestamp and json are what n says"
"#;

/// Half of its executions find no row; the rows come back.
const MAYBE: &str = r#"
code = "MAYBE"
summary = "a statement that changes a row or none"
program = [{ bind = "seq", to = "sequence" }, { bind = "id", to = { uniform = [0, 99] } }, { execute = "take" }]
[evidence]
query = "SELECT SUM(n) FROM {t}"
counts = "rows"
[[table]]
name = "t"
rows = 100
column = [{ name = "id", type = "int", fill = "key" }, { name = "n", type = "int", fill = "zero" }]
[[statement]]
name = "take"
sql = "UPDATE {t} SET n = n + 1 WHERE id = :id AND id % 2 = 0 RETURNING id"
effect = { change = [0, 1] }
"#;

#[test]
fn an_error_of_a_statement_names_it() {
    let (server, dir) = (Server::start(&[]), results());
    let file = dir.path().join("maybe.toml");
    let (one, unknown) = (MAYBE.replace("[0, 1]", "[1, 1]"), MAYBE.replace("id % 2", "nosuch"));
    // A procedure counts rows as well, if their number is known.
    let exact = MAYBE.replace("[0, 1]", "1").replace("RETURNING id", "");
    const ROWS: &str = " touched 0 rows instead of 1";
    let url = server.url();
    let postgres = url.as_str();
    for (target, text, says) in [
        ("sqlite:", &one, ROWS),
        (postgres, &one, ROWS),
        (postgres, &exact, ROWS),
        ("sqlite:", &unknown, ": "),
        (postgres, &unknown, ": "),
    ] {
        std::fs::write(&file, text).unwrap();
        let ran = run_file(&file, target, dir.path(), "--jobs 1,2");
        ran.fails(1, &[&format!("'take' ({}:13){says}", file.display())]);
        if says == ROWS {
            // Of a window that nobody worked in, what others used is no disturbance. Half of a client's transactions succeed.
            let tests = tests_of(&ran.folder());
            let mut idle = tests.iter().filter(|t| t["commit_latency_ms"].is_null());
            assert!(idle.all(|t| t["disturbed_by"].is_null() && t["other_cpu_pct"].is_null()), "{tests:#?}");
        }
    }
}

/// Every part of a program that the example does not have.
const REST: &str = r#"
code = "OWN-ROWS"
summary = "every part of a program that the queue does not have"
commit = "nowait"
program = [
  { bind = "seq", to = "sequence" },
  { choose = [
    { share = 2, steps = [
      { repeat = "rows", steps = [
        { bind = "seq", to = "sequence" },
        { bind = "id", to = { own-row = "mine" } },
        { bind = "next", to = { plus = ["seq", 1] } },
        { execute = "change" },
      ] },
    ] },
    { share = 1, steps = [{ bulk = "log", rows = "rows" }] },
  ] },
  { bind = "from", to = { uniform = [-5, "rows"] } },
  { bind = "to", to = { plus = ["from", 3] } },
  { execute = "look" },
]
[evidence]
query = "SELECT m.n + l.n FROM (SELECT SUM(changes) AS n FROM {mine}) m, (SELECT COUNT(*) AS n FROM {log}) l"
counts = "rows"
[[parameter]]
name = "rows"
default = 4
min = 1
max = 50
meaning = "rows"
[[parameter]]
name = "own"
default = 64
min = 51
max = 1000
meaning = "own rows"
[[table]]
name = "mine"
rows = { per-job = "own" }
updated-in-place = true
column = [
  { name = "id", type = "int", fill = "key" },
  { name = "n", type = "int", fill = "zero" },
  { name = "changes", type = "int", fill = "zero" },
]
[[table]]
name = "log"
rows = "empty"
column = [
  { name = "id", type = "int", fill = "key" },
  { name = "k", type = "int", fill = { scattered = 7 } },
  { name = "body", type = "bytes", fill = { payload = 50 } },
]
[[statement]]
name = "change"
sql = "UPDATE {mine} SET n = :next, changes = changes + 1 WHERE id = :id"
effect = { change = 1 }
[[statement]]
name = "look"
sql = "SELECT id, n FROM {mine} WHERE id BETWEEN :from AND :to"
effect = "read-any"
"#;

#[test]
fn what_the_database_says_of_a_statement_comes_through() {
    let dir = results();
    let file = dir.path().join("rest.toml");
    std::fs::write(&file, REST.replacen("n = :next", "nn = :next", 1)).unwrap();
    let refused = run_file(&file, "sqlite:", dir.path(), "");
    assert!(refused.code != 0 && refused.err.contains("no such column: nn"), "{}", refused.said());
}

#[test]
fn a_run_is_resumed_and_reported_without_the_file() {
    let dir = results();
    let path = dir.path().to_str().unwrap();
    let file = dir.path().join("mine.toml");
    std::fs::copy(example(), &file).unwrap();
    let plan = dir.path().join("plan.toml");
    // A file that a plan names lies beside it; parameters are given as for any other workload.
    let keys =
        "workload-file = [\"mine.toml\"]\njobs = [1, 2]\nduration = \"300ms\"\nwarmup = \"200ms\"\nprobe = false\n";
    std::fs::write(&plan, format!("{keys}[parameters.QUEUE]\nbatch = 5\n")).unwrap();
    let ran = run(&["run", plan.to_str().unwrap(), "--results", path]);
    let folder = ran.folder();
    let tests = std::fs::read_to_string(folder.join("tests.jsonl")).unwrap();
    // The second test is taken away, as if the run had been cut off before it.
    std::fs::write(folder.join("tests.jsonl"), format!("{}\n", tests.lines().next().unwrap())).unwrap();
    let manifest = std::fs::read_to_string(folder.join("manifest.json")).unwrap();
    assert!(manifest.contains("puts batches of messages"), "the text is in the manifest");
    std::fs::write(folder.join("manifest.json"), manifest.replace("\"complete\"", "\"interrupted\"")).unwrap();
    std::fs::remove_file(&file).unwrap();
    sound_tests(&run(&["run", "--resume", folder.to_str().unwrap(), "--results", path]));
    let tests = tests_of(&folder);
    assert_eq!(tests.iter().map(|t| t["jobs"].as_u64().unwrap()).collect::<Vec<_>>(), [1, 2]);
    assert!(tests.iter().all(|t| t["parameters"]["batch"] == 5), "{tests:?}");
    let text = report(&folder, "--format text");
    assert!(text.contains("QUEUE"), "{text}");
}

#[test]
fn it_is_shown_as_those_of_the_catalogue_are() {
    let example = example();
    let file = format!("--workload-file {}", example.display());
    let page = printed(&format!("workloads {file}"));
    for part in [
        "# QUEUE: puts batches",
        "in 3 of 4 transactions",
        "`batch` | 3 | 1 to 1000",
        "CREATE PROCEDURE \"loadline\".\"queue_run\"",
        "As many messages were counted as were put",
    ] {
        assert!(page.to_lowercase().contains(&part.to_lowercase()), "no '{part}' in\n{page}");
    }
    let csv = printed(&format!("workloads QUEUE {file} --format csv"));
    let line = csv.lines().nth(1).unwrap();
    assert!(line.starts_with("QUEUE,") && line.contains("postgres=database+client"), "{csv}");
}

#[test]
fn a_plan_with_a_file_is_narrowed_by_flags() {
    let dir = results();
    let plan = dir.path().join("plan.toml");
    let text = format!(
        "workload-file = [\"{}\"]\nworkload = [\"TP-LIGHT\"]\n[parameters.QUEUE]\nbatch = 5\n",
        example().display()
    );
    std::fs::write(&plan, text).unwrap();
    let dry = |more: &[&str]| ok(&[&["run", plan.to_str().unwrap(), "--dry-run"], more].concat()).out;
    let runs = |out: &str, code: &str| out.lines().any(|l| l.trim_start().starts_with(code) && l.contains("driver"));
    for (flags, queue, light, lat1) in [
        (&[][..], true, true, false),
        (&["--workload", "QUEUE"][..], true, false, false),
        (&["--workload", "TP-LIGHT"][..], false, true, false),
        (&["--workload", "LGWR-LAT1,QUEUE"][..], true, false, true),
        (&["--group", "log-writer"][..], false, false, true),
    ] {
        let out = dry(flags);
        let found = (runs(&out, "QUEUE"), runs(&out, "TP-LIGHT"), runs(&out, "LGWR-LAT1"));
        assert_eq!(found, (queue, light, lat1), "{flags:?}: {out}");
        assert_eq!(out.contains("queue.toml"), queue, "a file that is not run is not kept: {out}");
        assert_eq!(out.contains("sized by their parameters"), queue || light, "{out}");
    }
}

#[test]
fn sums_over_no_rows_prove_nothing() {
    let dir = results();
    let file = dir.path().join("mine.toml");
    let text = |query: &str| {
        format!(
            "code = \"LOOKS\"\nsummary = \"looks\"\nprogram = [{{ execute = \"look\" }}]\n{query}\n\
             [[table]]\nname = \"t\"\nrows = 10\ncolumn = [{{ name = \"id\", type = \"int\", fill = \"key\" }}]\n\
             [[table]]\nname = \"none\"\nrows = \"empty\"\ncolumn = [{{ name = \"id\", type = \"int\", fill = \"key\" }}]\n\
             [[statement]]\nname = \"look\"\nsql = \"SELECT id FROM {{t}}\"\neffect = \"read-any\"\n"
        )
    };
    for (query, says) in [
        ("[[consistency]]\nquery = \"SELECT SUM(id) FROM {none}\"\nwhat = \"it holds\"", Some("NULL or no row")),
        ("[[unchanged]]\nquery = \"SELECT SUM(id) FROM {none}\"\nwhat = \"it holds\"", Some("NULL or no row")),
        ("[[unchanged]]\nquery = \"SELECT COALESCE(SUM(id), 0) FROM {none}\"\nwhat = \"it holds\"", None),
    ] {
        std::fs::write(&file, text(query)).unwrap();
        let ran = run_file(&file, "sqlite:", dir.path(), "--jobs 1");
        let tests = tests_of(&ran.folder());
        let check = check(&tests[0], "consistency");
        let detail = check["detail"].as_str().unwrap();
        assert_eq!(check["outcome"] == "failed", says.is_some(), "{query}: {}", ran.said());
        assert!(says.is_none_or(|s| detail.contains(s) && detail.contains("it holds")), "{detail}");
    }
}

#[test]
fn a_broken_file_starts_nothing() {
    let dir = results();
    let file = dir.path().join("broken.toml");
    let text = std::fs::read_to_string(example()).unwrap();
    for (from, to, says) in [
        ("name = \"put\"", "name = \"putt\"", "'put' is not known: did you mean 'putt'"),
        ("[[parameter]]", "[[parameters]]", "did you mean 'parameter'"),
        ("min = 1\n", "min = \n", ""),
    ] {
        std::fs::write(&file, text.replacen(from, to, 1)).unwrap();
        for command in ["run", "workloads"] {
            let mut args = vec![command, "--workload-file", file.to_str().unwrap()];
            if command == "run" {
                args.extend(["--results", dir.path().to_str().unwrap()]);
            }
            run(&args).fails(2, &[says, "broken.toml:"]);
        }
    }
    run(&["run", "--workload-file", "/nonexistent/w.toml"]).fails(2, &["/nonexistent/w.toml"]);
    assert_eq!(leftovers(dir.path()), vec!["broken.toml".to_owned()], "nothing was made");
}
