//! A private server with a replica: levels, the link, and servers that are killed.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use loadline_database::{OpenRequest, Target};
use loadline_workload::Arg;

use crate::server::*;
use crate::shared::*;

const MS: Duration = Duration::from_millis(1);

/// Sockets of the server and of its replica.
fn sockets(scratch: &Path) -> [PathBuf; 2] {
    let dirs = std::fs::read_dir(scratch).unwrap().map(|e| e.unwrap().path().join("socket/s"));
    let mut found: Vec<_> = dirs.map(|socket| (sql(&socket, "SELECT @@server_id"), socket)).collect();
    found.sort();
    found.into_iter().map(|(_, socket)| socket).collect::<Vec<_>>().try_into().unwrap()
}

fn kill(socket: &Path) {
    kill_by(Path::new(&sql(socket, "SELECT @@pid_file")));
}

fn open(scratch: &Path) -> Box<dyn Target> {
    let mut request = OpenRequest::new("mariadb-temp:", scratch.to_owned());
    request.replicas = 1;
    loadline_database::open(&request).unwrap()
}

#[test]
fn commits_wait_for_a_replica_at_its_distance() {
    let _alone = alone();
    let scratch = scratch();
    let target = open(scratch.path());
    let replication = target.abilities().levels.unwrap();
    let [server, replica] = sockets(scratch.path());
    for socket in [&server, &replica] {
        assert_eq!(sql(socket, "SELECT @@skip_networking"), "1", "the relay alone is at a port");
    }
    let work = loaded(target.as_ref(), work("LGWR-LAT1", &[]), 1);
    let mut session = target.client_session(&work, 0).unwrap();
    let (row, mut commits) = (work.start(0).first_key, 0);
    let mut commit = || {
        let begin = Instant::now();
        commits += 1;
        session.execute_and_commit(0, &[Arg::Bytes(&[7; 100]), Arg::Int(row)]).unwrap();
        begin.elapsed()
    };

    for level in [None, Some("after-sync"), Some("after-commit"), None] {
        replication.bring_about(level, 25 * MS).unwrap();
        let mut watch = replication.watch().unwrap();
        let took = (0..5).map(|_| commit()).min().unwrap();
        assert_eq!(level.is_some(), took >= 50 * MS, "{level:?}: {took:?}");
        let found = watch.look().unwrap();
        assert!(found.len() == 1 && found[0].synchronous == level.is_some(), "{level:?}: {found:?}");
        assert!(watch.link_bytes().unwrap() > 0);
    }
    assert_usage(replication.bring_about(Some("nearly"), Duration::ZERO), &["off, after-sync, after-commit"]);

    // A replica that is gone is seen, and started again for the next level.
    let mut watch = replication.watch().unwrap();
    kill(&replica);
    wait_for("its end", || watch.look().unwrap().is_empty());
    replication.bring_about(Some("after-sync"), Duration::ZERO).unwrap();
    for _ in 0..20 {
        commit();
    }
    assert!(replication.watch().unwrap().look().unwrap()[0].synchronous);

    // What was acknowledged is at the replica when the server dies.
    kill(&server);
    let count = format!("SELECT n FROM loadline.lgwr_lat1_redo WHERE id = {row}");
    wait_for("all commits at the replica", || {
        let changed: u64 = sql(&replica, &count).parse().unwrap();
        assert!(changed <= commits, "{changed} of {commits} commits are there");
        changed == commits
    });
    drop(target);
    assert_eq!(std::fs::read_dir(scratch.path()).unwrap().count(), 0);
}
