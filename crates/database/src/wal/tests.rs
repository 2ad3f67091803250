//! The log as a target, without a run.

use std::path::Path;
use std::time::{Duration, Instant};

use loadline_model::snapshot::counter;
use loadline_workload::CATALOGUE;

use super::*;
use crate::embedded::tests::commit;

fn open(url: &str, scratch: &Path) -> Result<Wal, TargetError> {
    Wal::open(&OpenRequest::new(url, scratch.to_owned()))
}

#[test]
fn counters_say_what_was_done() {
    let scratch = tempfile::tempdir().unwrap();
    let wal = open("wal:?file-size=4MiB", scratch.path()).unwrap();
    for workload in CATALOGUE.iter().filter(|w| w.redo.is_some()) {
        let work = Work::from_catalogue(&workload.code, &[]).unwrap();
        let mut observer = wal.observer().unwrap();
        let mut session = wal.client_session(&work, 0).unwrap();
        let mut stream = work.stream(0).unwrap();
        let (before, evidence) = (observer.snapshot().unwrap(), wal.evidence(&work).unwrap().unwrap());
        let n = 5;
        for _ in 0..n {
            commit(session.as_mut(), &mut stream);
        }
        wal.settle().unwrap();
        let after = observer.snapshot().unwrap();
        let grown = |name| before.delta(&after, name).unwrap();
        let rows = work.stream(0).unwrap().rows_changed_by(&work.program, n);
        assert_eq!(grown(counter::COMMITS), n as f64, "{}", workload.code);
        assert_eq!(wal.evidence(&work).unwrap().unwrap() - evidence, rows as i64);
        let payload = (work.params.get("payload") + 8) as u64;
        let least = rows * (payload + loadline_logwriter::HEADER_BYTES) + n * loadline_logwriter::HEADER_BYTES;
        let redo = grown(counter::REDO_BYTES) as u64;
        // A record is rounded up to whole headers.
        assert!((least..least + rows * loadline_logwriter::HEADER_BYTES).contains(&redo), "{redo}, at least {least}");
        if work.program.commit == Commit::Wait {
            assert!(grown(counter::REDO_SYNCS) >= n as f64, "one session: each commit needs a sync");
        }
        assert!(grown("wal.log_bytes") >= redo as f64);
    }
}

#[test]
fn every_kind_of_device_takes_commits_and_says_what_it_is() {
    let dirs: Vec<_> = (0..3).map(|_| tempfile::tempdir().unwrap()).collect();
    let [a, b, c] = [0, 1, 2].map(|i| dirs[i].path().display().to_string());
    let memory = tempfile::tempdir_in("/dev/shm").unwrap();
    let urls = [
        (format!("wal:{a}?file-size=1MiB&device=dsync"), "O_DSYNC"),
        (format!("wal:{a}?file-size=1MiB&device=direct"), "O_DIRECT"),
        (format!("wal:{a}?file-size=1MiB&device=io_uring"), "O_DIRECT"),
        (format!("wal:{a}?file-size=1MiB&device=fdatasync"), "fdatasync"),
        // `best` on tmpfs, which may have no O_DIRECT.
        (format!("wal:{}?file-size=1MiB", memory.path().display()), "log"),
        (format!("wal:{}?file-size=1MiB&device=pmem", memory.path().display()), "tmpfs"),
        (format!("wal:{a}?file-size=1MiB&mirror={b}&mirror={c}&quorum=2"), "durable when 2 have it"),
        (format!("wal:{a}?file-size=1MiB&flash={b}"), "durable when the first has it"),
        (format!("wal:{a}?file-size=1MiB&standby={b}&standby-rule=received"), "received"),
        (format!("wal:{a}?file-size=1MiB&standby={b}&standby-rule=written"), "written"),
        (format!("wal:{a}?file-size=1MiB&standby={b}"), "here and at the standby"),
    ];
    let work = Work::from_catalogue("LGWR-LAT1", &[]).unwrap();
    for (url, says) in urls {
        let wal = open(&url, dirs[0].path()).unwrap_or_else(|e| panic!("{url}: {e}"));
        assert!(matches!(open(&url, dirs[0].path()), Err(TargetError::Refused(_))), "one run at a time");
        assert!(wal.device.contains(says), "{url}: {}", wal.device);
        let mut session = wal.client_session(&work, 0).unwrap();
        let mut stream = work.stream(0).unwrap();
        for _ in 0..20 {
            commit(session.as_mut(), &mut stream);
        }
        assert_eq!(wal.writer.stats().commits_waited, 20, "{url}");
        drop(session);
        assert!(!wal.clean().unwrap().is_empty());
    }
    // Copies on one device protect against nothing: the doctor warns.
    let wal = open(&format!("wal:{a}?mirror={b}&file-size=1MiB"), dirs[0].path()).unwrap();
    let findings = wal.doctor().unwrap();
    assert!(findings.iter().any(|f| f.severity == Severity::Warning && f.id == "copies"), "{findings:?}");
    wal.clean().unwrap();
    drop(wal);
    for dir in &dirs {
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0, "nothing is left");
    }
}

