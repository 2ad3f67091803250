//! A run as it stands.

use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use loadline_analyze::waits::Counts;
use loadline_model::live::{LiveEvent, LiveLine, LiveSecond, LiveTest};
use loadline_model::manifest::RunState;
use loadline_model::tries::split;
use loadline_model::{Manifest, TestRecord};
use loadline_report::LiveRun;
use loadline_store::{StoreError, Tail, histograms, is_written, parse_rfc3339, read_manifest};

const MOST_SECONDS: usize = 600;
const SHOWN_SECONDS: usize = 120;
const MOST_WARNINGS: usize = 5;
/// Newest tests of which latencies are read at a time.
const MOST_SPREAD: usize = 16;
/// A run that has written nothing for so long gets a remark, s. Limits are measured in silence, for up to a minute.
const SILENT_S: f64 = 15.0;

#[derive(Debug, Clone, Default)]
pub struct Now {
    /// Manifest; `None` until there is one.
    pub manifest: Option<Manifest>,
    /// The tests that are done, in order, each by the try that counts so far.
    pub records: Vec<TestRecord>,
    pub other_tries: Vec<TestRecord>,
    /// How the transaction times of the newest tests are spread, by the number of the test.
    pub latencies: BTreeMap<u32, Counts>,
    /// The newest test that began, and when, s since 1970.
    pub begun: Option<(f64, LiveTest)>,
    /// Work between two tests.
    pub step: Option<String>,
    /// The newest seconds of tests, the oldest first.
    pub seconds: VecDeque<LiveSecond>,
    pub warnings: Vec<String>,
    /// When the run last wrote something, s since 1970.
    pub heard_s: Option<f64>,
    /// Whether a loadline on this machine writes to it; `None` if unknown.
    pub written: Option<bool>,
    /// Why the folder cannot be read at this moment.
    pub problem: Option<String>,
}

#[derive(Debug, Clone, PartialEq)]
pub enum Standing {
    /// It cannot be read; why.
    Unreadable(String),
    NoRun,
    /// It has not ended, and nobody on this machine writes it.
    Dead,
    /// It goes on, and something was heard of it a moment ago.
    Running,
    /// It goes on, and nothing was heard for a while.
    Silent {
        /// For so long, s.
        for_s: f64,
        /// Whether a process of this machine writes it.
        is_written: bool,
    },
    /// It goes on, and writes nothing to follow.
    NotFollowed,
    Ended(RunState),
}

impl fmt::Display for Standing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Standing::Unreadable(why) => why.as_str(),
            Standing::NoRun => "There is no run yet",
            Standing::Dead => "Not running on this machine: it was killed and can be resumed, or runs on another one",
            Standing::Silent { for_s, is_written } => {
                let since = loadline_model::format::duration_s(*for_s);
                let or = if *is_written {
                    "prepares, or measures limits"
                } else {
                    "prepares, measures limits, or was killed"
                };
                return write!(f, "Running, nothing heard for {since}: it {or}");
            }
            Standing::Running => "Running",
            Standing::NotFollowed => "Running, but it writes nothing to follow: a loadline before `watch` made it",
            Standing::Ended(RunState::Interrupted) => "Interrupted: it can be resumed",
            Standing::Ended(RunState::Failed) => "Ended by an error: it can be resumed",
            Standing::Ended(RunState::Complete | RunState::Started) => "Complete",
        })
    }
}

impl Now {
    /// Adds what a line of `live.jsonl` says.
    pub fn apply(&mut self, line: LiveLine) {
        let LiveLine { at_s, event } = line;
        self.heard_s = Some(at_s);
        match event {
            LiveEvent::Step { text } => self.step = Some(text),
            LiveEvent::Warning { text } => {
                self.warnings.push(text);
                let many = self.warnings.len().saturating_sub(MOST_WARNINGS);
                self.warnings.drain(..many);
            }
            LiveEvent::Test(test) => (self.begun, self.step) = (Some((at_s, test)), None),
            LiveEvent::Second(second) => {
                self.step = None;
                self.seconds.push_back(second);
                let many = self.seconds.len().saturating_sub(MOST_SECONDS);
                self.seconds.drain(..many);
            }
        }
    }

    pub fn add(&mut self, windows: Vec<TestRecord>) {
        let again = windows.iter().any(|r| r.try_of.is_some());
        self.records.extend(windows);
        if again {
            self.records.append(&mut self.other_tries);
            (self.records, self.other_tries) = split(std::mem::take(&mut self.records));
        }
    }

    /// Whether the run may still go on.
    pub fn is_open(&self) -> bool {
        self.manifest.as_ref().is_none_or(|m| m.state == RunState::Started)
    }

    /// Whether it was probably killed: nobody here writes to it, and nothing was heard for a while.
    pub fn is_dead(&self, now_s: f64) -> bool {
        self.is_open() && self.written == Some(false) && self.heard_s.is_none_or(|at_s| now_s - at_s > SILENT_S)
    }

    /// The test under way: the newest that began, if it is not done.
    pub fn test(&self) -> Option<&LiveTest> {
        let (_, test) = if self.is_open() { self.begun.as_ref()? } else { return None };
        self.records.iter().chain(&self.other_tries).all(|r| r.test != test.test).then_some(test)
    }

    /// Estimated time left at `now_s` (s since 1970), s.
    pub fn left_s(&self, now_s: f64) -> Option<f64> {
        let (at_s, test) = if self.is_open() { self.begun.as_ref()? } else { return None };
        Some((test.left_s - (now_s - at_s).max(0.0)).max(0.0))
    }

