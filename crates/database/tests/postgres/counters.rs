//! The server's counters compared with the work done.

use loadline_database::Target;
use loadline_model::snapshot::counter;
use loadline_model::{Snapshot, column};
use loadline_workload::Arg;

use crate::server::*;
use crate::shared::*;

#[test]
fn commits_are_counted_exactly() {
    let db = server().database("counters");
    let work = work("LGWR-LAT1", &[]);
    let target = db.target();
    let mut observer = target.observer().unwrap();
    let start = observer.snapshot().unwrap();
    let _lock = target.lock().unwrap();
    prepare(target.as_ref(), &work, 2);
    target.doctor().unwrap();
    target.settle().unwrap();
    target.evidence(&work).unwrap();
    target.info().unwrap();
    let own_ns = target.abilities().driver().unwrap().overhead_ns().unwrap().unwrap();
    assert!((200.0..100_000.0).contains(&own_ns), "the cost of the loop itself: {own_ns} ns");
    let prepared = observer.snapshot().unwrap();
    assert_eq!(start.delta(&prepared, counter::COMMITS), Some(0.0), "preparing is loadline's own work");

    let mut client = target.client_session(&work, 0).unwrap();
    let before = observer.snapshot().unwrap();
    assert_eq!(prepared.delta(&before, counter::COMMITS), Some(0.0), "so is opening a session");
    for i in 0..37 {
        client.execute_and_commit(0, &[Arg::Bytes(&[i; 500]), Arg::Int(i64::from(i))]).unwrap();
        observer.sample_waits().unwrap();
    }
    for i in 0..5 {
        client.begin().unwrap();
        client.execute(0, &[Arg::Bytes(&[i; 300]), Arg::Int(1)]).unwrap();
        client.commit().unwrap();
    }
    client.begin().unwrap();
    client.execute(0, &[Arg::Bytes(&[9; 300]), Arg::Int(1)]).unwrap();
    client.rollback().unwrap();
    client.publish_counters().unwrap();
    let after = observer.snapshot().unwrap();
    let grown = |name| before.delta(&after, name).unwrap_or_else(|| panic!("no {name}"));
    assert_eq!((grown(counter::COMMITS), grown("pg_stat_database.xact_rollback")), (42.0, 1.0));
    assert_eq!((grown(counter::ROWS_CHANGED), grown("pg_stat_database.tup_updated")), (43.0, 43.0));
    assert!(grown(counter::REDO_BYTES) > 37.0 * 500.0 + 5.0 * 300.0);
    assert!(grown(counter::ROWS_READ) >= 43.0 && grown(counter::BLOCK_GETS) >= 86.0, "an index and a table");
    assert!(grown(counter::BLOCK_READS) <= grown(counter::BLOCK_GETS));
    assert_eq!(grown(counter::READ_BYTES), grown(counter::BLOCK_READS) * 8192.0);
    // The other tests of this binary use the same log: they add syncs, or sync our commits with theirs.
    for name in [counter::REDO_SYNCS, counter::REDO_WRITES] {
        assert!(grown(name) >= 5.0, "{name}: {}", grown(name));
    }
    assert!(after.counters.contains_key(counter::READ_NS), "a superuser's session has its reads timed");
    absent_columns_have_a_reason_and_no_counter(target.as_ref(), &after);
    assert!(after.at_ns > before.at_ns && after.at_ns <= loadline_storage::now_ns());

    let mut session = target.abilities().driver().unwrap().database_session(&work, 1).unwrap();
    let before = observer.snapshot().unwrap();
    assert_eq!(after.delta(&before, counter::COMMITS), Some(0.0));
    let done = done_in_slices(session.as_mut());
    let after = observer.snapshot().unwrap();
    assert_eq!(before.delta(&after, counter::COMMITS), Some(done), "a slice's commits show when it returns");

    target.settle().unwrap();
    // The checkpointer answers first and publishes its counters after that.
    let mut settled = after.clone();
    wait_for("the checkpoint", || {
        settled = observer.snapshot().unwrap();
        after.delta(&settled, counter::CHECKPOINTS) > Some(0.0)
    });
    let written = |name| after.delta(&settled, name).unwrap();
    assert_eq!(written(counter::COMMITS), 0.0, "settling is loadline's own work");
    assert!(written(counter::BLOCK_WRITES) >= 1.0);
    assert_eq!(written(counter::WRITE_BYTES), written(counter::BLOCK_WRITES) * 8192.0);
}

