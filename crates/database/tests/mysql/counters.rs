//! Both drivers: their work against the rows and counters of the server.

use std::sync::Arc;

use loadline_database::{Observer, Target, TargetError, Work};
use loadline_model::snapshot::{WaitProfile, counter};
use loadline_model::{Driver, Snapshot, column};
use loadline_workload::{Arg, ColumnDef, LogicalType};

use crate::server::*;
use crate::shared::*;

/// How many commits the server counts while `work` is done.
fn commits(observer: &mut dyn Observer, work: impl FnOnce()) -> f64 {
    let before = observer.snapshot().unwrap();
    work();
    before.delta(&observer.snapshot().unwrap(), counter::COMMITS).unwrap()
}

#[test]
fn commits_are_counted_to_the_last_one() {
    let server = server_alone();
    let target = &server.target;
    let mut observer = target.observer().unwrap();
    let small = work("LGWR-LAT1", &[]);
    // One statement: autocommit. Preparing and looking is loadline's own work.
    target.create(&small).unwrap();
    let start = observer.snapshot().unwrap();
    let lock = target.lock().unwrap();
    target.load(&small, 2).unwrap();
    target.doctor().unwrap();
    target.evidence(&small).unwrap();
    target.info().unwrap();
    let mut client = target.client_session(&small, 0).unwrap();
    let before = observer.snapshot().unwrap();
    assert_eq!(start.delta(&before, counter::COMMITS), Some(0.0), "preparing is loadline's own work");
    for i in 0..37 {
        client.execute_and_commit(0, &[Arg::Bytes(&[i; 500]), Arg::Int(i64::from(i))]).unwrap();
    }
    let after = observer.snapshot().unwrap();
    let grown = |name| before.delta(&after, name).unwrap_or_else(|| panic!("no {name}"));
    for name in [counter::COMMITS, counter::ROWS_CHANGED, "Handler_update"] {
        assert_eq!(grown(name), 37.0, "{name}");
    }
    assert!(grown(counter::REDO_BYTES) > 37.0 * 500.0);
    for name in [counter::REDO_SYNCS, counter::REDO_WRITES, counter::ROWS_READ, counter::BLOCK_GETS] {
        assert!(grown(name) >= 37.0, "{name}: one session, each commit waits");
    }
    assert!(grown(counter::BLOCK_READS) <= grown(counter::BLOCK_GETS));
    assert_eq!(grown(counter::READ_BYTES), grown(counter::BLOCK_READS) * 16384.0);
    assert!(grown(counter::WRITE_BYTES) >= grown(counter::BLOCK_WRITES) * 16384.0, "each page, some of them twice");
    assert!(!after.counters.contains_key(counter::READ_NS), "not timed, so not 0");
    assert!(after.at_ns > before.at_ns && after.at_ns <= loadline_storage::now_ns());
    drop(lock);

    // Several statements: COMMIT is sent.
    let large = loaded(target.as_ref(), work("LGWR-SIZE", &[("own-rows", 8)]), 2);
    let mut client = target.client_session(&large, 0).unwrap();
    let counted = commits(observer.as_mut(), || {
        for i in 0..6 {
            client.begin().unwrap();
            for row in 0..3 {
                client.execute(0, &[Arg::Bytes(&[i; 300]), Arg::Int(row)]).unwrap();
            }
            if i < 5 { client.commit().unwrap() } else { client.rollback().unwrap() }
        }
    });
    assert_eq!(counted, 5.0);

    // In the database; a private server's commits do not wait for this workload, and wait again after.
    let huge = work("LGWR-THR", &[("rows", 8)]);
    target.create(&huge).unwrap();
    assert_eq!(server.sql("SELECT @@GLOBAL.innodb_flush_log_at_trx_commit"), "0");
    target.load(&huge, 2).unwrap();
    target.abilities().driver().unwrap().install(&huge).unwrap();
    target.abilities().driver().unwrap().overhead_ns().unwrap();
    // The procedure sends COMMIT, unlike a client whose transaction is one statement.
    target.reset(&huge, Driver::Database).unwrap();
    let mut session = target.abilities().driver().unwrap().database_session(&huge, 1).unwrap();
    let mut done = 0.0;
    let counted = commits(observer.as_mut(), || done = done_in_slices(session.as_mut()));
    assert_eq!(counted, done);
    let counters = observer.snapshot().unwrap().counters;
    assert!(!counters.contains_key(counter::REDO_SYNCS), "not counted, so not said");
    assert!(target.absent_columns().iter().any(|(id, _)| *id == column::REDO_SYNC_WRITES_PER_S));
    target.create(&small).unwrap();
    assert_eq!(server.sql("SELECT @@GLOBAL.innodb_flush_log_at_trx_commit"), "1");
    assert!(target.absent_columns().iter().all(|(id, _)| *id != column::REDO_SYNC_WRITES_PER_S));
    assert!(target.absent_columns().iter().all(|(_, why)| !why.is_empty()));

    // Tests of workloads follow each other in each repetition, their tables made once.
    target.load(&small, 2).unwrap();
    target.reset(&huge, Driver::Database).unwrap();
    assert_eq!(server.sql("SELECT @@GLOBAL.innodb_flush_log_at_trx_commit"), "0");
    target.reset(&small, Driver::Client).unwrap();
    assert_eq!(server.sql("SELECT @@GLOBAL.innodb_flush_log_at_trx_commit"), "1");
    let mut client = target.client_session(&small, 0).unwrap();
    let one = || assert_eq!(client.execute_and_commit(0, &[Arg::Bytes(&[1; 500]), Arg::Int(1)]).unwrap().0, 1);
    assert_eq!(commits(observer.as_mut(), one), 1.0);
}

