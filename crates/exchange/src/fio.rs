//! fio's results as JSON (`--output-format=json` or `json+`), a test for each job or group of jobs. Format: fio's documentation, section
//! "JSON output", versions 3.0 and newer.

use std::collections::BTreeMap;

use loadline_model::Latencies;
use loadline_model::column::{self, BLOCK_BYTES, ERRORS, IO_PER_S, TRANSACTION_TIMES};
use serde::Deserialize;
use serde::de::IgnoredAny;

use crate::draft;
use crate::error::ImportError;
use crate::group::{Group, ImportedTest};
use crate::lines::{Lines, cut, plain};
use crate::tool::Tool;

const NO_PERCENTILES: &str = "the job has no percentiles of completion times (clat_percentiles=0)";
const TWO_KINDS: &str =
    "reads and writes are timed apart, and their percentiles cannot be joined: --output-format=json+ has the times";

#[derive(Deserialize)]
struct Output {
    #[serde(rename = "fio version")]
    version: String,
    time: Option<String>,
    /// When it was written, ms since 1970.
    timestamp_ms: Option<f64>,
    #[serde(rename = "global options", default)]
    global: BTreeMap<String, String>,
    jobs: Vec<Job>,
}

#[derive(Deserialize)]
struct Job {
    jobname: String,
    #[serde(default)]
    error: i64,
    #[serde(default)]
    total_err: Option<f64>,
    #[serde(rename = "job options", default)]
    options: BTreeMap<String, String>,
    #[serde(default)]
    read: Direction,
    #[serde(default)]
    write: Direction,
    #[serde(default)]
    trim: Direction,
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
    clat_ns: Times,
    lat_ns: Times,
    /// Versions before 3.0: µs.
    clat: Option<IgnoredAny>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Times {
    max: f64,
    mean: f64,
    #[serde(rename = "N")]
    count: Option<f64>,
    percentile: BTreeMap<String, f64>,
    bins: BTreeMap<String, u64>,
}

impl Output {
    /// Latest begin of its longest job and its own end, ms since 1970.
    fn span_ms(&self) -> Option<(f64, f64)> {
        let runtimes = self.jobs.iter().flat_map(|job| [&job.read, &job.write, &job.trim]).map(|d| d.runtime);
        let end = self.timestamp_ms?;
        Some((end - runtimes.fold(0.0, f64::max), end))
    }
}

/// One output, or several one after another. What fio says before it in text is skipped.
pub(crate) fn read(lines: &mut Lines<'_>) -> Result<Group, ImportError> {
    let mut group = Group::of("storage");
    let (mut text, mut spans) = (None, Vec::new());
    while let Some(output) = next_output(lines, &mut text)? {
        group.set_version(Tool::Fio, output.version.trim_start_matches("fio-"), lines)?;
        if let Some((begin, end)) = output.span_ms() {
            if spans.iter().any(|(b, e)| begin < *e && *b < end) {
                return Err(lines.wrong(
                    "its jobs ran at the same time as those of a result before it: they are states of one run (--status-interval), \
                     or runs beside each other. Import the last result of each run, one file each",
                ));
            }
            spans.push((begin, end));
        }
        if output.jobs.is_empty() {
            return Err(lines.whole("fio ran no job"));
        }
        for (n, job) in output.jobs.iter().enumerate() {
            let mut test = test(job, &output, lines)?;
            let alike = |jobs: &[Job]| jobs.iter().filter(|other| other.jobname == job.jobname).count();
            // Without group_reporting each of numjobs has an entry. They ran together: they are no repetitions.
            let (number, all) = (alike(output.jobs.get(..=n).unwrap_or_default()), alike(&output.jobs));
            if all > 1 {
                test.record.jobs = 1;
                test.record.workload = format!("{}-{number}-OF-{all}", test.record.workload);
                test.note(format!("{all} such jobs ran together: figures of all of them need group_reporting"));
            } else if output.jobs.len() > 1 {
                test.note("the output has several jobs, which ran at the same time unless they have stonewall");
            }
            group.tests.push(test);
        }
    }
    match text {
        Some(form) => group.complete(lines, &format!("this is fio's {form}: run fio with --output-format=json")),
        None => group.complete(lines, "it is no result of fio as JSON: run fio with --output-format=json"),
    }
}

/// The next object at the begin of a line. Sets `text` to what fio's other formats are called if there is one before it.
fn next_output(lines: &mut Lines<'_>, text: &mut Option<&str>) -> Result<Option<Output>, ImportError> {
    while let Some(line) = lines.next_of(Tool::Fio)? {
        if line.trim_start().starts_with('{') {
            let (first, json) = (lines.number(), lines.json(line, Tool::Fio)?);
            let output = serde_json::from_str(&json);
            return output.map(Some).map_err(|e| {
                lines.at(
                    first + (e.line() as u64).saturating_sub(1),
                    format!("it is no result of fio: {}", cut(&e.to_string())),
                )
            });
        }
        // Text may stand before the object, also fio's other formats (--output-format=normal,json).
        if line.contains(": (groupid=") {
            *text = Some("text, which rounds its figures");
        } else if line.split(';').count() > 50 {
            *text = Some("terse output, whose columns have no names and depend on its version");
        }
    }
    Ok(None)
}

fn test(job: &Job, output: &Output, lines: &Lines<'_>) -> Result<ImportedTest, ImportError> {
    let option = |name: &str| job.options.get(name).or_else(|| output.global.get(name)).map(String::as_str);
    let whole = |name: &str| option(name).and_then(|text| text.parse::<u32>().ok());
    let [read, write] = [&job.read, &job.write].map(|d| Some(d).filter(|d| d.total_ios > 0.0));
    if [&job.read, &job.write].iter().any(|d| d.clat.is_some()) {
        return Err(lines.whole("it is of fio before 3.0, whose times are in µs: that format cannot be imported"));
    }
    let negative = |d: &Direction| {
        [d.total_ios, d.iops, d.bw, d.bw_bytes.unwrap_or(0.0), d.runtime].iter().any(|n| *n < 0.0)
            || [&d.clat_ns, &d.lat_ns]
                .iter()
                .any(|t| t.max < 0.0 || t.mean < 0.0 || t.percentile.values().any(|ns| *ns < 0.0))
    };
    if [&job.read, &job.write, &job.trim].into_iter().any(negative) || job.total_err.is_some_and(|n| n < 0.0) {
        return Err(lines.whole(format!("job '{}' has a figure below 0", cut(&job.jobname))));
    }
    let pattern = option("rw").or_else(|| option("readwrite")).map_or_else(
        || match (read, write) {
            (Some(_), Some(_)) => "readwrite".to_owned(),
            (None, Some(_)) => "write".to_owned(),
            _ => "read".to_owned(),
        },
        str::to_owned,
    );
    let size = option("bs").or_else(|| option("blocksize"));
    let work = format!("{pattern} {} {}", size.unwrap_or(""), job.jobname);
    let mut test = draft::of_storage("fio", &work, whole("numjobs").unwrap_or(1), TRANSACTION_TIMES);
    for (name, value) in [("iodepth", whole("iodepth").unwrap_or(1)), ("direct", whole("direct").unwrap_or(0))] {
        test.record.parameters.insert(name.to_owned(), i64::from(value));
    }
    if let Some(bytes) = size.and_then(bytes) {
        test.record.set(BLOCK_BYTES, bytes);
        test.record.parameters.insert("block-bytes".to_owned(), bytes as i64);
    }
    let said: Vec<String> = output
        .global
        .iter()
        .chain(&job.options)
        .filter(|(name, _)| *name != "name")
        .map(|(name, value)| match value.as_str() {
            "" => name.clone(),
            value => format!("{name}={value}"),
        })
        .collect();
    test.note(format!("fio's options: {}", plain(&said.join(" "))));
    if whole("direct").unwrap_or(0) == 0 {
        test.note("direct=1 is not among the options: the page cache may have served it");
    }
    if let Some(ended) = &output.time {
        test.note(format!("fio wrote its result on {}, in the time zone of its machine", plain(ended)));
    }
    match job.total_err {
        Some(n) => test.record.set(ERRORS, n),
        None if job.error != 0 => test.note(format!("the job ended with error {}", job.error)),
        None => test.record.leave_out(ERRORS, "fio counts errors only with continue_on_error"),
    }
    if job.trim.total_ios > 0.0 {
        test.note(format!("{} trims per second are in no column", job.trim.iops));
    }
    let elapsed_s = [read, write].into_iter().flatten().map(|d| d.runtime / 1e3).fold(0.0, f64::max);
    if elapsed_s > 0.0 {
        test.record.set(column::ELAPSED_S, elapsed_s);
    }
    for (d, calls, mib, what) in [
        (read, column::BLOCK_READS_PER_S, column::READ_MIB_PER_S, "reads"),
        (write, column::PHYSICAL_WRITES_PER_S, column::PHYSICAL_WRITTEN_MIB_PER_S, "writes"),
    ] {
        let Some(d) = d else { continue };
        test.record.set(calls, d.iops);
        test.record.set(mib, d.bw_bytes.unwrap_or(d.bw * 1024.0) / 1_048_576.0);
        if d.runtime > 0.0 {
            test.compare(
                (&format!("{what} per second"), d.iops),
                ("their number / time", d.total_ios / d.runtime * 1e3),
            );
        }
        if let Some(n) = d.clat_ns.count {
            test.compare((&format!("the number of {what}"), d.total_ios), ("that of their times", n));
        }
    }
    if read.is_none() && write.is_none() {
        return Err(lines.whole(format!("job '{}' did no reads and no writes", cut(&job.jobname))));
    }
    test.record.set(IO_PER_S, [read, write].into_iter().flatten().map(|d| d.iops).sum());
    times(&mut test, read, write);
    Ok(test)
}

/// Completion times: of reads in their own columns, of one kind of calls as transaction times.
fn times(test: &mut ImportedTest, read: Option<&Direction>, write: Option<&Direction>) {
    if let Some(read) = read {
        test.record.set(column::READ_TIME_US_MEAN, mean(read) / 1e3);
        for (column, which) in [(column::READ_TIME_US_P50, 50.0), (column::READ_TIME_US_P99, 99.0)] {
            test.set_or(column, percentile(&read.clat_ns, which).map(|ns| ns / 1e3), NO_PERCENTILES);
        }
    }
    let one = match (read, write) {
        (Some(one), None) | (None, Some(one)) => Some(one),
        _ => None,
    };
    let kinds = [("read", read), ("write", write)].into_iter().filter_map(|(kind, d)| Some((kind, d?)));
    let binned: Vec<(&str, Latencies)> = kinds.filter_map(|(kind, d)| Some((kind, latencies(&d.clat_ns)?))).collect();
    let sides = usize::from(read.is_some()) + usize::from(write.is_some());
    if !binned.is_empty() && binned.len() == sides {
        let mut all = Latencies::new();
        binned.iter().for_each(|(_, l)| all.merge(l));
        test.set_times(TRANSACTION_TIMES, all);
        if binned.len() > 1 {
            test.histograms.extend(binned.into_iter().map(|(kind, l)| (kind.to_owned(), l)));
        }
    }
    let why = if one.is_some() { NO_PERCENTILES } else { TWO_KINDS };
    if let Some(d) = one {
        test.record.set_mean_time(mean(d));
        if d.clat_ns.max > 0.0 {
            test.record.set(TRANSACTION_TIMES.max, d.clat_ns.max);
        }
        for (column, which) in [(TRANSACTION_TIMES.p50, 50.0), (TRANSACTION_TIMES.p99, 99.0)] {
            if let Some(ns) = percentile(&d.clat_ns, which) {
                test.record.set(column, ns);
            }
        }
    }
    for column in [TRANSACTION_TIMES.p50, TRANSACTION_TIMES.p99] {
        if test.record.figure(column).is_none() {
            test.record.leave_out(column, why);
        }
    }
    test.note("a transaction is one read or write; its time is fio's completion time (clat), that in the queue before it excluded");
}

/// Mean completion time, ns.
fn mean(d: &Direction) -> f64 {
    if d.clat_ns.mean > 0.0 { d.clat_ns.mean } else { d.lat_ns.mean }
}

/// fio names percentiles by their share with six digits: `99.000000`.
fn percentile(times: &Times, which: f64) -> Option<f64> {
    times
        .percentile
        .iter()
        .find(|(name, _)| name.parse::<f64>().is_ok_and(|n| (n - which).abs() < 1e-6))
        .map(|(_, ns)| *ns)
}

/// The times of json+: a bucket has its value in ns and its count.
fn latencies(times: &Times) -> Option<Latencies> {
    let mut all = Latencies::new();
    let mut count = 0u64;
    for (ns, n) in &times.bins {
        all.record_bucket(ns.parse().ok()?, *n);
        count = count.saturating_add(*n);
    }
    all.add_sum((times.mean * count as f64) as u128, times.max as u64);
    (count > 0).then_some(all)
}

/// Bytes of fio's sizes: `4k`, `128Ki`, `1M`, `4096`; `None` of a range or a list. `kb_base` is 1024 by default.
fn bytes(text: &str) -> Option<f64> {
    let text = text.trim().to_lowercase();
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let factor = match text.get(digits.len()..)? {
        "" | "b" => 1.0,
        "k" | "ki" | "kib" => 1024.0,
        "m" | "mi" | "mib" => 1_048_576.0,
        _ => return None,
    };
    Some(digits.parse::<f64>().ok()? * factor)
}
