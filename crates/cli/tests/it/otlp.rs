//! What a collector gets of a run.

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpListener;
use std::sync::{Arc, Mutex};

use serde_json::Value;

use crate::common::{Ran, loadline, tests_of, words};

const AWAY: &str = "503 Service Unavailable";
/// A request: head and body.
type Asked = (String, Value);

/// A collector that answers the first `good` requests with 200 and the `others` with that status, or never. Returns its URL.
fn collector(good: usize, others: Option<&'static str>) -> (String, Arc<Mutex<Vec<Asked>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/api/v1/otlp/v1/metrics", listener.local_addr().unwrap());
    let asked = Arc::new(Mutex::new(Vec::new()));
    let heard = Arc::clone(&asked);
    std::thread::spawn(move || {
        let mut unanswered = Vec::new();
        for (number, stream) in listener.incoming().flatten().enumerate() {
            let mut reader = BufReader::new(stream.try_clone().unwrap());
            let mut head = String::new();
            while !head.ends_with("\r\n\r\n") && reader.read_line(&mut head).is_ok_and(|read| read > 0) {}
            let length = head.lines().find_map(|l| l.to_lowercase().strip_prefix("content-length: ")?.parse().ok());
            let mut body = vec![0; length.unwrap_or(0)];
            // A request that was given up.
            if !head.ends_with("\r\n\r\n") || reader.read_exact(&mut body).is_err() {
                continue;
            }
            heard.lock().unwrap().push((head, serde_json::from_slice(&body).unwrap()));
            let Some(status) = (if number < good { Some("200 OK") } else { others }) else {
                unanswered.push(stream);
                continue;
            };
            let answer =
                format!("HTTP/1.1 {status}\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{{}}");
            let _ = (&stream).write_all(answer.as_bytes());
        }
    });
    (url, asked)
}

fn measure(dir: &std::path::Path, url: &str, duration: &str) -> Ran {
    let mut command = loadline();
    command.args(words("run --target null:?pause=1ms --workload LGWR-LAT1 --jobs 1,2 --duration")).arg(duration);
    command.args(["--warmup", "200ms", "--no-probe", "--platform", "a \"b\"", "--otlp", url, "--results"]).arg(dir);
    command.env("OTEL_EXPORTER_OTLP_HEADERS", "authorization=Bearer%20s3cret,x-scope=tests");
    command
        .env("OTEL_RESOURCE_ATTRIBUTES", "deployment.environment.name=lab")
        .env("OTEL_METRIC_EXPORT_INTERVAL", "300");
    Ran::of(command.output().unwrap())
}

fn metrics(body: &Value) -> impl Iterator<Item = &Value> {
    body["resourceMetrics"][0]["scopeMetrics"][0]["metrics"].as_array().unwrap().iter()
}

/// The only point of a metric whose attributes hold `key` = `value`.
fn point(body: &Value, metric: &str, (key, value): (&str, &str)) -> Option<f64> {
    let has = |point: &Value| {
        let mut pairs = point["attributes"].as_array().unwrap().iter();
        pairs.any(|pair| pair["key"] == key && pair["value"]["stringValue"] == value)
    };
    let points = metrics(body).find(|m| m["name"] == metric)?["gauge"]["dataPoints"].as_array()?;
    points.iter().find(|point| has(point))?["asDouble"].as_f64()
}

#[test]
fn a_run_is_pushed_to_its_last_state() {
    let results = tempfile::tempdir().unwrap();
    let (url, asked) = collector(usize::MAX, None);
    let ran = measure(results.path(), &url, "5s");
    assert!(ran.code <= 1, "{}", ran.said());
    assert!(
        ran.err.contains("metrics are pushed to http://127.0.0.1:") && !ran.err.contains("failed"),
        "{}",
        ran.said()
    );
    let asked = asked.lock().unwrap();
    let (first, last) = (&asked[0], asked.last().unwrap());
    assert_eq!(metrics(&first.1).count(), 0, "the collector is asked before anything is measured");
    for (head, _) in asked.iter() {
        assert!(head.starts_with("POST /api/v1/otlp/v1/metrics HTTP/1.1\r\n"), "{head}");
        for header in ["content-type: application/json", "authorization: Bearer s3cret", "x-scope: tests"] {
            assert!(head.lines().any(|line| line == header), "{header}: {head}");
        }
    }
    let attributes = last.1["resourceMetrics"][0]["resource"]["attributes"].to_string();
    assert!(attributes.contains("service.name") && attributes.contains("\"lab\""), "{attributes}");

    // The same figures as in the records, after the run's end.
    let folder = ran.folder();
    let run = folder.file_name().unwrap().to_str().unwrap();
    assert_eq!(point(&last.1, "loadline_run_running", ("run", run)), Some(0.0), "{}", last.1);
    assert_eq!(point(&last.1, "loadline_run_info", ("platform", "a \"b\"")), Some(1.0));
    for test in tests_of(&folder) {
        let number = test["test"].to_string();
        let same = |metric: &str, column: &str, unit: f64| {
            let (found, stored) =
                (point(&last.1, metric, ("test", &number)).unwrap(), test[column].as_f64().unwrap() / unit);
            assert!((found - stored).abs() <= stored.abs() * 1e-9, "{metric}: {found} is not {stored}");
        };
        same("loadline_result_transactions_per_second", "commit_throughput_tps", 1.0);
        same("loadline_result_latency_mean_seconds", "transaction_time_ns_mean", 1e9);
    }
    let under_way =
        asked.iter().filter_map(|(_, body)| point(body, "loadline_test_transactions_per_second", ("run", run)));
    // How many there are is a matter of the machine: the process gets a CPU when no other wants it.
    assert!(under_way.filter(|tps| *tps > 0.0).count() > 0, "seconds of tests under way");

    // No secret and no target in anything that is kept or sent.
    let bodies: String = asked.iter().map(|(_, body)| body.to_string()).collect();
    assert!(!bodies.contains("null:?pause") && !bodies.contains("s3cret"));
    assert!(!ran.said().contains("s3cret"), "{}", ran.said());
    let kept = fs::read_dir(&folder).unwrap().flatten().filter(|e| e.path().is_file());
    let texts: Vec<String> = kept.map(|e| String::from_utf8_lossy(&fs::read(e.path()).unwrap()).into_owned()).collect();
    assert!(texts.len() > 2 && texts.iter().all(|text| !text.contains("s3cret")));
}

