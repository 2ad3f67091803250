//! sysbench's printed report of its oltp scripts, with lines of intervals (`--report-interval`) and `--histogram`.
//! Formats: sysbench 1.0 and 1.1, `src/sb_logger.c`, `src/sysbench.c`.

use loadline_model::Note;
use loadline_model::column::{self, CONFLICTS, ELAPSED_S, ERRORS, TX_PER_S};

use crate::draft::{APART, Buckets, Group, ImportedTest, Interval};
use crate::lines::{Fields, Lines, Report, cut, keep_error, number, positive, reports};
use crate::source::{Absence, ImportError, Warning};

/// The ends of sysbench's histogram, ns: 1 µs and 100 s (`sb_histogram_init` in `src/sysbench.c`).
const BEGIN_NS: f64 = 1e3;
const END_NS: f64 = 1e11;
const HISTOGRAM: &str = "Latency histogram";
/// Headings of a report's parts, without their colons. Their fields are named `Throughput/read`.
const PARTS: [&str; 7] = [
    "SQL statistics", "File operations", "Throughput", "General statistics", "Latency (ms)", "CPU speed",
    "Threads fairness",
];
const NO_PERCENTILES: &str = "histogram (--histogram): it prints one percentile only";
const RATE: &str = "Target transaction rate";
const TRANSACTIONS: &str = "SQL statistics/transactions";
const UNFINISHED: &str = "Number of unfinished transactions on forced shutdown";

pub(crate) fn read(lines: &mut Lines<'_>) -> Result<Group, ImportError> {
    reports::<Printed>(lines.next()?, lines)
}

fn version(line: &str) -> Option<&str> {
    line.strip_prefix("sysbench ").filter(|v| v.starts_with(|c: char| c.is_ascii_digit()))?.split([' ', ':']).next()
}

#[derive(Default)]
struct Printed {
    part: &'static str,
    fields: Fields,
    /// Name of the printed percentile, and its value, ms.
    percentile: Option<(String, f64)>,
    /// Value in ns and count, if there is a histogram.
    histogram: Option<Vec<(f64, u64)>>,
    intervals: Vec<Interval>,
}

impl Report for Printed {
    const NONE: &'static str = "it is no report of sysbench: there is no line 'sysbench 1.0.20 …'";

    fn is_ended_by(&self, line: &str) -> bool {
        version(line).is_some()
    }

    fn add(&mut self, line: &str, lines: &Lines<'_>) -> Result<Option<String>, ImportError> {
        if let Some(version) = version(line) {
            if version.starts_with("0.") {
                return Err(lines.wrong(format!("it is of sysbench {version}: versions before 1.0 are not read")));
            }
            self.fields = Fields::new("sysbench's report", Vec::new());
            return Ok(Some(version.to_owned()));
        } else if self.fields.place.is_empty() {
            return Ok(None);
        }
        if let Some(part) = PARTS.iter().find(|part| line.strip_suffix(':') == Some(part)) {
            self.part = part;
        } else if line.starts_with(HISTOGRAM) {
            (self.part, self.histogram) = (HISTOGRAM, Some(Vec::new()));
        } else if line.starts_with("FATAL") || line.starts_with(UNFINISHED) {
            keep_error(&mut self.fields.said, line);
        } else if let Some((at, interval)) = line.strip_prefix("[ ").and_then(|l| l.split_once("s ]")) {
            if interval.trim() == "Checkpoint report:" {
                return Err(lines.wrong(
                    "sysbench counts anew from here on (--report-checkpoints): its last report is not that of the whole run",
                ));
            }
            if let (Some(end_s), Some((_, tps))) = (number(at), interval.split_once(" tps: ")) {
                let per_s = tps.split(' ').next().and_then(|text| text.parse().ok()).unwrap_or(f64::NAN);
                self.intervals.push(Interval { line: lines.number, end_s, per_s, mean_ms: None });
            }
        } else if let Some((value, rest)) = line.split_once('|')
            && self.part == HISTOGRAM
        {
            // `0.312 |****   1`
            let count = rest.trim_start_matches('*').trim().parse::<u64>();
            let bucket = number(value).map(|ms| ms * 1e6).zip(count.ok());
            let wrong = || lines.wrong(format!("it is no bucket of a histogram: '{}'", cut(line)));
            self.histogram.get_or_insert_default().push(bucket.ok_or_else(wrong)?);
        } else if let Some((key, value)) = line.split_once(':') {
            if self.part == "Latency (ms)" && key.ends_with("percentile") && lines.ended {
                self.percentile = number(value).map(|ms| (key.to_owned(), ms));
            }
            let key = [self.part, key.trim()].join("/");
            self.fields.add(key.trim_start_matches('/'), value, lines);
        }
        Ok(None)
    }

