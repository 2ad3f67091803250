//! sysbench's printed report of its oltp scripts and of fileio, with lines of intervals (`--report-interval`) and `--histogram`.
//! Formats: sysbench 1.0 and 1.1, `src/sb_logger.c`, `src/sysbench.c`, `src/tests/fileio/sb_fileio.c`.

use loadline_model::Latencies;
use loadline_model::column::{self, BLOCK_BYTES, CONFLICTS, ELAPSED_S, ERRORS, IO_PER_S, Times};

use crate::draft;
use crate::error::ImportError;
use crate::group::{Group, ImportedTest};
use crate::lines::{Lines, cut, plain};
use crate::tool::Tool;

const NO_PERCENTILES: &str =
    "sysbench prints one percentile (see the notes): --histogram has them all, --percentile=99 this one";

/// A report, or several one after another.
pub(crate) fn read(lines: &mut Lines<'_>) -> Result<Group, ImportError> {
    let mut group = Group::of("");
    let mut report: Option<Report> = None;
    while let Some(line) = lines.next_of(Tool::Sysbench)? {
        let line = line.trim();
        if let Some(version) = line.strip_prefix("sysbench ").filter(|v| v.starts_with(|c: char| c.is_ascii_digit())) {
            group.add(report.take().map(|report| report.test(lines)))?;
            group.set_version(Tool::Sysbench, version.split_whitespace().next().unwrap_or_default(), lines)?;
            report = Some(Report::default());
        } else if let Some(report) = report.as_mut() {
            report.add(line, lines)?;
        }
    }
    group.add(report.take().map(|report| report.test(lines)))?;
    group.complete(lines, "it is no report of sysbench: there is no line 'sysbench 1.0.20 …'")
}

/// Part of the report that a line belongs to.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Part {
    #[default]
    Head,
    Histogram,
    Sql,
    Files,
    Throughput,
    General,
    Latency,
    Other,
}

/// What a report says.
#[derive(Debug, Default)]
struct Report {
    part: Part,
    threads: Option<u32>,
    /// Open loop: events asked for per second.
    rate: Option<f64>,
    read: Option<f64>,
    write: Option<f64>,
    other: Option<f64>,
    /// Transactions, and their rate.
    transactions: Option<(f64, f64)>,
    ignored: Option<f64>,
    reconnects: Option<f64>,
    reads_per_s: Option<f64>,
    writes_per_s: Option<f64>,
    fsyncs_per_s: Option<f64>,
    read_mib_per_s: Option<f64>,
    written_mib_per_s: Option<f64>,
    block: Option<f64>,
    mode: Option<String>,
    total_s: Option<f64>,
    events: Option<f64>,
    mean_ms: Option<f64>,
    sum_ms: Option<f64>,
    max_ms: Option<f64>,
    /// Which one, and its value.
    percentile: Option<(String, f64)>,
    /// Value in ms and count.
    histogram: Vec<(f64, u64)>,
    /// End of the interval, s, and its throughput.
    intervals: Vec<(f64, [Option<f64>; 1])>,
    fatal: Option<String>,
    notes: Vec<String>,
    other_test: Option<&'static str>,
}

/// The first number of a text, up to what is not part of it.
fn first_number(text: &str) -> Option<f64> {
    let text = text.trim();
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    // A decimal comma is none of sysbench's: the digits before it are another number.
    text.get(..end).filter(|_| !text[end..].starts_with(','))?.parse().ok()
}

impl Report {
    fn add(&mut self, line: &str, lines: &Lines<'_>) -> Result<(), ImportError> {
        let part = match line {
            "SQL statistics:" => Part::Sql,
            "File operations:" => Part::Files,
            "Throughput:" => Part::Throughput,
            "General statistics:" => Part::General,
            "Latency (ms):" => Part::Latency,
            "Threads fairness:" => Part::Other,
            "CPU speed:" => {
                self.other_test = Some("cpu");
                Part::Other
            }
            _ if line.starts_with("Latency histogram") => Part::Histogram,
            _ => return self.add_to_part(line, lines),
        };
        self.part = part;
        Ok(())
    }

