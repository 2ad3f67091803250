//! Several servers: the nodes of a Galera cluster, and a replica with its levels, link and kills. One server by two addresses is in
//! `cli/tests/it/data/demands/mariadb.toml`.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use loadline_database::{OpenRequest, Target, TargetError};
use loadline_model::{Driver, snapshot::counter};
use loadline_workload::Arg;

use crate::server::*;
use crate::shared::*;

fn url(socket: &Path) -> String {
    format!("mysql://root@/?socket={}", socket.display())
}

#[test]
fn a_cluster_is_one_database_of_three_nodes() {
    let _alone = alone();
    let server = Server::open("galera-temp:?nodes=3", &[]);
    let (target, sockets) = (&server.target, sockets(server.scratch(), "wsrep_node_name"));
    assert_eq!((target.facts().nodes, sockets.len()), (3, 3));
    for socket in &sockets {
        let size = sql(socket, "SHOW STATUS LIKE 'wsrep_cluster_size'");
        assert!(size.ends_with("3"), "{size}");
        assert_eq!(sql(socket, "SELECT @@skip_networking"), "1", "clients come through the socket only");
    }
    data_is_one(target.as_ref(), &sockets);
    commits_are_those_of_each_node(target.as_ref());
    addresses_are_checked(&sockets);
    a_dead_node_is_named(target.as_ref(), &sockets);
    let running =
        || std::fs::read_dir("/proc").unwrap().filter_map(|e| std::fs::read(e.ok()?.path().join("cmdline")).ok());
    let folders: Vec<_> = sockets.iter().map(|socket| socket.ancestors().nth(2).unwrap().to_str().unwrap()).collect();
    let of_cluster = |line: &Vec<u8>| folders.iter().any(|dir| String::from_utf8_lossy(line).contains(dir));
    assert!(running().any(|line| of_cluster(&line)));
    let scratch = server.into_scratch();
    assert!(!running().any(|line| of_cluster(&line)), "a process is left");
    assert_eq!(std::fs::read_dir(scratch.path()).unwrap().count(), 0);
}

/// Rows written at one node are there at all, and loadline's tables are made and removed once.
fn data_is_one(target: &dyn Target, sockets: &[PathBuf]) {
    let small = loaded(target, work("LGWR-LAT1", &[]), 4);
    for socket in sockets {
        // The rows of all jobs, without another wait.
        assert_eq!(sql(socket, "SELECT COUNT(*), COUNT(DISTINCT id DIV 128) FROM loadline.lgwr_lat1_redo"), "512\t4");
    }
    run(target, &small, 4);
    assert_eq!(target.evidence(&small).unwrap(), Some(10), "of all nodes, once");
    let mut first = small.clone();
    first.nodes = Some(1);
    target.reset(&small, Driver::Client).unwrap();
    let mut client = target.client_session(&first, 2).unwrap();
    let own = sql(&sockets[0], "SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE USER = 'root'");
    assert!(own.parse::<u32>().unwrap() >= 2, "a test of one node has its jobs there: {own}");
    client.rollback().unwrap();
    drop(client);
    let removed = target.clean().unwrap();
    assert_eq!(removed.iter().filter(|line| *line == "the database loadline").count(), 1);
    for socket in sockets {
        assert_eq!(sql(socket, "SHOW DATABASES LIKE 'loadline'"), "");
    }
}

/// A change is counted where it began, and not where it was applied.
fn commits_are_those_of_each_node(target: &dyn Target) {
    let small = loaded(target, work("LGWR-LAT1", &[]), 5);
    target.reset(&small, Driver::Client).unwrap();
    let mut observer = target.observer().unwrap();
    let before = observer.snapshot().unwrap();
    // Jobs 0 and 3 are at the first node, 1 and 4 at the second, 2 at the third.
    run(target, &small, 5);
    let evidence = target.evidence(&small).unwrap();
    let after = observer.snapshot().unwrap();
    let of_node = |name: &str| -> Vec<f64> { (0..3).map(|n| after.nodes[n][name] - before.nodes[n][name]).collect() };
    assert_eq!(of_node(counter::COMMITS), [5.0, 7.0, 3.0]);
    assert_eq!((before.delta(&after, counter::COMMITS), evidence), (Some(15.0), Some(15)));
    assert_eq!(of_node(counter::ROWS_CHANGED), [15.0; 3], "each node applies those of the others");
    assert_eq!(before.delta(&after, counter::ROWS_CHANGED), Some(15.0), "once");
    let redo = before.delta(&after, counter::REDO_BYTES).unwrap();
    assert!((15.0 * 500.0..15.0 * 4096.0).contains(&redo), "of one copy: {redo}");
    let replicated = before.delta(&after, counter::REPLICATED_BYTES).unwrap();
    assert!((15.0 * 500.0..15.0 * 4096.0).contains(&replicated), "{replicated}");
    assert_eq!(after.counters[counter::CLUSTER_SIZE], 3.0);
    // Reads are counted where they are done.
    let lookup = loaded(target, work("TP-LOOKUP", &[("accounts", 1000)]), 3);
    target.reset(&lookup, Driver::Client).unwrap();
    let before = observer.snapshot().unwrap();
    for job in 0..3 {
        let mut client = target.client_session(&lookup, job).unwrap();
        for key in 0..=i64::from(job) {
            assert_eq!(client.execute_and_commit(0, &[Arg::Int(key + 1)]).unwrap().0, 1);
        }
    }
    let after = observer.snapshot().unwrap();
    assert_eq!(before.delta(&after, counter::COMMITS), Some(6.0));
    target.clean_after_run(false).unwrap();
}