/// Lets `jobs` clients commit while `observer` samples them; the counters then, and the samples.
fn under_load(target: &dyn Target, observer: &mut dyn Observer, jobs: u32) -> (Snapshot, WaitProfile) {
    let small = work("LGWR-LAT1", &[]);
    std::thread::scope(|scope| {
        // Dropped also where something fails below: clients go on as long as it is there, and the scope waits for them.
        let goes_on = Arc::new(());
        for job in 0..jobs {
            let mut client = target.client_session(&small, job).unwrap();
            let (goes_on, key) = (Arc::downgrade(&goes_on), small.start(job).first_key);
            scope.spawn(move || {
                while goes_on.strong_count() > 0 {
                    client.execute_and_commit(0, &[Arg::Bytes(&[7; 500]), Arg::Int(key)]).unwrap();
                }
            });
        }
        let mut profile = WaitProfile::default();
        for _ in 0..400 {
            profile.add(&observer.sample_waits().unwrap().unwrap());
            std::thread::sleep(std::time::Duration::from_millis(3));
        }
        (observer.snapshot().unwrap(), profile)
    })
}

#[test]
fn with_a_binary_log_commits_are_counted_once_and_what_is_not_timed_is_said() {
    let server = Server::start("", &[("log_bin", "bin")]);
    let target = &server.target;
    let small = loaded(target.as_ref(), work("LGWR-LAT1", &[]), 4);
    let mut observer = target.observer().unwrap();
    assert!(observer.snapshot().unwrap().counters.contains_key(counter::LOG_WAIT_NS));
    // A change is a commit of the binary log as well; a read is not, and counts once.
    let query = loaded(target.as_ref(), work("SRV-QUERY1", &[]).with_size(1 << 20), 1);
    for (work, args) in [(&query, &[Arg::Int(1)][..]), (&small, &[Arg::Bytes(&[1; 500]), Arg::Int(1)])] {
        target.reset(work, Driver::Client).unwrap();
        let mut client = target.client_session(work, 0).unwrap();
        let many = || (0..37).for_each(|_| assert_eq!(client.execute_and_commit(0, args).unwrap().0, 1));
        assert_eq!(commits(observer.as_mut(), many), 37.0, "{}", work.workload.code);
    }
    // Where the server does not time them, it is said what to do, and the samples are left.
    server.sql("UPDATE performance_schema.setup_instruments SET ENABLED = 'NO' WHERE NAME = 'stage/sql/Commit'");
    let untimed = server.as_users("root").unwrap();
    let finding = untimed.doctor().unwrap().into_iter().find(|f| f.id == "performance_schema").unwrap();
    assert!(finding.advice.contains("UPDATE performance_schema.setup_instruments"), "{finding:?}");
    let snapshot = untimed.observer().unwrap().snapshot().unwrap();
    assert!(!snapshot.counters.contains_key(counter::LOG_WAIT_NS));
    server.sql("UPDATE performance_schema.setup_instruments SET ENABLED = 'YES'");
    server.sql("UPDATE performance_schema.setup_actors SET ENABLED = 'NO'");
    let findings = server.as_users("root").unwrap().doctor().unwrap();
    assert!(findings.iter().any(|f| f.advice.contains("check setup_actors")), "{findings:?}");
}

