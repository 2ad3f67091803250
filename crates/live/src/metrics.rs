//! Runs as they stand, as metrics in OpenMetrics text (<https://prometheus.io/docs/specs/om/open_metrics_spec/>).
//!
//! Unknown figures have no sample, and no figure is carried on after its second. Every metric is a gauge.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use loadline_model::column;
use loadline_model::{TestRecord, Validity};

use crate::now::Now;

/// A second of a test is shown for so long, s. Later its figures are not those of this moment.
pub const FRESH_S: f64 = 5.0;
/// Tests whose results are shown of a run: the newest.
const MOST_TESTS: usize = 500;

/// Name and meaning of every metric, in order.
const ALL: &str = include_str!("metrics.txt");
/// Suffixes of metrics that have a unit.
const UNITS: [&str; 2] = ["seconds", "ratio"];

type Labels = Vec<(&'static str, String)>;

#[derive(Debug, Default)]
pub struct Metrics {
    /// Labels and value, by the metric's name.
    samples: BTreeMap<&'static str, Vec<(Labels, f64)>>,
}

fn with(labels: &Labels, name: &'static str, value: impl Into<String>) -> Labels {
    let mut all = labels.clone();
    all.push((name, value.into()));
    all
}

fn test_labels(run: &str, workload: &str, jobs: u32, test: u32) -> Labels {
    let (run, workload) = (run.to_owned(), workload.to_owned());
    vec![("run", run), ("workload", workload), ("jobs", jobs.to_string()), ("test", test.to_string())]
}

impl Metrics {
    /// Sets a sample of the metric `name`, if its value is known.
    fn set(&mut self, name: &'static str, labels: Labels, value: Option<f64>) {
        if let Some(value) = value.filter(|v| v.is_finite()) {
            self.samples.entry(name).or_default().push((labels, value));
        }
    }

    /// Adds what is known of a run at `now_s`, s since 1970.
    pub fn add(&mut self, run: &str, now: &Now, now_s: f64) {
        let of_run: Labels = vec![("run", run.to_owned())];
        if let Some(manifest) = &now.manifest {
            let mut labels = with(&of_run, "platform", &manifest.plan.platform);
            labels.push(("product", manifest.target.product.clone()));
            labels.push(("version", manifest.target.version.clone()));
            self.set("run_info", labels, Some(1.0));
        }
        let running = now.is_open() && !now.is_dead(now_s) && now.manifest.is_some();
        self.set("run_running", of_run.clone(), Some(f64::from(u8::from(running))));
        let left_s = if running { now.left_s(now_s) } else { None };
        self.set("run_left_seconds", of_run.clone(), left_s);
        self.set("run_heard_timestamp_seconds", of_run.clone(), now.heard_s);
        for validity in Validity::ALL {
            let count = now.records.iter().filter(|r| r.validity() == Some(validity)).count();
            self.set("run_tests", with(&of_run, "validity", validity.name()), Some(count as f64));
        }
        if running {
            self.add_second(run, now, now_s);
        }
        let skipped = now.records.len().saturating_sub(MOST_TESTS);
        now.records.iter().skip(skipped).for_each(|record| self.add_result(run, record));
    }

    fn add_second(&mut self, run: &str, now: &Now, now_s: f64) {
        let fresh = now.heard_s.is_some_and(|heard_s| now_s - heard_s <= FRESH_S) && now.step.is_none();
        let Some((test, second)) = now.test().zip(now.seconds.back()) else { return };
        // The newest second is of the test before until this one's first.
        if !fresh || second.test != test.test {
            return;
        }
        let labels = test_labels(run, &test.workload, test.jobs, test.test);
        for (name, value) in [
            ("test_elapsed_seconds", Some(second.elapsed_s)),
            ("test_length_seconds", Some(second.total_s)),
            ("test_transactions_per_second", second.tps),
            ("test_latency_mean_seconds", second.latency_ms.map(|ms| ms / 1e3)),
            ("test_cpu_busy_ratio", second.cpu_busy_pct.map(|pct| pct / 1e2)),
            ("test_cpu_iowait_ratio", second.cpu_iowait_pct.map(|pct| pct / 1e2)),
            ("test_device_busy_ratio", second.device_util_pct.map(|pct| pct / 1e2)),
            ("test_device_writes_per_second", second.device_writes_per_s),
        ] {
            self.set(name, labels.clone(), value);
        }
        for (wait, sessions) in &second.waits {
            self.set("test_wait_sessions", with(&labels, "wait", wait), Some(*sessions));
        }
    }

    fn add_result(&mut self, run: &str, record: &TestRecord) {
        let mut labels = test_labels(run, &record.workload, record.jobs, record.test);
        labels.push(("repetition", record.repetition.to_string()));
        labels.extend(record.arm().map(|arm| ("arm", arm.to_string())));
        self.set(
            "result_valid",
            labels.clone(),
            record.validity().map(|of| f64::from(u8::from(of == Validity::Valid))),
        );
        // Figures of a refused test are not to be used: its label says so in each of them. Those of another tool are unchecked.
        let labels = with(&labels, "validity", record.validity().map_or("unchecked", Validity::name));
        let figure = |column| record.figure(column);
        let throughput = figure(column::COMMIT_THROUGHPUT_TPS).or(figure(column::TX_PER_S));
        for (name, value) in [
            ("result_transactions_per_second", throughput),
            ("result_latency_mean_seconds", figure(column::TRANSACTION_TIME_NS_MEAN).map(|ns| ns / 1e9)),
            ("result_errors", figure(column::ERRORS)),
            ("result_cpu_busy_ratio", figure(column::CPU_BUSY_PCT).map(|pct| pct / 1e2)),
            ("result_limit_share_ratio", figure(column::LIMIT_SHARE_PCT).map(|pct| pct / 1e2)),
        ] {
            self.set(name, labels.clone(), value);
        }
        for (quantile, column) in [
            ("0.5", column::TRANSACTION_TIME_NS_P50),
            ("0.99", column::TRANSACTION_TIME_NS_P99),
            ("1", column::TRANSACTION_TIME_NS_MAX),
        ] {
            // OpenMetrics keeps the name `quantile` for summaries.
            let seconds = figure(column).map(|ns| ns / 1e9);
            self.set("result_latency_seconds", with(&labels, "q", quantile), seconds);
        }
    }

    pub fn text(&self) -> String {
        let mut text = String::new();
        for (name, help) in ALL.lines().filter_map(|line| line.split_once(": ")) {
            // Writing to a string cannot fail.
            let _ = write!(text, "# HELP loadline_{name} {help}.\n# TYPE loadline_{name} gauge\n");
            if let Some(unit) = UNITS.iter().find(|unit| name.ends_with(**unit)) {
                let _ = writeln!(text, "# UNIT loadline_{name} {unit}");
            }
            for (labels, value) in self.samples.get(name).into_iter().flatten() {
                let labels: Vec<String> = labels.iter().map(|(name, value)| label(name, value)).collect();
                let _ = writeln!(text, "loadline_{name}{{{}}} {value:?}", labels.join(","));
            }
        }
        text + "# EOF\n"
    }
}

fn label(name: &str, value: &str) -> String {
    format!("{name}=\"{}\"", value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n"))
}
