//! Everything above the driver, on fake servers.

mod awr_tests;
mod doctor_says;
mod nodes;
mod plsql;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

use loadline_model::{Driver, column};
use loadline_workload::{Arg, CATALOGUE, Workload};

use super::fake::{FakeServer, row};
use super::session::{Bind, OraError, SETUP, SessionId};
use super::*;
use crate::secret::Secret;
use crate::work::Work;

fn work_of(w: &'static Workload) -> Work {
    // PMD is slow with many rows in one statement, because it looks far ahead at each assignment.
    let several = matches!(w.code, "DBL-12" | "DBL-STREAM");
    let given = if several { [("rows".to_owned(), 3)].into() } else { BTreeMap::new() };
    Work::new(w, w.params(&given).unwrap().with_size(1 << 20), 1, 0.0)
}

/// The first of the log writer's workloads.
fn work() -> Work {
    work_of(loadline_workload::find("LGWR-LAT1").unwrap())
}

fn request() -> OpenRequest {
    OpenRequest::new("oracle://ann:secret@db/x", PathBuf::new())
}

/// A server that allows everything and has no tables yet.
fn willing() -> FakeServer {
    let next = std::sync::atomic::AtomicI64::new(0);
    FakeServer::new(move |sql, binds| {
        Ok(if sql.starts_with("DECLARE") && sql.contains(":overhead_ns") {
            vec![row(&["2100"])]
        } else if sql.starts_with("DECLARE") {
            let n = next.fetch_add(3, std::sync::atomic::Ordering::Relaxed) + 3;
            vec![row(&[&format!("{n} 1000 3000 3100 3900 1"), "900 2;", "800 1;810 1;"])]
        } else if sql.contains("SYSTIMESTAMP") {
            vec![row(&["800000000000000"])]
        } else if sql == awr::SNAPSHOT {
            vec![row(&[&next.fetch_add(1, std::sync::atomic::Ordering::Relaxed).to_string()])]
        } else if sql == awr::FILED {
            vec![row(&["4711", "1", "1"])]
        } else if sql.starts_with("SELECT OUTPUT") {
            vec![row(&["<html>"]), row(&["∅"]), row(&["</html>"])]
        } else if sql.contains("ALL_PROCEDURES") {
            vec![row(&["31"])]
        } else if sql.contains("'INSTANCE')") {
            vec![row(&["1"])]
        } else if sql.contains("ACTION LIKE") {
            vec![row(&["Commit:log file sync", "3"]), row(&["CPU", "1"])]
        } else if sql.starts_with("SELECT COUNT(*)") && sql.contains("BETWEEN :1 AND :2") {
            vec![row(&["0"])]
        } else if sql.starts_with("SELECT COUNT(*)") {
            vec![row(&["17"])]
        } else if sql.starts_with("SELECT NAME, SUM(VALUE)") {
            vec![row(&["redo size", "1000"]), row(&["user commits", "5"]), row(&["redo writes", "4"])]
        } else if sql.starts_with("SELECT SUM(") || sql.starts_with("SELECT a.n + ") {
            vec![row(&["17"])]
        } else if sql.starts_with("SELECT SYS_CONTEXT") {
            vec![row(&["orcl/pdb as ANN", "pdb", "orcl1", "PRIMARY", "ANN", "ANN"])]
        } else if sql.starts_with("INSERT") {
            vec![row(&["1"]); sql.matches(" INTO ").count()]
        } else if sql.starts_with("UPDATE") {
            // One row, all keys of a range, or those of a list.
            let rows = match (binds, sql.split_once(" IN (")) {
                ([Bind::Int(first), Bind::Int(last)], _) if sql.ends_with("BETWEEN :1 AND :2") => last - first + 1,
                (_, Some((_, list))) => list.split(',').count() as i64,
                _ => 1,
            };
            vec![row(&["1"]); rows as usize]
        } else {
            vec![]
        })
    })
}

