//! Command lines and what they say: bad input, which is named before anything starts (`data/refused.toml`), and what is made of stored
//! results without measuring (`data/stored.toml`).

use std::collections::BTreeMap;

use serde::Deserialize;

use crate::common::*;

#[derive(Deserialize)]
struct Cases {
    /// Texts of files that the lines read.
    #[serde(default)]
    files: BTreeMap<String, String>,
    case: Vec<Case>,
}

/// A command line, and what it must say.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Case {
    /// A word with blanks is within single quotes.
    line: String,
    /// A file for standard input.
    input: String,
    code: Option<i32>,
    /// Parts of standard output, of standard error, and what is in neither.
    prints: Vec<String>,
    says: Vec<String>,
    lacks: Vec<String>,
}

impl Case {
    /// Runs it and demands what it says, its exit code being `code` unless it has one.
    fn holds(&self, code: i32) -> Ran {
        let line = &self.line;
        let mut command = loadline();
        command.args(without_tries(&quoted(line)));
        if !self.input.is_empty() {
            command.stdin(std::fs::File::open(&self.input).unwrap());
        }
        let ran = Ran::from_output(command.output().unwrap());
        let all = ran.said();
        assert_eq!(ran.code, self.code.unwrap_or(code), "{line}: {all}");
        for (parts, text) in [(&self.prints, &ran.out), (&self.says, &ran.err)] {
            // Lines of prose are wrapped.
            let unwrapped = words(text).join(" ");
            let has = |part: &str| text.contains(part) || unwrapped.contains(part);
            parts.iter().for_each(|part| assert!(has(part), "{line} without '{part}': {all}"));
        }
        let lacks = self.lacks.iter().map(String::as_str).chain(PASSWORDS);
        lacks.for_each(|part| assert!(!all.contains(part), "{line} with '{part}': {all}"));
        ran
    }
}

/// Runs the lines of a table in their order. They succeed unless they have an exit code. `names` are what `{name}` stands for.
pub(crate) fn hold(table: &str, names: &[(&str, &str)]) {
    let Cases { files, case } = toml::from_str(&filled(table, names)).unwrap();
    files.iter().for_each(|(name, text)| std::fs::write(name, text).unwrap());
    case.iter().for_each(|case| drop(case.holds(0)));
}

/// Files of other tools.
const OTHERS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../exchange/tests/it/data");

#[test]
fn what_is_refused_is_named_without_a_password_and_leaves_nothing() {
    let dir = results();
    let path = dir.path().to_str().unwrap();
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let taken = listener.local_addr().unwrap().to_string();
    let names = [
        ("{dir}", path),
        ("{url}", "postgres://u:s3cr3tpw@h/d"),
        ("{taken}", &taken),
        ("{data}", DATA),
        ("{others}", OTHERS),
    ];
    let refused: Cases = toml::from_str(&filled(include_str!("data/refused.toml"), &names)).unwrap();
    for mut case in refused.case {
        // A private server is asked what its settings are.
        if case.line.contains("-temp:") && !cfg!(feature = "servers") {
            continue;
        }
        if ["run", "ab", "replica-cost"].iter().any(|measures| case.line.split(' ').next() == Some(measures)) {
            case.line += &format!(" --results {path}/runs");
        }
        let ran = case.holds(2);
        assert!(ran.out.is_empty(), "{}: {}", case.line, ran.said());
        assert_eq!(std::fs::read_dir(path).unwrap().count(), 0, "{} left something behind", case.line);
    }
}

/// Runs that are made of files of another tool.
fn imported(dir: &Path, line: &str) -> Vec<PathBuf> {
    let ran = ok(&words(&format!("import pgbench {line} --runs {}", dir.display())));
    assert!(ran.err.contains("not checked by loadline"), "{}", ran.err);
    ran.out.lines().map(PathBuf::from).collect()
}