    fn test(self, lines: &Lines<'_>) -> Result<Option<ImportedTest>, ImportError> {
        let fields = &self.fields;
        if fields.place.is_empty() {
            return Ok(None);
        }
        // 1.1 states them in another part.
        let new = fields.text("Throughput/time elapsed").is_some();
        let total_s = if new { "Throughput/time elapsed" } else { "General statistics/total time" };
        let total_s = fields.required(total_s, lines)?;
        let part = if new { "Throughput" } else { "General statistics" };
        let events = fields.required(&format!("{part}/total number of events"), lines)?;
        let jobs = fields.jobs("Number of threads", lines)?;
        fields.required("Latency (ms)/sum", lines)?;
        let rate = fields.number(RATE).filter(|rate| *rate > 0.0);
        if fields.text(TRANSACTIONS).is_none() {
            let has = |key: &str| fields.text(key).is_some();
            let work = match has("CPU speed/events per second") {
                true => "its cpu test",
                false if has("File operations/reads/s") || has("Throughput/read") => "its fileio test",
                false => "a script without SQL",
            };
            return Err(
                lines.at(None, format!("this is a report of sysbench on {work}: those of oltp scripts are read"))
            );
        }
        let mut test = self.transactions(jobs, rate.is_some(), lines)?;
        test.set(ELAPSED_S, positive(total_s));
        if let Some(n) = fields.number(TRANSACTIONS) {
            test.set_count(n, 0.0);
        }
        self.set_times(&mut test, events);
        if let Some(rate) = rate {
            test.record.set(column::RATE_TPS, rate);
            test.record.parameters.insert("rate".to_owned(), rate as i64);
            test.note(format!("open loop: {rate} events per second were asked for; times are from when each was due"));
            let reached_pct = 100.0 * events / total_s / rate;
            if reached_pct < 100.0 * (1.0 - APART) {
                test.warnings.push(Warning::RateMissed { asked: rate, reached_pct });
            }
        }
        test.warnings.extend(self.fields.said.iter().cloned().map(Warning::Said));
        // The minimum is rounded to two decimals; the time in the queue of an open loop is none in which a job is busy.
        let least_s = self.fields.number("Latency (ms)/min").map(|ms| (ms - 0.005) / 1e3).filter(|s| *s > 0.0);
        test.least_ns = least_s.map(|s| s * 1e9);
        test.set_intervals(self.intervals, events, if rate.is_none() { least_s } else { None });
        Ok(Some(test))
    }
}

impl Printed {
    fn transactions(&self, jobs: u32, open: bool, lines: &Lines<'_>) -> Result<ImportedTest, ImportError> {
        let fields = &self.fields;
        let n = fields.required(TRANSACTIONS, lines)?;
        let per_s = fields.text(TRANSACTIONS).and_then(|value| number(value.split_once('(')?.1));
        let per_s = per_s.ok_or_else(|| fields.wrong(TRANSACTIONS, lines))?;
        // The report does not name its script: what distinguishes scripts is what a transaction does.
        let each = ["SQL statistics/read", "SQL statistics/write", "SQL statistics/other"];
        let each = each.map(|key| fields.number(key).map(|queries| queries / n).filter(|each| each.is_finite()));
        let [read, write, other] = each.map(|n| n.map_or("?".to_owned(), |n| format!("{n:.0}")));
        let work = format!("sysbench oltp r{read} w{write} o{other}");
        let mut test = ImportedTest::new("transaction-processing", &work, jobs, open);
        test.note(format!(
            "the report names neither its script nor the size of its tables: a transaction has {read} reads, {write} writes and {other} \
             others"
        ));
        test.record.set(TX_PER_S, per_s);
        if let [Some(read), Some(write), _] = each {
            test.record.set(column::STATEMENTS_PER_TX, read + write);
        }
        test.set(CONFLICTS, fields.figure("SQL statistics/ignored errors"));
        test.set(ERRORS, Err(Absence::EndsAtErrors));
        let ignored = "transactions ended with an error that sysbench ignores, and were tried again";
        for (key, what) in [("ignored errors", ignored), ("reconnects", "sessions were opened anew")] {
            let n = fields.number(&format!("SQL statistics/{key}")).filter(|n| *n > 0.0);
            test.record.notes.extend(n.map(|n| Note::Text(format!("{n} {what}"))));
        }
        Ok(test)
    }

    fn set_times(&self, test: &mut ImportedTest, events: f64) {
        let fields = &self.fields;
        let none = |why| if events > 0.0 { why } else { Absence::NothingTimed };
        let max = fields.time_ns("Latency (ms)/max").map_err(none);
        // The printed mean has two decimals: the sum has more digits.
        let sum = if events > 0.0 { fields.time_ns("Latency (ms)/sum").ok() } else { None };
        let printed = fields.time_ns("Latency (ms)/avg").map_err(none);
        if let (Some(sum), Ok(ns)) = (sum, &printed) {
            test.compare(("the mean latency [ns]", *ns), ("sum / events", sum / events), APART + 5e3 / ns);
        }
        let mean = sum.map_or(printed, |sum| Ok(sum / events));
        for column in [test.times.p50, test.times.p99] {
            test.set(column, Err(Absence::NotIn { place: fields.place, what: NO_PERCENTILES }));
        }
        if let Some(counts) = &self.histogram {
            let counted = counts.iter().map(|(_, count)| *count as f64).sum::<f64>();
            if counted > 0.0 {
                test.compare(("the number of events", events), ("the histogram", counted), APART);
                test.note("percentiles are those of sysbench's histogram, whose buckets are 1.8 % apart");
            }
            let buckets = Buckets { counts: counts.clone(), begin_ns: BEGIN_NS, end_ns: END_NS };
            test.set_buckets(&buckets, mean.clone().ok(), max.clone().ok());
        }
        if let Some((which, ms)) = &self.percentile {
            let figure = match positive(*ms * 1e6).map_err(none) {
                Ok(ns) if ns >= END_NS => Err(Absence::AtLeast { ns: END_NS }),
                figure => figure,
            };
            match &figure {
                Ok(_) => test.note(format!("the {which} of the latency is {ms} ms")),
                Err(why) => {
                    test.note(format!("the {which} of the latency, printed as {ms:.2} ms, is no figure: {why}"))
                }
            }
            if which == "99th percentile" {
                test.set(test.times.p99, figure);
            }
        }
        test.set(test.times.mean, mean);
        test.set(test.times.max, max);
    }
}