/// Does all that a run does, with every workload and both drivers.
fn go_through(server: &FakeServer, native_report: bool) {
    let target = cluster::Oracle::open(&OpenRequest { native_report, ..request() }, server.connector()).unwrap();
    target.info().unwrap();
    target.doctor().unwrap();
    target.job_limit().unwrap();
    for workload in CATALOGUE.iter() {
        let work = work_of(workload);
        let lock = target.lock().unwrap();
        target.create(&work).unwrap();
        target.load(&work, 2).unwrap();
        for table in workload.tables.iter().filter(|t| t.scope == loadline_workload::Scope::DataSet) {
            let mut loader = schema::OraLoader(Box::new(server.clone()));
            let sql = crate::changed_rows::query(&loader, &work, table);
            assert!(crate::data_set::Loader::rows(&mut loader, &sql).unwrap().is_empty());
        }
        target.settle().unwrap();
        target.abilities().block_cache.unwrap().set_cache(Some(1 << 30)).unwrap();
        target.abilities().checkpoints.unwrap().checkpoint().unwrap();
        target.abilities().driver().unwrap().overhead_ns().unwrap();
        let mut client = target.client_session(&work, 1).unwrap();
        let mut stream = work.stream(1).unwrap();
        let can = |driver| render::capabilities().refusal(driver, workload.needs).is_none();
        client.begin().unwrap();
        if work.program.statements.iter().any(|s| s.effect.reads()) {
            // The fake server returns no rows, which the program does not accept.
            for (i, s) in work.program.statements.iter().enumerate() {
                client.execute(i, &vec![Arg::Int(0); s.template.vars().count()]).unwrap();
            }
        } else if can(Driver::Client) {
            stream.transaction(client.as_mut()).unwrap();
        }
        client.commit().unwrap();
        if can(Driver::Database) {
            target
                .abilities()
                .driver()
                .unwrap()
                .database_session(&work, 1)
                .unwrap()
                .run_slice(loadline_storage::now_ns())
                .unwrap();
        }
        let mut observer = target.observer().unwrap();
        observer.snapshot().unwrap();
        observer.sample_waits().unwrap();
        client.canceller().cancel();
        let views = target.abilities().statistics_views.unwrap();
        assert!(views.views().unwrap().iter().all(|view| view.absent.is_none()));
        views.observer_of_all().unwrap().sample_waits().unwrap();
        if let Some(reports) = target.abilities().native_reports {
            let mark = reports.native_mark().unwrap();
            reports.native_report(mark).unwrap();
        }
        assert_eq!(target.evidence(&work).unwrap().is_some(), workload.evidence.is_some());
        drop(lock);
    }
}

/// A server with tables of loadline, a table that only has its prefix, and no privileges.
fn unwilling() -> FakeServer {
    FakeServer::new(|sql, _| {
        let mark = sql::mark();
        if sql == schema::PREFIXED_TABLES {
            return Ok(vec![
                row(&["LOADLINE_LGWR_LAT1_REDO", &mark]),
                row(&["LOADLINE_LOCK", &mark]),
                row(&["LOADLINE_PLANS", "∅"]),
            ]);
        }
        if sql.contains("V$") {
            return Err(OraError::numbered(942, "ORA-00942: table or view does not exist"));
        }
        if sql.starts_with("ALTER SYSTEM") {
            return Err(OraError::numbered(1031, "ORA-01031: insufficient privileges"));
        }
        if sql.contains("'SESSION_USER'), SYS_CONTEXT") {
            return Ok(vec![row(&["orcl", "PDB1", "orcl1", "PRIMARY", "ANN", "ANN"])]);
        }
        if sql.contains("USER_TS_QUOTAS") {
            return Ok(vec![row(&["USERS", "∅", "8192", "NO"])]);
        }
        Ok(vec![row(&["1"])])
    })
}

#[test]
fn a_second_run_finds_the_lock_taken() {
    let busy = FakeServer::new(|sql, _| {
        if sql.starts_with("LOCK TABLE") {
            return Err(OraError::numbered(54, "ORA-00054: resource busy"));
        }
        Ok(vec![])
    });
    let target = cluster::Oracle::open(&request(), busy.connector()).unwrap();
    let Err(TargetError::Refused(text)) = target.lock().map(drop) else { panic!("the lock was taken") };
    assert!(text.contains("another run"), "{text}");
}

