//! The pages of the workloads, and the documents: nothing missing, superfluous or unknown.

use std::collections::BTreeMap;

use loadline_analyze::kpi::{defined_by_redo, writes_redo};
use loadline_workload::{CATALOGUE, Sweep, Workload};

use crate::common::*;

fn files(folder: &Path) -> BTreeMap<String, String> {
    let read = |e: std::fs::DirEntry| {
        (e.file_name().into_string().unwrap(), std::fs::read_to_string(e.path()).unwrap_or_else(|e| panic!("{e}")))
    };
    std::fs::read_dir(folder).map(|d| d.map(|e| read(e.unwrap())).collect()).unwrap_or_default()
}

pub(super) fn workloads() -> Vec<Value> {
    serde_json::from_str(&ok(&["workloads", "--format", "json"]).out).unwrap()
}

#[test]
fn every_workload_has_its_page_and_no_other_is_left() {
    let dir = results();
    let renew = format!("workloads --pages {}", dir.path().display());
    printed(&renew);
    let made = files(dir.path());
    assert_eq!(made.len(), workloads().len() + 1, "one page each and the index");
    assert!(made["LGWR-LAT1.md"].ends_with(&printed("workloads LGWR-LAT1")), "it is printed as well");

    // Renewing removes pages of workloads that are no more, and nothing else.
    let (old, notes) = (dir.path().join("LGWR-GONE.md"), dir.path().join("notes.md"));
    std::fs::copy(dir.path().join("LGWR-LAT1.md"), &old).unwrap();
    std::fs::write(&notes, "my own\n").unwrap();
    std::fs::write(dir.path().join("LGWR-LAT25.md"), "broken").unwrap();
    let ran = command(&renew);
    assert!(!old.exists() && ran.err.contains("LGWR-GONE.md"), "{}", ran.said());
    assert_eq!(read(&notes), "my own\n");
    std::fs::remove_file(&notes).unwrap();
    assert_eq!(files(dir.path()), made);
    assert_eq!(command(&format!("{renew} LGWR-LAT1")).code, 2);
    std::fs::write(&notes, "").unwrap();
    command(&format!("workloads --pages {}", notes.display())).fails(1, &["notes.md"]);
}

fn documents(folder: &Path) -> Vec<std::path::PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap().flatten() {
        match entry.path() {
            path if path.is_dir() => found.extend(documents(&path)),
            path if path.extension().is_some_and(|e| e == "md") => found.push(path),
            _ => {}
        }
    }
    found
}

/// The `$ loadline …` lines of a page, without comments and what follows a pipe.
fn commands(text: &str) -> Vec<String> {
    let joined = text.replace("\\\n", " ");
    let lines =
        joined.lines().filter_map(|line| line.trim_start().strip_prefix("$ ").filter(|l| l.starts_with("loadline ")));
    // Not within quotes.
    let open = |line: &str| line.matches('\'').count() % 2 == 1 || line.matches('"').count() % 2 == 1;
    let end = |line: &str| {
        let ends = [" | ", " #", " > ", " &", "; "].iter().flat_map(|end| line.match_indices(end));
        ends.map(|(at, _)| at).filter(|at| !open(&line[..*at])).min().unwrap_or(line.len())
    };
    lines.map(|line| line[..end(line)].to_owned()).collect()
}

#[test]
fn commands_of_the_documents_are_known() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut pages = documents(&root.join("docs"));
    pages.push(root.join("README.md"));
    let mut lines: Vec<(String, String)> = Vec::new();
    for page in pages {
        let text = read(&page);
        lines.extend(commands(&text).into_iter().map(|line| (line, page.display().to_string())));
    }
    lines.sort();
    lines.dedup_by(|a, b| a.0 == b.0);
    assert!(lines.len() > 50, "{}", lines.len());
    let wrong: Vec<String> = lines
        .into_iter()
        .filter_map(|(line, page)| {
            // The help ends a command before it begins, and what stands before it must be known.
            let program = line.replacen("loadline", env!("CARGO_BIN_EXE_loadline"), 1);
            let out = Command::new("sh").arg("-c").arg(format!("{program} --help")).output().unwrap();
            (!out.status.success()).then(|| format!("{page}: {line}\n{}", String::from_utf8_lossy(&out.stderr)))
        })
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn the_book_has_every_document() {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs");
    let summary = docs.join("SUMMARY.md");
    // Made when the book is built.
    let made = |name: &str| ["reference/", "workloads/"].iter().any(|folder| name.starts_with(folder));
    let chapters = std::fs::read_to_string(&summary).unwrap();
    for page in documents(&docs).into_iter().filter(|page| *page != summary) {
        let name = page.strip_prefix(&docs).unwrap().display().to_string();
        assert!(made(&name) || chapters.contains(&format!("]({name})")), "{name} is not in docs/SUMMARY.md");
    }
}

