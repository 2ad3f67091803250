//! `loadline watch` and `loadline serve` end to end, against runs of the null engine.

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;

use crate::browser::Browser;
use crate::common::*;

/// A server, or a run that serves its metrics; ended with the test.
pub(super) struct Server {
    pub(super) process: Killed,
    pub(super) address: String,
}

/// Headers and body of an answer.
pub(super) struct Answer {
    pub(super) status: u16,
    head: String,
    pub(super) body: String,
}

impl Server {
    fn start(dir: &Path, token: Option<&str>) -> Server {
        let mut command = loadline();
        command.args(["serve", dir.to_str().unwrap(), "--listen", "127.0.0.1:0"]);
        Server::from_process(command.envs(token.map(|t| ("LOADLINE_TOKEN", t))).stderr(Stdio::piped()).spawn().unwrap())
    }

    /// The process once it has said where it serves.
    pub(super) fn from_process(mut process: Child) -> Server {
        let mut said = BufReader::new(process.stderr.take().unwrap()).lines();
        let mut address = said
            .by_ref()
            .map_while(Result::ok)
            .filter_map(|line| Some(line.split_once("http://")?.1.split('/').next()?.to_owned()));
        let address = address.next().expect("an address");
        std::thread::spawn(move || said.count());
        Server { process: Killed(process), address }
    }

    fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    fn send(&self, request: &str) -> Answer {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        stream.write_all(request.as_bytes()).unwrap();
        let mut text = Vec::new();
        stream.read_to_end(&mut text).unwrap();
        let text = String::from_utf8_lossy(&text).into_owned();
        let (head, body) = text.split_once("\r\n\r\n").unwrap_or_else(|| panic!("{request}: {text}"));
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        Answer { status, head: head.to_lowercase(), body: body.to_owned() }
    }

    fn ask(&self, what: &str, headers: &str, body: &str) -> Answer {
        let length = body.len();
        let fixed = format!("Host: {}\r\nConnection: close\r\nContent-Length: {length}", self.address);
        self.send(&format!("{what} HTTP/1.0\r\n{fixed}\r\n{headers}\r\n{body}"))
    }

    fn get_with(&self, path: &str, headers: &str) -> Answer {
        self.ask(&format!("GET {path}"), headers, "")
    }

    pub(super) fn get(&self, path: &str) -> Answer {
        self.get_with(path, "")
    }
}

/// Paths that are asked for (`data/served.toml`).
#[derive(serde::Deserialize)]
struct Served {
    pages: Vec<(String, String)>,
    charts: Vec<(String, i64)>,
    refused: Vec<(String, u16)>,
    out: Vec<String>,
}

impl Served {
    fn paths([first, second, arms]: &[String; 3]) -> Served {
        let names = [("{first}", &**first), ("{second}", second), ("{arms}", arms)];
        toml::from_str(&filled(include_str!("data/served.toml"), &names)).unwrap()
    }
}

const SHORT: &str = "--workload LGWR-LAT1 --jobs 1 --duration 200ms --warmup 200ms --no-probe";

fn name_of(folder: &Path) -> &str {
    folder.file_name().unwrap().to_str().unwrap()
}

/// Two short runs over 1, 2 and 4 jobs, and one of two arms; names of the folders.
fn three_runs(results: &Path) -> [String; 3] {
    let swept = "run --no-probe --target null:?pause=1ms --jobs 1,2,4 --platform";
    let arms = "ab --target-a null:?pause=1ms --target-b null:?pause=1001us --pairs 3 --jobs 1";
    let short = format!("--workload LGWR-LAT1 --duration 500ms --warmup 200ms --results {}", results.display());
    [(swept, &["one <b>bold</b>"][..]), (swept, &["two"]), (arms, &[])].map(|(line, platform)| {
        let folder = run(&[&words(line)[..], platform, &words(&short)].concat()).folder();
        as_on_a_quiet_machine(&folder);
        name_of(&folder).to_owned()
    })
}

/// Views of the same runs, one after another: measuring them takes longer than looking.
#[test]
fn three_runs_are_served_in_order() {
    let outer = tempfile::tempdir().unwrap();
    let results = outer.path().join("results");
    fs::create_dir(&results).unwrap();
    let runs = three_runs(&results);
    pages_are_there_and_say_nothing_else(&results, &runs);
    no_path_leaves_the_folder_and_nothing_is_written(outer.path(), &runs);
}

