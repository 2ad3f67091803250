//! Headless Chromium, driven through its debugging pipe; and reports in it.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{ChildStdin, ChildStdout, Command, Stdio};
use std::time::Instant;

use serde_json::json;

use crate::common::*;

/// How to get it: said by every test that needs it, which then fails.
const INSTALL: &str = "Chromium is missing: apt-get install chromium (./test --nightly does it as root)";

pub(crate) struct Browser {
    _process: Killed,
    to: ChildStdin,
    from: BufReader<ChildStdout>,
    session: Value,
    last: u64,
    /// Errors of pages: exceptions, messages of the console and of the browser (such as what a policy refused).
    pub(crate) errors: Vec<String>,
    _profile: tempfile::TempDir,
}

impl Browser {
    pub(crate) fn start() -> Browser {
        let names = ["chromium", "chromium-browser", "google-chrome"];
        let found = |name: &&str| {
            Command::new("sh").args(["-c", &format!("command -v {name}")]).output().unwrap().status.success()
        };
        let name = names.into_iter().find(|n| found(n)).unwrap_or_else(|| panic!("{INSTALL}"));
        let profile = tempfile::tempdir().unwrap();
        // It reads commands from descriptor 3 and answers on 4.
        let script = format!(
            "exec {name} --headless=new --no-sandbox --disable-gpu --disable-dev-shm-usage --disable-background-networking --no-first-run \
             --user-data-dir='{}' --remote-debugging-pipe 3<&0 4>&1 >/dev/null 2>/dev/null",
            profile.path().display()
        );
        let mut process =
            Command::new("sh").args(["-c", &script]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let (to, from) = (process.stdin.take().unwrap(), BufReader::new(process.stdout.take().unwrap()));
        let mut browser = Browser {
            _process: Killed(process),
            to,
            from,
            session: Value::Null,
            last: 0,
            errors: Vec::new(),
            _profile: profile,
        };
        let target = browser.call("Target.createTarget", json!({"url": "about:blank"}))["targetId"].clone();
        let attached = browser.call("Target.attachToTarget", json!({"targetId": target, "flatten": true}));
        browser.session = attached["sessionId"].clone();
        for domain in ["Page", "Runtime", "Log", "Accessibility", "DOM"] {
            browser.call(&format!("{domain}.enable"), json!({}));
        }
        browser
    }

    fn next(&mut self) -> Value {
        let mut text = Vec::new();
        self.from.read_until(0, &mut text).unwrap();
        text.pop();
        assert!(!text.is_empty(), "Chromium ended");
        let message: Value = serde_json::from_slice(&text).unwrap();
        let error = match message["method"].as_str().unwrap_or_default() {
            "Runtime.exceptionThrown" => true,
            "Runtime.consoleAPICalled" => message["params"]["type"] == "error",
            "Log.entryAdded" => message["params"]["entry"]["level"] == "error",
            _ => false,
        };
        if error {
            self.errors.push(message["params"].to_string());
        }
        message
    }

    pub(crate) fn call(&mut self, method: &str, params: Value) -> Value {
        self.last += 1;
        let mut message = json!({"id": self.last, "method": method, "params": params});
        if !self.session.is_null() {
            message["sessionId"] = self.session.clone();
        }
        self.to.write_all(message.to_string().as_bytes()).unwrap();
        self.to.write_all(&[0]).unwrap();
        loop {
            let mut answer = self.next();
            if answer["id"] == self.last {
                assert!(answer["error"].is_null(), "{method}: {}", answer["error"]);
                return answer["result"].take();
            }
        }
    }

    /// Opens a page and waits until it is loaded.
    pub(crate) fn open(&mut self, url: &str) {
        let answer = self.call("Page.navigate", json!({"url": url}));
        assert!(answer["errorText"].is_null(), "{url}: {answer}");
        self.until("document.readyState === 'complete' && location.href !== 'about:blank'");
    }

    pub(crate) fn eval(&mut self, script: &str) -> Value {
        let answer = self.call("Runtime.evaluate", json!({"expression": script, "returnByValue": true}));
        assert!(answer["exceptionDetails"].is_null(), "{script}: {answer}");
        answer["result"]["value"].clone()
    }

    pub(crate) fn until(&mut self, script: &str) {
        let deadline = Instant::now() + Duration::from_secs(30);
        while self.eval(script) != true {
            assert!(Instant::now() < deadline, "waited 30 s for {script}; errors: {:?}", self.errors);
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// Width of the page, and whether it is dark.
    pub(crate) fn look(&mut self, width: u32, height: u32, dark: bool) {
        let metrics = json!({"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 700});
        self.call("Emulation.setDeviceMetricsOverride", metrics);
        let scheme = if dark { "dark" } else { "light" };
        let features = json!({"features": [{"name": "prefers-color-scheme", "value": scheme}]});
        self.call("Emulation.setEmulatedMedia", features);
    }

    /// The rules of axe-core that the page breaks seriously or critically, and where.
    pub(crate) fn barriers(&mut self) -> Value {
        let axe = Command::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../.ci/axe")).output().unwrap();
        assert!(axe.status.success(), ".ci/axe: {}", String::from_utf8_lossy(&axe.stderr));
        let script = std::fs::read_to_string(String::from_utf8(axe.stdout).unwrap().trim()).unwrap();
        // What the script returns cannot be shown.
        self.eval(&(script + ";0"));
        self.eval(
            "window.barriers = undefined; axe.run(document, {preload: false}).then(found => { \
               window.barriers = found.violations.filter(v => ['serious', 'critical'].includes(v.impact)) \
                 .map(v => v.id + ': ' + v.nodes.slice(0, 3).map(n => n.html.slice(0, 120)).join(' ')); }); 0",
        );
        self.until("window.barriers !== undefined");
        self.eval("window.barriers")
    }

    pub(crate) fn key(&mut self, key: &str) {
        let (code, text, name) = match key {
            "Tab" => (9, "", "Tab"),
            "Enter" => (13, "\r", "Enter"),
            _ => (32, " ", "Space"),
        };
        for kind in ["keyDown", "keyUp"] {
            let mut event = json!({"type": kind, "key": key, "code": name, "windowsVirtualKeyCode": code});
            if kind == "keyDown" && !text.is_empty() {
                event["text"] = json!(text);
            }
            self.call("Input.dispatchKeyEvent", event);
        }
    }

    /// Role and name of everything a screen reader meets.
    pub(crate) fn spoken(&mut self) -> Vec<(String, String)> {
        let tree = self.call("Accessibility.getFullAXTree", json!({}));
        let text = |v: &Value| v["value"].as_str().unwrap_or_default().to_owned();
        let nodes = tree["nodes"].as_array().unwrap().iter().filter(|n| n["ignored"] != true);
        nodes.map(|n| (text(&n["role"]), text(&n["name"]))).collect()
    }
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
    let short = "--no-probe --jobs 1,2 --duration 200ms --warmup 200ms";
    let folder = lat1("null:?pause=1ms", results.path(), short).folder();
    let more = ["--format", "pdf", "--summary", "--output", pdf.to_str().unwrap()];
    ok(&[&["report", folder.to_str().unwrap()], &more[..]].concat());
    let bytes = std::fs::read(pdf).unwrap();
    assert!(bytes.starts_with(b"%PDF-"));
}