    fn add_to_part(&mut self, line: &str, lines: &Lines<'_>) -> Result<(), ImportError> {
        if line.starts_with("[ ") && line.ends_with("Checkpoint report:") {
            return Err(lines.wrong(
                "sysbench counts anew from here on (--report-checkpoints): its last report is not that of the whole run",
            ));
        }
        if let Some(interval) = line.strip_prefix("[ ").and_then(|l| l.split_once("s ]")) {
            let at = first_number(interval.0);
            let tps = interval.1.split_once(" tps: ").and_then(|(_, rest)| first_number(rest));
            self.intervals.extend(at.zip(tps).map(|(at, tps)| (at, [Some(tps)])));
            return Ok(());
        }
        if line.starts_with("FATAL") {
            self.fatal.get_or_insert_with(|| cut(line));
            return Ok(());
        }
        if line.starts_with("Number of unfinished transactions") {
            self.notes.push(plain(line));
            return Ok(());
        }
        if self.part == Part::Histogram {
            return self.add_bucket(line, lines);
        }
        let Some((key, value)) = line.split_once(':') else {
            if let Some(mode) = line.strip_prefix("Doing ").and_then(|l| l.strip_suffix(" test")) {
                self.mode = Some(mode.to_owned());
            }
            if let Some(size) = line.strip_prefix("Block size ") {
                self.block = bytes(size);
            }
            return Ok(());
        };
        let number = || {
            first_number(value).ok_or_else(|| lines.wrong(format!("'{}' is no number in '{}'", cut(value), cut(line))))
        };
        match (self.part, key.trim()) {
            (Part::Head, "Number of threads") => self.threads = Some(number()? as u32),
            (Part::Head, "Target transaction rate") => self.rate = Some(number()?),
            (Part::Sql, "read") => self.read = Some(number()?),
            (Part::Sql, "write") => self.write = Some(number()?),
            (Part::Sql, "other") => self.other = Some(number()?),
            (Part::Sql, "transactions") => {
                let rate = value.split_once('(').and_then(|(_, rest)| first_number(rest));
                let rate = rate.ok_or_else(|| lines.wrong(format!("it has no rate: '{}'", cut(line))))?;
                self.transactions = Some((number()?, rate));
            }
            (Part::Sql, "ignored errors") => self.ignored = Some(number()?),
            (Part::Sql, "reconnects") => self.reconnects = Some(number()?),
            (Part::Files, "reads/s") => self.reads_per_s = Some(number()?),
            (Part::Files, "writes/s") => self.writes_per_s = Some(number()?),
            (Part::Files, "fsyncs/s") => self.fsyncs_per_s = Some(number()?),
            // 1.1 states IOPS and MiB/s under one heading: `read:  IOPS=… …`.
            (Part::Throughput, "read, MiB/s") => self.read_mib_per_s = Some(number()?),
            (Part::Throughput, "written, MiB/s") => self.written_mib_per_s = Some(number()?),
            (Part::Throughput, "read") => (self.reads_per_s, self.read_mib_per_s) = iops(value),
            (Part::Throughput, "write") => (self.writes_per_s, self.written_mib_per_s) = iops(value),
            (Part::Throughput, "fsync") => self.fsyncs_per_s = iops(value).0,
            (Part::General | Part::Throughput, "total time" | "time elapsed") => self.total_s = Some(number()?),
            (Part::General | Part::Throughput, "total number of events") => self.events = Some(number()?),
            (Part::Latency, "avg") => self.mean_ms = Some(number()?),
            (Part::Latency, "sum") => self.sum_ms = Some(number()?),
            (Part::Latency, "max") => self.max_ms = Some(number()?),
            (Part::Latency, which) if which.ends_with("percentile") => {
                self.percentile = Some((which.to_owned(), number()?));
            }
            _ => {}
        }
        Ok(())
    }

    /// `0.312 |****   1`
    fn add_bucket(&mut self, line: &str, lines: &Lines<'_>) -> Result<(), ImportError> {
        let Some((value, rest)) = line.split_once('|') else { return Ok(()) };
        let count = rest.trim_start_matches('*').trim();
        match (value.trim().parse::<f64>(), count.parse::<u64>()) {
            (Ok(ms), Ok(count)) if ms.is_finite() && ms >= 0.0 => self.histogram.push((ms, count)),
            _ => return Err(lines.wrong(format!("it is no bucket of a histogram: '{}'", cut(line)))),
        }
        Ok(())
    }