fn pages_are_there_and_say_nothing_else(results: &Path, runs: &[String; 3]) {
    let (server, first) = (Server::start(results, None), &runs[0]);
    let list = server.get("/");
    assert_eq!(list.status, 200, "{}", list.body);
    let has = |part: &str| list.body.contains(part);
    assert!(has(first) && has("one &lt;b&gt;bold") && !has("<b>bold"), "{}", list.body);
    for header in [
        "content-security-policy: default-src 'none'; script-src 'self' 'sha256-",
        "; style-src 'self' 'sha256-",
        "x-content-type-options: nosniff",
        "x-frame-options: deny",
        "referrer-policy: no-referrer",
    ] {
        assert!(list.head.contains(header), "{header}\n{}", list.head);
    }
    assert_eq!(server.get("/?q=bold").body.matches("<tr><td>").count(), 1);
    let Served { pages, refused, .. } = Served::paths(runs);
    for (path, part) in &pages {
        let answer = server.get(path);
        assert_eq!(answer.status, 200, "{path}: {}", answer.body);
        assert!(answer.body.contains(part), "{path} without {part}: {}", answer.body);
        // A table or JSON that no browser takes for a page has the name as it is.
        assert!(!answer.body.contains("<b>bold") || !answer.head.contains("text/html"), "{path}");
    }
    // The report of the server is that of the command line, but for its links: with notes, and with the audit of imported figures.
    let imported = tempfile::tempdir().unwrap();
    let printed = include_str!("../../../exchange/tests/it/data/pgbench-rate.txt").replace("tps = 45.", "tps = 4500.");
    let file = imported.path().join("pgbench.txt");
    fs::write(&file, printed).unwrap();
    let runs = imported.path().to_str().unwrap();
    let theirs = ok(&["import", "pgbench", file.to_str().unwrap(), "--runs", runs]).folder();
    let body = |page: &str| page[page.find("<header>").unwrap()..].to_owned();
    for (server, folder, part) in [
        (&server, &results.join(first), "of <em>ours</em>"),
        (&Server::start(imported.path(), None), &theirs, "The audit of"),
    ] {
        ok(&["note", folder.to_str().unwrap(), "A note of *ours*."]);
        ok(&["report", folder.to_str().unwrap()]);
        let page = server.get(&format!("/runs/{}/", name_of(folder))).body;
        assert!(page.contains(part), "{part}: {page}");
        assert_eq!(body(&page), body(&fs::read_to_string(folder.join("report/index.html")).unwrap()));
    }
    for (path, status) in refused {
        let answer = server.get(&path);
        assert_eq!(answer.status, status, "{path}: {}", answer.body);
        assert!(answer.body.contains("role=\"alert\"") && answer.head.contains("content-security-policy"), "{path}");
    }
}

/// The folder is left as it was found.
fn no_path_leaves_the_folder_and_nothing_is_written(outer: &Path, runs: &[String; 3]) {
    let (results, first) = (outer.join("results"), &runs[0]);
    let secret = "a secret outside";
    // A run outside, reachable by a link and by `..`; a run whose parts are links or pipes.
    let outside = outer.join("outside");
    let copy =
        |to: &Path| assert!(Command::new("cp").arg("-r").arg(results.join(first)).arg(to).status().unwrap().success());
    copy(&outside);
    fs::write(outer.join("secret.txt"), secret).unwrap();
    std::os::unix::fs::symlink(&outside, results.join("link")).unwrap();
    for (name, file) in [("linked", "tests.jsonl"), ("linked-series", "series/1.csv")] {
        copy(&results.join(name));
        fs::remove_file(results.join(name).join(file)).unwrap();
        std::os::unix::fs::symlink(outer.join("secret.txt"), results.join(name).join(file)).unwrap();
    }
    copy(&results.join("pipe"));
    fs::remove_file(results.join("pipe/tests.jsonl")).unwrap();
    assert!(Command::new("mkfifo").arg(results.join("pipe/tests.jsonl")).status().unwrap().success());
    let before = listing(&results);
    let server = Server::start(&results, None);
    for path in &Served::paths(runs).out {
        let answer = server.get(path);
        assert!((400..500).contains(&answer.status), "{path}: {} {}", answer.status, answer.body);
        assert!(!answer.body.contains(secret), "{path}");
    }
    assert_eq!(server.get("/trend").status, 200, "what is odd is left out");
    for method in ["POST", "PUT", "DELETE", "PATCH"] {
        assert_eq!(server.ask(&format!("{method} /runs/{first}/"), "", "").status, 405, "{method}");
    }
    let elsewhere = server.send("GET / HTTP/1.1\r\nHost: evil.example\r\nConnection: close\r\n\r\n");
    assert!(elsewhere.status == 421 && !elsewhere.body.contains(first), "{}", elsewhere.body);
    assert_eq!(listing(&results), before, "nothing was written");
}

