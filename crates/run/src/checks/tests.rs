use std::sync::Mutex;

use loadline_load::{Books, Held, JobResult, Schedule, Tally};
use loadline_model::record::AgentFigures;
use loadline_model::{CheckId, JobLoad, Population};
use loadline_workload::RedoSize;

use crate::figures::counters::Completed;
use crate::figures::nodes::{FailedCommits, NodeCommits};
use crate::figures::populations::TimeShares;

use super::*;

const SECOND: u64 = 1_000_000_000;

/// `jobs` jobs that each run transactions of `tx_ns` back to back, from 1 s before the window on.
fn jobs(jobs: usize, tx_ns: u64, window_s: u64) -> (Schedule, Vec<JobResult>, Tally) {
    let schedule = Schedule { start_ns: 10 * SECOND, open_ns: 11 * SECOND, close_ns: (11 + window_s) * SECOND };
    let tally = Mutex::new(Tally::new(schedule.window_ns(), false));
    let mut books = Books::new(Held::new(&tally, true));
    let mut one = || {
        let mut t = schedule.start_ns;
        while t < schedule.close_ns {
            books.completed(&schedule, t, Some(t + tx_ns / 2), t + tx_ns);
            t += tx_ns;
        }
        std::mem::take(&mut books.job)
    };
    let jobs = (0..jobs).map(|_| one()).collect();
    drop(books);
    (schedule, jobs, tally.into_inner().unwrap())
}

struct Case {
    load: JobLoad,
    schedule: Schedule,
    jobs: Vec<JobResult>,
    merged: Tally,
}

fn outside(schedule: &Schedule, jobs: &[JobResult]) -> f64 {
    TimeShares::of(schedule, jobs).outside
}

fn case(n: usize, tx_ns: u64) -> Case {
    let (schedule, jobs, merged) = jobs(n, tx_ns, 2);
    Case { load: JobLoad::default(), schedule, jobs, merged }
}

impl Case {
    fn facts(&self) -> Facts<'_> {
        let n = self.merged.transaction.count() as f64;
        Facts {
            schedule: self.schedule,
            jobs: &self.jobs,
            merged: &self.merged,
            load: &self.load,
            durable: true,
            commits_not_comparable: None,
            failed_commits: FailedCommits::default(),
            unread: None,
            unread_whole: None,
            rows_read: None,
            went_back: Some(Vec::new()),
            window_commits: Some(n),
            completed: None,
            whole: false,
            all_commits: Some(self.merged.total as f64),
            window_syncs: Some(n / 2.0),
            node_commits: Vec::new(),
            snapshots_off_s: 0.0,
            evidence: Ok(Some((3 * self.merged.total as i64, 3))),
            consistency: &[],
            rows_changed: None,
            writing_share: 1.0,
            changed_by_readers: None,
            evidence_counts: "changed rows",
            redo_off_share: 0.0,
            redo: Some(1500.0),
            page_images: None,
            redo_size: Some(RedoSize { min: 1024.0, nominal: 1536.0, max: 2048.0, payload: "p", rows: "r" }),
            client_cpu_share: Ok(0.1),
            cpus: 2,
            agents: &[],
            no_evidence: None,
            client_driver: true,
        }
    }
}

fn failed(f: &Facts<'_>) -> Vec<CheckId> {
    verify(f).into_iter().filter(|c| c.outcome == Outcome::Failed).map(|c| c.id).collect()
}

#[test]
fn a_sound_test_passes_every_check() {
    let case = case(4, 3_000_000);
    assert_eq!(failed(&case.facts()), []);
    assert!(outside(&case.schedule, &case.jobs).abs() < 1e-9, "back to back leaves nothing outside");
}

#[test]
fn jobs_that_ended_at_once_break_no_law_of_times() {
    let mut case = case(1, 3_000_000);
    case.jobs = vec![JobResult { ran_until_ns: case.schedule.start_ns, ..JobResult::default() }];
    let law = verify(&case.facts()).into_iter().find(|c| c.id == CheckId::LittlesLaw).unwrap();
    assert_eq!(law.outcome, Outcome::NotMade);
}