/// Of the database's own loop, which reports once a second, and of a client: with a window of a second, as in the plan `quick`.
#[test]
fn figures_of_a_test_under_way_are_those_of_its_result() {
    let results = tempfile::tempdir().unwrap();
    let (url, asked) = collector(usize::MAX, None);
    let mut command = loadline();
    command
        .args(words("run --target postgres-temp: --jobs 1,4 --duration 1s --warmup 300ms --no-probe --otlp"))
        .arg(&url);
    command.args(["--workload", "LGWR-LAT1,SRV-QUERY1", "--results"]).arg(results.path());
    command.env("OTEL_METRIC_EXPORT_INTERVAL", "200");
    let folder = Ran::of(command.output().unwrap()).folder();
    let tests = tests_of(&folder);
    assert_eq!(tests.len(), 4);
    let off = |shown: f64, test: &Value| (shown / test["commit_throughput_tps"].as_f64().unwrap() - 1.0).abs();
    let mut all = Vec::new();
    let live = fs::read_to_string(folder.join("live.jsonl")).unwrap();
    let lines: Vec<Value> = live.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    for test in &tests {
        let shown: Vec<f64> =
            lines.iter().filter(|line| line["test"] == test["test"]).filter_map(|line| line["tps"].as_f64()).collect();
        // Not of the warm-up, which is shorter than a rate takes.
        assert_eq!(shown.len(), 1, "{shown:?} of test {}", test["test"]);
        let mut of_test = vec![off(shown[0], test)];
        let number = test["test"].to_string();
        let asked = asked.lock().unwrap();
        let pushed = asked
            .iter()
            .filter_map(|(_, body)| point(body, "loadline_test_transactions_per_second", ("test", &number)));
        of_test.extend(pushed.map(|tps| off(tps, test)));
        all.push(of_test);
    }
    // Beside other tests the end of one window may come late; a figure of something else would be off in most.
    let near = all.iter().filter(|of_test| of_test.iter().all(|off| *off < 0.1)).count();
    assert!(near >= 3, "how far the figures of each test under way were from its result: {all:?}");
}

#[test]
fn a_collector_that_fails_does_not_end_the_run_and_is_said() {
    let results = tempfile::tempdir().unwrap();
    let (url, asked) = collector(1, Some(AWAY));
    let ran = measure(results.path(), &url, "2s");
    assert!(ran.code <= 1 && !tests_of(&ran.folder()).is_empty(), "{}", ran.said());
    // The first request is empty and no push. One that is under way when the run ends is given up and not counted.
    let summary =
        ran.err.lines().find_map(|l| l.strip_prefix("--otlp: ")?.split_once(" pushes failed, the last state"));
    let (counts, _) = summary.unwrap_or_else(|| panic!("{}", ran.said()));
    let (failed, of) = counts.split_once(" of ").unwrap();
    let (failed, of): (usize, usize) = (failed.parse().unwrap(), of.parse().unwrap());
    assert_eq!(of, failed, "{}", ran.said());
    // One whose answer came too late, as the process runs only when nobody else wants the CPU, may not have been read.
    assert!(failed > 0 && failed <= asked.lock().unwrap().len(), "{}", ran.said());
    assert_eq!(ran.err.matches("503").count(), 1, "a reason is said once: {}", ran.said());
}

#[test]
fn a_collector_that_falls_silent_does_not_hold_the_command_up() {
    let results = tempfile::tempdir().unwrap();
    let (url, _) = collector(1, None);
    let ran = measure(results.path(), &url, "2s");
    assert!(ran.code <= 1 && tests_of(&ran.folder()).len() == 2, "{}", ran.said());
    assert!(ran.err.contains("no answer within"), "{}", ran.said());
    assert!(ran.err.contains("pushes failed, the last state of the run among them"), "{}", ran.said());
}

#[test]
fn without_a_collector_nothing_is_measured() {
    let results = tempfile::tempdir().unwrap();
    let (refusing, _) = collector(0, Some(AWAY));
    let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    for (url, part) in [
        (format!("http://{free}"), "refused"),
        (refusing, "503"),
        ("collector:4318".to_owned(), "'collector:4318'"),
        ("http://ann:s3cret@localhost".to_owned(), "OTEL_EXPORTER_OTLP_HEADERS"),
        ("https://localhost:1?key=s3cret".to_owned(), "OTEL_EXPORTER_OTLP_HEADERS"),
    ] {
        let ran = measure(results.path(), &url, "2s");
        assert_eq!(ran.code, 2, "{url}: {}", ran.said());
        assert!(
            ran.err.contains(part) && ran.err.contains("--otlp") && !ran.err.contains("s3cret"),
            "{url}: {}",
            ran.said()
        );
        assert_eq!(fs::read_dir(results.path()).unwrap().count(), 0, "{url}");
    }
}
