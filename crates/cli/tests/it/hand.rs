//! Handing over: reports in a browser and on paper.

use std::fs;

use crate::browser::Browser;
use crate::common::*;

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
    let short = "--no-probe --jobs 1,2 --duration 200ms --warmup 200ms";
    let folder = lat1("null:?pause=1ms", results.path(), short).folder();
    let more = ["--format", "pdf", "--summary", "--output", pdf.to_str().unwrap()];
    ok(&[&["report", folder.to_str().unwrap()], &more[..]].concat());
    let bytes = fs::read(pdf).unwrap();
    assert!(bytes.starts_with(b"%PDF-"));
}