fn listing(folder: &Path) -> String {
    let found = Command::new("find").arg(folder).args(["-printf", "%p %s %T@\n"]).output().unwrap();
    String::from_utf8(found.stdout).unwrap()
}

#[test]
fn other_machines_need_a_token() {
    let results = tempfile::tempdir().unwrap();
    let dir = results.path().to_str().unwrap();
    let file = results.path().join("token");
    fs::write(&file, "short\n").unwrap();
    run(&["serve", dir, "--token-file", file.to_str().unwrap()]).fails(2, &["16"]);
    let token = "0123456789abcdef0123";
    let server = Server::start(results.path(), Some(token));
    assert_eq!(server.get("/").status, 401);
    assert_eq!(server.get("/nothing").status, 401, "what is there is nobody's business");
    let page = server.get_with("/", "Accept: text/html\r\n");
    assert!(page.status == 303 && page.head.contains("location: /login"), "{}", page.head);
    assert_eq!(server.get_with("/", &format!("Authorization: bearer {token}\r\n")).status, 200);
    let kind = "Content-Type: application/x-www-form-urlencoded\r\n";
    let login = |given: &str| server.ask("POST /login", kind, &format!("token={given}"));
    assert_eq!(login("wrong").status, 403);
    let welcome = login(token);
    assert!(welcome.status == 303 && welcome.head.contains("httponly; samesite=strict"), "{}", welcome.head);
    assert!(welcome.head.contains("set-cookie: loadline="), "{}", welcome.head);
}

#[test]
#[ignore = "nightly: CPU time, of which caches that others use take a part"]
fn ten_thousand_runs_are_listed_in_a_second_of_cpu() {
    let results = tempfile::tempdir().unwrap();
    let ran = on("null:?pause=1ms", results.path(), SHORT);
    let first = name_of(&ran.folder()).to_owned();
    let manifest = fs::read_to_string(results.path().join(&first).join("manifest.json")).unwrap();
    let tests = fs::read(results.path().join(&first).join("tests.jsonl")).unwrap();
    for n in 0..10_000 {
        let folder = results.path().join(format!("nightly-{n:05}"));
        fs::create_dir(&folder).unwrap();
        fs::write(folder.join("manifest.json"), manifest.replace(&first, &format!("nightly-{n:05}"))).unwrap();
        fs::write(folder.join("tests.jsonl"), &tests).unwrap();
    }
    let server = Server::start(results.path(), None);
    // CPU time of the server: what a request takes by the clock depends on the neighbours, who come first.
    let cpu = || {
        let stat = fs::read_to_string(format!("/proc/{}/stat", server.process.0.id())).unwrap();
        let after_name: Vec<&str> = stat.rsplit(") ").next().unwrap().split(' ').collect();
        Duration::from_millis((after_name[11].parse::<u64>().unwrap() + after_name[12].parse::<u64>().unwrap()) * 10)
    };
    let first = server.get("/");
    assert!(first.status == 200 && first.body.contains("10001 of 10001 runs"), "{}", first.head);
    let cold = cpu();
    let found = server.get("/?q=nightly-04242");
    assert!(found.status == 200 && found.body.contains("1 of 10001 runs"), "{}", found.head);
    let warm = cpu() - cold;
    // Of a build without optimisation.
    assert!(warm < Duration::from_secs(1), "{warm:?} once the manifests are known");
    assert!(cold < Duration::from_secs(5), "{cold:?} for the first list");
    let trend = server.get("/trend").body;
    assert!(trend.contains("The newest 1000 runs are followed; 9001 older ones are left out"), "{trend}");
}