#[test]
fn each_false_figure_fails_its_check() {
    let case = case(4, 3_000_000);
    let n = case.merged.transaction.count() as f64;
    let base = || case.facts();
    assert_eq!(failed(&Facts { rows_read: Some((Some(n * 5.0), 10.0)), ..base() }), [CheckId::RowsRead]);
    assert!(failed(&Facts { rows_read: Some((Some(n * 12.0), 10.0)), ..base() }).is_empty(), "more may be read");
    assert_eq!(failed(&Facts { all_commits: Some(n * 0.5), ..base() }), [CheckId::CommitsDatabase]);
    assert_eq!(failed(&Facts { window_commits: Some(n * 0.9), ..base() }), [CheckId::CommitsWindow]);
    let reset = Facts { went_back: Some(vec!["commits".into()]), window_commits: None, ..base() };
    assert_eq!(failed(&reset), [CheckId::Counters], "what was reset is not just unknown");
    assert_eq!(
        failed(&Facts { evidence: Ok(Some((3 * case.merged.total as i64 - 1, 3))), ..base() }),
        [CheckId::WorkEvidence]
    );
    assert_eq!(failed(&Facts { evidence: Ok(Some((-1, 3))), ..base() }), [CheckId::WorkEvidence]);
    assert_eq!(failed(&Facts { evidence: Err("no such table".into()), ..base() }), [CheckId::WorkEvidence]);
    let noted = |rows| {
        verify(&Facts { changed_by_readers: Some(Some(rows)), ..base() })
            .into_iter()
            .any(|c| c.id == CheckId::ReadOnly && c.outcome == Outcome::Noted)
    };
    assert!(noted(1.0) && !noted(0.0));
    let redo = |bytes, redo_off_share| Facts { redo: Some(bytes), redo_off_share, ..base() };
    assert_eq!(failed(&redo(4120.0, 0.0)), [CheckId::RedoSize]);
    // Read a tenth of the window late: a tenth of the redo may be of other transactions.
    assert_eq!(failed(&redo(2200.0, 0.0)), [CheckId::RedoSize]);
    assert_eq!(failed(&redo(2200.0, 0.1)), []);
    assert_eq!(failed(&redo(2300.0, 0.1)), [CheckId::RedoSize]);
    let said = |facts: &Facts<'_>| verify(facts).into_iter().find(|c| c.id == CheckId::RedoSize).unwrap().detail;
    assert!(said(&redo(2200.0, 0.1)).contains("2.15 KiB") && said(&redo(2200.0, 0.1)).contains("more or less 1"));
    assert!(!said(&redo(1500.0, 0.0)).contains("more or less"), "within it");
    let imaged = |bytes| said(&Facts { page_images: Some(0.4973), ..redo(bytes, 0.0) });
    assert!(imaged(2900.0).contains("wrote 0.50 images") && !imaged(1500.0).contains("images"));
    assert!(said(&Facts { redo_size: None, ..base() }).contains("not defined by its redo"));
    assert_eq!(failed(&Facts { client_cpu_share: Ok(0.95), ..base() }), [CheckId::ClientCpu]);
    let agent = |start_skew_ms| [AgentFigures { name: "a1".into(), start_skew_ms, ..AgentFigures::default() }];
    assert_eq!(failed(&Facts { agents: &agent(Some(1.9)), ..base() }), []);
    assert_eq!(failed(&Facts { agents: &agent(Some(2.1)), ..base() }), [CheckId::Agents]);
    assert_eq!(failed(&Facts { agents: &agent(None), ..base() }), [CheckId::Agents], "an unknown skew is no small one");
    let [mut lost] = agent(Some(0.1));
    lost.failed = Some("it hangs".into());
    assert_eq!(failed(&Facts { agents: &[lost], ..base() }), [CheckId::Agents]);
}

#[test]
fn a_handful_of_commits_proves_nothing() {
    let case = case(4, 3_000_000);
    // The counts of four jobs may be 18 apart.
    for (ours, counted) in [(11.0, 11.0), (7.0, 25.0)] {
        let checks = verify(&Facts {
            window_commits: Some(counted),
            completed: Some(Completed { count: ours, uncertain: 0.0 }),
            ..case.facts()
        });
        let check = checks.iter().find(|c| c.id == CheckId::CommitsWindow).unwrap();
        assert!(check.outcome == Outcome::NotMade && check.detail.contains("too few"), "{check:?}");
    }
    let lost = Facts {
        window_commits: Some(11.0),
        completed: Some(Completed { count: 60.0, uncertain: 0.0 }),
        ..case.facts()
    };
    assert!(failed(&lost).contains(&CheckId::CommitsWindow), "one of them is large enough");
}

