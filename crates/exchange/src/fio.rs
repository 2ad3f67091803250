//! fio's results as JSON (`--output-format=json` or `json+`), a test for each job or group of jobs. Format: fio's documentation, section
//! "JSON output", versions 3.0 and newer.

use std::collections::BTreeMap;

use loadline_model::column::{self, BLOCK_BYTES, ELAPSED_S, ERRORS, IO_PER_S};
use loadline_model::format::{parse_bytes, parse_duration_s};
use loadline_model::{Column, Note};
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::Value;

use crate::draft::{APART, Buckets, Group, ImportedTest};
use crate::lines::{Lines, MOST, cut, keep_error, plain, positive};
use crate::source::{Absence, ImportError, Warning};

/// The middle of the last bucket of fio's histogram (`plat_idx_to_val` in `stat.c`), ns: longer times are in it as well.
const END_NS: f64 = 17_112_760_320.0;
const JOB: &str = "fio's job";
const PERCENTILES: &str = "percentiles of its completion times (clat_percentiles=0, or not in percentile_list)";
/// Engines that have one call under way, whatever the iodepth.
const ONE_AT_A_TIME: [&str; 7] = ["sync", "psync", "vsync", "pvsync", "pvsync2", "mmap", "splice"];

/// Options that have another name, with that in which they are kept.
const SAME: [(&str, &str); 3] = [("blocksize", "bs"), ("readwrite", "rw"), ("timeout", "runtime")];

/// Kinds of calls of storage, with the columns of their number and of MiB, per second.
const CALLS: [(&str, &Column, &Column); 2] = [
    ("read", column::BLOCK_READS_PER_S, column::READ_MIB_PER_S),
    ("write", column::PHYSICAL_WRITES_PER_S, column::PHYSICAL_WRITTEN_MIB_PER_S),
];

#[derive(Deserialize)]
struct Output {
    #[serde(rename = "fio version")]
    version: String,
    time: Option<String>,
    #[serde(rename = "global options", default)]
    global: JobOptions,
    #[serde(default)]
    jobs: Vec<Job>,
    client_stats: Option<IgnoredAny>,
}

#[derive(Deserialize)]
struct Job {
    jobname: String,
    #[serde(default)]
    error: i32,
    total_err: Option<f64>,
    #[serde(rename = "job options", default)]
    options: JobOptions,
    #[serde(default)]
    read: Direction,
    #[serde(default)]
    write: Direction,
    #[serde(default)]
    trim: Direction,
}

/// Options by name. Of several the last counts, as fio takes it, and a job's own before a global one.
#[derive(Default, Deserialize)]
#[serde(from = "BTreeMap<String, Value>")]
struct JobOptions(BTreeMap<String, String>);

