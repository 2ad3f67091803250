//! Runs as they stand, as metrics in OpenMetrics text.
//!
//! What is unknown has no sample, and no figure is carried on after its second.

use std::fmt;
use std::sync::atomic::AtomicU64;

use loadline_model::TestRecord;
use loadline_model::column;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::{Registry, Unit};

use crate::now::Now;

/// A second of a test is shown for so long, s. Later its figures are not those of this moment.
pub const FRESH_S: f64 = 5.0;
/// Tests whose results are shown of a run: the newest.
const MOST_TESTS: usize = 500;
/// How names of metrics begin.
pub(crate) const PREFIX: &str = "loadline";
/// Labels of a sample, in order.
type Labels = Vec<(&'static str, String)>;
/// Samples of one metric by labels.
type Samples = Vec<(Labels, f64)>;

/// A metric with its samples. Everything is a gauge.
pub(crate) struct Described {
    /// Without `loadline_` and without the unit.
    pub(crate) name: &'static str,
    pub(crate) help: &'static str,
    pub(crate) unit: Option<Unit>,
    pub(crate) samples: Samples,
}

/// All metrics, each with the samples of all runs.
#[derive(Debug, Default)]
pub struct Metrics {
    info: Samples,
    running: Samples,
    left: Samples,
    heard: Samples,
    tests: Samples,
    elapsed: Samples,
    length: Samples,
    throughput: Samples,
    latency: Samples,
    jobs_by_latency: Samples,
    cpu_busy: Samples,
    cpu_iowait: Samples,
    device_util: Samples,
    device_writes: Samples,
    waits: Samples,
    result_valid: Samples,
    result_throughput: Samples,
    result_mean: Samples,
    result_quantiles: Samples,
    result_errors: Samples,
    result_cpu_busy: Samples,
    result_limit_share: Samples,
}

/// Sets a sample, if the value is known.
fn set(samples: &mut Samples, labels: &[(&'static str, String)], value: Option<f64>) {
    samples.extend(value.filter(|v| v.is_finite()).map(|value| (labels.to_vec(), value)));
}

fn with(labels: &[(&'static str, String)], name: &'static str, value: impl Into<String>) -> Labels {
    let mut all = labels.to_vec();
    all.push((name, value.into()));
    all
}

/// Labels of a test.
fn of_test(run: &str, workload: &str, jobs: u32, test: u32) -> Labels {
    let (run, workload) = (run.to_owned(), workload.to_owned());
    vec![("run", run), ("workload", workload), ("jobs", jobs.to_string()), ("test", test.to_string())]
}

impl Metrics {
    /// Adds what is known of a run at `now_s`, s since 1970.
    pub fn add(&mut self, run: &str, now: &Now, now_s: f64) {
        let of_run: Labels = vec![("run", run.to_owned())];
        if let Some(manifest) = &now.manifest {
            let mut labels = with(&of_run, "platform", &manifest.plan.platform);
            labels.push(("product", manifest.target.product.clone()));
            labels.push(("version", manifest.target.version.clone()));
            set(&mut self.info, &labels, Some(1.0));
        }
        let running = now.is_open() && !now.is_dead(now_s) && now.manifest.is_some();
        set(&mut self.running, &of_run, Some(f64::from(u8::from(running))));
        set(&mut self.left, &of_run, now.left_s(now_s).filter(|_| running));
        set(&mut self.heard, &of_run, now.heard_s);
        for valid in [true, false] {
            let count = now.records.iter().filter(|r| r.validity() == Some(valid)).count();
            set(&mut self.tests, &with(&of_run, "valid", valid.to_string()), Some(count as f64));
        }
        if running {
            self.add_second(run, now, now_s);
        }
        let skipped = now.records.len().saturating_sub(MOST_TESTS);
        now.records.iter().skip(skipped).for_each(|record| self.add_result(run, record));
    }

    /// The newest second of the test under way.
    fn add_second(&mut self, run: &str, now: &Now, now_s: f64) {
        let fresh = now.heard_s.is_some_and(|heard_s| now_s - heard_s <= FRESH_S) && now.step.is_none();
        let Some((test, second)) = now.test().zip(now.seconds.back()).filter(|_| fresh) else { return };
        // The newest second is of the test before until this one's first.
        if second.test != test.test {
            return;
        }
        let labels = of_test(run, &test.workload, test.jobs, test.test);
        set(&mut self.elapsed, &labels, Some(second.elapsed_s));
        set(&mut self.length, &labels, Some(second.total_s));
        set(&mut self.throughput, &labels, second.tps);
        set(&mut self.latency, &labels, second.latency_ms.map(|ms| ms / 1e3));
        set(&mut self.cpu_busy, &labels, second.cpu_busy_pct.map(|pct| pct / 1e2));
        set(&mut self.cpu_iowait, &labels, second.cpu_iowait_pct.map(|pct| pct / 1e2));
        set(&mut self.device_util, &labels, second.device_util_pct.map(|pct| pct / 1e2));
        set(&mut self.device_writes, &labels, second.device_writes_per_s);
        for (wait, sessions) in &second.waits {
            set(&mut self.waits, &with(&labels, "wait", wait), Some(*sessions));
        }
        for (ms, jobs) in &second.jobs_by_ms {
            set(&mut self.jobs_by_latency, &with(&labels, "up_to_ms", ms.to_string()), Some(f64::from(*jobs)));
        }
    }

    fn add_result(&mut self, run: &str, record: &TestRecord) {
        let mut labels = of_test(run, &record.workload, record.jobs, record.test);
        labels.push(("repetition", record.repetition.to_string()));
        labels.extend(record.arm.map(|arm| ("arm", arm.to_string())));
        set(&mut self.result_valid, &labels, record.validity().map(|valid| f64::from(u8::from(valid))));
        // Figures of an invalid test are not to be used: its label says so in each of them. Those of another tool are unchecked.
        let valid = record.validity().map_or_else(|| "unchecked".to_owned(), |valid| valid.to_string());
        let labels = with(&labels, "valid", valid);
        let figure = |column| record.figure(column);
        set(&mut self.result_throughput, &labels, figure(column::COMMIT_THROUGHPUT_TPS).or(figure(column::TX_PER_S)));
        set(&mut self.result_mean, &labels, figure(column::TRANSACTION_TIME_NS_MEAN).map(|ns| ns / 1e9));
        let quantiles = [
            ("0.5", column::TRANSACTION_TIME_NS_P50),
            ("0.99", column::TRANSACTION_TIME_NS_P99),
            ("1", column::TRANSACTION_TIME_NS_MAX),
        ];
        for (quantile, column) in quantiles {
            // OpenMetrics keeps the name `quantile` for summaries.
            set(&mut self.result_quantiles, &with(&labels, "q", quantile), figure(column).map(|ns| ns / 1e9));
        }
        set(&mut self.result_errors, &labels, figure(column::ERRORS));
        set(&mut self.result_cpu_busy, &labels, figure(column::CPU_BUSY_PCT).map(|pct| pct / 1e2));
        set(&mut self.result_limit_share, &labels, figure(column::LIMIT_SHARE_PCT).map(|pct| pct / 1e2));
    }

    /// All metrics, in order.
    pub(crate) fn described(self) -> impl Iterator<Item = Described> {
        let seconds = || Some(Unit::Seconds);
        let ratio = || Some(Unit::Other("ratio".to_owned()));
        let all = [
            ("run_info", "A run: its platform, product and version", None, self.info),
            ("run_running", "1 while the run goes on, else 0", None, self.running),
            ("run_left", "Estimated time until the end of the run", seconds(), self.left),
            ("run_heard_timestamp", "When the run last wrote something, since 1970", seconds(), self.heard),
            ("run_tests", "Tests that are done", None, self.tests),
            ("test_elapsed", "Time since the jobs of the test under way began", seconds(), self.elapsed),
            ("test_length", "Warm-up and window of the test under way", seconds(), self.length),
            ("test_transactions_per_second", "Transactions per second in the last second", None, self.throughput),
            ("test_latency_mean", "Mean transaction time of the last second, closed loop", seconds(), self.latency),
            (
                "test_jobs_by_latency",
                "Jobs whose mean transaction time in the last second was in the band up to this, not cumulated",
                None,
                self.jobs_by_latency,
            ),
            ("test_cpu_busy", "CPU time used on the database's machine", ratio(), self.cpu_busy),
            ("test_cpu_iowait", "CPU time idle while I/O was outstanding", ratio(), self.cpu_iowait),
            ("test_device_busy", "Time in which the log's device had I/O in flight", ratio(), self.device_util),
            ("test_device_writes_per_second", "Writes completed by the log's device", None, self.device_writes),
            ("test_wait_sessions", "Mean number of job sessions in a wait in the last second", None, self.waits),
            ("result_valid", "1 if the test passed all checks, else 0", None, self.result_valid),
            (
                "result_transactions_per_second",
                "Transactions per second in the window of a test",
                None,
                self.result_throughput,
            ),
            ("result_latency_mean", "Mean transaction time in the window of a test", seconds(), self.result_mean),
            ("result_latency", "Transaction time at quantile q in the window", seconds(), self.result_quantiles),
            ("result_errors", "Transactions that ended with an error in the window", None, self.result_errors),
            ("result_cpu_busy", "CPU time used on the database's machine in the window", ratio(), self.result_cpu_busy),
            ("result_limit_share", "Throughput as a share of the limit", ratio(), self.result_limit_share),
        ];
        all.into_iter().map(|(name, help, unit, samples)| Described { name, help, unit, samples })
    }

    /// All of it in OpenMetrics text.
    ///
    /// # Errors
    /// None: a string takes everything.
    pub fn text(self) -> Result<String, fmt::Error> {
        let mut all = Registry::with_prefix(PREFIX);
        for Described { name, help, unit, samples } in self.described() {
            let family = Family::<Labels, Gauge<f64, AtomicU64>>::default();
            for (labels, value) in samples {
                family.get_or_create(&labels).set(value);
            }
            match unit {
                Some(unit) => all.register_with_unit(name, help, unit, family),
                None => all.register(name, help, family),
            }
        }
        let mut text = String::new();
        prometheus_client::encoding::text::encode(&mut text, &all)?;
        Ok(text)
    }
}