#[test]
fn late_snapshots_are_compared_with_what_the_jobs_had_done_by_then() {
    let case = case(4, 3_000_000);
    let n = case.merged.transaction.count() as f64;
    // Read half a window late: the database has counted half as much again, and so have the jobs.
    let late = |counted: f64, completed| Facts {
        window_commits: Some(counted),
        completed,
        window_syncs: Some(n),
        rows_read: Some((Some(counted * 10.0), 10.0)),
        ..case.facts()
    };
    let ours = Some(Completed { count: n * 1.5, uncertain: 3.0 });
    assert_eq!(failed(&late(n * 1.5, None)), [CheckId::CommitsWindow]);
    assert!(failed(&late(n * 1.5, ours)).is_empty());
    assert_eq!(failed(&late(n * 1.4, ours)), [CheckId::CommitsWindow, CheckId::RowsRead]);
    // A late snapshot allows no more than a punctual one.
    let lenient = Facts { snapshots_off_s: 1.0, ..late(n * 1.4, ours) };
    assert_eq!(failed(&lenient), [CheckId::CommitsWindow, CheckId::RowsRead]);
}

#[test]
fn more_commits_per_sync_than_jobs_are_not_durable() {
    // The MariaDB trap: 75,000 commits a second at 4 jobs where the device syncs 5,000 times.
    let case = case(4, 3_000_000);
    let n = case.merged.transaction.count() as f64;
    assert_eq!(failed(&Facts { window_syncs: Some(n / 15.0), ..case.facts() }), [CheckId::CommitsPerSync]);
    assert_eq!(failed(&Facts { window_syncs: Some(0.0), ..case.facts() }), [CheckId::CommitsPerSync]);
    assert!(failed(&Facts { window_syncs: Some(n / 4.0), ..case.facts() }).is_empty(), "a full group is allowed");
    assert!(failed(&Facts { window_syncs: Some(0.0), durable: false, ..case.facts() }).is_empty());
    // Of two nodes with two jobs each, one does not sync: the mean hides it.
    let node = |node, share: f64| NodeCommits { node, jobs: 2, commits: n / 2.0, syncs: n / 2.0 / share };
    let nodes = |shares: [f64; 2]| vec![node(1, shares[0]), node(2, shares[1])];
    assert!(failed(&Facts { node_commits: nodes([2.0, 1.0]), ..case.facts() }).is_empty());
    let one = Facts { node_commits: nodes([1.0, 8.0]), window_syncs: Some(n / 3.9), ..case.facts() };
    assert_eq!(failed(&one), [CheckId::CommitsPerSync]);
    let detail = verify(&one).into_iter().find(|c| c.id == CheckId::CommitsPerSync).unwrap().detail;
    assert!(detail.contains("commits at node 2 did not wait"), "{detail}");
}

#[test]
fn time_lost_between_transactions_is_caught() {
    let mut case = case(2, 3_000_000);
    // A client that needs 1 ms between transactions of 2 ms.
    let (schedule, mut slow, _) = jobs(2, 3_000_000, 2);
    let tally = Mutex::new(Tally::new(schedule.window_ns(), false));
    let mut books = Books::new(Held::new(&tally, true));
    for job in &mut slow {
        let mut t = schedule.start_ns;
        while t < schedule.close_ns {
            books.completed(&schedule, t, Some(t), t + 2_000_000);
            t += 3_000_000;
        }
        *job = JobResult { ran_until_ns: schedule.close_ns, ..std::mem::take(&mut books.job) };
    }
    drop(books);
    case.merged = tally.into_inner().unwrap();
    case.jobs = slow;
    let f = Facts { evidence: Ok(None), ..case.facts() };
    assert!((outside(&f.schedule, f.jobs) - 1.0 / 3.0).abs() < 0.01);
    assert_eq!(failed(&f), [CheckId::LittlesLaw]);
}

