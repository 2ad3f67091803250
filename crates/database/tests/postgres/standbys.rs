//! Private standbys: levels, links, nodes; a server that is killed.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use loadline_database::{OpenRequest, Target, Work};
use loadline_model::snapshot::counter;
use loadline_model::{Driver, Severity, Snapshot};
use loadline_workload::Arg;

use crate::server::*;
use crate::shared::*;

const MS: Duration = Duration::from_millis(1);

fn request(url: &str, scratch: &Path) -> OpenRequest {
    OpenRequest { run: "standbys".into(), ..OpenRequest::new(url, scratch.to_owned()) }
}

/// Sockets of the servers, the primary's first.
fn sockets(scratch: &Path) -> Vec<PathBuf> {
    let dirs = std::fs::read_dir(scratch).unwrap().map(|e| e.unwrap().path().join("socket"));
    let mut found: Vec<_> = dirs.map(|dir| (ask(&dir, "SELECT pg_is_in_recovery()") == "t", dir)).collect();
    found.sort();
    found.into_iter().map(|(_, dir)| dir).collect()
}

fn ask(socket: &Path, sql: &str) -> String {
    psql(socket, 5432, "postgres", sql)
}

fn kill(socket: &Path) {
    kill_by(&socket.with_file_name("data").join("postmaster.pid"));
}

#[test]
fn levels_come_into_force_and_links_take_their_time() {
    let scratch = scratch();
    let mut opening = request("postgres-temp:", scratch.path());
    opening.replicas = 2;
    let target = loadline_database::open(&opening).unwrap();
    let replication = target.abilities().levels.unwrap();
    assert_eq!(target.facts().nodes, 1, "replicas are no nodes");
    let info = target.info().unwrap();
    assert!(info.local && info.url == "postgres-temp:", "{info:?}");
    assert!(target.job_limit().unwrap().jobs.unwrap() >= 32);
    let servers = sockets(scratch.path());
    assert_eq!(servers.len(), 3);
    let work = loaded(target.as_ref(), work("LGWR-LAT1", &[]), 1);

    let mut watch = replication.watch().unwrap();
    let commit = || {
        let mut session = target.client_session(&work, 0).unwrap();
        let times = (0..5_u8).map(|i| {
            let begin = Instant::now();
            session.execute_and_commit(0, &[Arg::Bytes(&[i; 100]), Arg::Int(1)]).unwrap();
            begin.elapsed()
        });
        times.min().unwrap()
    };
    let mut took = Vec::new();
    for (level, states) in [
        (None, ["async", "async"]),
        (Some("off"), ["sync", "async"]),
        (Some("on"), ["sync", "async"]),
        (Some("on:any-1"), ["quorum", "quorum"]),
        (Some("remote_apply:first-2"), ["sync", "sync"]),
        (None, ["async", "async"]),
    ] {
        replication.bring_about(level, 25 * MS).unwrap();
        let found = watch.look().unwrap();
        let now: Vec<&str> = found.iter().map(|r| r.state.strip_prefix("streaming, ").unwrap()).collect();
        assert_eq!(now, states, "{level:?}");
        assert_eq!(found.iter().filter(|r| r.synchronous).count(), states.iter().filter(|s| **s != "async").count());
        took.push(commit());
    }
    for (waits, took) in [false, false, true, true, true, false].iter().zip(&took) {
        assert_eq!(*waits, *took >= 50 * MS, "{took:?}");
    }
    let trips = watch.round_trips_ns();
    assert!(!trips.is_empty() && watch.link_bytes().unwrap() > 0);

    repeated_payloads_write_as_much_log(target.as_ref(), &work);

    // What has been committed at remote_apply is seen there, and one that is away is seen and started again.
    replication.bring_about(Some("remote_apply:first-2"), Duration::ZERO).unwrap();
    ask(&servers[0], "CREATE TABLE seen AS SELECT 1 AS n");
    for standby in &servers[1..] {
        assert_eq!(ask(standby, "SELECT n FROM seen"), "1");
    }
    assert_usage(replication.bring_about(Some("nearly"), Duration::ZERO), &["off, local, remote_write:any-1"]);
    kill(&servers[2]);
    wait_for("its end", || watch.look().unwrap().len() < 2);
    replication.bring_about(Some("on:first-2"), Duration::ZERO).unwrap();
    assert_eq!(watch.look().unwrap().len(), 2);
    drop(watch);
    drop(target);
    assert_eq!(std::fs::read_dir(scratch.path()).unwrap().count(), 0);
}

