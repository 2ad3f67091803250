//! The limit of a test: what the machine allows for the same work, measured directly before and after it.

use loadline_database::TargetError;
use loadline_load::Request;
use loadline_model::{Detail, LimitSource, Note, TestLimit, TestRecord, column};
use loadline_workload::{Limit, Loop, Workload};

use super::{Instrument, RunContext, boxed};
use crate::evidence::Evidence;
use crate::reference::{Part, References, Sample, Subject, part};
use crate::test::Test;

pub(super) fn listed_by(workload: &Workload) -> Option<Box<dyn Instrument>> {
    boxed((!workload.limits.is_empty()).then(|| Limits::new(workload)))
}

/// Noise of two equal measurements.
const BEATEN: f64 = 1.05;

struct Limits {
    parts: Vec<Measured>,
    /// The lowest, with the limits of a database on another machine that are unknown; or why there is none.
    lowest: Result<(TestLimit, Vec<String>), String>,
}

struct Measured {
    limit: Limit,
    part: Box<dyn Part>,
    /// Measurement before the test, or why it failed; `None` if the part can only measure after it.
    before: Result<Option<Sample>, String>,
}

impl Instrument for Limits {
    fn prepare(&mut self, request: &mut Request, run: &RunContext<'_>) -> Result<(), TargetError> {
        if let Ok(references) = run.references
            && !request.load.thinks()
        {
            if request.target.facts().columns_apart {
                self.read_columns();
            }
            if references.elsewhere.is_some() && self.parts.iter().all(|m| m.limit.is_of_device()) {
                // No device of another machine: what remains are the round trips.
                self.parts.push(Measured::new(Limit::Statements));
            }
            let subject = subject(request, run, None);
            self.parts.iter_mut().for_each(|m| m.before = m.sample(subject, references));
        }
        Ok(())
    }

    fn forget(&mut self) {
        self.parts.iter_mut().filter(|m| m.before.is_ok()).for_each(|m| m.before = Ok(None));
    }

    fn complete(&mut self, request: &Request, run: &RunContext<'_>, figures: &Test) {
        self.lowest = if request.load.thinks() {
            Err("jobs think between transactions: their throughput is not bounded by the machine's".to_owned())
        } else {
            self.measure(subject(request, run, Some(figures)), run)
        };
    }

    fn report(&self, _: &Evidence<'_>, test: &mut Test) {
        let (limit, left_out) = match &self.lowest {
            Ok(lowest) => lowest,
            Err(why) => return test.set_all_absent(&[column::LIMIT_TPS, column::LIMIT_SHARE_PCT], why),
        };
        if !left_out.is_empty() {
            test.notes.push(Note::LimitLeavesOut { parts: left_out.clone() });
        }
        test.set(column::LIMIT_TPS, limit.tps);
        let share = test.figure(column::COMMIT_THROUGHPUT_TPS).map(|tps| tps / limit.tps * 100.0);
        test.set_or_absent(column::LIMIT_SHARE_PCT, share, "there is no throughput to compare with it");
        test.details.push(Detail::Limit(limit.clone()));
    }
}

impl Limits {
    fn new(workload: &Workload) -> Limits {
        let parts = workload.limits.iter().copied().map(Measured::new).collect();
        Limits { parts, lowest: Err("it was not measured".to_owned()) }
    }

    /// The columns that a query reads are read from memory, in place of loops over whole rows.
    fn read_columns(&mut self) {
        let before = self.parts.len();
        self.parts.retain(|part| !matches!(part.limit, Limit::Loop(of) if of != Loop::Keys));
        if self.parts.len() < before && self.parts.iter().all(|part| part.limit != Limit::Memory) {
            self.parts.push(Measured::new(Limit::Memory));
        }
    }

    /// Measures after the test. The lowest limit, and those that are unknown.
    fn measure(&mut self, subject: Subject<'_>, run: &RunContext<'_>) -> Result<(TestLimit, Vec<String>), String> {
        let references = run.references.as_ref().map_err(Clone::clone)?;
        let (mut in_series, mut limits, mut left_out) = (None, Vec::new(), Vec::new());
        for measured in &mut self.parts {
            let limit = match measured.after(subject, references) {
                Ok(Some(limit)) => limit,
                Ok(None) => continue,
                Err(why) => {
                    left_out.push(format!("{}: {why}", measured.limit.name()));
                    // Without the commits it would be no limit of a test that commits.
                    if references.elsewhere.is_none() || measured.limit == Limit::Log {
                        return Err(left_out.join("; "));
                    }
                    continue;
                }
            };
            let whole = references.in_place_of(measured.limit).is_some();
            if subject.request.jobs == 1 && measured.limit.is_in_series() && !whole {
                in_series = Some(in_series.map_or(limit.clone(), |before| one_after_the_other(&before, &limit)));
            } else {
                limits.push(limit);
            }
        }
        let lowest = limits.into_iter().chain(in_series).min_by(|a, b| a.tps.total_cmp(&b.tps));
        match lowest {
            Some(lowest) => Ok((lowest, left_out)),
            None if left_out.is_empty() => Err("the test did none of the work that bounds it".to_owned()),
            None => Err(left_out.join("; ")),
        }
    }
}

