//! HammerDB's TPROC-C: the result of a job (`jobs ID result`), its response times (`jobs ID timing`), or the log of a run, as text or
//! JSON. Formats: HammerDB's documentation, chapters of the CLI and its jobs interface, versions 3 to 6.

use std::collections::BTreeMap;

use loadline_model::column::{self, TRANSACTION_TIMES, Times};
use serde_json::Value;

use crate::draft;
use crate::error::ImportError;
use crate::group::{Group, ImportedTest, Read, Source};
use crate::lines::{Lines, cut, plain};
use crate::tool::Tool;

const NO_TIMES: &str = "the result has no response times: import `jobs ID timing` with it (time profiler)";

/// Reads results and response times.
pub(crate) fn import(sources: &mut [Source<'_>]) -> Result<Vec<Group>, ImportError> {
    let mut groups: Vec<Group> = Vec::new();
    let mut timings: Vec<(usize, String, Timing)> = Vec::new();
    for (n, source) in sources.iter_mut().enumerate() {
        match read(&mut Lines::new(&source.name, &mut *source.input))? {
            Read::Tests(group) => groups.push(Group { files: vec![n], ..group }),
            Read::Part(timing) => timings.push((n, source.name.clone(), timing)),
        }
    }
    let Some((n, file, timing)) = timings.pop() else { return Ok(groups) };
    match groups.as_mut_slice() {
        [group] if timings.is_empty() && group.tests.len() == 1 => {
            group.files.push(n);
            group.tests.iter_mut().for_each(|test| timing.add_to(test));
            Ok(groups)
        }
        _ => {
            let what = "it has response times without a result: import each with the one result of the same job (`jobs ID result`)";
            Err(ImportError::of_file(&file, what))
        }
    }
}

/// What a file says.
#[derive(Default)]
struct Found {
    results: Vec<Outcome>,
    timing: Option<Timing>,
    users: Option<u32>,
    minutes: Option<f64>,
    version: Option<String>,
}

/// `System achieved 42 NOPM from 97 PostgreSQL TPM`.
struct Outcome {
    nopm: f64,
    tpm: f64,
    database: String,
    users: Option<u32>,
    minutes: Option<f64>,
}

/// Response times by procedure, and of a procedure by name of the figure.
struct Timing(BTreeMap<String, BTreeMap<String, f64>>);

fn read(lines: &mut Lines<'_>) -> Result<Read<Timing>, ImportError> {
    let mut found = Found::default();
    while let Some(line) = lines.next_of(Tool::HammerDb)? {
        let begins = line.trim_start();
        if begins.starts_with('{') || begins.starts_with('[') {
            let (first, text) = (lines.number(), lines.json(line.clone(), Tool::HammerDb)?);
            let value: Value = serde_json::from_str(&text).map_err(|e| {
                lines.at(first + (e.line() as u64).saturating_sub(1), format!("it is no JSON: {}", cut(&e.to_string())))
            })?;
            found.add_json(&value, lines)?;
        } else {
            found.add_text(&line, lines)?;
        }
    }
    let Found { results, timing, version, .. } = found;
    match (results.as_slice(), timing) {
        ([], Some(timing)) => Ok(Read::Part(timing)),
        ([], None) => Err(lines.nothing(
            "it has no result of HammerDB's TPROC-C: no 'System achieved … NOPM from … TPM', and no response times",
        )),
        ([_, _, ..], Some(_)) => {
            Err(lines.whole("it has response times and several results: import each job's with its result"))
        }
        (_, timing) => {
            let mut tests: Vec<ImportedTest> = results.iter().map(|r| r.test(lines)).collect::<Result<_, _>>()?;
            if let Some(timing) = timing {
                tests.iter_mut().for_each(|test| timing.add_to(test));
            }
            let product = results.first().map_or("", |r| &r.database);
            Ok(Read::Tests(Group { version, tests, ..Group::of(product) }))
        }
    }
}

impl Found {
    fn add_json(&mut self, value: &Value, lines: &Lines<'_>) -> Result<(), ImportError> {
        match value {
            Value::String(text) => self.add_text(text, lines),
            Value::Array(all) => all.iter().try_for_each(|value| self.add_json(value, lines)),
            Value::Object(fields) if fields.contains_key("NEWORD") => {
                let number = |value: &Value| value.as_str().map_or(value.as_f64(), |text| text.parse().ok());
                let figures = |value: &Value| {
                    let fields = value.as_object().into_iter().flatten();
                    fields.filter_map(|(name, v)| Some((name.clone(), number(v)?))).collect::<BTreeMap<_, _>>()
                };
                let timing = Timing(fields.iter().map(|(name, v)| (name.clone(), figures(v))).collect());
                if self.timing.replace(timing).is_some() {
                    return Err(lines.wrong("these are response times of a second job: one job a file"));
                }
                Ok(())
            }
            Value::Object(fields) => fields.values().try_for_each(|value| self.add_json(value, lines)),
            _ => Ok(()),
        }
    }

    fn add_text(&mut self, line: &str, lines: &Lines<'_>) -> Result<(), ImportError> {
        let words: Vec<&str> = line.split_whitespace().collect();
        if let Some(rest) = line.trim().strip_prefix("HammerDB CLI v") {
            self.version = rest.split_whitespace().next().map(plain);
        }
        if line.contains(" query set(s) in ") || line.contains("Geometric mean of query times") {
            return Err(
                lines.wrong(format!("this is a result of TPROC-H, only those of TPROC-C are read: '{}'", cut(line)))
            );
        }
        let before = |what: &str| {
            let at = line.find(what)?;
            line.get(..at)?.trim().rsplit([' ', ':']).next()?.parse::<f64>().ok().filter(|n| *n >= 0.0)
        };
        if let Some(users) = before(" Active Virtual Users configured") {
            self.users = Some(users as u32);
        }
        if let Some((_, rest)) = line.split_once("Timing test period of ") {
            self.minutes = rest.split_whitespace().next().and_then(|m| m.parse().ok());
        }
        let Some((_, rest)) = line.split_once("System achieved ") else { return Ok(()) };
        let cannot = || lines.wrong(format!("this result cannot be read: '{}'", cut(rest)));
        let number = |word: Option<&&str>| {
            word.and_then(|w| w.parse::<f64>().ok()).filter(|n| n.is_finite() && *n >= 0.0).ok_or_else(cannot)
        };
        let at = |what: &str| words.iter().position(|w| *w == what);
        let (nopm, tpm) = at("NOPM").zip(at("TPM")).ok_or_else(cannot)?;
        let of = |at: usize, back: usize| at.checked_sub(back).and_then(|at| words.get(at));
        // New: `N NOPM from M Name of database TPM`; before 4.0: `M Name of database TPM at N NOPM`.
        let from = if nopm < tpm { at("from") } else { at("achieved") }.ok_or_else(cannot)?;
        let outcome = Outcome {
            nopm: number(of(nopm, 1))?,
            tpm: number(words.get(from + 1))?,
            database: plain(&words.get(from + 2..tpm).unwrap_or_default().join(" ")),
            // A second result states its own.
            users: self.users.take(),
            minutes: self.minutes.take(),
        };
        self.results.push(outcome);
        Ok(())
    }
}

impl Outcome {
    fn test(&self, lines: &Lines<'_>) -> Result<ImportedTest, ImportError> {
        let users = self.users.ok_or_else(|| {
            lines.whole(
                "the result does not say how many virtual users there were: no '… Active Virtual Users configured'",
            )
        })?;
        let mut test = draft::of_transactions("hammerdb", "TPROC-C new orders", users, TRANSACTION_TIMES);
        test.record.set_throughput(self.nopm / 60.0);
        test.note(format!(
            "a transaction is a new order: {} new orders per minute (NOPM); {} transactions per minute of all kinds, as {} counts them \
             (TPM), which HammerDB asks not to compare between databases",
            self.nopm, self.tpm, self.database
        ));
        test.note("the result does not state the number of warehouses");
        let no_time = "HammerDB's result does not state its time; the log of the run does";
        test.set_or(column::ELAPSED_S, self.minutes.map(|minutes| minutes * 60.0), no_time);
        if self.tpm > 0.0 && self.nopm > self.tpm {
            test.note(format!(
                "contradictory: {} new orders per minute are more than {} of all kinds",
                self.nopm, self.tpm
            ));
        }
        let Times { mean, p50, p99, max } = TRANSACTION_TIMES;
        for column in [mean, p50, p99, max, column::COMMIT_LATENCY_MS] {
            test.record.leave_out(column, NO_TIMES);
        }
        Ok(test)
    }
}

impl Timing {
    /// Adds the times of new orders.
    fn add_to(&self, test: &mut ImportedTest) {
        let Some(orders) = self.0.get("NEWORD") else { return };
        let figure = |name: &str| orders.get(name).copied().filter(|v| v.is_finite() && *v >= 0.0);
        if let Some(ms) = figure("avg_ms") {
            test.record.set_mean_time(ms * 1e6);
        }
        for (column, name) in
            [(TRANSACTION_TIMES.p50, "p50_ms"), (TRANSACTION_TIMES.p99, "p99_ms"), (TRANSACTION_TIMES.max, "max_ms")]
        {
            test.set_or(column, figure(name).map(|ms| ms * 1e6), &format!("the response times have no {name}"));
        }
        if let (Some(calls), Some(elapsed_ms), Some(per_s)) =
            (figure("calls"), figure("elapsed_ms").filter(|ms| *ms > 0.0), test.record.figure(column::TX_PER_S))
        {
            test.note("response times include the ramp-up, and are of the virtual users whose times were profiled");
            let timed = calls / elapsed_ms * 1e3;
            if timed > per_s {
                test.compare(("new orders per second by NOPM", per_s), ("calls / time of the profile", timed));
            }
        }
    }
}