#[test]
fn a_job_that_was_late_or_lost_invalidates_the_test() {
    let mut late = case(3, 3_000_000);
    late.jobs[1].first_start_ns = Some(late.schedule.open_ns + 1);
    assert_eq!(failed(&late.facts()), [CheckId::Window]);
    let mut lost = case(3, 3_000_000);
    lost.jobs[2].lost = Some("the server went away".into());
    let f = lost.facts();
    let check = verify(&f).into_iter().find(|c| c.id == CheckId::Window).unwrap();
    assert!(check.outcome == Outcome::Failed && check.detail.contains("the server went away"));
}

#[test]
fn a_window_shorter_than_its_transactions_fails() {
    let case = case(4, 1_500_000_000);
    let check = verify(&case.facts()).into_iter().find(|c| c.id == CheckId::Window).unwrap();
    assert!(check.outcome == Outcome::Failed && check.detail.contains("--duration"), "{}", check.detail);
}

#[test]
fn errors_have_a_column_of_their_own_and_a_limit() {
    for (errors, outcome) in [(1, Outcome::Noted), (500, Outcome::Failed)] {
        let mut case = case(2, 3_000_000);
        case.merged.errors = errors;
        case.merged.errors_total = errors;
        let check = verify(&case.facts()).into_iter().find(|c| c.id == CheckId::Errors).unwrap();
        assert_eq!(check.outcome, outcome, "{}", check.detail);
    }
}

#[test]
fn a_rate_that_is_not_kept_is_noted() {
    let case = case(2, 3_000_000);
    let check = |load: JobLoad| {
        let checks = verify(&Facts { load: &load, ..case.facts() });
        checks.into_iter().find(|c| c.id == CheckId::Rate).unwrap()
    };
    let at = |rate| JobLoad { rate_tps: Some(rate), ..JobLoad::default() };
    assert_eq!(check(at(100.0)).outcome, Outcome::Passed);
    assert_eq!(check(at(10_000.0)).outcome, Outcome::Noted);
    assert_eq!(check(JobLoad::default()).outcome, Outcome::NotMade);
    // Each job makes 333 tps: of a mix only the open one has a rate to keep.
    let mixed = |rate_tps| JobLoad {
        populations: vec![
            Population { jobs: 1, ..Population::default() },
            Population { jobs: 1, rate_tps: Some(rate_tps), think_s: None },
        ],
        ..JobLoad::default()
    };
    assert_eq!(check(mixed(330.0)).outcome, Outcome::Passed);
    assert_eq!(check(mixed(400.0)).outcome, Outcome::Noted, "the other job's transactions are not this one's");
}

/// Jobs that run a transaction of `tx_ns`, wait `outside_ns` for nothing, and think for `think_ns`, one after the other.
fn thinking(tx_ns: u64, outside_ns: u64, think_ns: u64) -> Case {
    let mut case = case(4, tx_ns);
    let schedule = case.schedule;
    let tally = Mutex::new(Tally::new(schedule.window_ns(), false));
    let mut books = Books::new(Held::new(&tally, true));
    for job in &mut case.jobs {
        let mut t = schedule.start_ns;
        while t < schedule.close_ns {
            books.completed(&schedule, t, Some(t), t + tx_ns);
            t += tx_ns + outside_ns;
            books.thought(&schedule, t, t + think_ns, true);
            t += think_ns;
        }
        *job = std::mem::take(&mut books.job);
    }
    drop(books);
    case.merged = tally.into_inner().unwrap();
    case.load = JobLoad { think_s: Some(think_ns as f64 / 1e9), ..JobLoad::default() };
    case
}

#[test]
fn thinking_is_a_part_of_the_jobs_time_and_hides_no_other() {
    let little = |case: &Case| load::littles_law(&Facts { evidence: Ok(None), ..case.facts() });
    let sound = thinking(1_000_000, 0, 9_000_000);
    let times = TimeShares::of(&sound.schedule, &sound.jobs);
    assert!((times.thinking - 0.9).abs() < 0.01 && times.outside.abs() < 1e-9, "{times:?}");
    let check = little(&sound);
    assert_eq!(check.outcome, Outcome::Passed, "{}", check.detail);
    assert!(check.detail.contains("thinking"), "{}", check.detail);
    // 0.2 ms of 10 are 2 % of the jobs' time, but a sixth of what is not thinking.
    assert_eq!(little(&thinking(1_000_000, 200_000, 8_800_000)).outcome, Outcome::Failed);
    assert_eq!(little(&thinking(1_000_000, 8_000, 9_000_000)).outcome, Outcome::Passed, "loadline's own loop");
}

