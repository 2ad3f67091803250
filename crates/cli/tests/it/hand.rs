//! Handing over: notes, redacted reports, paper.

use std::fs;

use crate::browser::Browser;
use crate::common::*;

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
fn a_report_is_searched_sorted_and_saved() {
    let results = results();
    let page = results.path().join("example.html");
    ok(&["report", "--example", "--output", page.to_str().unwrap()]);
    let mut browser = Browser::start();
    browser.look(1300, 900, false);
    browser.open(&format!("file://{}", page.display()));
    let peaks = "[...document.querySelectorAll('#load-lines tbody tr:not(.title, .remark) td:nth-child(3)')].slice(0, 2).map(c => c.innerText)";
    let before = browser.eval(peaks);
    browser.eval("document.querySelectorAll('#load-lines th[scope=col]')[2].click()");
    assert_ne!(browser.eval(peaks), before, "sorted by the peak within the first group");
    let rows = "[...document.querySelectorAll('main tbody tr')].filter(r => !r.hidden).length";
    let all = browser.eval(rows).as_u64().unwrap();
    let search = "{ const box = document.querySelector('.contents input'); box.value = 'tp-mixed'; box.oninput(); }";
    browser.eval(search);
    assert!((1..all / 2).contains(&browser.eval(rows).as_u64().unwrap()));
    browser.eval(
        "document.querySelector('.contents input').value = ''; document.querySelector('.contents input').oninput()",
    );
    let right = "document.querySelector('#log-writer .chart svg').dispatchEvent(new KeyboardEvent('keydown', { key: 'ArrowRight' }))";
    browser.eval(right);
    assert_eq!(browser.eval("document.querySelector('.tip').innerText"), "PostgreSQL 15, 1 job: 4,800 tps");
    browser
        .eval("URL.createObjectURL = blob => { blob.text().then(text => { window.saved = text; }); return 'data:,'; }");
    browser.eval("document.querySelector('#log-writer .chart .save').click()");
    browser.until("window.saved !== undefined");
    let saved = browser.eval("window.saved");
    assert!(saved.as_str().unwrap().contains("\nPostgreSQL 15,1,4800\n"), "{saved}");
    assert!(browser.errors.is_empty(), "{:?}", browser.errors);
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