/// Without a binary log most sessions wait after the stage of the commit, where nothing is timed.
#[test]
fn without_a_binary_log_the_wait_for_the_log_is_seen_in_samples() {
    let server = server_alone();
    let target = server.as_users("root").unwrap();
    let small = loaded(target.as_ref(), work("LGWR-LAT1", &[]), 8);
    let mut observer = target.observer().unwrap();
    assert_eq!(observer.sample_waits().unwrap().unwrap().sessions.len(), 0, "no job, no wait");
    let client = target.client_session(&small, 0).unwrap();
    // Once it has sent its last answer.
    let idle = [("Client:idle".to_owned(), 1)].into();
    wait_for("an idle session", || observer.sample_waits().unwrap().unwrap().sessions == idle);
    assert_one_task(&observer.session_tasks());
    drop(client);
    drop(observer);
    let pooled = Server::start("", &[("thread_handling", "pool-of-threads")]);
    loaded(pooled.target.as_ref(), work("LGWR-LAT1", &[]), 8);
    for (server, held_back) in [(&*server, "Stage:Updating status"), (&pooled, "Stage:Starting cleanup")] {
        let target = server.as_users("root").unwrap();
        let mut observer = target.observer().unwrap();
        let mut waiting = |flush: u8| {
            server.sql(&format!("SET GLOBAL innodb_flush_log_at_trx_commit = {flush}"));
            let (after, profile) = under_load(target.as_ref(), observer.as_mut(), 8);
            assert!(!after.counters.contains_key(counter::LOG_WAIT_NS), "a part of the wait is not the wait");
            (profile.mean_sessions(|event| target.facts().waits.log_sync.has(event)).unwrap(), profile)
        };
        let (without, with) = (waiting(0), waiting(1));
        assert!(with.0 > without.0 && with.0 <= 8.0, "waiting: {with:?}; not waiting: {without:?}");
        assert!(target.facts().waits.log_sync.has(held_back) && with.1.sessions.contains_key(held_back), "{with:?}");
    }
}

#[test]
fn other_sessions_at_work_are_sampled_and_timed() {
    let server = server_alone();
    server.sql("CREATE USER IF NOT EXISTS blind@localhost; GRANT ALL ON loadline.* TO blind@localhost");
    let (own, blind) = (server.as_users("root").unwrap(), server.as_users("blind").unwrap());
    let (_lock, mut own) = (own.lock().unwrap(), own.observer().unwrap());
    let mut blind = blind.observer().unwrap();
    // Once the sessions that opened the targets have ended.
    wait_for("none but loadline's own", || own.sample_waits().unwrap().unwrap().others == Some(0));
    let begin = std::time::Instant::now();
    let work = || drop(server.sql("SELECT BENCHMARK(4000000, MD5(RAND()))"));
    let used = others_at_work_are_seen(own.as_mut(), work);
    assert!(used <= begin.elapsed().as_nanos() as f64, "{used} ns");
    let timed = blind.snapshot().unwrap().counters.get(counter::OTHER_SESSIONS_CPU_NS).copied();
    assert_eq!((blind.sample_waits().unwrap().unwrap().others, timed), (None, None), "it may not see them");
}

fn contents(server: &Server, work: &Work) -> String {
    let first = &work.workload.tables[0];
    let table = format!("loadline.{}_{}", work.workload.code.to_lowercase().replace('-', "_"), first.name);
    let hex = |c: &ColumnDef| if c.logical == LogicalType::Bytes { format!("HEX({})", c.name) } else { c.name.clone() };
    let row: Vec<String> = first.columns.iter().map(hex).collect();
    let row = format!("MD5(CONCAT_WS(':', {}))", row.join(", "));
    server.sql(&format!(
        "SELECT COUNT(*), MD5(GROUP_CONCAT({row} ORDER BY id SEPARATOR '')), \
         BIT_XOR(CONV(SUBSTRING({row}, 1, 15), 16, 10)) FROM {table}"
    ))
}

