//! Metrics of a run, and Grafana's dashboard, in a real Prometheus.

use std::fs;
use std::net::TcpStream;

use super::live::Server;
use crate::common::*;

const TARGET: &str = "null:?pause=1ms";
const DASHBOARD: &str = include_str!("../../../../docs/grafana/loadline.json");

/// The value of the only sample of `metric` whose labels hold `label`.
fn sample(text: &str, metric: &str, label: &str) -> Option<f64> {
    let mut found = text.lines().filter(|l| l.strip_prefix(metric).is_some_and(|rest| rest.starts_with('{')));
    found.find(|l| l.contains(label))?.rsplit(' ').next()?.parse().ok()
}

fn serving(results: &Path) -> Server {
    // More tests than are waited for: the run must be there until it has answered.
    let line = "run --workload LGWR-LAT1 --jobs 1,2,3,4,5,6,7 --duration 3s --warmup 200ms --no-probe --metrics 127.0.0.1:0 --target";
    let more = [TARGET, "--results", results.to_str().unwrap(), "--platform", "a \"b\"\\"];
    Server::from_process(start(&[&words(line)[..], &more].concat()))
}

#[test]
fn a_run_tells_its_figures_until_it_ends() {
    let results = tempfile::tempdir().unwrap();
    let mut running = serving(results.path());
    // Figures of the second and of a test that is done, at once.
    let mut text = String::new();
    wait_for("the second test", || {
        text = running.get("/metrics").body;
        sample(&text, "loadline_test_cpu_busy_ratio", "test=\"2\"").is_some()
    });
    assert_eq!(sample(&text, "loadline_run_running", ""), Some(1.0), "{text}");
    let tps = sample(&text, "loadline_test_transactions_per_second", "jobs=\"2\"").unwrap();
    let latency = sample(&text, "loadline_test_latency_mean_seconds", "jobs=\"2\"").unwrap();
    assert!(tps * latency > 0.0 && tps * latency < 2.2, "Little's law: {tps} × {latency}");
    assert!(text.contains("platform=\"a \\\"b\\\"\\\\\"") && text.ends_with("# EOF\n"), "{text}");
    assert!(!text.contains(TARGET), "a target may hold names of hosts: {text}");
    let first = &tests_of(&folder_with_tests(results.path(), 1))[0];
    let same = |metric: &str, label: &str, column: &str, unit: f64| {
        let expected = first[column].as_f64().unwrap() / unit;
        let found = sample(&text, metric, label).unwrap_or_else(|| panic!("{metric}: {text}"));
        assert!((found - expected).abs() <= expected.abs() * 1e-9, "{metric}: {found} is not {expected}");
    };
    same("loadline_result_transactions_per_second", "test=\"1\"", "commit_throughput_tps", 1.0);
    same("loadline_result_latency_seconds", "q=\"0.99\"", "transaction_time_ns_p99", 1e9);
    same("loadline_result_errors", "test=\"1\"", "errors", 1.0);
    let valid = f64::from(u8::from(first["valid"] == true));
    assert_eq!(sample(&text, "loadline_result_valid", "test=\"1\""), Some(valid));

    signal(&running.process.0, Signal::SIGINT);
    running.process.0.wait().unwrap();
    wait_for("the server to end with the run", || TcpStream::connect(&running.address).is_err());
}

#[test]
#[ignore = "nightly: a real Prometheus"]
fn every_query_of_the_dashboard_is_answered() {
    let results = tempfile::tempdir().unwrap();
    let running = serving(results.path());
    let address = &running.address;
    let scraper = format!("127.0.0.1:{}", free_port());
    let data = tempfile::tempdir().unwrap();
    let config = data.path().join("prometheus.yml");
    let jobs = format!("[{{job_name: loadline, static_configs: [{{targets: ['{address}']}}]}}]");
    fs::write(&config, format!("global: {{scrape_interval: 1s}}\nscrape_configs: {jobs}\n")).unwrap();
    let prometheus = Command::new("prometheus")
        .arg(format!("--config.file={}", config.display()))
        .arg(format!("--storage.tsdb.path={}", data.path().join("tsdb").display()))
        .arg(format!("--web.listen-address={scraper}"))
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn();
    let process = prometheus.expect("prometheus is missing: apt-get install prometheus (./test --nightly does it)");
    let prometheus = Server { process: Killed(process), address: scraper };
    wait_for("Prometheus", || TcpStream::connect(&prometheus.address).is_ok());
    // The null engine has no device and no waits, and its tests may be invalid on a busy machine. That metrics of these names are
    // there is a test of crate `live`.
    let dashboard: Value = serde_json::from_str(DASHBOARD).unwrap();
    let queries = dashboard["panels"].as_array().unwrap().iter().flat_map(|p| p["targets"].as_array().unwrap());
    let queries: Vec<&str> = queries.map(|t| t["expr"].as_str().unwrap()).collect();
    assert!(queries.len() > 10, "{queries:?}");
    let answer = |query: &str| -> Value {
        let query: String = query.bytes().map(|b| format!("%{b:02x}")).collect();
        serde_json::from_str(&prometheus.get(&format!("/api/v1/query?query={query}")).body).unwrap_or_default()
    };
    let scraped = |metric: &str| answer(metric)["data"]["result"][0].is_object();
    let told = ["loadline_test_cpu_busy_ratio", "loadline_result_transactions_per_second"];
    wait_for("Prometheus to scrape", || told.into_iter().all(scraped));
    for query in queries {
        let known = query.replace("$run", ".*").replace(",valid=\"true\"", "");
        let answered = answer(&known);
        assert_eq!(answered["status"], "success", "{known}: {answered}");
        let none = ["device", "wait_sessions", "valid=\"false\""].iter().any(|part| known.contains(part));
        assert!(none || answered["data"]["result"][0].is_object(), "{known}: {answered}");
    }
}
