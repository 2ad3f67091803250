use std::sync::Arc;

use loadline_database::Work;
use loadline_load::{Books, JobResult, Schedule, Scripted};
use loadline_model::record::AgentFigures;
use loadline_model::{Check, CheckId, Driver, JobLoad, Population};
use loadline_workload::{Commit, read_file};

use super::*;
use crate::evidence::{Excuse, Excuses};
use crate::figures::populations::TimeShares;
use crate::steps::CHECKS;
use crate::testing::{self, Case, SECOND, jobs, snapshot};

/// Transactions of `tx_ns`, each followed by `outside_ns`.
fn each(tx_ns: u64, outside_ns: u64) -> impl Fn(&Schedule, &mut Books<'_>) {
    move |schedule, books| {
        let mut t = schedule.start_ns;
        while t < schedule.close_ns {
            books.completed(schedule, None, t, Some(t + tx_ns / 2), t + tx_ns);
            t += tx_ns + outside_ns;
        }
    }
}

fn lat1() -> Work {
    Work::from_catalogue("LGWR-LAT1", &[("rows", 3)]).unwrap()
}

/// A sound test of `n` jobs with transactions of `tx_ns`, three changed rows and 1500 bytes of redo.
fn case(n: u32, tx_ns: u64) -> Case {
    lat1_case(n, each(tx_ns, 0))
}