/// A user's cluster: its nodes are named one by one.
fn addresses_are_checked(sockets: &[PathBuf]) {
    let [first, second, ..] = sockets else { panic!("{sockets:?}") };
    let mut request = OpenRequest::new(&url(first), std::env::temp_dir());
    request.nodes = vec![url(first)];
    assert_refused(loadline_database::open(&request), &["same member", "node1"]);
    let alone = Server::start("", &[]);
    request.nodes = vec![alone.request("root").url];
    assert_refused(loadline_database::open(&request), &["is in no cluster"]);
    request.nodes = vec![url(second)];
    let target = loadline_database::open(&request).unwrap();
    let notes = target.info().unwrap().notes;
    assert!(notes.iter().any(|n| n.contains("2 of the 3 nodes of a Galera cluster (node1, node2)")), "{notes:?}");
    let held = target.lock().unwrap();
    let again = loadline_database::open(&OpenRequest::new(&url(second), std::env::temp_dir())).unwrap();
    assert_refused(again.lock(), &["another loadline run"]);
    drop(held);
}

/// A node that is killed ends its jobs and the observer at once, and they say which it was.
fn a_dead_node_is_named(target: &dyn Target, sockets: &[PathBuf]) {
    let small = loaded(target, work("LGWR-LAT1", &[]), 3);
    let mut observer = target.observer().unwrap();
    let mut client = target.client_session(&small, 2).unwrap();
    kill(&sockets[2]);
    let begun = Instant::now();
    let mut failed = || client.execute_and_commit(0, &[Arg::Bytes(b"x"), Arg::Int(small.start(2).first_key)]).err();
    let e = (0..3).find_map(|_| failed()).unwrap();
    assert!(matches!(&e, TargetError::Lost(text) if text.contains("node 3 ('node3')")), "{e}");
    let e = (0..3).find_map(|_| observer.snapshot().err()).unwrap();
    assert!(e.to_string().contains("node 3 ('node3')"), "{e}");
    assert!(begun.elapsed() < Duration::from_secs(60));
    // The others go on without it.
    let mut client = target.client_session(&small, 0).unwrap();
    client.execute_and_commit(0, &[Arg::Bytes(b"x"), Arg::Int(small.start(0).first_key)]).unwrap();
    assert!(begun.elapsed() < Duration::from_secs(60));
    // What is left is a target of two nodes.
    let left = target.abilities().nodes.unwrap().without_lost().unwrap();
    assert!(matches!(&left.lost[..], [name] if name.contains("node 3 ('node3')")), "{:?}", left.lost);
    let left = left.target.unwrap();
    assert_eq!(left.facts().nodes, 2);
    assert!(left.abilities().nodes.unwrap().without_lost().is_none());
    left.reset(&small, Driver::Client).unwrap();
    let before = left.evidence(&small).unwrap().unwrap();
    run(left.as_ref(), &small, 3);
    assert_eq!(left.evidence(&small).unwrap(), Some(before + 6));
}

#[test]
fn a_server_of_its_own_is_no_node() {
    let one = server_alone();
    let two = Server::start("", &[]);
    let mut request = one.request("root");
    request.nodes = vec![two.request("root").url];
    let [first, second] = [one.socket(), two.socket()].map(|s| s.display().to_string());
    assert_refused(loadline_database::open(&request), &[&first, &second, "one cluster"]);
}

#[test]
fn commits_wait_for_a_replica_at_its_distance() {
    let _alone = alone();
    let scratch = scratch();
    let mut request = OpenRequest::new("mariadb-temp:", scratch.path().to_owned());
    request.replicas = 1;
    let target = loadline_database::open(&request).unwrap();
    let replication = target.abilities().levels.unwrap();
    let [server, replica] = &sockets(scratch.path(), "server_id")[..] else { panic!() };
    for socket in [server, replica] {
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

    let delay = Duration::from_millis(25);
    for level in [None, Some("after-sync"), Some("after-commit"), None] {
        replication.bring_about(level, delay).unwrap();
        let mut watch = replication.watch().unwrap();
        let took = (0..5).map(|_| commit()).min().unwrap();
        assert_eq!(level.is_some(), took >= 2 * delay, "{level:?}: {took:?}");
        let found = watch.look().unwrap();
        assert!(found.len() == 1 && found[0].synchronous == level.is_some(), "{level:?}: {found:?}");
        assert!(watch.link_bytes().unwrap() > 0);
    }
    assert_usage(replication.bring_about(Some("nearly"), Duration::ZERO), &["off, after-sync, after-commit"]);

    // A replica that is gone is seen, and started again for the next level.
    let mut watch = replication.watch().unwrap();
    kill(replica);
    wait_for("its end", || watch.look().unwrap().is_empty());
    replication.bring_about(Some("after-sync"), Duration::ZERO).unwrap();
    for _ in 0..20 {
        commit();
    }
    assert!(replication.watch().unwrap().look().unwrap()[0].synchronous);

    // What was acknowledged is at the replica when the server dies.
    kill(server);
    let count = format!("SELECT n FROM loadline.lgwr_lat1_redo WHERE id = {row}");
    wait_for("all commits at the replica", || {
        let changed: u64 = sql(replica, &count).parse().unwrap();
        assert!(changed <= commits, "{changed} of {commits} commits are there");
        changed == commits
    });
    drop(target);
    assert_eq!(std::fs::read_dir(scratch.path()).unwrap().count(), 0);
}