#[test]
fn what_is_stored_is_read_without_measuring() {
    let dir = results();
    let path = dir.path().display().to_string();
    let select = read(format!("{OTHERS}/pgbench-select.txt"));
    std::fs::write(dir.path().join("faster.txt"), select.replace("tps = 14699", "tps = 29398")).unwrap();

    let short = "--workload LGWR-LAT1,LGWR-SIZE --jobs 1,2 --duration 200ms --warmup 200ms --no-probe";
    let stated = format!("{DATA}/facts.toml --fact launch_year=2021 --fact System=box");
    let run = measured(&words(&format!("run {stated} --target null:?pause=1ms {short} --results {path}"))).folder();
    self::run(&["run", "--resume", run.to_str().unwrap()]);
    let facts = "--fact cores=32 --fact connectivity=postgres://ann:hush@db1/b";
    let rate =
        imported(dir.path(), &format!("{OTHERS}/pgbench-rate.txt {OTHERS}/pgbench-rate.32572 {facts}")).remove(0);
    let two = format!("{OTHERS}/pgbench-select.txt {path}/faster.txt");
    let both = imported(dir.path(), &two).iter().map(|folder| folder.display().to_string()).collect::<Vec<_>>();
    let sweep = imported(dir.path(), &format!("{two} --one-run --title Blue"));

    // An imported test is neither valid nor invalid, and names its files.
    let test = &tests_of(&rate)[0];
    assert!(test["valid"].is_null() && test["checks"] == serde_json::json!([]), "{test}");
    let files = test["imported"]["files"].as_array().unwrap();
    assert_eq!((files.len(), &test["imported"]["version"]), (2, &"15.18".into()));
    let sum = Command::new("sha256sum").arg(format!("{OTHERS}/pgbench-rate.32572")).output().unwrap();
    assert!(String::from_utf8_lossy(&sum.stdout).starts_with(files[1]["sha256"].as_str().unwrap()));
    let swept = tests_of(&sweep[0]);
    assert_eq!((sweep.len(), &swept[1]["test"], &swept[0]["platform"]), (1, &2.into(), &"Blue (imported)".into()));
    assert_ne!(swept[0]["imported"]["files"], swept[1]["imported"]["files"], "each has its own file");

    // Copies of the run: killed while its last line was written, damaged, ended otherwise, of another version of its target.
    type Damage<'a> = (&'a str, &'a str, &'a dyn Fn(String) -> String);
    let damages: [Damage<'_>; 5] = [
        ("torn", "tests.jsonl", &|text| text[..text.len() - 20].to_owned()),
        ("bad-line", "tests.jsonl", &|text| text.replacen("\"schema\"", "\"schem", 1)),
        ("bad-manifest", "manifest.json", &|_| "{".to_owned()),
        ("interrupted", "manifest.json", &|text| text.replace("\"complete\"", "\"interrupted\"")),
        ("older", "manifest.json", &|text| text.replacen("\"version\": \"", "\"version\": \"0.0.1-old", 1)),
    ];
    for (name, file, damaged) in damages {
        let copy = dir.path().join(name);
        done(Command::new("cp").arg("-r").args([&run, &copy]));
        let text = read(copy.join(file));
        assert_ne!(damaged(text.clone()), text, "{name}");
        std::fs::write(copy.join(file), damaged(text)).unwrap();
    }

    let golden = crate::kept::runs();
    let [run, rate, golden] = [&run, &rate, golden.path()].map(|folder| folder.display().to_string());
    let names = [
        ("{dir}", path.as_str()),
        ("{run}", &run),
        ("{golden}", &golden),
        ("{data}", DATA),
        ("{rate}", &rate),
        ("{select}", &both[0]),
        ("{faster}", &both[1]),
        ("{others}", OTHERS),
        ("{example}", EXAMPLE),
    ];
    hold(include_str!("data/stored.toml"), &names);
    assert!(!dir.path().join("refused").exists(), "nothing is left");
    let series = printed(&format!("export {rate} --format csv --table series"));
    assert_eq!(series, read(format!("{path}/tables/series.csv")), "one table is that of all");
    let parquet = command(&format!("export {rate} --format parquet --output {path}/parquet"));
    assert_eq!(parquet.code, if cfg!(feature = "parquet") { 0 } else { 2 }, "{}", parquet.said());
}

