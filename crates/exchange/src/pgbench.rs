//! pgbench's printed report, alone or with the logs of its transactions. Formats: PostgreSQL's documentation of pgbench, versions 9.6
//! to 18.

use loadline_model::Series;
use loadline_model::column::{self, CONFLICTS, ELAPSED_S, ERRORS};

use crate::draft;
use crate::error::ImportError;
use crate::group::{Group, ImportedTest, Read, Source};
use crate::lines::{Lines, cut, plain};
use crate::pgbench_log::{self, EPOCH_S, Log, is_log};
use crate::tool::Tool;

const PRODUCT: &str = "PostgreSQL";
const WITH_FAILURES: &str = "the mean latency includes failed transactions";
/// Time that the last transactions may take beyond the time asked for, s.
const LAST_S: f64 = 0.1;
const NOT_TIMED: &str = "the mean latency is clients × time / transactions: pgbench timed no single one";
const NO_PERCENTILES: &str = "pgbench's report has no percentiles: its log of transactions (-l) has them";

/// Reads reports and logs.
pub(crate) fn import(sources: &mut [Source<'_>]) -> Result<Vec<Group>, ImportError> {
    let mut reports: Vec<Group> = Vec::new();
    let mut logs: Vec<(usize, Log)> = Vec::new();
    for (n, source) in sources.iter_mut().enumerate() {
        match read(&source.name, &mut Lines::new(&source.name, &mut *source.input))? {
            Read::Tests(group) => reports.push(Group { files: vec![n], ..group }),
            Read::Part(log) => logs.push((n, log)),
        }
    }
    let tests: usize = reports.iter().map(|r| r.tests.len()).sum();
    if let Some((_, log)) = logs.first().filter(|_| tests > 1) {
        let what =
            format!("it is a log of transactions, but there are {tests} reports: import each report with its own logs");
        return Err(ImportError::of_file(&log.file, what));
    }
    let mut tests_of_logs: Vec<(String, Vec<usize>, Log)> = Vec::new();
    for (n, log) in logs {
        // All that are named with a report are of its test.
        let test = if tests == 1 { String::new() } else { log.test_name() };
        match tests_of_logs.iter_mut().find(|(known, ..)| *known == test) {
            Some((_, files, all)) => {
                files.push(n);
                all.join(log)?;
            }
            None => tests_of_logs.push((test, vec![n], log)),
        }
    }
    for (_, files, log) in tests_of_logs {
        let Some(report) = reports.first_mut().filter(|_| tests == 1) else {
            reports.push(Group { files, tests: vec![log.test()?], ..Group::of(PRODUCT) });
            continue;
        };
        report.files.extend(files);
        if let Some(test) = report.tests.first_mut() {
            with_log(test, log);
        }
    }
    Ok(reports)
}

/// A report, or several one after another, or a log.
fn read(name: &str, lines: &mut Lines<'_>) -> Result<Read<Log>, ImportError> {
    let mut group = Group::of(PRODUCT);
    let mut report = Report::default();
    while let Some(line) = lines.next_of(Tool::Pgbench)? {
        if lines.number() == 1 && is_log(&line) {
            return pgbench_log::read(name, &line, lines).map(Read::Part);
        }
        let line = line.trim();
        let version = line.strip_prefix("pgbench (");
        if version.is_some() || report.is_ended_by(line) {
            group.add(std::mem::take(&mut report).ended(lines))?;
        }
        match version {
            Some(version) => {
                let version = version.strip_prefix("PostgreSQL) ").unwrap_or(version);
                group.set_version(Tool::Pgbench, version.split([' ', ',', ')']).next().unwrap_or_default(), lines)?;
                // Stated if it is another one.
                let server = version.split_once("server ").and_then(|(_, server)| server.split([' ', ')']).next());
                report.notes.extend(server.map(|server| format!("the server was PostgreSQL {}", plain(server))));
            }
            None => report.add(line, lines)?,
        }
    }
    group.add(report.ended(lines))?;
    let none = "it is no report of pgbench: there is no line 'transaction type:', nor is it a log of transactions";
    group.complete(lines, none).map(Read::Tests)
}

/// Of a progress line the end of its interval, s, its throughput and its mean latency, ms; without the latency if no transaction ended.
fn progress(rest: &str) -> Option<(f64, [Option<f64>; 2])> {
    let mut words = rest.split([' ', ',']).filter(|w| !w.is_empty());
    let (at, s) = (words.next()?.parse().ok()?, words.next()?);
    let (tps, unit) = (words.next()?.parse().ok()?, words.next()?);
    let (lat, ms) = (words.next()?, words.next()?.parse().ok()?);
    let finite = |n: f64| Some(n).filter(|n| n.is_finite() && *n >= 0.0);
    finite(at).zip(finite(tps)).filter(|_| (s, unit, lat) == ("s", "tps", "lat"))?;
    Some((at, [Some(tps), finite(ms).filter(|_| tps > 0.0)]))
}

/// Progress as a series. With `--progress-timestamp` its times are s since 1970, and it began an interval before the first.
fn over_time(mut progress: Vec<(f64, [Option<f64>; 2])>) -> Series {
    if let Some((first, _)) = progress.first().copied().filter(|(at, _)| *at > EPOCH_S) {
        let step = progress.get(1).map_or(first, |(second, _)| second - first);
        progress.iter_mut().for_each(|(at, _)| *at -= first - step);
    }
    draft::intervals(progress)
}

/// What a report says.
#[derive(Debug, Default)]
struct Report {
    /// `None` until it begins: progress and errors stand before it.
    work: Option<String>,
    scale: Option<i64>,
    partitions: Option<i64>,
    tries: Option<i64>,
    mode: Option<String>,
    clients: Option<u32>,
    duration_s: Option<f64>,
    processed: Option<f64>,
    /// Number of transactions asked for.
    asked: Option<f64>,
    failed: Option<f64>,
    retries: Option<f64>,
    skipped: Option<f64>,
    late: Option<f64>,
    mean_ms: Option<f64>,
    /// Stated only if each transaction was timed.
    deviation_ms: Option<f64>,
    /// Mean and maximum.
    lag_ms: Option<(f64, f64)>,
    tps: Option<f64>,
    scripts: Vec<String>,
    weights: Vec<i64>,
    connect_s: f64,
    reconnected: bool,
    /// End of each interval, s, its throughput and its mean latency, ms.
    progress: Vec<(f64, [Option<f64>; 2])>,
    /// Errors.
    said: Vec<String>,
    notes: Vec<String>,
}

impl Report {
    /// Whether `line` is of the next report.
    fn is_ended_by(&self, line: &str) -> bool {
        (line.starts_with("transaction type:") && self.work.is_some())
            || (line.starts_with("progress: ") && self.tps.is_some())
    }

    /// Its test; `None` if nothing was read.
    fn ended(self, lines: &Lines<'_>) -> Option<Result<ImportedTest, ImportError>> {
        let any = self.work.is_some() || !self.progress.is_empty() || !self.said.is_empty();
        any.then(|| self.test(lines))
    }

    /// Takes in one line. Unknown ones are of no interest: progress of vacuum, times of statements.
    fn add(&mut self, line: &str, lines: &Lines<'_>) -> Result<(), ImportError> {
        if let Some(rest) = line.strip_prefix("progress: ") {
            match progress(rest) {
                Some(interval) => self.progress.push(interval),
                None => self.notes.push(format!(
                    "line {} is no progress as pgbench writes it: '{}'",
                    lines.number(),
                    cut(line)
                )),
            }
            return Ok(());
        }
        let Some((key, value)) = line.split_once(" = ").or_else(|| line.split_once(':')) else { return Ok(()) };
        let (key, value) = (key.trim(), value.trim());
        let number = || {
            let text = value.split([' ', '/', '(', '%']).next().unwrap_or_default();
            let number = text.parse::<f64>().ok().filter(|n| n.is_finite() && *n >= 0.0);
            number.ok_or_else(|| lines.wrong(format!("'{}' is no number in '{}'", cut(text), cut(line))))
        };
        let count = || {
            let whole = number()?;
            if whole.fract() == 0.0 && whole <= f64::from(u32::MAX) {
                return Ok(whole as u32);
            }
            Err(lines.wrong(format!("'{}' is no count in '{}'", cut(value), cut(line))))
        };
        match key {
            "transaction type" => self.work = Some(value.to_owned()),
            "scaling factor" => self.scale = Some(i64::from(count()?)),
            "partitions" => self.partitions = Some(i64::from(count()?)),
            "maximum number of tries" => self.tries = Some(i64::from(count()?)),
            "query mode" => self.mode = Some(value.to_owned()),
            "number of clients" => self.clients = Some(count()?),
            "duration" => self.duration_s = Some(number()?),
            "number of transactions actually processed" => {
                self.processed = Some(number()?);
                self.asked = value.split_once('/').and_then(|(_, asked)| asked.parse().ok());
            }
            "number of failed transactions" => self.failed = Some(number()?),
            "total number of retries" => self.retries = Some(number()?),
            "number of transactions skipped" => self.skipped = Some(number()?),
            "latency average" => {
                self.mean_ms = Some(number()?);
                if value.contains("including failures") {
                    self.notes.push(WITH_FAILURES.to_owned());
                }
            }
            "initial connection time" => self.connect_s = number()? / 1e3,
            // --connect: the time to connect is part of a transaction.
            "average connection time" => self.reconnected = true,
            "- weight" => self.weights.push(i64::from(count()?)),
            "latency stddev" => self.deviation_ms = Some(number()?),
            "rate limit schedule lag" => self.lag_ms = lag(value),
            // Older versions state it twice: with and without the time to connect.
            "tps" if value.contains("including connections establishing") => self.tps = self.tps.or(Some(number()?)),
            "tps" => self.tps = Some(number()?),
            "pgbench" if value.starts_with("error") || value.starts_with("fatal") => {
                self.said.push(format!("pgbench said '{}'", cut(value)));
            }
            _ if key.starts_with("SQL script ") && self.work.as_deref() == Some("multiple scripts") => {
                self.scripts.push(value.to_owned())
            }
            _ if key.starts_with("number of transactions above the") => self.late = Some(number()?),
            _ => {}
        }
        Ok(())
    }

    fn test(self, lines: &Lines<'_>) -> Result<ImportedTest, ImportError> {
        let missing = |what: &str| {
            let said = self.said.first().map_or_else(String::new, |said| format!("; {said}"));
            lines.wrong(format!(
                "a report of pgbench ends here without '{what}': it is cut off, or the run failed{said}"
            ))
        };
        let work = self.work.clone().ok_or_else(|| missing("transaction type:"))?;
        let processed = self.processed.ok_or_else(|| missing("number of transactions actually processed:"))?;
        let tps = self.tps.ok_or_else(|| missing("tps ="))?;
        let clients = self.clients.ok_or_else(|| missing("number of clients:"))?;
        let all = if self.scripts.is_empty() { work } else { self.scripts.join(" ") };
        let short = |name: &str| {
            let name = name.trim_start_matches('<').trim_end_matches('>').trim_start_matches("builtin: ");
            name.rsplit('/').next().unwrap_or(name).to_owned()
        };
        let name = if self.scripts.is_empty() {
            short(&all)
        } else {
            self.scripts.iter().map(|s| short(s)).collect::<Vec<_>>().join(" ")
        };
        let times = draft::times(self.lag_ms.is_some());
        let mut test = draft::of_transactions("pgbench", &name, clients, times);
        if !all.contains("<builtin:") {
            test.note(format!("its work is the script '{}', whose text is not in the report", cut(&all)));
        }
        let tries = self.tries.filter(|tries| *tries != 1);
        for (name, value) in [("scale", self.scale), ("partitions", self.partitions), ("max-tries", tries)] {
            test.record.parameters.extend(value.map(|value| (name.to_owned(), value)));
        }
        if self.reconnected {
            test.record.parameters.insert("connect".to_owned(), 1);
            test.note("each transaction opened a session of its own (--connect)");
        }
        for (n, weight) in self.weights.iter().enumerate() {
            test.record.parameters.insert(format!("weight-{}", n + 1), *weight);
        }
        if let Some(mode) = self.mode.filter(|mode| mode != "simple") {
            test.record.parameters.insert(format!("query-mode-{mode}"), 1);
        }
        test.record.set_throughput(tps);
        match self.duration_s {
            Some(s) => test.record.set(ELAPSED_S, s),
            None if tps > 0.0 => {
                test.record.set(ELAPSED_S, processed / tps);
                test.note("a number of transactions was asked for: the time is transactions / throughput");
            }
            None => test.record.leave_out(ELAPSED_S, "pgbench was given a number of transactions, and states no time"),
        }
        // The stated time is that asked for, with the time to connect, and without that of the last transactions.
        test.set_count(processed, self.connect_s + LAST_S);
        if let Some(asked) = self.asked.filter(|asked| *asked > processed) {
            test.note(format!(
                "{processed} of {asked} transactions were made: clients ended before, or transactions failed"
            ));
        }
        test.set_or(ERRORS, self.failed, "this version of pgbench does not count them");
        test.set_or(CONFLICTS, self.retries, "pgbench was not asked to try again, or does not count it");
        // Version 9.6 states 0 if it was asked for a number of transactions.
        if let Some(ms) = self.mean_ms.filter(|ms| *ms > 0.0) {
            test.set_mean(times, ms * 1e6);
            let (busy, timed) = (tps * ms / 1e3, self.deviation_ms.is_some());
            if self.lag_ms.is_none() && timed && busy > f64::from(clients) * (1.0 + draft::APART) {
                test.compare(("the number of clients", f64::from(clients)), ("throughput × mean latency", busy));
            }
            if self.lag_ms.is_none() && !timed {
                test.note(NOT_TIMED);
            }
        }
        if let Some((mean, max)) = self.lag_ms {
            test.record.parameters.insert("rate-limited".to_owned(), 1);
            test.note(format!(
                "open loop (--rate, which the report does not state): times are from the scheduled start; it lagged by {mean} ms, at \
                 most {max} ms"
            ));
        }
        if let Some(skipped) = self.skipped.filter(|n| *n > 0.0) {
            test.note(format!(
                "{skipped} transactions were skipped, as they could not meet the latency limit any more"
            ));
        }
        if let Some(late) = self.late.filter(|n| *n > 0.0) {
            test.note(format!("{late} transactions were above the latency limit"));
        }
        for column in [times.p50, times.p99, times.max] {
            test.record.leave_out(column, NO_PERCENTILES);
        }
        test.set_series(over_time(self.progress), times);
        test.record.notes.extend(self.said.into_iter().chain(self.notes));
        Ok(test)
    }
}

/// Mean and maximum of `avg 0.123 (max 4.567) ms`.
fn lag(value: &str) -> Option<(f64, f64)> {
    let mut numbers = value.split([' ', '(', ')']).filter_map(|w| w.parse().ok());
    Some((numbers.next()?, numbers.next()?))
}

/// Adds what the log of a report's transactions says: percentiles, and throughput over time.
fn with_log(test: &mut ImportedTest, log: Log) {
    let times = draft::times(test.record.parameters.contains_key("rate-limited"));
    if log.is_of_intervals() {
        log.add_to(test, times, false);
        return;
    }
    let processed = test.record.figure(column::COMMITS).unwrap_or_default();
    let logged = log.count() as f64;
    let sampled = log.is_sampled() || logged < processed * (1.0 - draft::APART);
    if sampled {
        test.note(format!(
            "the log has {logged} of {processed} transactions (--sampling-rate, or files are missing): percentiles are those of this \
             sample"
        ));
    } else {
        test.compare(("the number of transactions", processed), ("the log", logged));
    }
    let printed = test.record.figure(times.mean);
    let timed = !test.record.notes.iter().any(|note| note == NOT_TIMED);
    log.add_to(test, times, sampled);
    let measured = test.record.figure(times.mean);
    if let (Some(printed), Some(measured), true) = (printed, measured, timed && !sampled) {
        test.compare(("the mean latency [ms]", printed / 1e6), ("the log", measured / 1e6));
    }
    test.record.notes.retain(|note| note != NOT_TIMED && note != WITH_FAILURES);
}
