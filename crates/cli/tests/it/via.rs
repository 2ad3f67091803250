//! The price of a proxy or pooler: jobs through it, in turns with jobs that go directly.

use loadline_database::Relay;

use crate::common::*;

const INSTALL: &str = "pgbouncer is missing: apt-get install pgbouncer (./test does it as root)";

/// A private pgbouncer in transaction mode, which has a single session at the server for all, and its URL without a database.
fn pooler(server: &Server) -> (Killed, String) {
    let (port, dir) = (free_port(), server.folder_path().display());
    let config = server.folder_path().join(format!("pgbouncer-{port}.ini"));
    let text = format!(
        "[databases]\n* = host={dir} port={} user=boss\n[pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = {port}\n\
         unix_socket_dir =\nauth_type = any\npool_mode = transaction\ndefault_pool_size = 1\n",
        server.port
    );
    std::fs::write(&config, text).unwrap();
    let mut command = as_user("postgres", "pgbouncer");
    command.arg(&config).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let mut child = Killed(command.spawn().expect(INSTALL));
    wait_for("pgbouncer to listen", || {
        assert!(child.0.try_wait().unwrap().is_none(), "it ended. {INSTALL}");
        std::net::TcpStream::connect(("127.0.0.1", port)).is_ok()
    });
    (child, format!("postgres://boss:tops3cret@127.0.0.1:{port}"))
}

#[test]
fn ways_that_share_sessions_or_not_are_measured_in_turns_with_none_and_refused_if_they_lead_elsewhere() {
    let (server, maria) = (Server::start(&[]), Maria::start(&[]));
    let (postgres, another) = (Server::start(&[]), Maria::start(&[]));
    let [(_pooler, url), (_other, other_url)] = [pooler(&server), pooler(&server)];
    // The server counts each login that a relay passes on to it.
    let (port, dir) = (free_port(), server.folder_path());
    let socket = |port: u16| dir.join(format!(".s.PGSQL.{port}"));
    let maria_socket = maria.file("relay");
    let relay = |socket: &Path, server: &Path| Relay::start(socket, server).unwrap();
    let _relays = [relay(&socket(port), &socket(server.port)), relay(maria_socket.as_ref(), maria.file("s").as_ref())];
    server.sql("CREATE DATABASE second").unwrap();
    server.sql("CREATE ROLE ann LOGIN SUPERUSER").unwrap();
    let names = [
        ("{postgres}", &*server.url()),
        ("{pooler}", &url),
        ("{other-pooler}", &other_url),
        ("{postgres-relay}", &format!("postgres://boss@/postgres?host={}&port={port}", dir.display())),
        ("{mariadb}", &maria.url("root")),
        ("{relay}", &format!("mysql://root@/?socket={maria_socket}")),
        ("{ann}", &server.url().replace("boss", "ann")),
        ("{others}", &postgres.url()),
        ("{another}", &another.url("root")),
    ];
    hold_runs(include_str!("data/demands/via.toml"), &names);
    assert!(!server.has_schema());
}