#[test]
fn only_tables_of_loadline_are_dropped() {
    let server = unwilling();
    let target = cluster::Oracle::open(&request(), server.connector()).unwrap();
    assert_eq!(target.clean().unwrap(), ["table LOADLINE_LGWR_LAT1_REDO"]);
    let dropped: Vec<String> = server.texts().into_iter().filter(|t| t.starts_with("DROP")).collect();
    assert_eq!(
        dropped,
        [
            "DROP TABLE \"LOADLINE_LGWR_LAT1_REDO\" CASCADE CONSTRAINTS PURGE",
            "DROP TABLE \"LOADLINE_LOCK\" CASCADE CONSTRAINTS PURGE"
        ]
    );
    // A table with the name of one of ours and without our comment stops a run.
    let theirs = FakeServer::new(|sql, _| {
        Ok(if sql == schema::PREFIXED_TABLES { vec![row(&["LOADLINE_LGWR_LAT1_REDO", "ours"])] } else { vec![] })
    });
    let target = cluster::Oracle::open(&request(), theirs.connector()).unwrap();
    assert!(matches!(target.create(&work()), Err(TargetError::Refused(_))));
    assert!(target.clean().unwrap().is_empty());
    assert!(!theirs.texts().iter().any(|t| t.starts_with("DROP TABLE \"LOADLINE_LGWR")));
}

#[test]
fn without_grants_figures_are_absent_and_nothing_else_fails() {
    let target = cluster::Oracle::open(&request(), unwilling().connector()).unwrap();
    let absent = target.absent_columns();
    for id in [column::REDO_MIB_PER_S, column::LOG_FILE_SYNC_MS, column::CPU_BUSY_PCT, column::COMMITS_DATABASE] {
        let why = absent.iter().find(|(c, _)| *c == id).map(|(_, why)| why.as_str());
        assert!(why.is_some_and(|w| w.contains("ORA-00942") && w.contains("GRANT")), "{id}: {why:?}");
    }
    assert!(target.observer().unwrap().snapshot().unwrap().counters.is_empty());
    assert!(target.settle().unwrap().unwrap().contains("ALTER SYSTEM"));
    assert_eq!(target.job_limit().unwrap().jobs, None);
}

#[test]
fn a_slice_that_ends_early_is_continued() {
    // The first run of the block is full after 2 transactions; the second crosses the end.
    let calls = std::sync::atomic::AtomicU32::new(0);
    let server = FakeServer::new(move |sql, binds| {
        if !sql.starts_with("DECLARE") {
            return Ok(vec![row(&["800000000000000"])]);
        }
        let first = calls.fetch_add(1, std::sync::atomic::Ordering::Relaxed) == 0;
        assert_eq!(binds.len(), 5 + 3 + 3, "keys, draw, end, sequence; pieces; texts");
        Ok(vec![if first {
            row(&["2 800000000001000 800000000001500 800000000001600 800000000001900 0", "400 1;500 1;", "300 2;"])
        } else {
            row(&["4 800000000002000 800000000002500 800000000002600 800000000002900 1", "450 1;", "350 1;"])
        }])
    });
    let target = cluster::Oracle::open(&request(), server.connector()).unwrap();
    let slice = target
        .abilities()
        .driver()
        .unwrap()
        .database_session(&work(), 0)
        .unwrap()
        .run_slice(loadline_storage::now_ns())
        .unwrap();
    assert_eq!((slice.transaction.count(), slice.transaction.sum_ns()), (3, 1_350_000));
    assert_eq!(slice.commit.count(), 3);
    let end = slice.end.unwrap();
    assert_eq!((end.commit_ns - end.start_ns, end.end_ns - end.commit_ns), (100_000, 300_000));
}

#[test]
fn what_the_jobs_wait_for_is_sampled() {
    let server = willing();
    let target = cluster::Oracle::open(&request(), server.connector()).unwrap();
    let sample = target.observer().unwrap().sample_waits().unwrap().unwrap();
    assert_eq!(sample.sessions, [("CPU".to_owned(), 1), ("Commit:log file sync".to_owned(), 3)].into());
    let mut profile = loadline_model::snapshot::WaitProfile::default();
    profile.add(&sample);
    assert_eq!(profile.mean_sessions(target.facts().log_sync_events), Some(3.0));
    let asked = server.texts().into_iter().find(|t| t.contains("ACTION LIKE")).unwrap();
    assert!(
        asked.contains("FROM GV$SESSION") && asked.contains("MODULE = 'loadline' AND ACTION LIKE 'job %'"),
        "{asked}"
    );
    // If sessions cannot be read there is no figure, and nothing fails.
    let target = cluster::Oracle::open(&request(), unwilling().connector()).unwrap();
    assert_eq!(target.observer().unwrap().sample_waits().unwrap(), None);
}