fn set_state(folder: &Path, state: &str) {
    let path = folder.join("manifest.json");
    let manifest = fs::read_to_string(&path).unwrap();
    let changed = manifest.replace("\"state\": \"complete\"", &format!("\"state\": \"{state}\""));
    assert_ne!(manifest, changed);
    fs::write(path, changed).unwrap();
}

/// Starts a run of two tests of 1 s and a window of `seconds` into `dir`.
fn two_tests(dir: &str, seconds: u32) -> Child {
    let line = "--driver client --workload LGWR-LAT1 --jobs 1,2 --warmup 1s --no-probe";
    start_on("null:?pause=1ms", dir, &format!("{line} --duration {seconds}s"))
}

#[test]
fn a_run_is_watched_to_its_end() {
    watched_run(&tempfile::tempdir().unwrap(), 1);
}

/// A run of [`two_tests`] that was watched: what that said, the run's folder, and its seconds under way.
fn watched_run(results: &tempfile::TempDir, seconds: u32) -> (String, PathBuf, Vec<Value>) {
    let dir = results.path().to_str().unwrap();
    let mut measured = two_tests(dir, seconds);
    folder_with(results.path(), "live.jsonl", |_| true);
    let text = ok(&["watch", "--results", dir]).out;
    assert!(measured.wait().unwrap().code().is_some_and(|code| code <= 1));
    for part in ["Test 2: LGWR-LAT1, 2 jobs", &format!(" of {} s  ", seconds + 1), " tps", "CPU", "Complete"] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let folder = folder_with_tests(results.path(), 2);
    let seconds = fs::read_to_string(folder.join("live.jsonl")).unwrap();
    let seconds: Vec<Value> =
        seconds.lines().map(|l| serde_json::from_str(l).unwrap()).filter(|l: &Value| l["event"] == "second").collect();
    assert!([1, 2].iter().all(|test| seconds.iter().any(|s| s["test"] == *test)), "{seconds:?}");
    (text, folder, seconds)
}

#[test]
#[ignore = "nightly: on a busy machine seconds of a test are told late or not at all"]
fn seconds_of_a_test_are_those_of_its_result() {
    let results = tempfile::tempdir().unwrap();
    let (text, folder, seconds) = watched_run(&results, 4);
    assert!(text.lines().filter(|l| l.contains(" of 5 s  ")).count() >= 5, "a line a second: {text}");
    for test in [1, 2] {
        let of: Vec<_> = seconds.iter().filter(|s| s["test"] == test).collect();
        let known = tests_of(&folder)[test - 1]["commit_throughput_tps"].as_f64().unwrap();
        // The newest four are the seconds of the window, each of the time that it covers.
        let tps: Vec<f64> = of.iter().filter_map(|s| s["tps"].as_f64()).rev().take(4).collect();
        let mean = tps.iter().sum::<f64>() / 4.0;
        assert!(tps.len() == 4 && (mean / known - 1.0).abs() < 0.1, "{tps:?} while it went on, {known} in the end");
    }
}

#[test]
#[ignore = "nightly: a browser"]
fn a_browser_shows_every_page_to_everyone() {
    let outer = tempfile::tempdir().unwrap();
    let results = outer.path();
    let runs = three_runs(results);
    let [first, _, arms] = &runs;
    let server = Server::start(results, None);
    let mut browser = Browser::start();
    for (path, charts) in Served::paths(&runs).charts {
        for (width, dark) in [(1280, false), (1280, true), (360, false)] {
            browser.look(width, 900, dark);
            browser.open(&server.url(&path));
            let wide = browser.eval("document.documentElement.scrollWidth - document.documentElement.clientWidth");
            assert!(wide.as_i64().unwrap() <= 0, "{path} at {width} scrolls sideways by {wide}");
            let paper = browser.eval("getComputedStyle(document.documentElement).backgroundColor");
            let styled = if dark { "rgb(20, 24, 31)" } else { "rgb(255, 255, 255)" };
            assert_eq!(paper, styled, "{path}: is the style allowed?");
            assert_eq!(browser.barriers(), serde_json::json!([]), "{path} at {width}, dark: {dark}");
        }
        let drawn = browser
            .eval("[...document.querySelectorAll('svg')].filter(s => s.getBoundingClientRect().height > 50).length");
        assert!(drawn.as_i64().unwrap() >= charts, "{path}: {drawn} charts");
        let spoken = browser.spoken();
        let has = |role: &str| spoken.iter().any(|(r, name)| r == role && !name.is_empty());
        assert!(has("heading") && has("link") && spoken.iter().any(|(r, _)| r == "main"), "{path}: {spoken:?}");
        let nameless = ["link", "button", "checkbox", "image", "img", "searchbox"];
        let nameless = spoken.iter().find(|(role, name)| nameless.contains(&role.as_str()) && name.trim().is_empty());
        assert!(nameless.is_none(), "{path}: {nameless:?} has no name");
        // What the page that does not exist answers is no error of a page.
        let errors: Vec<_> = browser.errors.drain(..).filter(|e| !(path == "/nothing" && e.contains("404"))).collect();
        assert!(errors.is_empty(), "{path}: {errors:?}");
    }
    // The two that are left can be compared.
    fs::remove_dir_all(results.join(arms)).unwrap();
    by_keyboard(&mut browser, &server, first);
}