#[test]
fn a_mean_think_time_must_be_the_one_asked_for() {
    let case = thinking(1_000_000, 0, 9_000_000);
    assert!(case.merged.thoughts > 700);
    let of = |case: &Case, asked_s: f64| {
        let load = JobLoad { think_s: Some(asked_s), ..JobLoad::default() };
        load::think_time(&Facts { load: &load, ..case.facts() }).unwrap().outcome
    };
    let outcomes = [0.009, 0.008, 0.004, 0.018].map(|asked_s| of(&case, asked_s));
    let (passed, noted) = (Outcome::Passed, Outcome::Noted);
    assert_eq!(outcomes, [passed, passed, noted, Outcome::Failed]);
    assert_eq!(of(&thinking(1_000_000, 0, 900_000_000), 0.9), Outcome::NotMade, "a handful of them");
    assert!(load::think_time(&Facts { load: &JobLoad::default(), ..case.facts() }).is_none());
}

#[test]
fn a_mix_is_checked_by_the_rows_and_syncs_of_its_parts() {
    let case = case(4, 3_000_000);
    let n = case.merged.transaction.count() as f64;
    let total = case.merged.total as i64;
    // Half of the transactions read; the others change 1 to 16 rows, 5 on average.
    let mix = || Facts {
        evidence: Ok(Some((total / 2 * 5, 16))),
        rows_changed: Some((total / 2 * 5) as u64),
        writing_share: 0.5,
        window_syncs: Some(n / 8.0),
        ..case.facts()
    };
    assert_eq!(failed(&mix()), []);
    assert_eq!(failed(&Facts { evidence: Ok(Some((total / 2 * 5 - 1, 16))), ..mix() }), [CheckId::WorkEvidence]);
    // If all transactions changed something, there are too few syncs; far fewer syncs fail too.
    assert_eq!(failed(&Facts { writing_share: 1.0, ..mix() }), [CheckId::CommitsPerSync]);
    assert_eq!(failed(&Facts { window_syncs: Some(n / 16.0), ..mix() }), [CheckId::CommitsPerSync]);
}

#[test]
fn a_violated_consistency_condition_is_named() {
    let case = case(1, 3_000_000);
    let says = |found: &[(&'static str, Result<Option<i64>, String>)]| {
        let facts = Facts { consistency: found, ..case.facts() };
        verify(&facts).into_iter().find(|c| c.id == CheckId::Consistency)
    };
    assert!(says(&[]).is_none(), "a workload without such queries has no such check");
    let passed = says(&[("a holds", Ok(Some(0))), ("b holds", Ok(Some(0)))]).unwrap();
    assert!(passed.outcome == Outcome::Passed && passed.detail.contains("a holds; b holds"));
    let off = says(&[("a holds", Ok(Some(0))), ("b holds", Ok(Some(-3)))]).unwrap();
    assert!(off.outcome == Outcome::Failed && off.detail.contains("b holds (off by -3)"), "{}", off.detail);
    let broken = says(&[("a holds", Err("no such table".into()))]).unwrap();
    assert!(broken.outcome == Outcome::Failed && broken.detail.contains("no such table"));
    assert_eq!(says(&[("a holds", Ok(None))]).unwrap().outcome, Outcome::NotMade);
}

#[test]
fn unread_counters_are_reported_as_unread() {
    let case = case(4, 3_000_000);
    let unread = |why: &str| Some(why.to_owned());
    let f = Facts {
        unread: unread("the database's counters could not be read: gone"),
        unread_whole: unread("gone as well"),
        window_commits: None,
        all_commits: None,
        window_syncs: None,
        redo: None,
        rows_read: Some((None, 10.0)),
        ..case.facts()
    };
    for check in verify(&f).into_iter().filter(|c| c.outcome == Outcome::NotMade && c.id != CheckId::Rate) {
        assert!(check.detail.contains("could not be read"), "{check:?}");
    }
    let f = Facts { window_commits: None, ..case.facts() };
    let check = verify(&f).into_iter().find(|c| c.id == CheckId::CommitsWindow).unwrap();
    assert_eq!(check.detail, COMMITS_NOT_COUNTED);
}