fn lat1_case(n: u32, one: impl Fn(&Schedule, &mut Books<'_>)) -> Case {
    let mut case = testing::case(lat1(), jobs(n, one));
    case.test.set(column::REDO_BYTES_PER_TX, 1500.0);
    case
}

fn sound() -> Case {
    case(4, 3_000_000)
}

fn changed(change: impl FnOnce(&mut Case)) -> Case {
    let mut case = sound();
    change(&mut case);
    case
}

fn failed(case: &Case) -> Vec<CheckId> {
    case.checks(CHECKS).into_iter().filter(|c| c.outcome == Outcome::Failed).map(|c| c.id).collect()
}

fn check(case: &Case, id: CheckId) -> Check {
    case.checks(CHECKS).into_iter().find(|c| c.id == id).unwrap()
}

fn outcome(case: &Case, id: CheckId) -> Outcome {
    check(case, id).outcome
}

/// A test, one of its checks, how it ends, and a part of what it says.
type Row = (Case, CheckId, Outcome, &'static str);

fn assert_judged(rows: impl IntoIterator<Item = Row>) {
    for (case, id, outcome, says) in rows {
        let check = check(&case, id);
        assert!(check.outcome == outcome && check.detail.contains(says), "{check:?}, not {outcome:?} with '{says}'");
    }
}

/// That these checks end so, and no other one fails.
fn assert_alone<const N: usize>(rows: [Row; N]) {
    rows.iter()
        .for_each(|(case, id, ..)| assert!(failed(case).iter().all(|failed| failed == id), "{:?}", failed(case)));
    assert_judged(rows);
}

fn outside(case: &Case) -> f64 {
    TimeShares::new(&case.measured.schedule, &case.measured.jobs).outside
}

#[test]
fn a_sound_test_passes_every_check_and_each_false_figure_fails_its_own() {
    use CheckId::{Agents, CommitsDatabase, CommitsWindow, Counters, LittlesLaw, RedoSize, Window, WorkEvidence};
    use Outcome::{Failed, NotMade, Passed};
    assert_eq!(sound().request.work.program.rows_changed_per_tx(), 3);
    assert_eq!(failed(&sound()), []);
    assert!(outside(&sound()).abs() < 1e-9, "back to back leaves nothing outside");
    let n = sound().measured.merged.transaction.count() as f64;
    let total = sound().measured.merged.total as i64;
    let grown = |rows: Result<i64, String>| changed(|case| case.proof.grown = rows.map(Some));
    let agent = |start_skew_ms, failed: Option<&str>| {
        let agent =
            AgentFigures { start_skew_ms, cpus: 2, failed: failed.map(str::to_owned), ..AgentFigures::default() };
        changed(|case| case.measured.elsewhere.processes = vec![agent])
    };
    // A client that needs 1 ms between transactions of 2 ms.
    let slow_client = lat1_case(2, each(2_000_000, 1_000_000));
    assert!((outside(&slow_client) - 1.0 / 3.0).abs() < 0.01);
    let ended = |case: &mut Case| {
        case.measured.jobs = vec![JobResult { ran_until_ns: case.measured.schedule.start_ns, ..JobResult::default() }];
    };
    let late = |case: &mut Case| case.measured.jobs[1].first_start_ns = Some(case.measured.schedule.open_ns + 1);
    let rows = [
        (changed(|case| case.count_all(counter::COMMITS, n * 0.5)), CommitsDatabase, Failed, ""),
        (changed(|case| case.count(counter::COMMITS, n * 0.9)), CommitsWindow, Failed, ""),
        // What was reset is not just unknown.
        (changed(|case| case.count(counter::COMMITS, -500.0)), Counters, Failed, ""),
        (grown(Ok(3 * total - 1)), WorkEvidence, Failed, ""),
        (grown(Ok(-1)), WorkEvidence, Failed, ""),
        (grown(Err("no such table".into())), WorkEvidence, Failed, "no such table"),
        (changed(|case| case.test.set(column::REDO_BYTES_PER_TX, 4120.0)), RedoSize, Failed, ""),
        (agent(Some(1.9), None), Agents, Passed, ""),
        (agent(Some(2.1), None), Agents, Failed, ""),
        // An unknown skew is no small one.
        (agent(None, None), Agents, Failed, ""),
        (agent(Some(0.1), Some("it hangs")), Agents, Failed, "it hangs"),
        (slow_client, LittlesLaw, Failed, ""),
        (changed(late), Window, Failed, ""),
    ];
    assert_alone(rows);
    assert_eq!(outcome(&changed(ended), LittlesLaw), NotMade, "no job had time");
    let of_client: [fn(&Evidence<'_>, &mut Test); 2] = [
        |e, t| t.check(CheckId::ClientCpu, check_client(e, 0.95)),
        |e, t| t.check(CheckId::ClientCpu, check_client(e, 0.5)),
    ];
    let client = sound().checks(&of_client).into_iter().map(|c| c.outcome);
    assert!(client.eq([Outcome::Failed, Outcome::Noted]));
}

#[test]
fn lost_jobs_errors_and_a_short_window_fail_and_a_full_disk_is_said_with_what_it_fails() {
    use CheckId::{Errors, Window};
    let lost = changed(|case| {
        case.measured.jobs[2].lost = Some("the server went away".into());
        case.full_disk = Some(". A disk of the database is full".into());
    });
    let errors = |errors| {
        changed(|case| {
            (case.measured.merged.errors, case.measured.merged.errors_total) = (errors, errors);
            case.full_disk = Some("full".into());
        })
    };
    assert!(!check(&errors(1), Errors).detail.contains("full"));
    assert_judged([
        (lost, Window, Outcome::Failed, "the server went away. A disk of the database is full"),
        (case(4, 1_500_000_000), Window, Outcome::Failed, "--duration"),
        (errors(1), Errors, Outcome::Noted, ""),
        (errors(500), Errors, Outcome::Failed, "full"),
    ]);
}

#[test]
fn redo_is_as_defined_but_for_what_was_read_late() {
    let redo = |bytes, late_share: f64, images: f64| {
        changed(|case| {
            case.test.set(column::REDO_BYTES_PER_TX, bytes);
            case.measured.readings.at_end.snapshot.as_mut().unwrap().at_ns += (late_share * 2.0 * SECOND as f64) as u64;
            case.count(counter::REDO_PAGE_IMAGES, images * case.measured.merged.transaction.count() as f64);
        })
    };
    let within = check(&redo(1500.0, 0.0, 0.4973), CheckId::RedoSize).detail;
    assert!(!within.contains("more or less") && !within.contains("images"), "{within}");
    let other = testing::case(Work::from_catalogue("TP-LOOKUP", &[]).unwrap(), jobs(4, each(3_000_000, 0)));
    let rows = [
        (redo(2200.0, 0.0, 0.0), Outcome::Failed, "2.15 KiB"),
        // A tenth of the redo may be of other transactions if the position was read a tenth of the window late.
        (redo(2200.0, 0.1, 0.0), Outcome::Passed, "more or less 1"),
        (redo(2300.0, 0.1, 0.0), Outcome::Failed, ""),
        (redo(2900.0, 0.0, 0.4973), Outcome::Failed, "wrote 0.50 images"),
        (other, Outcome::NotMade, ""),
    ];
    assert_judged(rows.map(|(case, outcome, says)| (case, CheckId::RedoSize, outcome, says)));
}

#[test]
fn queries_read_their_rows_and_read_only_scripts_change_none() {
    let read = |per_tx: f64, ours: Option<f64>| {
        let work = Work::from_catalogue("DA-SCAN", &[]).unwrap();
        let rows = work.workload.volume(&work.params).unwrap().rows;
        let mut case = testing::case(work, jobs(4, each(3_000_000, 0)));
        let n = case.measured.merged.transaction.count() as f64;
        case.count(counter::ROWS_READ, rows * per_tx * n);
        if let Some(ours) = ours {
            case.count(counter::COMMITS, n * ours);
            count_jobs(&mut case, n * ours, 3.0);
        }
        failed(&case)
    };
    assert_eq!(read(0.5, None), [CheckId::RowsRead]);
    assert_eq!(read(1.2, None), [], "more may be read");
    // Read late: the jobs had run half as many queries more by then, by their own count.
    assert_eq!(read(1.2, Some(1.5)), [CheckId::RowsRead]);
    assert_eq!(read(1.5, Some(1.5)), []);
    let text = "code = \"READ-ONLY\"\nsummary = \"reads\"\n[[script]]\nname = \"s\"\ntext = \"SELECT 1;\"\n";
    let scripts = read_file("read-only.toml", text).unwrap();
    let noted = |rows| {
        let mut case = testing::case(Work::with(Arc::clone(&scripts), &[]).unwrap(), jobs(4, each(3_000_000, 0)));
        case.count(counter::ROWS_CHANGED, rows);
        outcome(&case, CheckId::ReadOnly)
    };
    assert_eq!([noted(1.0), noted(0.0)], [Outcome::Noted, Outcome::Passed]);
    let sending = |statements| {
        let mut case = testing::case(Work::with(Arc::clone(&scripts), &[]).unwrap(), jobs(4, each(3_000_000, 0)));
        case.measured.merged.scripted = Some(Scripted { statements, ..Scripted::default() });
        outcome(&case, CheckId::WorkEvidence)
    };
    assert_eq!([sending(0) == Outcome::Failed, sending(9) == Outcome::Failed], [true, false]);
    // Counted a fifth of the window late: as many more may have been changed, and no more.
    let changed_rows = |more: f64| {
        let mut case = testing::case(Work::from_catalogue("DBWR-THR", &[]).unwrap(), jobs(4, each(3_000_000, 0)));
        let rows =
            case.measured.merged.transaction.count() as f64 * case.request.work.program.rows_changed_per_tx() as f64;
        case.count(counter::ROWS_CHANGED, rows * (1.0 + more));
        case.measured.readings.at_end.snapshot.as_mut().unwrap().at_ns += 2 * SECOND / 5;
        case.checks(&[|e, t| t.check(CheckId::RowsChanged, blocks_written::rows_changed(e))])[0].outcome
    };
    assert_eq!([changed_rows(0.15), changed_rows(0.25)], [Outcome::Passed, Outcome::Failed]);
}

fn count_jobs(case: &mut Case, count: f64, uncertain: f64) {
    case.count(counter::JOBS_BEFORE, count - uncertain);
    case.count(counter::JOBS_AFTER, count + uncertain);
}

#[test]
fn few_commits_prove_nothing_and_late_snapshots_are_compared_with_what_the_jobs_had_done_by_then() {
    use Outcome::{Failed, NotMade, Passed};
    let n = sound().measured.merged.transaction.count() as f64;
    let of = |ours: Option<(f64, f64)>, counted: f64, late_ns: u64| {
        changed(|case| {
            case.count(counter::COMMITS, counted);
            case.count(counter::REDO_SYNCS, n);
            ours.into_iter().for_each(|(ours, uncertain)| count_jobs(case, ours, uncertain));
            case.measured.readings.at_end.snapshot.as_mut().unwrap().at_ns += late_ns;
        })
    };
    let rows = [
        // The counts of four jobs may be 18 apart, unless one of them is large enough.
        (of(Some((11.0, 0.0)), 11.0, 0), NotMade, "too few"),
        (of(Some((7.0, 0.0)), 25.0, 0), NotMade, "too few"),
        (of(Some((60.0, 0.0)), 11.0, 0), Failed, ""),
    ];
    assert_judged(rows.map(|(case, outcome, says)| (case, CheckId::CommitsWindow, outcome, says)));
    let late = [
        // Read half a window late: the database has counted half as much again, and so have the jobs.
        (of(None, n * 1.5, 0), Failed, ""),
        (of(Some((n * 1.5, 3.0)), n * 1.5, 0), Passed, ""),
        (of(Some((n * 1.5, 3.0)), n * 1.4, 0), Failed, ""),
        // No more is allowed than of a punctual one.
        (of(Some((n * 1.5, 3.0)), n * 1.4, SECOND), Failed, ""),
    ];
    assert_alone(late.map(|(case, outcome, says)| (case, CheckId::CommitsWindow, outcome, says)));
}

#[test]
fn more_commits_per_sync_than_jobs_are_not_durable() {
    // The MariaDB trap: 75,000 commits a second at 4 jobs where the device syncs 5,000 times.
    let n = sound().measured.merged.transaction.count() as f64;
    let syncs = |syncs| changed(|case| case.count(counter::REDO_SYNCS, syncs));
    let mut not_waiting = syncs(0.0);
    Arc::get_mut(&mut not_waiting.request.work).unwrap().program.commit = Commit::Nowait;
    // Of two nodes with two jobs each, one does not sync: the mean hides it.
    let nodes = |commits_per_sync: [f64; 2], syncs: f64| {
        changed(|case| {
            case.count(counter::REDO_SYNCS, syncs);
            let of = |(commits, syncs): (f64, f64)| {
                snapshot(0, &[(counter::COMMITS, commits), (counter::REDO_SYNCS, syncs)]).counters
            };
            let readings = &mut case.measured.readings;
            readings.at_start.snapshot.as_mut().unwrap().nodes = vec![of((0.0, 0.0)), of((0.0, 0.0))];
            let close = commits_per_sync.map(|share| of((n / 2.0, n / 2.0 / share)));
            readings.at_end.snapshot.as_mut().unwrap().nodes = close.into();
        })
    };
    let rows = [
        (syncs(n / 15.0), Outcome::Failed, ""),
        (syncs(0.0), Outcome::Failed, ""),
        // A full group.
        (syncs(n / 4.0), Outcome::Passed, ""),
        (nodes([2.0, 1.0], n / 2.0), Outcome::Passed, ""),
        (nodes([1.0, 8.0], n / 3.9), Outcome::Failed, "commits at node 2 did not wait"),
    ];
    assert_alone(rows.map(|(case, outcome, says)| (case, CheckId::CommitsPerSync, outcome, says)));
    assert_eq!(outcome(&not_waiting, CheckId::CommitsPerSync), Outcome::NotMade);
}

#[test]
fn a_failed_check_is_noted_if_and_only_if_its_excuse_says_why() {
    let n = sound().measured.merged.transaction.count() as f64;
    let spoilt = |excuses: Excuses| {
        changed(|case| {
            case.count(counter::REDO_SYNCS, 0.0);
            case.count(counter::COMMITS, n * 0.9);
            case.test.set(column::REDO_BYTES_PER_TX, 4120.0);
            let of_device = [(column::DEVICE_WRITE_MIB_PER_S, 0.0), (column::DEVICE_WRITES_PER_S, 0.0)];
            let of_jobs = [(column::REDO_MIB_PER_S, 2.0), (column::COMMITS, 1e4), (column::COMMIT_THROUGHPUT_TPS, 1e3)];
            of_device.iter().chain(&of_jobs).for_each(|(column, value)| case.test.set(column, *value));
            case.excuses = excuses;
        })
    };
    use CheckId::{CommitsPerSync, CommitsWindow, RedoOnDevice, RedoSize};
    let [level, arm] = [Excuse::Level("local".to_owned()), Excuse::ArmHas(vec!["fsync off".to_owned()])];
    let excuses: [(_, _, &[CheckId]); 4] = [
        (None, None, &[]),
        (Some(level), None, &[CommitsPerSync, RedoOnDevice]),
        (Some(arm), None, &[CommitsPerSync, RedoOnDevice]),
        (None, Some(Excuse::CalibratedInArmA), &[RedoSize]),
    ];
    for (commits, redo, excused) in excuses {
        let case = spoilt(Excuses { commits, redo, forced: false });
        for id in [CommitsPerSync, RedoOnDevice, RedoSize, CommitsWindow] {
            let expected = if excused.contains(&id) { Outcome::Noted } else { Outcome::Failed };
            assert_eq!(outcome(&case, id), expected, "{id} with {excused:?} excused");
        }
    }
}

#[test]
fn a_rate_that_is_not_kept_is_noted() {
    let of = |load: JobLoad| {
        let mut case = case(2, 3_000_000);
        case.request.load = load;
        outcome(&case, CheckId::Rate)
    };
    let at = |rate| of(JobLoad { rate_tps: Some(rate), ..JobLoad::default() });
    assert_eq!([at(100.0), at(10_000.0)], [Outcome::Passed, Outcome::Noted]);
    assert_eq!(of(JobLoad::default()), Outcome::NotMade);
    // Each job makes 333 tps: of a mix only the open one has a rate to keep.
    let open = |rate_tps| Population { jobs: 1, rate_tps: Some(rate_tps), think_s: None };
    let mixed = |rate_tps| {
        of(JobLoad {
            populations: vec![Population { jobs: 1, ..Population::default() }, open(rate_tps)],
            ..JobLoad::default()
        })
    };
    assert_eq!([mixed(330.0), mixed(400.0)], [Outcome::Passed, Outcome::Noted]);
}

/// Jobs that run a transaction of `tx_ns`, wait `outside_ns` for nothing, and think for `think_ns`, one after the other.
fn thinking(tx_ns: u64, outside_ns: u64, think_ns: u64) -> Case {
    let thinking = jobs(4, |schedule, books| {
        let mut t = schedule.start_ns;
        while t < schedule.close_ns {
            books.completed(schedule, None, t, Some(t), t + tx_ns);
            t += tx_ns + outside_ns;
            books.thought(schedule, t, t + think_ns, true);
            t += think_ns;
        }
    });
    let mut case = testing::case(lat1(), thinking);
    case.request.load = JobLoad { think_s: Some(think_ns as f64 / 1e9), ..JobLoad::default() };
    case
}

#[test]
fn thinking_is_a_part_of_the_jobs_time_and_hides_no_other() {
    let sound = thinking(1_000_000, 0, 9_000_000);
    let times = TimeShares::new(&sound.measured.schedule, &sound.measured.jobs);
    assert!((times.thinking - 0.9).abs() < 0.01 && times.outside.abs() < 1e-9, "{times:?}");
    let law = check(&sound, CheckId::LittlesLaw);
    assert!(law.outcome == Outcome::Passed && law.detail.contains("thinking"), "{law:?}");
    // 0.2 ms of 10 are 2 % of the jobs' time, but a sixth of what is not thinking.
    assert_eq!(outcome(&thinking(1_000_000, 200_000, 8_800_000), CheckId::LittlesLaw), Outcome::Failed);
    let own_loop = thinking(1_000_000, 8_000, 9_000_000);
    assert_eq!(outcome(&own_loop, CheckId::LittlesLaw), Outcome::Passed, "loadline's own loop");
}

#[test]
fn a_mean_think_time_must_be_the_one_asked_for() {
    assert!(thinking(1_000_000, 0, 9_000_000).measured.merged.thoughts > 700);
    let of = |asked_s: f64| {
        let mut case = thinking(1_000_000, 0, 9_000_000);
        case.request.load.think_s = Some(asked_s);
        outcome(&case, CheckId::ThinkTime)
    };
    let (passed, noted) = (Outcome::Passed, Outcome::Noted);
    assert_eq!([0.009, 0.008, 0.004, 0.018].map(of), [passed, passed, noted, Outcome::Failed]);
    let handful = thinking(1_000_000, 0, 900_000_000);
    assert_eq!(outcome(&handful, CheckId::ThinkTime), Outcome::NotMade);
    assert!(sound().checks(&[|e, t| t.check(CheckId::ThinkTime, load::think_time(e))]).is_empty());
}

#[test]
fn a_mix_is_checked_by_the_rows_and_syncs_of_its_parts() {
    let workload = read_file("mix.toml", include_str!("mix.toml")).unwrap();
    let mix = |off: i64, syncs_share: f64| {
        let mut case = testing::case(Work::with(Arc::clone(&workload), &[]).unwrap(), jobs(4, each(3_000_000, 0)));
        let (n, rows) = (case.measured.merged.transaction.count() as f64, case.measured.merged.total as i64 / 2 * 16);
        case.measured.merged.rows_changed = rows as u64;
        case.measured.merged.kinds = vec![case.measured.merged.transaction.clone()];
        case.proof.grown = Ok(Some(rows + off));
        case.count(counter::REDO_SYNCS, n * syncs_share);
        failed(&case)
    };
    assert_eq!(mix(0, 1.0 / 8.0), [], "half of them need no sync");
    assert_eq!(mix(-1, 1.0 / 8.0), [CheckId::WorkEvidence]);
    assert_eq!(mix(0, 1.0 / 16.0), [CheckId::CommitsPerSync]);
}

#[test]
fn kinds_that_are_not_all_transactions_fail() {
    let of = |kind: fn(u64) -> Option<usize>, change: fn(&mut Case)| {
        let each = move |schedule: &Schedule, books: &mut Books<'_>| {
            let starts = (0..1000).map(|n| (n, schedule.open_ns + n * 1_000_000));
            starts.for_each(|(n, start)| books.completed(schedule, kind(n), start, None, start + 500_000 + n));
        };
        let mut case = testing::case(Work::from_catalogue("TP-MIXED", &[]).unwrap(), jobs(2, each));
        change(&mut case);
        check(&case, CheckId::Kinds).outcome
    };
    let mixed = |n: u64| Some(n as usize % 5);
    assert_eq!(of(mixed, |_| ()), Outcome::Passed);
    let in_database = |case: &mut Case| case.request.driver = Driver::Database;
    assert_eq!(of(|_| None, in_database), Outcome::NotMade, "a histogram of all");
    assert_eq!(of(|_| None, |_| ()), Outcome::Failed, "at the client each has one");
    assert_eq!(of(|n| (n > 0).then_some(0), |_| ()), Outcome::Failed, "one has no kind");
    assert_eq!(of(mixed, |case| case.measured.merged.kinds[4].record(500_000)), Outcome::Failed, "one is of two kinds");
    assert_eq!(of(mixed, |case| case.measured.merged.kinds[1].add_sum(1, 0)), Outcome::Failed, "a time is another");
}

#[test]
fn a_violated_consistency_condition_is_named() {
    let says = |found: &[(&str, Result<Option<i64>, String>)]| {
        consistency(&found.iter().map(|(what, found)| ((*what).to_owned(), found.clone())).collect::<Vec<_>>())
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
    let unread = changed(|case| {
        case.measured.readings.at_start.snapshot = Err("gone".into());
        case.measured.after = Err("gone as well".into());
        case.test = Test::default();
    });
    use CheckId::{CommitsDatabase, CommitsPerSync, CommitsWindow, Counters, RedoSize};
    for id in [Counters, CommitsDatabase, CommitsWindow, CommitsPerSync, RedoSize] {
        let check = check(&unread, id);
        assert!(check.outcome == Outcome::NotMade && check.detail.contains("could not be read"), "{check:?}");
    }
    let uncounted = changed(|case| {
        for reading in [&mut case.measured.readings.at_start, &mut case.measured.readings.at_end] {
            reading.snapshot.as_mut().unwrap().counters.remove(counter::COMMITS);
        }
    });
    assert_eq!(check(&uncounted, CheckId::CommitsWindow).detail, COMMITS_NOT_COUNTED);
}