#[test]
fn a_forecast_is_a_row_per_series_jobs_and_figure() {
    let study = "forecast reference:exadata-x5-2 reference:exadata-x9m --format csv";
    let rows = rows_of(&printed(&format!("{study} --jobs 30,128 --tps 25000 --latency 9ms")));
    let of = |figure: &'static str| rows.iter().filter(move |row| row["figure"] == figure);
    for row in of("commit_throughput_tps") {
        let [value, low, high] = ["value", "low", "high"].map(|id| number(row, id));
        assert!(low < value && value < high && (row["model"] == "interpolation") == (row["jobs"] == "30"), "{row:?}");
    }
    // Two platforms with four workloads each.
    assert_eq!(["commit_throughput_tps", "jobs_above_9_commit_latency_ms"].map(|id| of(id).count()), [16, 8]);
    assert!(of("jobs_for_25000_tps").any(|row| number(row, "value") < 24.0), "{rows:?}");
    // A row per series, and all together.
    assert_eq!(rows_of(&printed(&format!("{study} --evaluate"))).len(), 9);
}

#[test]
fn results_that_are_a_file_are_refused_before_anything_starts() {
    let dir = results();
    let file = dir.path().join("file");
    std::fs::write(&file, "mine").unwrap();
    hold(include_str!("data/places.toml"), &[("{dir}", dir.path().to_str().unwrap())]);
    assert_eq!(read(file), "mine");
    assert!(!dir.path().join("a").exists(), "a run that is refused later leaves no folder");
}

#[test]
fn no_password_stands_in_the_process_list() {
    // Somebody who accepts the connection and never answers.
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("postgres://ann:h1dden@127.0.0.1:{}/db", listener.local_addr().unwrap().port());
    let child = start(&["doctor", "--target", &url]);
    let (_stream, _) = listener.accept().unwrap();
    let cmdline = std::fs::read(format!("/proc/{}/cmdline", child.id())).unwrap();
    let shown = String::from_utf8_lossy(&cmdline).into_owned();
    signal(&child, Signal::SIGKILL);
    let said = ended(child).said();
    assert!(shown.contains("ann@127.0.0.1") && !shown.contains("h1dden"), "{shown}");
    assert!(!said.contains("h1dden"), "{said}");
}

#[test]
fn nothing_ends_by_a_standard_error_that_nobody_reads() {
    let mut child = loadline().args(["run", "--workload", "NONE"]).stderr(Stdio::piped()).spawn().unwrap();
    drop(child.stderr.take());
    assert_eq!(child.wait().unwrap().code(), Some(2));
}

#[test]
fn a_writer_of_another_process_is_named() {
    let dir = results();
    let file = dir.path().join("x.db");
    let held = "import sqlite3,sys\nc=sqlite3.connect(sys.argv[1],isolation_level=None)\n\
                c.execute('PRAGMA application_id=1819238756')\nc.execute('PRAGMA journal_mode=WAL')\n\
                c.execute('BEGIN IMMEDIATE')\nprint('held',flush=True)\nsys.stdin.read()";
    let mut other = Command::new("python3");
    other.args(["-c", held, file.to_str().unwrap()]).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut other = Killed(other.spawn().unwrap());
    std::io::Read::read_exact(other.0.stdout.as_mut().unwrap(), &mut [0; 4]).unwrap();
    let url = format!("sqlite:{}", file.display());
    for ran in [run(&["doctor", "--target", &url]), lat1(&url, dir.path(), "--no-probe")] {
        let who = format!("another process (python3, process {})", other.0.id());
        assert!(ran.code == 3 && ran.said().contains(&who), "{}", ran.said());
    }
}