#[test]
fn statistics_views_are_of_all_instances_and_hide_secrets() {
    use loadline_model::activity::{Topic, View, growth};
    let executed = std::sync::atomic::AtomicU32::new(0);
    let server = FakeServer::new(move |sql, _| {
        Ok(if sql.contains("FROM GV$SQLSTATS") {
            let n = executed.fetch_add(7, std::sync::atomic::Ordering::Relaxed);
            vec![row(&["UPDATE T SET V = :1", "abc", &n.to_string(), "2.5", "1", "0", "0", "0", "7", "9", "0", "1"])]
        } else if sql.contains("FROM V$SYSTEM_PARAMETER") {
            vec![row(&["processes", "600"]), row(&["tde_key_location", "geheim"]), row(&["audit_trail", "∅"])]
        } else {
            vec![]
        })
    });
    let target = cluster::Oracle::open(&request(), server.connector()).unwrap();
    let views = target.abilities().statistics_views.unwrap();
    let grown = growth(&views.views().unwrap(), views.views().unwrap());
    for topic in Topic::ALL {
        assert!(grown.iter().any(|v| v.topic == topic), "{topic:?}");
    }
    let of = |topic| grown.iter().find(|v| v.topic == topic).unwrap();
    let statements = of(Topic::Statements);
    let executions = statements.columns.iter().position(|c| c.title == "executions").unwrap();
    assert_eq!(View::number(&statements.rows[0], executions), Some(7.0));
    let shown = format!("{:?}", of(Topic::Settings).rows);
    assert!(shown.contains("600") && shown.contains("(set, not shown)") && !shown.contains("geheim"), "{shown}");
    views.observer_of_all().unwrap().sample_waits().unwrap();
    let asked = server.texts().into_iter().rfind(|t| t.starts_with("SELECT W, ")).unwrap();
    assert!(asked.contains("NOT (NVL(MODULE, '-') = 'loadline' AND NVL(ACTION, '-') LIKE '%')"), "{asked}");
    let target = cluster::Oracle::open(&request(), unwilling().connector()).unwrap();
    for view in target.abilities().statistics_views.unwrap().views().unwrap() {
        assert!(view.absent.unwrap().contains("GRANT SELECT_CATALOG_ROLE"), "{}", view.title);
    }
}

#[test]
fn the_flash_cache_has_a_figure_if_it_takes_writes() {
    let why = |value: &'static str| {
        let server = FakeServer::new(move |sql, _| {
            Ok(if sql.contains("physical write requests optimized'") { vec![row(&[value])] } else { vec![] })
        });
        let target = cluster::Oracle::open(&request(), server.connector()).unwrap();
        target.absent_columns().into_iter().find(|(c, _)| *c == column::FLASH_CACHE_WRITE_PCT).map(|(_, why)| why)
    };
    assert_eq!(why("12345"), None);
    for none in ["0", "∅"] {
        assert!(why(none).unwrap().contains("no Exadata"));
    }
}

#[test]
fn a_call_that_hangs_is_cancelled_by_another_session() {
    let server = willing();
    let target = cluster::Oracle::open(&request(), server.connector()).unwrap();
    let cancel = |server: &FakeServer, times: usize| {
        let said = |server: &FakeServer| server.texts().iter().filter(|t| t.starts_with("ALTER SYSTEM CANCEL")).count();
        for _ in 0..500 {
            if said(server) >= times {
                break;
            }
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
        said(server)
    };
    let client = target.client_session(&work(), 0).unwrap();
    let database = target.abilities().driver().unwrap().database_session(&work(), 1).unwrap();
    client.canceller().cancel();
    database.canceller().cancel();
    assert_eq!(cancel(&server, 2), 2);
    assert!(server.texts().contains(&"ALTER SYSTEM CANCEL SQL '12, 34567, @1'".to_owned()));
    // Without the privilege the statement is sent once, and cancelling returns at once.
    let refusing = unwilling();
    let target = cluster::Oracle::open(&request(), refusing.connector()).unwrap();
    target.client_session(&work(), 0).unwrap().canceller().cancel();
    assert_eq!(cancel(&refusing, 1), 1);
}

#[test]
fn without_the_driver_it_says_how_to_build_it_in() {
    let address = address::OraAddress::parse(&request().url).unwrap();
    let mut errors = vec![no_driver::connect(&address, &Secret::new("secret".to_owned()), "").err().unwrap()];
    if !driver::BUILT_IN {
        errors.extend(crate::open(&request()).err());
    }
    for error in errors {
        assert!(matches!(error, TargetError::Unsupported(_)));
        let text = error.to_string();
        assert!(text.contains("--features oracle") && !text.contains("secret"), "{text}");
    }
}