#[test]
fn levels_come_into_force_and_a_link_takes_its_time() {
    const MS: Duration = Duration::from_millis(1);
    let dir = tempfile::tempdir().unwrap();
    let url = format!("wal:{}?file-size=1MiB", dir.path().display());
    let mut request = OpenRequest::new(&url, dir.path().to_owned());
    request.replicas = 1;
    let wal = Wal::open(&request).unwrap();
    let replication = wal.abilities().levels.unwrap();
    let mut watch = replication.watch().unwrap();
    let work = Work::from_catalogue("LGWR-LAT1", &[]).unwrap();
    let commit = || {
        let mut session = wal.client_session(&work, 0).unwrap();
        let mut stream = work.stream(0).unwrap();
        let times = (0..5).map(|_| {
            stream.transaction(session.as_mut()).unwrap();
            let begin = Instant::now();
            session.commit().unwrap();
            begin.elapsed()
        });
        times.min().unwrap()
    };
    let levels = Kind.levels();
    let mut took = Vec::new();
    for level in [None].into_iter().chain(levels.iter().map(Some)).chain([None]) {
        replication.bring_about(level.map(|l| l.name.as_str()), 25 * MS).unwrap();
        let waits = level.is_some_and(|l| l.waits_for > 0);
        assert_eq!(watch.look().unwrap().iter().map(|r| r.synchronous).collect::<Vec<_>>(), [waits], "{level:?}");
        took.push((waits, commit()));
    }
    assert!(took.iter().all(|(waits, took)| *waits == (*took >= 50 * MS)), "{took:?}");
    assert_eq!(took.iter().filter(|(waits, _)| *waits).count(), 3);
    assert!(!watch.round_trips_ns().is_empty() && watch.link_bytes().unwrap() > 0);
    replication.bring_about(None, Duration::ZERO).unwrap();
    commit();
    replication.bring_about(Some("both"), Duration::ZERO).unwrap();
    assert_eq!(watch.look().unwrap()[0].behind_bytes, Some(0));
    match replication.bring_about(Some("nearly"), Duration::ZERO) {
        Err(TargetError::Usage(text)) => assert!(text.contains("known are local, received, written, both"), "{text}"),
        other => panic!("{other:?}"),
    }
    wal.clean().unwrap();
    drop((watch, wal));
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0, "nothing is left");
}

#[test]
fn a_standby_that_fails_is_seen() {
    let dir = tempfile::tempdir().unwrap();
    let mut request = OpenRequest::new("wal:?file-size=1MiB", dir.path().to_owned());
    request.replicas = 1;
    let wal = Wal::open(&request).unwrap();
    let replication = wal.abilities().levels.unwrap();
    let mut watch = replication.watch().unwrap();
    replication.bring_about(None, Duration::ZERO).unwrap();
    // As a host that is gone would.
    wal.relay.as_ref().unwrap().close_all();
    let mut session = wal.writer.session().unwrap();
    let deadline = Instant::now() + Duration::from_secs(60);
    while !watch.look().unwrap().is_empty() {
        assert!(Instant::now() < deadline);
        // The log itself goes on.
        session.commit(loadline_logwriter::CommitMode::Wait).unwrap();
    }
    for level in [None, Some("both")] {
        match replication.bring_about(level, Duration::ZERO) {
            Err(TargetError::Local(text)) => assert!(text.contains("not in force: cannot reach the standby"), "{text}"),
            other => panic!("{level:?}: {other:?}"),
        }
    }
}