/// The limit of one job that does one after the other: the times of both add up.
fn one_after_the_other(a: &TestLimit, b: &TestLimit) -> TestLimit {
    let pairs = a.samples.iter().cycle().zip(b.samples.iter().cycle()).take(a.samples.len().max(b.samples.len()));
    let samples: Vec<f64> = pairs.map(|(a, b)| 1.0 / (1.0 / a + 1.0 / b)).collect();
    let from_file = [a, b].iter().any(|limit| limit.source == LimitSource::File);
    TestLimit {
        name: format!("{} + {}", a.name, b.name),
        of: format!("{}, then {}", a.of, b.of),
        jobs: a.jobs,
        redo_bytes_per_tx: a.redo_bytes_per_tx.or(b.redo_bytes_per_tx),
        tps: 1.0 / (1.0 / a.tps + 1.0 / b.tps),
        samples,
        source: if from_file { LimitSource::File } else { LimitSource::Run },
    }
}

impl Measured {
    fn new(limit: Limit) -> Measured {
        Measured { limit, part: part(limit), before: Ok(None) }
    }

    /// Measures once. CPUs and memory of another machine than the database's say nothing.
    fn sample(&mut self, subject: Subject<'_>, references: &References) -> Result<Option<Sample>, String> {
        match &references.elsewhere {
            Some(why) if self.limit.is_of_cpus() => Err(why.clone()),
            _ => self.part.sample(subject, references),
        }
    }

    /// Measures after the test, or looks the limit up; `None` if the test did none of the work.
    fn after(&mut self, subject: Subject<'_>, references: &References) -> Result<Option<TestLimit>, String> {
        let per_tx = self.part.per_tx(subject);
        if per_tx == Ok(0.0) {
            return Ok(None);
        }
        if let Some(known) = self.part.known(subject, references) {
            return known.map(Some);
        }
        let before = std::mem::replace(&mut self.before, Ok(None))?;
        let mut sample = || self.sample(subject, references)?.ok_or_else(|| "it was not measured".to_owned());
        let after = sample()?;
        let rates = match before {
            Some(before) if before.redo_bytes == after.redo_bytes => [before.per_s, after.per_s],
            // That was other work, or unknown before the test.
            _ => [after.per_s, sample()?.per_s],
        };
        let per_tx = per_tx?;
        let samples = rates.map(|rate| rate / per_tx);
        // Others' use of a device makes whole transactions slower only.
        let whole = references.in_place_of(self.limit);
        let fastest = self.limit.is_steady() || whole.is_some();
        let tps = if fastest { samples[0].max(samples[1]) } else { (samples[0] + samples[1]) / 2.0 };
        if !(tps.is_finite() && tps > 0.0) {
            return Err("its measurement gave no rate".to_owned());
        }
        // Only a less busy device makes whole transactions faster than the smallest ones.
        let beaten = subject.figure(column::COMMIT_THROUGHPUT_TPS).ok().filter(|test| *test > tps * BEATEN);
        if let Some(test) = beaten
            && whole.is_some()
        {
            return Err(format!(
                "{} made {:.0} and {:.0} per second before and after the test, fewer than its {test:.0}: the speed of commits \
                 changed meanwhile",
                after.of, samples[0], samples[1]
            ));
        }
        Ok(Some(TestLimit {
            name: whole.unwrap_or(self.limit.name()).to_owned(),
            of: after.of,
            jobs: subject.request.jobs,
            redo_bytes_per_tx: after.redo_bytes,
            tps,
            samples: samples.to_vec(),
            source: LimitSource::Run,
        }))
    }
}

fn subject<'a>(request: &'a Request, run: &RunContext<'_>, figures: Option<&'a Test>) -> Subject<'a> {
    let calibration = run.manifest.calibration.get(&request.work.workload.code);
    let redo_bytes = calibration.and_then(|c| c.redo_bytes_per_tx);
    Subject { request, redo_bytes, earlier_redo_bytes: earlier_redo_bytes(request, run.records), figures }
}