    fn test(self, lines: &Lines<'_>) -> Result<ImportedTest, ImportError> {
        let said = self.fatal.as_ref().map_or_else(String::new, |fatal| format!("; it says '{fatal}'"));
        let missing = |what: &str| {
            lines.wrong(format!(
                "a report of sysbench ends here without '{what}': it is cut off, or the run failed{said}"
            ))
        };
        let total_s = self.total_s.ok_or_else(|| missing("total time:"))?;
        let threads = self.threads.ok_or_else(|| missing("Number of threads:"))?;
        let mut test = if let Some((n, per_s)) = self.transactions {
            self.of_transactions(threads, total_s, n, per_s)
        } else if self.reads_per_s.is_some() {
            self.of_files(threads, total_s)
        } else {
            let of = self.other_test.map_or("a script without SQL".to_owned(), |test| format!("its {test} test"));
            return Err(lines.whole(format!(
                "this is a report of sysbench on {of}: those of oltp scripts and fileio can be imported"
            )));
        };
        if self.mean_ms.is_none() {
            return Err(missing("avg:"));
        }
        if let Some(rate) = self.rate {
            test.record.parameters.insert("rate".to_owned(), rate as i64);
            test.note(format!(
                "open loop: {rate} events per second were asked for (--rate); times are from when each was due"
            ));
        }
        if let Some((which, ms)) = self.percentile.as_ref().filter(|(which, _)| *which != "99th percentile") {
            test.note(format!("the {which} of the latency is {ms} ms"));
        }
        if let Some(events) = self.events.filter(|_| self.transactions.is_none()) {
            test.note(format!("{events} events in {total_s} s"));
        }
        let said = self.fatal.map(|fatal| format!("sysbench said '{fatal}'"));
        test.record.notes.extend(self.notes.into_iter().chain(said));
        test.series = draft::intervals(self.intervals);
        Ok(test)
    }

    fn of_transactions(&self, threads: u32, total_s: f64, n: f64, per_s: f64) -> ImportedTest {
        // The report does not name its script: what distinguishes scripts is what a transaction does.
        let per_tx = |queries: Option<f64>| queries.filter(|_| n > 0.0).map(|q| q / n);
        let whole = |queries: Option<f64>| per_tx(queries).map_or("?".to_owned(), |q| format!("{q:.0}"));
        let work = format!("oltp r{} w{} o{}", whole(self.read), whole(self.write), whole(self.other));
        let mut test = draft::of_transactions("sysbench", &work, threads, self.times());
        test.note(format!(
            "the report names neither its script nor the size of its tables: a transaction has {} reads, {} writes and {} others",
            whole(self.read),
            whole(self.write),
            whole(self.other)
        ));
        test.record.set(ELAPSED_S, total_s);
        test.record.set_throughput(per_s);
        test.set_count(n, 0.0);
        if let Some(statements) = per_tx(self.read).zip(per_tx(self.write)).map(|(r, w)| r + w) {
            test.record.set(column::STATEMENTS_PER_TX, statements);
        }
        test.set_or(CONFLICTS, self.ignored, "sysbench does not state it");
        test.record.leave_out(ERRORS, "sysbench stops at the first error that it does not ignore and try again");
        if let Some(ignored) = self.ignored.filter(|n| *n > 0.0) {
            test.note(format!(
                "{ignored} transactions ended with an error that sysbench ignores, and were tried again"
            ));
        }
        if let Some(reconnects) = self.reconnects.filter(|n| *n > 0.0) {
            test.note(format!("{reconnects} sessions were opened anew"));
        }
        self.set_times(&mut test);
        test
    }

