//! Whole runs on SQLite: which tests are made in which order, what a resume adds, and what is left at the end.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use loadline_database::OpenRequest;
use loadline_model::live::LiveTest;
use loadline_model::manifest::RunState;
use loadline_model::{Detail, Letter, column};
use loadline_store::StoredRun;

use super::{Ended, Study, StudyOutcome};
use crate::testing::planned;
use crate::{Event, Listener};

/// How many tables of databases in `dir` have such a name.
fn tables(dir: &Path, like: &str) -> i64 {
    let count = |entry: std::io::Result<std::fs::DirEntry>| {
        let path = entry.unwrap().path();
        let text = format!("SELECT COUNT(*) FROM sqlite_master WHERE type = 'table' AND name LIKE '{like}'");
        let of = |db: rusqlite::Connection| db.query_row(&text, [], |row| row.get(0)).unwrap();
        path.extension().filter(|of| *of == "db").map_or(0, |_| of(rusqlite::Connection::open(&path).unwrap()))
    };
    std::fs::read_dir(dir).unwrap().map(count).sum()
}

/// Notes what a run says, and after each test whether there is a table like `table`. The user stops it after `stop_after` tests.
struct Noting<'a> {
    dir: &'a Path,
    table: &'static str,
    stop_after: usize,
    interrupted: Arc<AtomicBool>,
    started: Vec<LiveTest>,
    done: Vec<(u32, i64)>,
    said: Vec<String>,
}

impl Listener for Noting<'_> {
    fn on(&mut self, event: Event<'_>) {
        match event {
            Event::TestStarted(test) => self.started.push(test),
            Event::TestDone(record) => {
                self.done.push((record.test, tables(self.dir, self.table)));
                self.interrupted.store(self.done.len() == self.stop_after, Ordering::Relaxed);
            }
            Event::Warning(text) | Event::Step(text) => self.said.push(text),
            _ => {}
        }
    }
}

impl Noting<'_> {
    fn says(&self, part: &str) -> bool {
        self.said.iter().any(|text| text.contains(part))
    }
}

/// Runs `plan` on the database files `names` in `dir`, or goes on with `resume`.
fn run<'a>(
    dir: &'a Path,
    names: &[&str],
    plan: &str,
    table: &'static str,
    stop_after: usize,
    resume: Option<&StudyOutcome>,
) -> (StudyOutcome, Noting<'a>) {
    let urls: Vec<String> = names.iter().map(|name| format!("sqlite:{}", dir.join(name).display())).collect();
    let short = "patience = '0'\nduration = 0.2\nwarmup = 0.2\nprobe = false\nseed = 7";
    let variants = urls.iter().filter(|_| urls.len() > 1).map(|url| format!("[[variant]]\ntarget = '{url}'\n"));
    let text = format!("target = '{}'\n{short}\n{plan}\n{}", urls[0], variants.collect::<String>());
    let interrupted = Arc::new(AtomicBool::new(false));
    let mut requests = urls
        .iter()
        .map(|url| OpenRequest { interrupted: Arc::clone(&interrupted), ..OpenRequest::new(url, dir.to_owned()) });
    let folder = resume.map(|run| run.folder.clone());
    let study = Study {
        plan: folder.as_ref().map_or_else(|| planned(&text), |folder| StoredRun::open(folder).unwrap().manifest.plan),
        request: requests.next().unwrap(),
        results: dir.join("runs"),
        resume: folder,
        command: vec!["loadline".to_owned()],
        limits: None,
        others: requests.collect(),
        place: Default::default(),
    };
    let (started, done, said) = (Vec::new(), Vec::new(), Vec::new());
    let mut noting = Noting { dir, table, stop_after, interrupted: Arc::clone(&interrupted), started, done, said };
    (study.run(&mut noting).unwrap(), noting)
}

/// Asserts what holds of each test of a run.
fn assert_sound(run: &StudyOutcome, target: impl Fn(usize) -> String, platform: impl Fn(usize) -> String) {
    let stored = StoredRun::open(&run.folder).unwrap();
    assert_eq!(stored.records.len(), run.records.len());
    assert!(stored.manifest.windows as usize >= run.records.len(), "each draws anew");
    let mut seeds = Vec::new();
    for (at, r) in run.records.iter().enumerate() {
        assert_eq!((r.test as usize, &r.run, r.nodes, r.try_of), (at + 1, &stored.manifest.run, 1, None));
        assert_eq!((&r.target, &r.platform), (&target(at), &platform(at)));
        assert!(r.forced.is_empty() && r.figure(column::COMMITS) > Some(0.0), "{r:?}");
        assert!(r.figure(column::ELAPSED_S) >= Some(0.2) && r.figure(column::ERRORS) == Some(0.0));
        assert!(r.figure(column::WARMUP_S).is_some_and(|s| (0.2..60.0).contains(&s)));
        seeds.extend(r.details.iter().filter_map(|of| if let Detail::Seed(seed) = of { Some(*seed) } else { None }));
    }
    assert!(run.records.is_sorted_by(|a, b| a.started_at < b.started_at));
    seeds.sort_unstable();
    seeds.dedup();
    assert_eq!(seeds.len(), run.records.len());
}