/// Redo per transaction of the last test of the same transactions by any number of jobs, bytes.
fn earlier_redo_bytes(request: &Request, earlier: &[TestRecord]) -> Option<f64> {
    let parameters = request.work.params.to_map();
    let same = |r: &&TestRecord| {
        r.is_usable()
            && r.workload == request.work.workload.code
            && r.driver == request.driver
            && r.parameters == parameters
    };
    earlier.iter().rev().find(same)?.figure(column::REDO_BYTES_PER_TX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reference::LogSource;
    use crate::testing::{figures, references, request, subject};

    fn limit(name: &str, samples: &[f64], source: LimitSource) -> TestLimit {
        let tps = samples.iter().sum::<f64>() / samples.len() as f64;
        TestLimit {
            name: name.into(),
            of: name.into(),
            jobs: 1,
            redo_bytes_per_tx: None,
            tps,
            samples: samples.to_vec(),
            source,
        }
    }

    fn sample(per_s: f64, redo_bytes: f64) -> Sample {
        Sample { per_s, of: String::new(), redo_bytes: Some(redo_bytes) }
    }

    /// A part of which a transaction takes so much, and that measures 300 of 1 KiB of redo.
    struct Known(f64);

    impl Part for Known {
        fn sample(&mut self, _: Subject<'_>, _: &References) -> Result<Option<Sample>, String> {
            Ok(Some(sample(300.0, 1024.0)))
        }

        fn per_tx(&self, _: Subject<'_>) -> Result<f64, String> {
            Ok(self.0)
        }
    }

    /// The limit of a test with so many transactions a second.
    fn after(
        per_tx: f64,
        before: Result<Option<Sample>, String>,
        log: LogSource,
        test_tps: f64,
    ) -> Result<Option<TestLimit>, String> {
        let dir = tempfile::tempdir().unwrap();
        let request = request(dir.path(), "DBL-11", 2);
        let figures = figures(&[(column::COMMIT_THROUGHPUT_TPS, test_tps)]);
        let subject = Subject { figures: Some(&figures), ..subject(&request) };
        let references = References { log, ..references(Err("none".to_owned())) };
        Measured { limit: Limit::Log, part: Box::new(Known(per_tx)), before }.after(subject, &references)
    }

    fn no_log() -> LogSource {
        LogSource::None("none".to_owned())
    }

    #[test]
    fn whole_transactions_that_a_test_beats_are_no_limit() {
        let of = |test_tps, log| after(1.0, Ok(Some(sample(300.0, 1024.0))), log, test_tps).map(|of| of.unwrap().name);
        let smallest = || LogSource::Smallest(Default::default());
        assert_eq!(of(310.0, smallest()).unwrap(), "smallest commits", "within noise");
        assert!(of(400.0, smallest()).unwrap_err().contains("fewer than its 400"));
        assert_eq!(of(400.0, no_log()).unwrap(), "log writer");
    }

    #[test]
    fn a_measurement_of_other_work_is_made_again() {
        let samples = |per_tx, before: Result<Option<Sample>, &str>| {
            after(per_tx, before.map_err(str::to_owned), no_log(), 1.0).map(|limit| limit.map(|l| l.samples))
        };
        assert_eq!(samples(2.0, Ok(Some(sample(100.0, 1024.0)))), Ok(Some(vec![50.0, 150.0])));
        assert_eq!(samples(1.0, Ok(Some(sample(100.0, 512.0)))), Ok(Some(vec![300.0, 300.0])));
        assert_eq!(samples(1.0, Ok(None)), Ok(Some(vec![300.0, 300.0])), "nothing was known before");
        assert_eq!(samples(1.0, Err("no space")), Err("no space".to_owned()));
        assert_eq!(samples(0.0, Err("no space")), Ok(None), "what the test does not do need not be measured");
    }

    #[test]
    fn redo_of_the_same_transactions_is_known_from_an_earlier_test() {
        let dir = tempfile::tempdir().unwrap();
        let request = request(dir.path(), "DBL-11", 2);
        let record = |rows, valid, redo| TestRecord {
            parameters: [("rows".to_owned(), rows)].into(),
            valid,
            figures: [(column::REDO_BYTES_PER_TX.id.to_owned(), redo)].into(),
            ..TestRecord::blank("DBL-11")
        };
        let earlier = [record(2, true, 500.0), record(2, true, 520.0), record(2, false, 7.0), record(9, true, 8.0)];
        assert_eq!(earlier_redo_bytes(&request, &earlier), Some(520.0));
        assert_eq!(earlier_redo_bytes(&request, &earlier[2..]), None, "invalid, and with other parameters");
    }

    #[test]
    fn of_columns_that_are_apart_no_loop_over_rows_is_a_limit() {
        let of = |code: &str| {
            let mut limits = Limits::new(&loadline_workload::find(code).unwrap());
            limits.read_columns();
            limits.parts.iter().map(|part| part.limit).collect::<Vec<_>>()
        };
        assert_eq!((of("DA-SCAN"), of("SRV-SCAN")), (vec![Limit::Memory], vec![Limit::Memory]));
        assert_eq!(of("DBL-INDEX"), [Limit::Loop(Loop::Keys), Limit::WriteBandwidth]);
        assert_eq!(of("STO-READ"), [Limit::BlockReads]);
    }

    #[test]
    fn times_of_one_job_add_up() {
        let statements = limit("empty statements", &[1000.0, 500.0], LimitSource::Run);
        let log = limit("log writer", &[1000.0, 500.0], LimitSource::Run);
        let both = one_after_the_other(&statements, &log);
        assert_eq!((both.name.as_str(), both.tps), ("empty statements + log writer", 375.0), "half of 750 each");
        assert_eq!((both.samples, both.source), (vec![500.0, 250.0], LimitSource::Run));
        // A figure from a file has no second sample: it counts for both.
        let known = one_after_the_other(&statements, &limit("log writer", &[500.0], LimitSource::File));
        assert_eq!((known.samples, known.source), (vec![1000.0 / 3.0, 250.0], LimitSource::File));
    }
}
