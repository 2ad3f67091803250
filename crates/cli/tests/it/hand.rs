//! Handing over: notes, redacted reports, packed runs, paper.

use std::fs;

use crate::common::{Ran, ok, results, run};

fn refused(args: &[&str]) -> String {
    let ran: Ran = run(args);
    assert_eq!(ran.code, 2, "{}", ran.said());
    ran.err
}

#[test]
fn a_run_is_noted_packed_unpacked_and_reported() {
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

    let packed = at("run.loadline");
    ok(&["pack", folder, "--output", &packed]);
    assert!(refused(&["pack", folder, "--output", &packed]).contains("nothing is overwritten"));
    let csv = |run: &str| ok(&["report", run, "--format", "csv"]).out;
    assert_eq!(csv(&packed), csv(folder), "a packed run is read as the run");
    let unpacked = ok(&["unpack", &packed, "--results", &at("other")]).out;
    assert_eq!(csv(unpacked.trim()), csv(folder));
    assert!(refused(&["unpack", &packed, "--results", &at("other")]).contains("exists already"));
    let mut bytes = fs::read(&packed).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 0xff;
    fs::write(at("bad.loadline"), bytes).unwrap();
    for command in ["unpack", "report"] {
        assert!(refused(&[command, &at("bad.loadline"), "--results", &at("third")]).contains("damaged"));
    }

    let html = |more: &[&str]| ok(&[&["report", folder, "--output", "-"][..], more].concat()).out;
    fs::write(at("logo.svg"), "<svg xmlns='http://www.w3.org/2000/svg' onload='alert(1)'/>").unwrap();
    let page = html(&["--title", "A <b> title", "--customer", "Example & Co", "--logo", &at("logo.svg")]);
    for part in
        ["<h1>A &lt;b&gt; title</h1>", "for Example &amp; Co", "src=\"data:image", "New <em>disks</em>", "What to mind"]
    {
        assert!(page.contains(part), "no {part}");
    }
    assert!(!page.contains("alert(1)"), "the logo is only an image");
    let host = fs::read_to_string("/proc/sys/kernel/hostname").unwrap();
    let word =
        |text: &str, word: &str| text.split(|c: char| !c.is_alphanumeric()).any(|w| w.eq_ignore_ascii_case(word));
    for format in ["html", "md", "text", "json", "csv"] {
        let text = ok(&["report", folder, "--redact", "--format", format, "--output", "-"]).out;
        assert!(!word(&text, host.trim()) && !text.contains(dir.to_str().unwrap()), "{format}");
        let text = ok(&["report", folder, "--anonymous", "--format", format, "--output", "-"]).out;
        assert!(!text.to_lowercase().contains("null engine") && text.contains("Database A"), "{format}");
    }

    fs::write(at("logo.gif"), "GIF89a").unwrap();
    assert!(refused(&["report", folder, "--logo", &at("logo.gif")]).contains("neither PNG nor JPEG nor SVG"));
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
    if let Some(pages) = loadline_report::printed_pages(&bytes) {
        assert!((2..=6).contains(&pages.count), "{pages:?}");
        assert_eq!(pages.of.get("key-figures"), Some(&1), "the first page is the answer: {pages:?}");
    }
}