#[test]
fn a_run_that_was_stopped_goes_on_and_drops_tables_after_their_last_test() {
    let dir = tempfile::tempdir().unwrap();
    let plan = "workload = ['STO-READ-ASYNC', 'TP-LOOKUP']\nsize = '1MiB'\njobs = [1]\nrepeat = 2";
    let go = |stop_after, resume: Option<&StudyOutcome>| {
        run(dir.path(), &["x.db"], plan, "%sto_read_async_spread", stop_after, resume)
    };
    let state = |run: &StudyOutcome| StoredRun::open(&run.folder).unwrap().manifest.state;
    let (first, noted) = go(2, None);
    assert!(matches!(first.ended, Ended::Interrupted) && state(&first) == RunState::Interrupted);
    assert_eq!((noted.done, first.records.len()), (vec![(1, 1), (2, 1)], 2));
    assert_eq!(tables(dir.path(), "%spread"), 0, "what a run made is removed");
    let (whole, noted) = go(0, Some(&first));
    assert!(matches!(whole.ended, Ended::Complete) && state(&whole) == RunState::Complete);
    assert_eq!(noted.done, [(3, 1), (4, 0)]);
    assert!(!noted.says("nothing was left to measure"));
    let (async_read, lookup) = ("STO-READ-ASYNC", "TP-LOOKUP");
    let made: Vec<_> = whole.records.iter().map(|r| (r.workload.as_str(), r.repetition, r.jobs)).collect();
    assert_eq!(made, [(async_read, 1, 1), (lookup, 1, 1), (async_read, 2, 1), (lookup, 2, 1)]);
    let told: Vec<_> = noted.started.iter().map(|of| (of.test, of.repetition, of.repeat, of.arm)).collect();
    assert_eq!(told, [(3, 2, 2, None), (4, 2, 2, None)]);
    assert!(noted.started[0].left_s > noted.started[1].left_s && noted.started[1].left_s > 0.0, "{:?}", noted.started);
    let target = whole.records[0].target.clone();
    let platform = StoredRun::open(&whole.folder).unwrap().manifest.plan.platform;
    assert_sound(&whole, |_| target.clone(), |_| platform.clone());
    let (again, noted) = go(0, Some(&whole));
    assert!(noted.says("nothing was left to measure") && noted.started.is_empty() && again.records.len() == 4);
}

#[test]
fn windows_of_a_pair_follow_each_other_in_an_order_of_the_seed() {
    let dir = tempfile::tempdir().unwrap();
    let plan = "workload = ['LGWR-LAT1']\njobs = [2]\npairs = 2";
    let (pairs, noted) = run(dir.path(), &["a.db", "b.db"], plan, "loadline%", 0, None);
    assert!(matches!(pairs.ended, Ended::Complete) && noted.says("(--pairs)"), "{:?}", noted.said);
    let manifest = StoredRun::open(&pairs.folder).unwrap().manifest;
    assert_eq!((manifest.variants.len(), manifest.calibration.len()), (2, 1));
    let arms: Vec<Letter> = pairs.records.iter().map(|r| r.variant.as_ref().unwrap().arm).collect();
    // The second pair of a block is the first the other way round.
    assert!(
        arms == [Letter::A, Letter::B, Letter::B, Letter::A] || arms == [Letter::B, Letter::A, Letter::A, Letter::B]
    );
    let told: Vec<_> = noted.started.iter().map(|of| (of.test, of.repetition, of.repeat, of.jobs, of.arm)).collect();
    let expected = |at: usize| (at as u32 + 1, at as u32 / 2 + 1, 2, 2, Some(arms[at]));
    assert_eq!(told, (0..4).map(expected).collect::<Vec<_>>());
    assert!(noted.started.iter().all(|of| of.left_exact) && noted.started.is_sorted_by(|a, b| a.left_s > b.left_s));
    let variants = &manifest.plan.paired.as_ref().unwrap().variants;
    assert_sound(&pairs, |at| variants[arms[at].index()].target.clone(), |at| variants[arms[at].index()].label.clone());
    assert_eq!(noted.done.iter().map(|done| done.1 > 0).collect::<Vec<_>>(), [true; 4]);
    assert_eq!(tables(dir.path(), "loadline%"), 0, "both are clean again");
}
