//! pgbench's printed report, alone or with the logs of its transactions. Formats: PostgreSQL's documentation of pgbench, versions 9.6
//! to 18.

use loadline_model::Note;
use loadline_model::column::{self, CONFLICTS, ELAPSED_S, ERRORS, TX_PER_S};

use crate::draft::{APART, Group, ImportedTest, Interval};
use crate::lines::{Fields, Lines, Report, cut, keep_error, number, plain, reports};
use crate::pgbench_log::{Log, is_log};
use crate::source::{Absence, ImportError, Source, Tool, Warning};

const REPORT: &str = "pgbench's report";
/// Time that the last transactions may take beyond the time asked for, s.
const LAST_S: f64 = 0.1;
/// A message of pgbench and of versions before 12.
const SAID: [&str; 4] = ["pgbench: error", "pgbench: fatal", "Client ", "client "];

const PROCESSED: &str = "number of transactions actually processed";
const LAG: &str = "rate limit schedule lag";
const CONNECT: &str = "average connection time";
/// Throughput with the time to connect, beside the one without it, which `tps` is: versions 9.6 to 13.
const INCLUDING: &str = "tps (including connections establishing)";
const TYPE: &str = "transaction type";

/// Reads reports and logs. A log is of the report before it; of the only report wherever it stands.
pub(crate) fn import(sources: &mut [Source<'_>]) -> Result<Vec<Group>, ImportError> {
    let mut files = Vec::new();
    for (n, source) in sources.iter_mut().enumerate() {
        let mut lines = Lines::new(Tool::Pgbench, &source.name, &mut *source.input);
        let first = lines.next()?.unwrap_or_default();
        files.push((is_log(&first), n, first, lines));
    }
    if files.iter().filter(|(is_log, ..)| !is_log).count() == 1 {
        files.sort_by_key(|(is_log, ..)| *is_log);
    }
    let mut groups: Vec<(Group, Log)> = Vec::new();
    for (is_log, n, first, mut lines) in files {
        if !is_log {
            let group = reports::<Printed>(Some(first), &mut lines)?;
            groups.push((Group { files: vec![n], product: "PostgreSQL".to_owned(), ..group }, Log::default()));
            continue;
        }
        let Some((group, log)) = groups.last_mut().filter(|(group, _)| group.tests.len() == 1) else {
            return Err(lines.at(None, "it is a log of transactions: name it after the printed report of its run"));
        };
        log.add_file(n, first, &mut lines)?;
        group.files.push(n);
    }
    let complete = |(mut group, log): (Group, Log)| {
        if let ([_, _, ..], [test]) = (group.files.as_slice(), group.tests.as_mut_slice()) {
            log.add_to(test);
        }
        group
    };
    Ok(groups.into_iter().map(complete).collect())
}

/// `1.0 s, 5466.0 tps, lat 0.715 ms stddev 1.087, 0 failed`
fn progress(rest: &str, line: u64) -> Option<Interval> {
    let words: Vec<&str> = rest.split([' ', ',']).filter(|w| !w.is_empty()).collect();
    let [end, "s", tps, "tps", "lat", ms, ..] = words.as_slice() else { return None };
    let per_s = number(tps)?;
    // Without transactions the latency is -nan.
    let mean_ms = if per_s > 0.0 { Some(number(ms)?) } else { None };
    Some(Interval { line, end_s: number(end)?, per_s, mean_ms })
}

#[derive(Debug, Default)]
struct Printed {
    fields: Fields,
    scripts: Vec<String>,
    weights: Vec<i64>,
    progress: Vec<Interval>,
    warnings: Vec<Warning>,
    notes: Vec<String>,
}

impl Report for Printed {
    const NONE: &'static str =
        "it is neither a report of pgbench (no line 'transaction type:') nor a log of transactions";

    fn is_ended_by(&self, line: &str) -> bool {
        line.starts_with("pgbench (")
            || (line.starts_with("transaction type:") && self.fields.text(TYPE).is_some())
            || (line.starts_with("progress: ") && self.fields.text("tps").is_some())
    }

    fn add(&mut self, line: &str, lines: &Lines<'_>) -> Result<Option<String>, ImportError> {
        if let Some(version) = line.strip_prefix("pgbench (") {
            let version = version.strip_prefix("PostgreSQL) ").unwrap_or(version);
            // Stated if it is another one.
            let server = version.split_once("server ").and_then(|(_, server)| server.split([' ', ')']).next());
            self.notes.extend(server.map(|server| format!("the server was PostgreSQL {}", plain(server))));
            return Ok(version.split([' ', ',', ')']).next().map(str::to_owned));
        }
        if let Some(rest) = line.strip_prefix("progress: ") {
            match progress(rest, lines.number) {
                Some(interval) => self.progress.push(interval),
                None => self.warnings.push(Warning::NoProgress { line: lines.number, text: cut(line) }),
            }
        } else if SAID.iter().any(|begin| line.starts_with(begin)) {
            keep_error(&mut self.fields.said, line);
        } else if let Some((key, value)) = line.split_once(" = ").or_else(|| line.split_once(':')) {
            let (key, value) = (key.trim(), value.trim());
            if key.starts_with("SQL script ") && self.fields.text(TYPE) == Some("multiple scripts") {
                self.scripts.push(value.to_owned());
            } else if key == "- weight" {
                self.weights.extend(number(value).map(|n| n as i64));
            } else if key.starts_with("number of transactions above the ") {
                self.notes.extend(number(value).filter(|n| *n > 0.0).map(|n| format!("{n} of the {}", plain(key))));
            } else {
                if key == TYPE {
                    // What stood before a report is none of it.
                    self.fields = Fields::new(REPORT, std::mem::take(&mut self.fields.said));
                }
                if key == "tps" && value.contains("(including") {
                    self.fields.add(INCLUDING, value, lines);
                }
                self.fields.add(key, value, lines);
            }
        }
        Ok(None)
    }

    fn test(self, lines: &Lines<'_>) -> Result<Option<ImportedTest>, ImportError> {
        let fields = &self.fields;
        if fields.text(TYPE).is_none() && self.progress.is_empty() && fields.said.is_empty() {
            return Ok(None);
        }
        let work = fields.text(TYPE).ok_or_else(|| fields.missing(TYPE, lines))?;
        let processed = fields.required(PROCESSED, lines)?;
        let excluding = fields.required("tps", lines)?;
        let including = fields.number(INCLUDING).filter(|tps| (tps - excluding).abs() > APART * excluding);
        let tps = including.unwrap_or(excluding);
        let jobs = fields.jobs("number of clients", lines)?;
        let scripts = if self.scripts.is_empty() { &[work.to_owned()][..] } else { &self.scripts };
        let short = |script: &String| {
            let name = script.trim_start_matches('<').trim_end_matches('>').trim_start_matches("builtin: ");
            name.rsplit('/').next().unwrap_or(name).to_owned()
        };
        let name = format!("pgbench {}", scripts.iter().map(short).collect::<Vec<_>>().join(" "));
        let open = fields.text(LAG).is_some();
        let mut test = ImportedTest::new("transaction-processing", &name, jobs, open);
        if !scripts.iter().any(|script| script.starts_with("<builtin:")) {
            let scripts = cut(&scripts.join(" "));
            test.note(format!("its work is the script '{scripts}', whose text is not in the report"));
        }
        test.record.set(TX_PER_S, tps);
        if including.is_some() {
            test.note(format!("throughput is with the time to connect; without it pgbench printed {excluding} tps"));
        }
        self.set_parameters(&mut test);
        self.set_counts(&mut test, processed, tps);
        self.set_times(&mut test);
        test.set_intervals(self.progress, processed, None);
        test.warnings.extend(self.warnings.into_iter().chain(self.fields.said.into_iter().map(Warning::Said)));
        test.record.notes.extend(self.notes.into_iter().map(Note::Text));
        Ok(Some(test))
    }
}

impl Printed {
    fn set_parameters(&self, test: &mut ImportedTest) {
        let fields = &self.fields;
        let keys =
            [("scale", "scaling factor"), ("partitions", "partitions"), ("max-tries", "maximum number of tries")];
        for (name, key) in keys {
            let value = fields.number(key).filter(|n| name != "max-tries" || *n != 1.0);
            test.record.parameters.extend(value.map(|n| (name.to_owned(), n as i64)));
        }
        for (n, weight) in self.weights.iter().enumerate() {
            test.record.parameters.insert(format!("weight-{}", n + 1), *weight);
        }
        if let Some(mode) = fields.text("query mode").filter(|mode| *mode != "simple") {
            test.record.parameters.insert(format!("query-mode-{}", cut(mode)), 1);
        }
        if fields.text(CONNECT).is_some() {
            test.record.parameters.insert("connect".to_owned(), 1);
            test.set(column::CONNECT_TIME_NS_MEAN, fields.time_ns(CONNECT));
            test.note("each transaction opened a session of its own (--connect), whose time is part of its time");
        }
    }

    fn set_counts(&self, test: &mut ImportedTest, processed: f64, tps: f64) {
        let fields = &self.fields;
        if fields.text("duration").is_none() && tps > 0.0 {
            test.record.set(ELAPSED_S, processed / tps);
            test.note("a number of transactions was asked for: the time is transactions / throughput");
        } else {
            test.set(ELAPSED_S, fields.figure("duration"));
        }
        // The stated time is that asked for, with the time to connect, and without that of the last transactions.
        let connect_ms = fields.number("initial connection time").unwrap_or_default();
        test.set_count(processed, connect_ms / 1e3 + LAST_S);
        let asked = fields.text(PROCESSED).and_then(|value| number(value.split_once('/')?.1));
        if let Some(asked) = asked.filter(|asked| *asked > processed) {
            test.warnings.push(Warning::FewerThanAsked { made: processed, asked });
        }
        // Before version 15 there is neither, and without --max-tries no line of retries.
        test.set(ERRORS, fields.figure("number of failed transactions"));
        test.set(CONFLICTS, fields.figure("total number of retries"));
        if let Some(skipped) = fields.number("number of transactions skipped").filter(|n| *n > 0.0) {
            test.note(format!("{skipped} transactions were skipped, as they could not meet the latency limit"));
        }
    }

    fn set_times(&self, test: &mut ImportedTest) {
        let fields = &self.fields;
        let none = |what| Err(Absence::NotIn { place: fields.place, what });
        // Version 9.6 states 0 if it was asked for a number of transactions.
        test.set(test.times.mean, fields.time_ns("latency average"));
        test.timed = fields.text("latency stddev").is_some();
        for column in [test.times.p50, test.times.p99, test.times.max] {
            test.set(column, none("percentiles and no maximum: the log of transactions (-l) has them"));
        }
        if let Some(lag) = fields.text(LAG) {
            test.record.parameters.insert("rate-limited".to_owned(), 1);
            test.set(column::RATE_TPS, none("rate that was asked for (--rate), only the lag behind it"));
            test.note(format!("open loop (--rate): times are from the scheduled start; it lagged by {}", plain(lag)));
        } else if !test.timed {
            test.note("the printed mean latency is clients × time / transactions: pgbench timed no single one");
        }
        if fields.text("latency average").is_some_and(|value| value.ends_with("(including failures)")) {
            test.note("the printed mean latency includes failed transactions");
        }
    }
}
