//! Handing over: notes, redacted reports, paper.

use std::fs;

use crate::common::{Ran, ok, results, run};

fn refused(args: &[&str]) -> String {
    let ran: Ran = run(args);
    assert_eq!(ran.code, 2, "{}", ran.said());
    ran.err
}

#[test]
fn a_run_is_noted_and_reported() {
    let results = results();
    let dir = results.path();
    let at = |name: &str| dir.join(name).to_str().unwrap().to_owned();
    let short = ["--no-probe", "--jobs", "1,2", "--duration", "200ms", "--warmup", "200ms", "--results"];
    let started =
        run(&[&["run", "--target", "null:?pause=1ms", "--workload", "LGWR-LAT1"][..], &short, &[&at("r")]].concat());
    let folder = started.folder();
    let folder = folder.to_str().unwrap();

    ok(&["note", folder, "New *disks*"]);
    ok(&["note", folder, "--workload", "LGWR-LAT1", "The log."]);
    assert_eq!(ok(&["note", folder]).out, "New *disks*\n\nLGWR-LAT1:\nThe log.\n");
    assert!(refused(&["note", folder, "--workload", "LGWR-LAT9", "x"]).contains("it has LGWR-LAT1"));
    assert!(refused(&["note", folder, "  "]).contains("empty"));

    let html = |more: &[&str]| ok(&[&["report", folder, "--output", "-"][..], more].concat()).out;
    let page = html(&["--title", "A <b> title", "--customer", "Example & Co"]);
    for part in ["<h1>A &lt;b&gt; title</h1>", "for Example &amp; Co", "New <em>disks</em>", "What to mind"] {
        assert!(page.contains(part), "no {part}");
    }
    let host = fs::read_to_string("/proc/sys/kernel/hostname").unwrap();
    let word =
        |text: &str, word: &str| text.split(|c: char| !c.is_alphanumeric()).any(|w| w.eq_ignore_ascii_case(word));
    for format in ["html", "md", "text", "json", "csv"] {
        let text = ok(&["report", folder, "--redact", "--format", format, "--output", "-"]).out;
        assert!(!word(&text, host.trim()) && !text.contains(dir.to_str().unwrap()), "{format}");
        let text = ok(&["report", folder, "--anonymous", "--format", format, "--output", "-"]).out;
        assert!(!text.to_lowercase().contains("null engine") && text.contains("Database A"), "{format}");
    }

    assert!(refused(&["report", folder, "--title", " "]).contains("empty"));
    assert!(refused(&["report", folder, "--summary", "--format", "csv"]).contains("--summary is for reports to read"));
    assert!(refused(&["report", folder, "--anonymous", "--with", "reference:exadata-x9m"]).contains("--with"));
}

#[test]
#[ignore = "nightly: a browser"]
fn a_summary_is_printed_on_paper() {
    let results = results();
    let (dir, pdf) = (results.path().to_str().unwrap(), results.path().join("summary.pdf"));
    let short = ["--no-probe", "--jobs", "1,2", "--duration", "200ms", "--warmup", "200ms", "--results", dir];
    let folder =
        run(&[&["run", "--target", "null:?pause=1ms", "--workload", "LGWR-LAT1"][..], &short].concat()).folder();
    let more = ["--format", "pdf", "--summary", "--output", pdf.to_str().unwrap()];
    ok(&[&["report", folder.to_str().unwrap()], &more[..]].concat());
    let bytes = fs::read(pdf).unwrap();
    assert!(bytes.starts_with(b"%PDF-"));
}
