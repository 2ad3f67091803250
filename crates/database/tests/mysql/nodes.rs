//! Several nodes of one server.

use loadline_database::{OpenRequest, Target};
use loadline_model::snapshot::counter;

use crate::server::*;
use crate::shared::*;

fn open(first: &Server, second: &OpenRequest) -> Box<dyn Target> {
    let mut request = first.request("root");
    request.nodes = vec![second.url.clone()];
    loadline_database::open(&request).unwrap()
}

#[test]
fn two_nodes_of_one_server_are_counted_once() {
    let server = server_alone();
    server.sql("CREATE OR REPLACE USER second@localhost; GRANT ALL ON *.* TO second@localhost");
    let target = open(&server, &server.request("second"));
    assert_eq!(target.facts().nodes, 2);
    let small = loaded(target.as_ref(), work("LGWR-LAT1", &[]), 4);
    let mut observer = target.observer().unwrap();
    let before = observer.snapshot().unwrap();
    run(target.as_ref(), &small, 4);
    let after = observer.snapshot().unwrap();
    assert_eq!(before.delta(&after, counter::COMMITS), Some(10.0));
    assert_eq!(target.evidence(&small).unwrap(), Some(10));
    let info = target.info().unwrap();
    assert!(info.nodes == 2 && info.notes.iter().any(|n| n.contains("2 nodes lead to one server")), "{:?}", info.notes);
    // The server counts a session that has just ended for a moment longer.
    wait_for("the same limit", || target.job_limit().unwrap() == server.target.job_limit().unwrap());
    target.clean().unwrap();
    server.sql("DROP USER second@localhost");
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
fn a_private_server_is_made_of_named_binaries() {
    let _alone = alone();
    let server = Server::start("?bin=/usr/sbin", &[]);
    assert!(server.target.info().unwrap().notes[0].contains("(/usr/sbin/mariadbd)"));
    assert_eq!(server.sql("SELECT @@basedir").trim_end_matches('/'), "/usr");
}
