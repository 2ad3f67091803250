//! MariaDB as a user has it: privileges, encryption, settings that spoil figures, and the trap of a COMMIT in a procedure.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};

use crate::commands::hold;
use crate::common::*;

#[test]
fn a_users_server_is_measured_checked_and_left_clean() {
    // Settings of a server that loadline's sessions must not take over.
    let server = Maria::start(&[
        "--skip-character-set-client-handshake",
        "--character-set-server=latin1",
        "--collation-server=latin1_german2_ci",
        "--sql-mode=ORACLE,NO_BACKSLASH_ESCAPES,NO_ZERO_DATE,EMPTY_STRING_IS_NULL,SIMULTANEOUS_ASSIGNMENT,PAD_CHAR_TO_FULL_LENGTH",
        "--default-time-zone=+05:30",
        "--autocommit=0",
        "--max-connections=20",
    ]);
    let (url, tcp) = (server.url("root"), server.tcp("ann:tops3cret", ""));
    let there = "SELECT COUNT(*) FROM information_schema.SCHEMATA WHERE SCHEMA_NAME = 'loadline'";
    let demands = [include_str!("data/demands/users.toml"), include_str!("data/demands/mariadb.toml")];
    demands.iter().for_each(|table| hold_runs(table, &[("{url}", &url), ("{tcp}", &tcp)]));
    assert_eq!(server.sql(there).unwrap(), "0");
    server.sql("SET GLOBAL innodb_flush_log_at_trx_commit = 2").unwrap();
    hold_runs(include_str!("data/demands/nowait.toml"), &[("{url}", &url)]);
}

/// A port that leads to `port`, with half a second for each of the first answers of a session.
fn far_away(port: u16) -> u16 {
    let way = TcpListener::bind("127.0.0.1:0").unwrap();
    let there = way.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for (client, server) in way.incoming().map(|c| (c.unwrap(), TcpStream::connect(("127.0.0.1", port)).unwrap())) {
            let (mut from_client, mut to_server) = (client.try_clone().unwrap(), server.try_clone().unwrap());
            std::thread::spawn(move || std::io::copy(&mut from_client, &mut to_server));
            let (mut from_server, mut to_client) = (server, client);
            std::thread::spawn(move || {
                let mut bytes = [0; 65536];
                let mut answers = 0;
                while let Ok(n @ 1..) = from_server.read(&mut bytes) {
                    answers += 1;
                    std::thread::sleep(Duration::from_millis(if answers <= 2 { 500 } else { 0 }));
                    let _ = to_client.write_all(&bytes[..n]);
                }
            });
        }
    });
    there
}

#[test]
fn encryption_and_passwords() {
    let server = Maria::start(&[]);
    let [port, far] = [server.port, far_away(server.port)].map(|port| port.to_string());
    let [ca, other] = ["ca.crt", "other.crt"].map(|name| server.file(name));
    let names = [("{port}", port.as_str()), ("{far}", &far), ("{ca}", &ca), ("{other}", &other)];
    hold(include_str!("data/encryption.toml"), &names);
    let mut with = loadline();
    with.env("MYSQL_PWD", "tops3cret").args(["doctor", "--target", &server.tcp("ann", "")]);
    assert!(with.output().unwrap().status.success());
}