#[test]
fn both_drivers_write_the_same_bytes_and_the_evidence_equals_the_work() {
    let server = server_alone();
    let seen = both_drivers_write_the_same_bytes(server.target.as_ref(), |work| contents(&server, work));
    assert_eq!(seen, 0, "one answer: the moment of the commit cannot be seen");
}

#[test]
fn a_slice_ends_in_time_and_its_times_are_on_our_clock() {
    let server = server_alone();
    let fewest = slices(server.target.as_ref(), &work("LGWR-LAT1", &[]), 200_000_000, 2_000_000, 0.0);
    assert!(fewest > 10, "{fewest}");
}

#[test]
fn a_failed_statement_is_an_error_and_the_session_lives_on() {
    let server = server_alone();
    let work = loaded(server.target.as_ref(), work("LGWR-LAT1", &[]), 1);
    let (mut client, committed) = crate::shared::a_failed_statement_is_an_error_and_the_session_lives_on(
        server.target.as_ref(),
        &work,
        &[7; 5000],
        "1406",
    );
    assert!(committed.is_ok(), "the transaction goes on without it: {committed:?}");
    client.canceller().cancel();
    assert!(matches!(client.execute(0, &[Arg::Bytes(b"x"), Arg::Int(0)]), Err(TargetError::Lost(_))));
}

/// Defaults of a server for its sessions must not reach loadline's.
#[test]
fn no_sql_mode_and_no_character_set_of_the_server_changes_the_work() {
    let server = server_alone();
    let work = work("LGWR-LAT1", &[]);
    let mut seen = Vec::new();
    for (mode, charset, init) in [
        ("STRICT_TRANS_TABLES", "utf8mb4", ""),
        ("ANSI_QUOTES,NO_BACKSLASH_ESCAPES,PIPES_AS_CONCAT,PAD_CHAR_TO_FULL_LENGTH", "latin1", ""),
        ("ORACLE", "utf16", ""),
        ("MAXDB,NO_AUTO_VALUE_ON_ZERO", "ucs2", "SET NAMES latin1"),
        ("EMPTY_STRING_IS_NULL,SIMULTANEOUS_ASSIGNMENT,HIGH_NOT_PRECEDENCE", "utf32", "SET sql_mode = ORACLE"),
    ] {
        server.sql(&format!(
            "SET GLOBAL sql_mode = '{mode}'; SET GLOBAL character_set_server = {charset}; SET GLOBAL init_connect = '{init}'"
        ));
        // init_connect is for those who are no administrators.
        server.sql("CREATE OR REPLACE USER plain@localhost; GRANT ALL ON loadline.* TO plain@localhost");
        let said = (|| {
            let target = server.as_users("plain")?;
            target.create(&work)?;
            target.load(&work, 1)?;
            target.abilities().driver().unwrap().install(&work)?;
            let mut session = target.abilities().driver().unwrap().database_session(&work, 0)?;
            for _ in 0..5 {
                session.run_slice(0)?;
            }
            let mut client = target.client_session(&work, 0)?;
            let mut stream = work.stream(0).map_err(|e| TargetError::Usage(e.to_string()))?;
            for _ in 0..5 {
                assert_eq!(transact(&mut stream, &work, client.as_mut()), None);
            }
            assert_eq!(target.evidence(&work)?, Some(10));
            Ok::<_, TargetError>((contents(&server, &work), target.clean()?))
        })();
        server.sql(
            "SET GLOBAL sql_mode = DEFAULT; SET GLOBAL character_set_server = DEFAULT; SET GLOBAL init_connect = ''",
        );
        let (contents, cleaned) = said.unwrap_or_else(|e| panic!("{mode} {charset} {init}: {e}"));
        assert!(cleaned.contains(&"the database loadline".to_owned()), "{mode} {charset}: {cleaned:?}");
        seen.push(contents);
    }
    assert!(seen.iter().all(|contents| *contents == seen[0]), "{seen:#?}");
    server.sql("DROP USER plain@localhost");
}