    /// How it stands at `now_s` (s since 1970).
    pub fn state(&self, now_s: f64) -> Standing {
        if let Some(problem) = &self.problem {
            return Standing::Unreadable(problem.clone());
        }
        let running = match self.heard_s {
            Some(heard_s) if now_s - heard_s > SILENT_S => {
                Standing::Silent { for_s: now_s - heard_s, is_written: self.written == Some(true) }
            }
            Some(_) => Standing::Running,
            None => Standing::NotFollowed,
        };
        match self.manifest.as_ref().map(|m| m.state) {
            None => Standing::NoRun,
            Some(RunState::Started) if self.is_dead(now_s) => Standing::Dead,
            Some(RunState::Started) => running,
            Some(ended) => Standing::Ended(ended),
        }
    }

    /// The run's platform with its product and version, which is also its name unless the user gave another.
    pub fn platform(&self) -> Option<String> {
        let Manifest { plan, target, .. } = self.manifest.as_ref()?;
        let database = format!("{} {}", target.product, target.version).trim().to_owned();
        Some(if plan.platform == database { database } else { format!("{}, {database}", plan.platform) })
    }

    /// Workloads of the plan of which no test has begun.
    pub fn to_come(&self) -> Vec<&str> {
        let manifest = if self.is_open() { self.manifest.as_ref() } else { None };
        let planned = manifest.into_iter().flat_map(|m| &m.plan.workloads);
        let begun = |code: &str| {
            self.records.iter().any(|r| r.workload == code) || self.begun.as_ref().is_some_and(|b| b.1.workload == code)
        };
        planned.map(|w| w.code.as_str()).filter(|code| !begun(code)).collect()
    }

    /// The part of it that is shown at `now_s` (s since 1970).
    pub fn shown(&self, now_s: f64) -> LiveRun<'_> {
        let test = self.test();
        let workload_of = |number: u32| {
            let done = self.records.iter().rev().find(|r| r.test == number).map(|r| r.workload.as_str());
            done.or_else(|| self.begun.as_ref().filter(|b| b.1.test == number).map(|b| b.1.workload.as_str()))
        };
        // Figures of different workloads have no common scale.
        let workload = test.map_or_else(|| workload_of(self.seconds.back()?.test), |test| Some(&test.workload));
        let of_workload = self.seconds.iter().rev().filter(|s| workload_of(s.test) == workload).take(SHOWN_SECONDS);
        let mut newest: Vec<&LiveSecond> = of_workload.collect();
        newest.reverse();
        LiveRun {
            state: self.state(now_s).to_string(),
            test,
            step: if self.is_open() { self.step.as_deref() } else { None },
            left_s: self.left_s(now_s),
            records: &self.records,
            to_come: self.to_come(),
            seconds: newest,
            warnings: &self.warnings,
            latencies: &self.latencies,
        }
    }
}

/// Follows a run folder. It may grow, shrink or vanish meanwhile.
#[derive(Debug)]
pub struct Follower {
    path: PathBuf,
    tests: Tail,
    live: Tail,
    /// Length and time of the manifest that was read.
    manifest: Option<(u64, SystemTime)>,
    now: Now,
}

impl Follower {
    /// Of the run at `path`. Reads nothing yet.
    pub fn new(path: &Path) -> Follower {
        Follower {
            path: path.to_owned(),
            tests: Tail::tests(path),
            live: Tail::live(path),
            manifest: None,
            now: Now::default(),
        }
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The run as it stood at the last look.
    pub fn now(&self) -> &Now {
        &self.now
    }

    /// Reads what is new, and returns the run as it stands.
    pub fn look(&mut self) -> &Now {
        self.now.problem = self.read().err();
        self.now.written = if self.now.is_open() { is_written(&self.path) } else { None };
        &self.now
    }

    fn read(&mut self) -> Result<(), String> {
        if !self.path.is_dir() {
            *self = Follower::new(&self.path);
            return Err(format!("{} is gone", self.path.display()));
        }
        self.read_manifest().map_err(|e| e.to_string())?;
        let (lines, again) = self.live.lines().map_err(|e| e.to_string())?;
        if again {
            // The start is not known of a run that said nothing.
            let Now { records, other_tries, latencies, manifest, .. } = std::mem::take(&mut self.now);
            self.now = Now { records, other_tries, latencies, manifest, ..Now::default() };
        }
        lines.into_iter().for_each(|line| self.now.apply(line));
        let (records, again) = self.tests.records()?;
        if again {
            self.now.records.clear();
            self.now.other_tries.clear();
            self.now.latencies.clear();
        }
        for test in records.iter().rev().take(MOST_SPREAD).map(|r| r.test) {
            // What cannot be read is not shown; the report says why.
            let kinds = histograms(&self.path, test).unwrap_or_default();
            let transactions = kinds.iter().find(|(kind, _)| kind == "transaction");
            self.now.latencies.extend(transactions.map(|(_, latencies)| (test, Counts::from_latencies(latencies))));
        }
        self.now.add(records);
        Ok(())
    }

    fn read_manifest(&mut self) -> Result<(), StoreError> {
        let found = std::fs::metadata(self.path.join("manifest.json"));
        let found = found.ok().and_then(|m| Some((m.len(), m.modified().ok()?)));
        if found.is_none() {
            (self.manifest, self.now.manifest) = (None, None);
        } else if found != self.manifest {
            self.now.manifest = Some(read_manifest(&self.path)?);
            self.manifest = found;
        }
        Ok(())
    }
}

/// The newest run in `results`, by its manifest.
pub fn newest(runs: &[PathBuf]) -> Option<&PathBuf> {
    let started = |run: &PathBuf| read_manifest(run).ok().and_then(|m| parse_rfc3339(&m.started_at));
    // The name begins with the time.
    runs.iter()
        .rev()
        .take(20)
        .filter_map(|run| Some((started(run)?, run)))
        .max_by_key(|(at, _)| *at)
        .map(|(_, run)| run)
}