    fn of_files(&self, threads: u32, total_s: f64) -> ImportedTest {
        let mode = self.mode.clone().unwrap_or_else(|| "unknown mode".to_owned());
        let mut test = draft::of_storage("sysbench fileio", &mode, threads, self.times());
        let (reads, writes) = (self.reads_per_s.unwrap_or_default(), self.writes_per_s.unwrap_or_default());
        test.record.set(ELAPSED_S, total_s);
        for (column, value) in [
            (column::BLOCK_READS_PER_S, self.reads_per_s),
            (column::READ_MIB_PER_S, self.read_mib_per_s),
            (column::PHYSICAL_WRITES_PER_S, self.writes_per_s),
            (column::PHYSICAL_WRITTEN_MIB_PER_S, self.written_mib_per_s),
            (BLOCK_BYTES, self.block),
        ] {
            if let Some(value) = value {
                test.record.set(column, value);
            }
        }
        test.record.set(IO_PER_S, reads + writes);
        if let Some(block) = self.block {
            test.record.parameters.insert("block-bytes".to_owned(), block as i64);
            for (what, per_s, mib) in
                [("read", reads, self.read_mib_per_s), ("written", writes, self.written_mib_per_s)]
            {
                if let Some(mib) = mib.filter(|mib| *mib > 1.0) {
                    test.compare(
                        (&format!("data {what} [MiB/s]"), mib),
                        ("calls × block size", per_s * block / 1_048_576.0),
                    );
                }
            }
        }
        if let Some(fsyncs) = self.fsyncs_per_s.filter(|n| *n > 0.0) {
            test.note(format!("{fsyncs} calls of fsync per second, which are events as well, and in no column"));
        }
        test.note("times are those of reads, writes and syncs together; the page cache serves them unless the files are opened with O_DIRECT");
        self.set_times(&mut test);
        test
    }

    /// With `--rate` sysbench adds the time in its queue.
    fn times(&self) -> Times {
        draft::times(self.rate.is_some())
    }

    fn set_times(&self, test: &mut ImportedTest) {
        let times = self.times();
        for column in [times.p50, times.p99] {
            test.record.leave_out(column, NO_PERCENTILES);
        }
        let mut all = Latencies::new();
        let max_ns = self.max_ms.map_or(0.0, |ms| ms * 1e6);
        for (ms, count) in &self.histogram {
            all.record_bucket((ms * 1e6) as u64, *count);
        }
        let events = self.events.unwrap_or_default();
        if all.count() > 0 {
            let counted = all.count() as f64;
            all.add_sum((self.mean_ms.unwrap_or_default() * 1e6 * counted) as u128, max_ns as u64);
            test.compare(("the number of events", events), ("the histogram", counted));
            test.set_times(times, all);
            test.note("percentiles are those of sysbench's histogram, whose buckets are 1.8 % apart");
        }
        let absent =
            if events > 0.0 { "sysbench prints 0.00 ms: it has two decimals" } else { "no event was completed" };
        // The printed mean has two decimals: the sum has more digits.
        let exact = self.sum_ms.filter(|_| events > 0.0).map(|sum| sum / events);
        match exact.or(self.mean_ms).filter(|ms| *ms > 0.0) {
            Some(ms) => test.set_mean(times, ms * 1e6),
            None => [times.mean, column::COMMIT_LATENCY_MS].into_iter().for_each(|c| test.record.leave_out(c, absent)),
        }
        let p99_ms = self.percentile.as_ref().filter(|(which, _)| which == "99th percentile").map(|(_, ms)| *ms);
        for (column, ms) in [(times.max, self.max_ms), (times.p99, p99_ms)] {
            if let Some(ms) = ms {
                test.set_or(column, Some(ms * 1e6).filter(|ns| *ns > 0.0), absent);
            }
        }
    }
}

/// IOPS and MiB/s of `IOPS=123.45 1.93 MiB/s (2.02 MB/s)`.
fn iops(value: &str) -> (Option<f64>, Option<f64>) {
    let rest = value.trim().trim_start_matches("IOPS=");
    let mib = rest.split_once(' ').and_then(|(_, rest)| first_number(rest)).filter(|_| rest.contains("MiB/s"));
    (first_number(rest), mib)
}

/// Bytes of `16KiB`.
fn bytes(text: &str) -> Option<f64> {
    let factor = match text.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.').trim() {
        "B" | "" => 1.0,
        "KiB" | "Kb" => 1024.0,
        "MiB" | "Mb" => 1_048_576.0,
        _ => return None,
    };
    Some(first_number(text)? * factor)
}
