//! Handing over: notes, redacted reports, paper.

use std::fs;
use std::path::{Path, PathBuf};

use crate::common::{lat1, ok, report, results, run};

fn refused(args: &[&str], says: &str) {
    run(args).fails(2, &[says]);
}

/// A run that does not take long.
fn short_run(results: &Path) -> PathBuf {
    lat1("null:?pause=1ms", results, "--no-probe --jobs 1,2 --duration 200ms --warmup 200ms").folder()
}

#[test]
fn a_run_is_noted_and_reported() {
    let results = results();
    let dir = results.path();
    let run_folder = short_run(&dir.join("r"));
    let folder = run_folder.to_str().unwrap();

    ok(&["note", folder, "New *disks*"]);
    ok(&["note", folder, "--workload", "LGWR-LAT1", "The log."]);
    assert_eq!(ok(&["note", folder]).out, "New *disks*\n\nLGWR-LAT1:\nThe log.\n");
    refused(&["note", folder, "--workload", "LGWR-LAT9", "x"], "it has LGWR-LAT1");
    refused(&["note", folder, "  "], "empty");

    let page = ["report", folder, "--output", "-", "--title", "A <b> title", "--customer", "Example & Co"];
    let page = ok(&page).out;
    for part in ["<h1>A &lt;b&gt; title</h1>", "for Example &amp; Co", "New <em>disks</em>"] {
        assert!(page.contains(part), "no {part}");
    }
    // What is left out in which format is a test of `report/tests/it/redact.rs`.
    let text = report(&run_folder, "--redact --format text");
    assert!(!text.contains(dir.to_str().unwrap()), "{text}");
    let text = report(&run_folder, "--anonymous --format text");
    assert!(!text.to_lowercase().contains("null engine") && text.contains("Database A"), "{text}");

    refused(&["report", folder, folder], "is named twice");
    refused(&["report", folder, "--title", " "], "empty");
    refused(&["report", folder, "--summary", "--format", "csv"], "--summary is for reports to read");
    refused(&["report", folder, "--anonymous", "--with", "reference:exadata-x9m"], "--with");
}

#[test]
#[ignore = "nightly: a browser"]
fn a_summary_is_printed_on_paper() {
    let results = results();
    let pdf = results.path().join("summary.pdf");
    let folder = short_run(results.path());
    let more = ["--format", "pdf", "--summary", "--output", pdf.to_str().unwrap()];
    ok(&[&["report", folder.to_str().unwrap()], &more[..]].concat());
    let bytes = fs::read(pdf).unwrap();
    assert!(bytes.starts_with(b"%PDF-"));
}
