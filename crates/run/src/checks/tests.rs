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

fn outside(case: &Case) -> f64 {
    TimeShares::new(&case.measured.schedule, &case.measured.jobs).outside
}

#[test]
fn a_sound_test_passes_every_check_and_each_false_figure_fails_its_own() {
    assert_eq!(sound().request.work.program.rows_changed_per_tx(), 3);
    assert_eq!(failed(&sound()), []);
    assert!(outside(&sound()).abs() < 1e-9, "back to back leaves nothing outside");
    let n = sound().measured.merged.transaction.count() as f64;
    let total = sound().measured.merged.total as i64;
    let grown = |rows: i64| move |case: &mut Case| case.proof.grown = Ok(Some(rows));
    let skewed = |start_skew_ms| {
        move |case: &mut Case| {
            case.measured.elsewhere.processes =
                vec![AgentFigures { start_skew_ms, cpus: 2, ..AgentFigures::default() }];
        }
    };
    let lost = |case: &mut Case| {
        skewed(Some(0.1))(case);
        case.measured.elsewhere.processes[0].failed = Some("it hangs".into());
    };
    let cases: [(CheckId, Case); 10] = [
        (CheckId::CommitsDatabase, changed(|case| case.count_all(counter::COMMITS, n * 0.5))),
        (CheckId::CommitsWindow, changed(|case| case.count(counter::COMMITS, n * 0.9))),
        // What was reset is not just unknown.
        (CheckId::Counters, changed(|case| case.count(counter::COMMITS, -500.0))),
        (CheckId::WorkEvidence, changed(grown(3 * total - 1))),
        (CheckId::WorkEvidence, changed(grown(-1))),
        (CheckId::WorkEvidence, changed(|case| case.proof.grown = Err("no such table".into()))),
        (CheckId::RedoSize, changed(|case| case.test.set(column::REDO_BYTES_PER_TX, 4120.0))),
        (CheckId::Agents, changed(skewed(Some(2.1)))),
        // An unknown skew is no small one.
        (CheckId::Agents, changed(skewed(None))),
        (CheckId::Agents, changed(lost)),
    ];
    for (id, case) in cases {
        assert_eq!(failed(&case), [id]);
    }
    assert_eq!(failed(&changed(skewed(Some(1.9)))), []);
    let of_client: [fn(&Evidence<'_>, &mut Test); 2] = [
        |e, t| t.check(CheckId::ClientCpu, check_client(e, 0.95)),
        |e, t| t.check(CheckId::ClientCpu, check_client(e, 0.5)),
    ];
    let client = sound().checks(&of_client).into_iter().map(|c| c.outcome);
    assert!(client.eq([Outcome::Failed, Outcome::Noted]));
}

#[test]
fn redo_is_as_defined_but_for_what_was_read_late() {
    // A tenth of the redo may be of other transactions if the position was read a tenth of the window late.
    let redo = |bytes, late_share: f64| {
        changed(|case| {
            case.test.set(column::REDO_BYTES_PER_TX, bytes);
            case.measured.readings.at_end.snapshot.as_mut().unwrap().at_ns += (late_share * 2.0 * SECOND as f64) as u64;
        })
    };
    let of = |bytes, late_share| outcome(&redo(bytes, late_share), CheckId::RedoSize);
    assert_eq!([of(2200.0, 0.0), of(2300.0, 0.1)], [Outcome::Failed; 2]);
    assert_eq!(of(2200.0, 0.1), Outcome::Passed);
    let said = |case: &Case| check(case, CheckId::RedoSize).detail;
    let late = said(&redo(2200.0, 0.1));
    assert!(late.contains("2.15 KiB") && late.contains("more or less 1"), "{late}");
    assert!(!said(&redo(1500.0, 0.0)).contains("more or less"), "within it");
    let imaged = |bytes| {
        let mut case = redo(bytes, 0.0);
        case.count(counter::REDO_PAGE_IMAGES, 0.4973 * case.measured.merged.transaction.count() as f64);
        said(&case)
    };
    assert!(imaged(2900.0).contains("wrote 0.50 images") && !imaged(1500.0).contains("images"));
    let other = testing::case(Work::from_catalogue("TP-LOOKUP", &[]).unwrap(), jobs(4, each(3_000_000, 0)));
    assert_eq!(outcome(&other, CheckId::RedoSize), Outcome::NotMade);
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
fn a_handful_of_commits_proves_nothing() {
    // The counts of four jobs may be 18 apart.
    let of = |ours: f64, counted: f64| {
        changed(|case| {
            case.count(counter::COMMITS, counted);
            count_jobs(case, ours, 0.0);
        })
    };
    for (ours, counted) in [(11.0, 11.0), (7.0, 25.0)] {
        let check = check(&of(ours, counted), CheckId::CommitsWindow);
        assert!(check.outcome == Outcome::NotMade && check.detail.contains("too few"), "{check:?}");
    }
    assert!(failed(&of(60.0, 11.0)).contains(&CheckId::CommitsWindow), "one of them is large enough");
}

#[test]
fn late_snapshots_are_compared_with_what_the_jobs_had_done_by_then() {
    let n = sound().measured.merged.transaction.count() as f64;
    // Read half a window late: the database has counted half as much again, and so have the jobs.
    let late = |counted: f64, ours: Option<f64>, late_ns: u64| {
        failed(&changed(|case| {
            case.count(counter::COMMITS, counted);
            case.count(counter::REDO_SYNCS, n);
            ours.into_iter().for_each(|ours| count_jobs(case, ours, 3.0));
            case.measured.readings.at_end.snapshot.as_mut().unwrap().at_ns += late_ns;
        }))
    };
    assert_eq!(late(n * 1.5, None, 0), [CheckId::CommitsWindow]);
    assert_eq!(late(n * 1.5, Some(n * 1.5), 0), []);
    assert_eq!(late(n * 1.4, Some(n * 1.5), 0), [CheckId::CommitsWindow]);
    assert_eq!(
        late(n * 1.4, Some(n * 1.5), SECOND),
        [CheckId::CommitsWindow],
        "no more is allowed than of a punctual one"
    );
}

#[test]
fn more_commits_per_sync_than_jobs_are_not_durable() {
    // The MariaDB trap: 75,000 commits a second at 4 jobs where the device syncs 5,000 times.
    let n = sound().measured.merged.transaction.count() as f64;
    let syncs = |syncs| changed(|case| case.count(counter::REDO_SYNCS, syncs));
    assert_eq!(failed(&syncs(n / 15.0)), [CheckId::CommitsPerSync]);
    assert_eq!(failed(&syncs(0.0)), [CheckId::CommitsPerSync]);
    assert_eq!(failed(&syncs(n / 4.0)), [], "a full group is allowed");
    let mut not_waiting = syncs(0.0);
    Arc::get_mut(&mut not_waiting.request.work).unwrap().program.commit = Commit::Nowait;
    assert_eq!(outcome(&not_waiting, CheckId::CommitsPerSync), Outcome::NotMade);
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
    assert_eq!(failed(&nodes([2.0, 1.0], n / 2.0)), []);
    let one = nodes([1.0, 8.0], n / 3.9);
    assert_eq!(failed(&one), [CheckId::CommitsPerSync]);
    let detail = check(&one, CheckId::CommitsPerSync).detail;
    assert!(detail.contains("commits at node 2 did not wait"), "{detail}");
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
    let (commits, redo) = ([CheckId::CommitsPerSync, CheckId::RedoOnDevice], CheckId::RedoSize);
    let others = CheckId::CommitsWindow;
    let excuses = [
        (Excuses::default(), vec![]),
        (Excuses { commits: Some(Excuse::Level("local".to_owned())), ..Excuses::default() }, commits.to_vec()),
        (
            Excuses { commits: Some(Excuse::ArmHas(vec!["fsync off".to_owned()])), ..Excuses::default() },
            commits.to_vec(),
        ),
        (Excuses { redo: Some(Excuse::CalibratedInArmA), ..Excuses::default() }, vec![redo]),
    ];
    for (excuses, excused) in excuses {
        let said = format!("{excuses:?}");
        let case = spoilt(excuses);
        for id in commits.into_iter().chain([redo, others]) {
            let expected = if excused.contains(&id) { Outcome::Noted } else { Outcome::Failed };
            assert_eq!(outcome(&case, id), expected, "{id} with {said}");
        }
    }
}

#[test]
fn time_lost_between_transactions_is_caught() {
    // A client that needs 1 ms between transactions of 2 ms.
    let case = lat1_case(2, each(2_000_000, 1_000_000));
    assert!((outside(&case) - 1.0 / 3.0).abs() < 0.01);
    assert_eq!(failed(&case), [CheckId::LittlesLaw]);
    let ended = |case: &mut Case| {
        case.measured.jobs = vec![JobResult { ran_until_ns: case.measured.schedule.start_ns, ..JobResult::default() }];
    };
    assert_eq!(outcome(&changed(ended), CheckId::LittlesLaw), Outcome::NotMade, "no job had time");
}

#[test]
fn a_late_or_lost_job_and_a_window_shorter_than_its_transactions_fail() {
    let late = changed(|case| case.measured.jobs[1].first_start_ns = Some(case.measured.schedule.open_ns + 1));
    assert_eq!(failed(&late), [CheckId::Window]);
    let lost = changed(|case| {
        case.measured.jobs[2].lost = Some("the server went away".into());
        case.full_disk = Some(". A disk of the database is full".into());
    });
    let check = check(&lost, CheckId::Window);
    assert_eq!(check.outcome, Outcome::Failed);
    assert!(check.detail.ends_with("the server went away. A disk of the database is full"), "{check:?}");
    let short = self::check(&case(4, 1_500_000_000), CheckId::Window);
    assert!(short.outcome == Outcome::Failed && short.detail.contains("--duration"), "{}", short.detail);
}

#[test]
fn errors_have_a_column_of_their_own_and_a_limit() {
    for (errors, expected) in [(1, Outcome::Noted), (500, Outcome::Failed)] {
        let case = changed(|case| {
            case.measured.merged.errors = errors;
            case.measured.merged.errors_total = errors;
            case.full_disk = Some("full".into());
        });
        let check = check(&case, CheckId::Errors);
        assert_eq!((check.outcome, check.detail.ends_with("full")), (expected, expected == Outcome::Failed));
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
    // Half of the transactions read; the others change 16 rows.
    let text = "code = \"MIX-16\"\nsummary = \"mixed\"\nevidence = { query = \"SELECT COUNT(*) FROM {t}\", counts = \"rows\" }\n\
                program = [{ bind = \"n\", to = \"sequence\" }, { choose = [{ share = 1, steps = [{ execute = \"look\" }] }, \
                { share = 1, steps = [{ execute = \"change\" }] }] }]\n\
                [[table]]\nname = \"t\"\nrows = 10\ncolumn = [{ name = \"id\", type = \"int\", fill = \"key\" }]\n\
                [[statement]]\nname = \"look\"\nsql = \"SELECT id FROM {t} WHERE id = :n\"\neffect = { read = 1 }\n\
                [[statement]]\nname = \"change\"\nsql = \"UPDATE {t} SET id = :n\"\neffect = { change = 16 }\n";
    let workload = read_file("mix.toml", text).unwrap();
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
            for n in 0..1000 {
                let start = schedule.open_ns + n * 1_000_000;
                books.completed(schedule, kind(n), start, None, start + 500_000 + n);
            }
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