impl From<BTreeMap<String, Value>> for JobOptions {
    /// An option that has two names gets one, and any value is its text.
    fn from(all: BTreeMap<String, Value>) -> JobOptions {
        let own =
            |name: String| SAME.iter().find(|(other, _)| *other == name).map_or(name, |(_, own)| (*own).to_owned());
        let text = |value: Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        JobOptions(all.into_iter().map(|(name, value)| (own(name), text(value))).collect())
    }
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Direction {
    total_ios: f64,
    iops: f64,
    bw_bytes: Option<f64>,
    /// KiB/s; older versions have no `bw_bytes`.
    bw: f64,
    /// ms.
    runtime: f64,
    clat_ns: DirectionTimes,
    lat_ns: DirectionTimes,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct DirectionTimes {
    min: f64,
    max: f64,
    mean: f64,
    #[serde(rename = "N")]
    count: Option<f64>,
    percentile: BTreeMap<String, f64>,
    bins: BTreeMap<String, u64>,
}

/// Reads or writes of a job, if there were any.
type Side<'a> = (&'static str, &'a Direction);

/// One result. What fio says before it in text is kept if it is about errors.
pub(crate) fn read(lines: &mut Lines<'_>) -> Result<Group, ImportError> {
    let mut group = Group::default();
    let (mut none, mut said) = ("it is no result of fio as JSON: run fio with --output-format=json", Vec::new());
    while let Some(line) = lines.next()? {
        if line.trim_start().starts_with('{') {
            if !group.tests.is_empty() {
                let what = "a second result begins here: of another run, or of the same (--status-interval). Import the last of each run";
                return Err(lines.wrong(what));
            }
            let first = lines.number;
            let output: Output = lines.json(line)?;
            let version = output.version.trim_start_matches("fio-");
            if version.starts_with("1.") || version.starts_with("2.") {
                return Err(lines.at(Some(first), format!("it is of fio {version}: versions before 3.0 are not read")));
            }
            group.version = Some(plain(version));
            group.tests = output.tests(lines)?;
        } else if line.starts_with("fio: ") {
            keep_error(&mut said, &line);
        // fio's other formats may stand before the object (--output-format=normal,json).
        } else if line.contains(": (groupid=") {
            none = "this is fio's text, which rounds its figures: run fio with --output-format=json";
        } else if line.split(';').count() > 50 {
            none = "this is fio's terse output, whose columns have no names: run fio with --output-format=json";
        }
    }
    if let Some(test) = group.tests.last_mut() {
        test.warnings.extend(said.into_iter().map(Warning::Said));
    }
    if group.tests.is_empty() { Err(lines.nothing(none)) } else { Ok(group) }
}

impl Output {
    fn tests(&self, lines: &Lines<'_>) -> Result<Vec<ImportedTest>, ImportError> {
        if self.client_stats.is_some() {
            return Err(lines.at(None, "it is of fio's client and server mode (--client), which is not read"));
        } else if self.jobs.is_empty() {
            return Err(lines.at(None, "it has no 'jobs': fio ran none"));
        }
        let test = |(n, job): (usize, &Job)| {
            let alike = |jobs: &[Job]| jobs.iter().filter(|other| other.jobname == job.jobname).count();
            // Without group_reporting each of numjobs has an entry. They ran together: they are no repetitions.
            let (number, all) = (alike(self.jobs.get(..=n).unwrap_or_default()), alike(&self.jobs));
            let options = JobOptions(self.global.0.clone().into_iter().chain(job.options.0.clone()).collect());
            let mut test = job.test(&options, all > 1, lines)?;
            let written = self.time.as_ref().map(|at| format!("fio wrote its result on {}", plain(at)));
            test.record.notes.extend(written.map(Note::Text));
            if all > 1 {
                test.record.workload = format!("{}-{number}-OF-{all}", test.record.workload);
                test.note(format!("{all} such jobs ran together: figures of all of them need group_reporting"));
            } else if self.jobs.len() > 1 {
                test.note("the output has several jobs, which ran at the same time unless they have stonewall");
            }
            Ok(test)
        };
        self.jobs.iter().enumerate().map(test).collect()
    }
}

impl JobOptions {
    fn text(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }

    fn whole(&self, name: &str) -> Option<u32> {
        self.text(name)?.parse().ok()
    }
}

impl Job {
    /// `alone`: one of several entries for jobs that are alike.
    fn test(&self, options: &JobOptions, alone: bool, lines: &Lines<'_>) -> Result<ImportedTest, ImportError> {
        let sides = [("read", &self.read), ("write", &self.write)];
        let sides: Vec<Side<'_>> = sides.into_iter().filter(|(_, d)| d.total_ios > 0.0).collect();
        let wrong = |what: &str| {
            let end = if self.error == 0 { String::new() } else { format!(", and ended with error {}", self.error) };
            Err(lines.at(None, format!("job '{}' {what}{end}", cut(&self.jobname))))
        };
        if let Some(n) = [&self.read, &self.write, &self.trim].into_iter().find_map(Direction::impossible) {
            return wrong(&format!("has a figure of {n}, which cannot be: below 0, or a counter that wrapped"));
        } else if sides.is_empty() {
            return wrong("did no reads and no writes");
        }
        let both = if sides.len() > 1 { Some("readwrite") } else { sides.first().map(|(kind, _)| *kind) };
        let pattern = options.text("rw").or(both).unwrap_or_default();
        let size = options.text("bs");
        let jobs = if alone { 1 } else { options.whole("numjobs").unwrap_or(1).max(1) };
        let asked = options.whole("iodepth").unwrap_or(1).max(1);
        let under_way: f64 = sides.iter().map(|(_, d)| d.iops * d.times().0.mean / 1e9).sum();
        let depth = match options.text("ioengine") {
            Some(engine) if ONE_AT_A_TIME.contains(&engine) => 1,
            // fio's default is one of these on Linux.
            None if under_way <= f64::from(jobs) * (1.0 + APART) => 1,
            _ => asked,
        };
        let work = format!("fio {pattern} {} {}", size.unwrap_or(""), self.jobname);
        let mut test = ImportedTest::new("storage", &work, jobs.saturating_mul(depth), false);
        if depth > 1 {
            test.note(format!("its jobs are {jobs} of fio with {depth} calls under way each (iodepth)"));
        } else if asked > 1 {
            test.note(format!("iodepth={asked} has no effect: its engine has one call under way"));
        }
        for (name, otherwise) in [("iodepth", 1), ("direct", 0)] {
            test.record.parameters.insert(name.to_owned(), options.whole(name).unwrap_or(otherwise).into());
        }
        if let Some(bytes) = size.and_then(|size| parse_bytes(size).ok()) {
            test.record.set(BLOCK_BYTES, bytes as f64);
            test.record.parameters.insert("block-bytes".to_owned(), bytes as i64);
        }
        if options.text("rate_iops").or(options.text("rate")).is_some() {
            let what = "rate of all its jobs, see its options";
            test.set(column::RATE_TPS, Err(Absence::NotIn { place: JOB, what }));
        }
        self.set_end(&mut test, options, &sides);
        set_calls(&mut test, &sides);
        set_times(&mut test, &sides);
        Ok(test)
    }

    /// Request of the job, how long it ran, and how it ended.
    fn set_end(&self, test: &mut ImportedTest, options: &JobOptions, sides: &[Side<'_>]) {
        let shown = options.0.iter().filter(|(name, _)| *name != "name");
        let shown = shown.map(|(name, value)| if value.is_empty() { name.clone() } else { format!("{name}={value}") });
        test.note(format!("fio's options: {}", plain(&shown.collect::<Vec<_>>().join(" "))));
        if options.whole("direct").unwrap_or(0) == 0 {
            test.note("direct=1 is not among the options: the page cache may have served it");
        }
        let trims = Some(self.trim.iops).filter(|iops| *iops > 0.0);
        test.record.notes.extend(trims.map(|iops| Note::Text(format!("{iops} trims per second are in no column"))));
        let ran_s = sides.iter().map(|(_, d)| d.runtime / 1e3).fold(0.0, f64::max);
        test.set(ELAPSED_S, positive(ran_s));
        let errors = Absence::NotIn { place: JOB, what: "count of errors, as without continue_on_error" };
        test.set(ERRORS, self.total_err.filter(|n| (0.0..MOST).contains(n)).ok_or(errors));
        if self.error != 0 {
            test.warnings.push(Warning::Error { code: self.error });
        }
        let asked_s = options.text("runtime").and_then(|text| parse_duration_s(&text.to_lowercase()).ok());
        // Without time_based a job may be done before its time.
        let whole = self.error == 0 && options.text("time_based").is_none();
        if let Some(asked_s) = asked_s.filter(|s| !whole && ran_s < s * (1.0 - APART)) {
            test.warnings.push(Warning::Stopped { ran_s, asked_s });
        }
    }
}

fn set_calls(test: &mut ImportedTest, sides: &[Side<'_>]) {
    for ((kind, calls, mib), what) in CALLS.into_iter().zip(["reads per second", "writes per second"]) {
        let Some((_, d)) = sides.iter().find(|(known, _)| *known == kind) else {
            [calls, mib].into_iter().for_each(|column| test.set(column, Err(Absence::NoneMade { what: kind })));
            continue;
        };
        test.set(calls, positive(d.iops));
        test.set(mib, positive(d.bw_bytes.unwrap_or(d.bw * 1024.0) / 1_048_576.0));
        if d.runtime > 0.0 && d.iops > 0.0 {
            test.compare((what, d.iops), ("their number / time", d.total_ios / d.runtime * 1e3), APART);
        }
        if let Some(n) = d.clat_ns.count.filter(|n| *n > 0.0) {
            test.compare(("the number of calls", d.total_ios), ("that of their times", n), APART);
        }
    }
    test.set(IO_PER_S, sides.iter().map(|(_, d)| positive(d.iops)).sum());
}

/// Completion times: of reads in their own columns, and of all calls as transaction times.
fn set_times(test: &mut ImportedTest, sides: &[Side<'_>]) {
    let timed: Vec<(&str, f64, &DirectionTimes)> =
        sides.iter().map(|(kind, d)| (*kind, d.total_ios, d.times().0)).collect();
    let reads = [column::READ_TIME_US_MEAN, column::READ_TIME_US_P50, column::READ_TIME_US_P99];
    for (_, _, times) in timed.iter().filter(|(kind, ..)| *kind == "read") {
        for (column, figure) in reads.into_iter().zip(times.figures()) {
            test.set(column, figure.map(|ns| ns / 1e3));
        }
        let [mean, p50, p99] = reads;
        test.hold(&[(Some(p50), p99), (None, p50), (None, p99), (None, mean)], times.least().map(|ns| ns / 1e3));
    }
    let count: f64 = timed.iter().map(|(_, n, _)| n).sum();
    let mean = |(_, n, times): &(&str, f64, &DirectionTimes)| times.figures()[0].clone().map(|ns| ns * n / count);
    let mean = timed.iter().map(mean).sum::<Result<f64, Absence>>();
    let max = positive(timed.iter().map(|(.., times)| times.max).fold(0.0, f64::max));
    let bins: Vec<Buckets> = timed.iter().map(|(.., times)| times.buckets()).filter(|b| !b.counts.is_empty()).collect();
    if bins.len() == timed.len() {
        let counts = bins.iter().flat_map(|side| side.counts.clone()).collect();
        test.set_buckets(&Buckets { counts, begin_ns: 0.0, end_ns: END_NS }, mean.clone().ok(), max.clone().ok());
        if bins.len() > 1 && !test.histograms.is_empty() {
            for ((kind, _, times), side) in timed.iter().zip(&bins) {
                test.histograms.push(((*kind).to_owned(), side.latencies(times.mean, times.max)));
            }
        }
    }
    if let [(.., one)] = timed.as_slice() {
        // fio's own percentiles are those of finer buckets.
        let [_, p50, p99] = one.figures();
        for (column, figure) in [(test.times.p50, p50), (test.times.p99, p99)] {
            if bins.is_empty() || figure.is_ok() {
                test.set(column, figure);
            }
        }
    } else if bins.len() < timed.len() {
        [test.times.p50, test.times.p99].into_iter().for_each(|column| test.set(column, Err(Absence::ReadsAndWrites)));
    }
    test.least_ns = timed.iter().filter_map(|(.., times)| times.least()).reduce(f64::min);
    test.set(test.times.mean, mean);
    test.set(test.times.max, max);
    let kind = sides.first().map_or("", |(_, d)| d.times().1);
    test.note(format!("a transaction is one read or write; its time is fio's {kind}"));
}

impl Direction {
    /// Times: those that have percentiles, completion times first.
    fn times(&self) -> (&DirectionTimes, &'static str) {
        let is_lat = self.clat_ns.percentile.is_empty() && !self.lat_ns.percentile.is_empty();
        if is_lat || self.clat_ns.mean <= 0.0 {
            (&self.lat_ns, "latency (lat), with the time to submit it")
        } else {
            (&self.clat_ns, "completion time (clat), that in the queue before it excluded")
        }
    }

    fn impossible(&self) -> Option<f64> {
        let [clat, lat] = [&self.clat_ns, &self.lat_ns].map(|t| [t.max, t.mean]);
        let percentiles = self.clat_ns.percentile.values().chain(self.lat_ns.percentile.values()).copied();
        let own = [self.total_ios, self.iops, self.bw, self.bw_bytes.unwrap_or(0.0), self.runtime];
        own.into_iter().chain(clat).chain(lat).chain(percentiles).find(|n| !(0.0..MOST * 1e3).contains(n))
    }
}

impl DirectionTimes {
    /// A percentile, named by its share with six digits: a bucket's value, which may be above the maximum by the bucket's width.
    fn percentile(&self, which: f64) -> Result<f64, Absence> {
        let named = |name: &str| name.parse::<f64>().is_ok_and(|n| (n - which).abs() < 1e-6);
        match self.percentile.iter().find(|(name, _)| named(name)).map(|(_, ns)| *ns) {
            None => Err(Absence::NotIn { place: JOB, what: PERCENTILES }),
            Some(ns) if ns <= 0.0 => Err(Absence::PrintedZero),
            Some(ns) if ns >= END_NS => Err(Absence::AtLeast { ns: END_NS }),
            Some(value) if self.max > 0.0 && value > self.max * (1.0 + APART) => {
                Err(Absence::Above { what: "the percentile", value, bound: "the maximum", limit: self.max })
            }
            Some(ns) if self.max > 0.0 => Ok(ns.min(self.max)),
            Some(ns) => Ok(ns),
        }
    }

    /// Mean, median and 99th percentile.
    fn figures(&self) -> [Result<f64, Absence>; 3] {
        [positive(self.mean), self.percentile(50.0), self.percentile(99.0)]
    }

    /// The minimum. Without any times that of some versions is the largest number.
    fn least(&self) -> Option<f64> {
        Some(self.min).filter(|ns| *ns <= self.max)
    }

    /// The times of json+: a bucket has its value in ns and its count.
    fn buckets(&self) -> Buckets {
        let counts = self.bins.iter().filter_map(|(ns, n)| Some((ns.parse().ok()?, *n))).filter(|(_, n)| *n > 0);
        Buckets { counts: counts.collect(), begin_ns: 0.0, end_ns: END_NS }
    }
}