/// Chooses two runs and compares them with Tab, Space and Enter alone.
fn by_keyboard(browser: &mut Browser, server: &Server, run: &str) {
    browser.look(1280, 900, false);
    browser.open(&server.url("/"));
    let mut visited = Vec::new();
    let mut chosen = 0;
    for _ in 0..60 {
        browser.key("Tab");
        let what = browser.eval("(e => e.tagName + ' ' + (e.type || '') + ' ' + (e.textContent || e.value).trim().slice(0, 40))(document.activeElement)");
        visited.push(what.as_str().unwrap().to_owned());
        let seen = browser.eval("getComputedStyle(document.activeElement).outlineStyle !== 'none'");
        assert!(seen == true || what.as_str().unwrap().starts_with("BODY"), "the focus is not seen on {what}");
        if what.as_str().unwrap().contains("checkbox") && chosen < 2 {
            browser.key(" ");
            chosen += 1;
        }
    }
    assert_eq!(browser.eval("document.querySelectorAll('[name=run]:checked').length"), 2, "{visited:?}");
    let order: Vec<usize> = ["search", "Find", "Compare", "checkbox", run]
        .iter()
        .map(|part| visited.iter().position(|v| v.contains(part)).unwrap_or_else(|| panic!("{part}: {visited:?}")))
        .collect();
    assert!(order.is_sorted_by(|a, b| a < b), "{visited:?}");
    browser.eval("document.querySelector('button[formaction=\"/compare\"]').focus()");
    browser.key("Enter");
    browser.until("document.readyState === 'complete' && location.pathname === '/compare'");
    assert!(browser.eval("document.body.innerText").as_str().unwrap().contains("Comparison"));
    assert!(browser.errors.is_empty(), "{:?}", browser.errors);
}

#[test]
#[ignore = "nightly: a browser"]
fn a_page_follows_a_run_as_it_grows_and_vanishes() {
    let results = tempfile::tempdir().unwrap();
    let dir = results.path().to_str().unwrap();
    let mut measured = two_tests(dir, 4);
    let folder = folder_with(results.path(), "live.jsonl", |_| true);
    let server = Server::start(results.path(), None);
    let mut browser = Browser::start();
    browser.open(&server.url(&format!("/runs/{}/live", name_of(&folder))));
    browser.until("document.querySelectorAll('#live svg').length >= 3");
    browser.until("document.getElementById('said').textContent.startsWith('1 test done')");
    browser.until("document.getElementById('live').innerText.includes('Complete')");
    assert!(measured.wait().unwrap().success());
    assert!(browser.errors.is_empty(), "{:?}", browser.errors);
    // A page whose server has gone says so where it is seen, until another one answers.
    set_state(&folder, "started");
    let other = Server::start(results.path(), None);
    let seen = "(e => !e.hidden && e.getBoundingClientRect().height > 10 && e.textContent.includes('connection'))(document.getElementById('lost'))";
    browser.open(&other.url(&format!("/runs/{}/live", name_of(&folder))));
    browser.until("document.getElementById('said').textContent.startsWith('2 tests done')");
    assert_eq!(browser.eval(seen), false);
    drop(other);
    browser.until(seen);
    browser.errors.clear();
    fs::remove_dir_all(&folder).unwrap();
    browser.open(&server.url("/"));
    assert!(browser.eval("document.body.innerText").as_str().unwrap().contains("There is no run"));
}