/// `text` with its words apart by one blank, and without what differs from run to run: figures, units of times, singular or plural, marks.
fn masked(text: &str) -> String {
    let one = |word: &str| {
        let word: String = word.chars().filter(|c| !"⁰¹²³⁴⁵⁶⁷⁸⁹".contains(*c)).collect();
        if word.starts_with(|c: char| c.is_ascii_digit()) || ["-", "–"].iter().any(|sign| word.starts_with(sign)) {
            return "#".to_owned();
        }
        match word.as_str() {
            "ns" | "µs" | "ms" | "s" => "time".to_owned(),
            word => word.trim_end_matches(['s', ',']).replace(|c: char| c.is_ascii_digit(), "#"),
        }
    };
    // On a busy machine 3 of 4 tests are valid.
    text.split_whitespace().map(one).collect::<Vec<_>>().join(" ").replace("# of #", "#")
}

const SHORT: &str = " --duration 400ms --warmup 300ms";

/// The tutorial is followed to the letter, in shorter windows. The machine may be busy: a test may be invalid, and then says so.
#[test]
fn the_first_hour_works_as_written() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/guide/first-hour.md");
    let text = read(page);
    let dir = results();
    let mut folder = String::from("RUN");
    for block in text.split("```console\n").skip(1).map(|rest| rest.split("```").next().unwrap()) {
        let (command, printed) = block.strip_prefix("$ loadline ").unwrap().split_once('\n').unwrap();
        let mut program = crate::common::loadline();
        let windows = [" --duration 2s", " --duration 500ms"];
        let line = windows.iter().fold(command.to_owned(), |line, window| line.replace(window, SHORT));
        let line = line.replace("RUN", &folder);
        let ran =
            Ran::from_output(program.current_dir(dir.path()).args(without_tries(&words(&line))).output().unwrap());
        assert!(ran.code <= 1, "{command}: {}", ran.said());
        let said = masked(&(ran.err.clone() + &ran.out));
        for line in printed.lines().filter(|line| !line.starts_with('[') && !line.starts_with('!')) {
            // The rest is decided by the machine: what bounds it, whether it was disturbed, how sure a verdict is, how many waits differ, and
            // which is the longest and stands beside the workload.
            let ends = ["bounded by", "log sync", "(kept by", "faster", " – ", "(sampled;"]
                .iter()
                .filter_map(|word| line.find(word));
            let from = ["IO:", "LWLock:"].iter().find_map(|class| line.find(class)).unwrap_or(0);
            let line = masked(&line[from..ends.min().unwrap_or(line.len())]);
            assert!(said.contains(&line), "{command}: '{line}' is not in: {said}");
        }
        if command.starts_with("run ") {
            as_on_a_quiet_machine(&ran.folder());
            folder = ran.folder().display().to_string();
        }
    }
    assert_eq!(leftovers(&dir.path().join("loadline-results")), Vec::<String>::new());
}

/// Codes of the workloads of which `is` holds.
fn codes(is: impl Fn(&Workload) -> bool) -> Vec<&'static str> {
    let mut all: Vec<&str> = CATALOGUE.iter().filter(|w| is(w)).map(|w| w.code.as_str()).collect();
    all.sort_unstable();
    all
}

#[test]
fn comparisons_know_what_workloads_do() {
    assert_eq!(codes(|w| w.redo.is_some()), codes(|w| defined_by_redo(&w.group)));
    // A group that writes may have workloads that only read: that their redo is told does no harm.
    assert_eq!(codes(|w| w.writes() && !writes_redo(&w.group, &w.code, Some(w.facts()))), Vec::<&str>::new());
}

#[test]
fn the_readme_names_what_is_not_swept_over_jobs() {
    let text = read(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../README.md"));
    let said = text.split("Not swept over jobs: ").nth(1).unwrap().split('.').next().unwrap();
    let not = codes(|w| {
        let once = matches!(w.sweep, Sweep::Once | Sweep::Parameter { then_jobs: false, .. });
        once || w.scan.is_some()
    });
    let mut named: Vec<&str> = said
        .split(|c: char| !(c.is_ascii_uppercase() || c == '-'))
        .filter(|word| word.contains('-') && word.len() > 4)
        .collect();
    named.sort_unstable();
    assert_eq!(named, not);
}