fn absent_columns_have_a_reason_and_no_counter(target: &dyn Target, snapshot: &Snapshot) {
    let absent = target.absent_columns();
    assert!(absent.iter().all(|(_, why)| !why.is_empty()), "{absent:?}");
    for (column, name) in
        [(column::REDO_BLOCKS_PER_S, counter::REDO_BLOCKS), (column::REDO_SYNC_WRITES_PER_S, counter::REDO_SYNCS)]
    {
        let is_absent = absent.iter().any(|(id, _)| *id == column);
        assert_eq!(is_absent, !snapshot.counters.contains_key(name), "{column}");
    }
    assert!(!snapshot.counters.contains_key("pg_stat_wal.wal_sync_time"), "not measured, so not 0");
    assert!(snapshot.proc_stat.is_none(), "a local server's CPU is read on this machine");
}

#[test]
fn waits_of_the_job_sessions_are_sampled() {
    let db = server().database("waits");
    let work = work("LGWR-LAT1", &[]);
    let target = db.target();
    prepare(target.as_ref(), &work, 4);
    let mut observer = target.observer().unwrap();
    assert_eq!(observer.sample_waits().unwrap().unwrap().sessions.len(), 0, "no job, no wait");
    let idle = target.client_session(&work, 3).unwrap();
    assert_eq!(observer.sample_waits().unwrap().unwrap().sessions, [("Client:idle".to_owned(), 1)].into());
    assert_one_task(&observer.session_tasks());
    drop(idle);
    let workers: Vec<_> = (0..3)
        .map(|job| {
            let mut session = target.abilities().driver().unwrap().database_session(&work, job).unwrap();
            std::thread::spawn(move || session.run_slice(loadline_storage::now_ns() + 3_000_000_000).map(|_| ()))
        })
        .collect();
    let mut profile = loadline_model::snapshot::WaitProfile::default();
    for _ in 0..30 {
        profile.add(&observer.sample_waits().unwrap().unwrap());
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    for worker in workers {
        worker.join().unwrap().unwrap();
    }
    let waiting = profile.mean_sessions(|event| target.facts().waits.log_sync.has(event)).unwrap();
    assert!(waiting > 0.0 && waiting <= 3.0, "{profile:?}");
    let all: u64 = profile.sessions.values().sum();
    assert!(all <= 30 * 4, "{profile:?}");
}

#[test]
fn other_sessions_at_work_are_sampled() {
    let db = server().database("others");
    let (own, blind) = (db.target(), crate::server::open(&server().socket_url("limited", "others")).unwrap());
    let (mut own, mut blind) = (own.observer().unwrap(), blind.observer().unwrap());
    let work = || drop(db.psql("SELECT count(*) FROM generate_series(1, 8000000)"));
    own.sample_waits().unwrap();
    assert!(own.snapshot().unwrap().counters.contains_key(counter::OTHER_SESSIONS_CPU_NS));
    // Other tests of this binary have sessions too.
    others_at_work_are_seen(own.as_mut(), work);
    std::thread::scope(|scope| {
        let query = scope.spawn(|| db.psql("SELECT pg_sleep(2)"));
        let mut unknown = false;
        while !query.is_finished() {
            let timed = blind.snapshot().unwrap().counters.contains_key(counter::OTHER_SESSIONS_CPU_NS);
            unknown |= blind.sample_waits().unwrap().unwrap().others.is_none() && !timed;
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
        assert!(unknown, "what the role may not see is unknown");
    });
}