/// A test that repeats the payloads of the one before writes as much log.
fn repeated_payloads_write_as_much_log(target: &dyn Target, work: &Work) {
    let mut observer = target.observer().unwrap();
    for _ in 0..2 {
        target.reset(work, Driver::Client).unwrap();
        let mut session = target.client_session(work, 0).unwrap();
        let before = observer.snapshot().unwrap();
        for row in 1..=20 {
            session.execute_and_commit(0, &[Arg::Bytes(&[7; 900]), Arg::Int(row)]).unwrap();
        }
        let each = before.delta(&observer.snapshot().unwrap(), counter::REDO_BYTES).unwrap() / 20.0;
        assert!(each > 900.0 && each < 1800.0, "{each} bytes");
    }
}

#[test]
fn standbys_are_nodes_that_read() {
    let scratch = scratch();
    let target = loadline_database::open(&request("postgres-temp:?standbys=1", scratch.path())).unwrap();
    assert_eq!((target.facts().nodes, target.facts().read_only_nodes), (2, 1));
    assert!(target.abilities().levels.is_none());
    let work = work("TP-LOOKUP", &[("accounts", 1000)]);
    let _lock = target.lock().unwrap();
    let mut observer = target.observer().unwrap();
    let start = observer.snapshot().unwrap();
    target.create(&work).unwrap();
    target.load(&work, 2).unwrap();
    target.abilities().driver().unwrap().install(&work).unwrap();
    let findings = target.doctor().unwrap();
    assert!(findings.iter().any(|f| f.id == "standby" && f.value == "streaming"), "{findings:?}");
    assert!(findings.iter().all(|f| f.severity < Severity::Refused), "{findings:?}");
    target.settle().unwrap();
    target.evidence(&work).unwrap();
    let prepared = observer.snapshot().unwrap();
    assert_eq!(start.delta(&prepared, counter::COMMITS), Some(0.0), "preparing is loadline's own work");
    assert_eq!(prepared.nodes.len(), 2);

    // Both see what was loaded; the second job's session is at the standby.
    for job in [0, 1] {
        let mut client = target.client_session(&work, job as u32).unwrap();
        let before = observer.snapshot().unwrap();
        (0..1000).for_each(|i| assert_eq!(client.execute_and_commit(0, &[Arg::Int(i)]).unwrap().0, 1));
        client.publish_counters().unwrap();
        let after = observer.snapshot().unwrap();
        let counted = |s: &Snapshot, node: usize| s.nodes[node]["pg_stat_database.tup_fetched"];
        let read = |node| counted(&after, node) - counted(&before, node);
        assert!(read(job) >= 1000.0 && read(1 - job) < 1000.0, "job {job}: {} and {}", read(0), read(1));
    }
    let done = observer.snapshot().unwrap();
    let bytes = |node: usize| done.nodes[node].get(counter::REDO_BYTES).copied();
    assert_eq!(done.counters.get(counter::REDO_BYTES).copied(), bytes(0), "a standby's log is a copy");
    let mut one = work;
    one.nodes = Some(1);
    drop(target.client_session(&one, 1).unwrap());
    assert_eq!(target.abilities().tables.unwrap().set_cache(Some(60 << 20)).unwrap(), Some(10 << 20));
    let servers = sockets(scratch.path());
    assert_eq!(ask(&servers[1], "SHOW shared_buffers"), "10MB");
    drop(target.client_session(&one, 1).unwrap());

    // A lost standby is left, a lost primary is not.
    let nodes = target.abilities().nodes.unwrap();
    assert!(nodes.without_lost().is_none());
    kill(&servers[1]);
    let left = nodes.without_lost().unwrap();
    assert!(matches!(&left.lost[..], [name] if name.starts_with("node 2 ('")), "{:?}", left.lost);
    let left = left.target.unwrap();
    assert_eq!((left.facts().nodes, left.facts().read_only_nodes), (1, 0));
    for job in 0..2 {
        drop(left.client_session(&one, job).unwrap());
    }
    kill(&servers[0]);
    assert!(nodes.without_lost().unwrap().target.is_err());
}

