//! HammerDB's TPROC-C: the result of a job (`jobs ID result`), its response times (`jobs ID timing`), or the log of a run, as text or
//! JSON. Formats: HammerDB's documentation, chapters of the CLI and its jobs interface, versions 3 to 6.

use loadline_model::column::{ELAPSED_S, TX_PER_S};
use serde_json::Value;

use crate::absence::{Absence, Warning};
use crate::draft::{APART, ImportedTest};
use crate::error::ImportError;
use crate::fields::{Fields, jobs, keep_error, number};
use crate::group::{Group, Source};
use crate::lines::{Lines, cut, plain};
use crate::tool::Tool;

/// Reads results and response times, which are of the result before them.
pub(crate) fn import(sources: &mut [Source<'_>]) -> Result<Vec<Group>, ImportError> {
    let mut groups: Vec<Group> = Vec::new();
    for (n, source) in sources.iter_mut().enumerate() {
        let mut lines = Lines::new(Tool::HammerDb, &source.name, &mut *source.input);
        let found = Found::read(&mut lines)?;
        if found.results.is_empty() && found.timing.is_none() {
            return Err(lines.nothing("it has no result of TPROC-C: no 'System achieved … NOPM from … TPM'"));
        }
        if let Some(first) = found.results.first() {
            let tests = found.results.iter().map(|r| r.test(&lines)).collect::<Result<Vec<_>, _>>()?;
            let (version, product) = (found.version, first.database.clone());
            groups.push(Group { files: Vec::new(), version, product, tests });
        }
        let no_result = "it has response times: name them after the one result of the same job (`jobs ID result`)";
        let Some(group) = groups.last_mut() else { return Err(lines.whole(no_result)) };
        group.files.push(n);
        let only = group.tests.len() == 1;
        if let Some(test) = group.tests.last_mut() {
            test.warnings.extend(found.said.iter().cloned().map(Warning::Said));
            match &found.timing {
                Some(timing) if only => add_times(test, timing),
                Some(_) => return Err(lines.whole(no_result)),
                None => {}
            }
        }
    }
    Ok(groups)
}

/// What a file says.
#[derive(Default)]
struct Found {
    results: Vec<Outcome>,
    /// Figures of the procedure that makes a new order.
    timing: Option<Fields>,
    users: Option<u32>,
    minutes: Option<f64>,
    version: Option<String>,
    said: Vec<String>,
}

/// `System achieved 42 NOPM from 97 PostgreSQL TPM`.
struct Outcome {
    nopm: f64,
    tpm: f64,
    database: String,
    users: Option<u32>,
    minutes: Option<f64>,
}

impl Found {
    fn read(lines: &mut Lines<'_>) -> Result<Found, ImportError> {
        let mut found = Found::default();
        while let Some(line) = lines.next()? {
            if line.trim_start().starts_with(['{', '[']) {
                let (first, text) = (lines.number(), lines.json(line)?);
                let value: Value = serde_json::from_str(&text).map_err(|e| lines.no_json(first, &e))?;
                found.add_json(&value, lines)?;
            } else {
                found.add_text(&line, lines)?;
            }
        }
        Ok(found)
    }

    fn add_json(&mut self, value: &Value, lines: &Lines<'_>) -> Result<(), ImportError> {
        match value {
            Value::String(text) => self.add_text(text, lines),
            Value::Array(all) => all.iter().try_for_each(|value| self.add_json(value, lines)),
            Value::Object(fields) => {
                let Some(orders) = fields.get("NEWORD").and_then(Value::as_object) else {
                    return fields.values().try_for_each(|value| self.add_json(value, lines));
                };
                let mut timing = Fields::new("HammerDB's response times of NEWORD");
                for (name, value) in orders {
                    timing.put(name, &value.as_str().map_or_else(|| value.to_string(), str::to_owned), lines);
                }
                match self.timing.replace(timing) {
                    Some(_) => Err(lines.wrong("these are response times of a second job: one job a file")),
                    None => Ok(()),
                }
            }
            _ => Ok(()),
        }
    }

    fn add_text(&mut self, line: &str, lines: &Lines<'_>) -> Result<(), ImportError> {
        let wrong = |what: &str| lines.wrong(format!("{what}: '{}'", cut(line)));
        if line.contains(" query set(s) in ") || line.contains("Geometric mean of query times") {
            return Err(wrong("this is a result of TPROC-H, only those of TPROC-C are read"));
        }
        let after = |mark: &str| line.split_once(mark).and_then(|(_, rest)| rest.split_whitespace().next());
        if let Some(version) = after("HammerDB CLI v") {
            self.version = Some(plain(version));
        } else if let Some((before, _)) = line.split_once(" Active Virtual Users configured") {
            self.users = before.rsplit([' ', ':']).next().and_then(number).and_then(jobs);
        } else if let Some(minutes) = after("Timing test period of ") {
            self.minutes = number(minutes);
        } else if line.contains("Error in Virtual User") || line.contains("FINISHED FAILED") {
            keep_error(&mut self.said, line);
        } else if let Some((_, rest)) = line.split_once("System achieved ") {
            // A second result states its own users and time.
            let outcome = Outcome::read(rest, self.users.take(), self.minutes.take());
            self.results.push(outcome.ok_or_else(|| wrong("this result cannot be read"))?);
        }
        Ok(())
    }
}

impl Outcome {
    /// `N NOPM from M Name of database TPM`; before 4.0: `M Name of database TPM at N NOPM`.
    fn read(rest: &str, users: Option<u32>, minutes: Option<f64>) -> Option<Outcome> {
        let new = rest.split_once(" NOPM from ");
        let old = || rest.split_once(" TPM at ").map(|(of_tpm, nopm)| (nopm, of_tpm));
        let (nopm, of_tpm) = new.or_else(old)?;
        let (tpm, database) = of_tpm.split_once(' ')?;
        let database = plain(database.split(" TPM").next()?);
        let whole = new.is_none_or(|_| of_tpm.contains(" TPM")) && (new.is_some() || nopm.contains(" NOPM"));
        let outcome = Outcome { nopm: number(nopm)?, tpm: number(tpm)?, database, users, minutes };
        whole.then_some(outcome)
    }

    fn test(&self, lines: &Lines<'_>) -> Result<ImportedTest, ImportError> {
        let no_users =
            "the result does not say how many virtual users there were: no '… Active Virtual Users configured'";
        let jobs = self.users.ok_or_else(|| lines.whole(no_users))?;
        let mut test = ImportedTest::new("transaction-processing", "hammerdb TPROC-C new orders", jobs, false);
        let (what, bound) = ("new orders per minute", "transactions per minute of all kinds");
        let more = Absence::Above { what, value: self.nopm, bound, limit: self.tpm };
        test.set(TX_PER_S, if self.nopm > self.tpm && self.tpm > 0.0 { Err(more) } else { Ok(self.nopm / 60.0) });
        test.note(format!(
            "a transaction is a new order: {} new orders per minute (NOPM); {} transactions per minute of all kinds, as {} counts them \
             (TPM), which HammerDB asks not to compare between databases",
            self.nopm, self.tpm, self.database
        ));
        test.note("the result does not state the number of warehouses");
        let none = |what| Absence::NotIn { place: "HammerDB's result", what };
        let minutes = self.minutes.ok_or(none("time: the log of the run has it"));
        test.set(ELAPSED_S, minutes.map(|minutes| minutes * 60.0));
        let no_times = none("response times: import `jobs ID timing` with it (time profiler)");
        test.times.all().into_iter().for_each(|column| test.set(column, Err(no_times.clone())));
        // Response times are of the users that were profiled, the ramp-up included.
        test.timed = false;
        Ok(test)
    }
}

/// Adds the times of new orders.
fn add_times(test: &mut ImportedTest, timing: &Fields) {
    for (column, name) in test.times.all().into_iter().zip(["avg_ms", "p50_ms", "p99_ms", "max_ms"]) {
        test.set(column, timing.time_ns(name));
    }
    test.note("response times include the ramp-up, and are of the virtual users whose times were profiled");
    let per_s = test.record.figure(TX_PER_S);
    if let (Some(calls), Ok(ns), Some(per_s)) = (timing.number("calls"), timing.time_ns("elapsed_ms"), per_s) {
        let timed = calls / ns * 1e9;
        if timed > per_s {
            test.compare(("new orders per second by NOPM", per_s), ("calls / time of the profile", timed), APART);
        }
    }
}
