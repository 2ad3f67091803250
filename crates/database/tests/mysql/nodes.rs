//! Several nodes of one server.

use std::time::Duration;

use loadline_database::{OpenRequest, Target, TargetError};
use loadline_model::snapshot::counter;
use loadline_workload::Arg;

use crate::server::{Server, alone, server, work};

fn open(first: &Server, second: &OpenRequest) -> Box<dyn Target> {
    let mut request = first.request("root");
    request.nodes = vec![second.url.clone()];
    loadline_database::open(&request).unwrap()
}

/// One transaction of each of four jobs, at the client.
fn run(target: &dyn Target) {
    let small = work("LGWR-LAT1", &[]);
    for job in 0..4 {
        let mut client = target.client_session(&small, job).unwrap();
        for key in 0..i64::from(job) + 1 {
            let row = Arg::Int(small.start(job).first_key + key);
            assert_eq!(
                client.execute_and_commit(0, &[Arg::Bytes(b"x"), row]).unwrap().0,
                1,
                "job {job}: its rows are there"
            );
        }
    }
}

#[test]
fn two_nodes_of_one_server_are_counted_once() {
    let server = server();
    let _alone = alone();
    server.sql("CREATE OR REPLACE USER second@localhost; GRANT ALL ON *.* TO second@localhost");
    let target = open(&server, &server.request("second"));
    assert_eq!(target.facts().nodes, 2);
    let small = work("LGWR-LAT1", &[]);
    target.create(&small).unwrap();
    target.load(&small, 4).unwrap();
    let mut observer = target.observer().unwrap();
    let before = observer.snapshot().unwrap();
    run(target.as_ref());
    let after = observer.snapshot().unwrap();
    assert_eq!(before.delta(&after, counter::COMMITS), Some(10.0));
    assert_eq!(target.evidence(&small).unwrap(), Some(10));
    let info = target.info().unwrap();
    assert!(info.nodes == 2 && info.notes.iter().any(|n| n.contains("2 nodes lead to one server")), "{:?}", info.notes);
    // The server counts a session that has just ended for a moment longer.
    for _ in 0..1200 {
        if target.job_limit().unwrap() == server.target.job_limit().unwrap() {
            break;
        }
        std::thread::sleep(Duration::from_millis(100));
    }
    assert_eq!(target.job_limit().unwrap(), server.target.job_limit().unwrap());
    target.clean().unwrap();
    server.sql("DROP USER second@localhost");
}

#[test]
fn a_server_of_its_own_is_no_node() {
    let one = server();
    let _alone = alone();
    let two = Server::start("", &[]);
    let mut request = one.request("root");
    request.nodes = vec![two.request("root").url];
    let e = loadline_database::open(&request).map(drop).unwrap_err();
    let sockets = [one.socket(), two.socket()].map(|s| s.display().to_string());
    assert!(
        matches!(&e, TargetError::Refused(t) if sockets.iter().all(|s| t.contains(s)) && t.contains("one cluster")),
        "{e}"
    );
}

#[test]
fn a_private_server_from_named_binaries_and_without_further_nodes() {
    let _alone = alone();
    let server = Server::start("?bin=/usr/sbin", &[]);
    assert!(server.target.info().unwrap().notes[0].contains("(/usr/sbin/mariadbd)"));
    assert_eq!(server.sql("SELECT @@basedir").trim_end_matches('/'), "/usr");
    let mut request = OpenRequest::new("mariadb-temp:", std::env::temp_dir());
    request.nodes = vec!["mariadb-temp:".into()];
    let e = loadline_database::open(&request).map(drop).unwrap_err();
    assert!(matches!(&e, TargetError::Usage(t) if t.contains("one node")), "{e}");
}