#[test]
fn a_standbys_name_is_read_from_its_connection() {
    let known: toml::Table = include_str!("../../src/postgres.toml").parse().unwrap();
    let receiver = known["queries"]["receiver"].as_str().unwrap();
    let cases: toml::Table = include_str!("../../src/cases.toml").parse().unwrap();
    for (conninfo, name) in cases["names-of-standbys"].clone().try_into::<Vec<(String, String)>>().unwrap() {
        let of = format!("(VALUES ({conninfo}, 'slot')) AS pg_stat_wal_receiver(conninfo, slot_name)");
        let sql = receiver.replace("pg_stat_wal_receiver", &of);
        let found =
            server().psql("postgres", &format!("SELECT coalesce(name, 'NULL'), slot FROM ({sql}) of(name, slot)"));
        assert_eq!(found, format!("{name}|slot"), "{conninfo}");
    }
}

#[test]
fn a_users_standby_is_a_node_of_its_primary_only() {
    let scratch = scratch();
    let _ours = loadline_database::open(&request("postgres-temp:?standbys=1", scratch.path())).unwrap();
    let servers = sockets(scratch.path());
    let other = crate::shared::scratch();
    let _theirs = loadline_database::open(&request("postgres-temp:?standbys=1", other.path())).unwrap();
    let others = sockets(other.path());
    let url = |socket: &PathBuf| format!("postgres://postgres@/postgres?host={}", socket.display());
    let open = |nodes: &[&PathBuf]| {
        let mut request = request(&url(nodes[0]), scratch.path());
        request.nodes = nodes[1..].iter().map(|node| url(node)).collect();
        loadline_database::open(&request)
    };
    let target = open(&[&servers[0], &servers[1]]).unwrap();
    assert_eq!((target.facts().nodes, target.facts().read_only_nodes), (2, 1));
    // Nodes at the primary are before standbys, in whatever order they were given.
    let link = other.path().join("link");
    std::os::unix::fs::symlink(&servers[0], &link).unwrap();
    let target = open(&[&servers[0], &servers[1], &link]).unwrap();
    assert_eq!((target.facts().nodes, target.facts().read_only_nodes), (3, 1));
    let work = loaded(target.as_ref(), work("TP-LOOKUP", &[("accounts", 1000)]), 3);
    for job in 0..3 {
        target.client_session(&work, job).unwrap();
    }
    assert_refused(open(&[&servers[0], &others[1]]), &["a standby of another primary"]);
    let apart = ["is no standby of", others[0].to_str().unwrap()];
    assert_refused(open(&[&servers[0], &servers[1], &others[0]]), &apart);
    assert_refused(open(&[&servers[1], &servers[0]]), &["give its primary in the URL"]);
    assert_usage(open(&[&servers[0], &servers[1], &servers[1]]), &["given twice"]);
    // A promoted standby is no longer the node that it was.
    let target = open(&[&servers[0], &servers[1]]).unwrap();
    ask(&servers[1], "SELECT pg_promote()");
    assert_refused(target.client_session(&work, 1), &["promoted"]);
    target.client_session(&work, 0).unwrap();
}

#[test]
fn settings_can_be_switched_also_to_lower_limits() {
    let scratch = scratch();
    let mut opening = request("postgres-temp:?standbys=1", scratch.path());
    opening.settings.insert("max_connections".into(), "40".into());
    let mut target = loadline_database::open(&opening).unwrap();
    for limit in ["120", "105"] {
        opening.settings.insert("max_connections".into(), limit.into());
        let (next, restarted) = target.abilities().settings.unwrap().switch(&opening, false).unwrap();
        assert!(restarted);
        assert_eq!(next.facts().read_only_nodes, 1);
        target = next;
        target.settle().unwrap();
        let servers = sockets(scratch.path());
        assert_eq!(ask(&servers[0], "SHOW max_connections"), limit);
        assert_eq!(ask(&servers[1], "SHOW max_connections"), limit);
    }
    opening.settings.insert("hot_standby".into(), "off".into());
    assert_usage(target.abilities().settings.unwrap().switch(&opening, false), &["leave it out"]);
}
