//! The price of a proxy or pooler: jobs through it, in turns with jobs that go directly.

use loadline_database::Relay;

use crate::common::*;

const INSTALL: &str = "pgbouncer is missing: apt-get install pgbouncer (./test does it as root)";

/// A private pgbouncer in transaction mode, which has a single session at the server for all.
struct Pooler {
    _child: Killed,
    port: u16,
}

impl Pooler {
    fn start(server: &Server) -> Pooler {
        let (port, dir) = (free_port(), server.folder_path().display());
        let config = server.folder_path().join("pgbouncer.ini");
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
        Pooler { _child: child, port }
    }

    fn url(&self, database: &str) -> String {
        format!("postgres://boss:tops3cret@127.0.0.1:{}/{database}", self.port)
    }
}

#[test]
fn a_way_that_shares_sessions_or_not_is_measured_in_turns_with_none_and_refused_if_it_leads_elsewhere() {
    let (server, maria) = (Server::start(&[]), Maria::start(&[]));
    let (postgres, another) = (Server::start(&[]), Maria::start(&[]));
    let pooler = Pooler::start(&server);
    let socket = maria.file("relay");
    let _relay = Relay::start(Path::new(&socket), Path::new(&maria.file("s"))).unwrap();
    server.sql("CREATE DATABASE second").unwrap();
    server.sql("CREATE ROLE ann LOGIN SUPERUSER").unwrap();
    let names = [
        ("{postgres}", &*server.url()),
        ("{pooler}", &pooler.url("postgres")),
        ("{mariadb}", &maria.url("root")),
        ("{relay}", &format!("mysql://root@/?socket={socket}")),
        ("{ann}", &server.url().replace("boss", "ann")),
        ("{second}", &pooler.url("second")),
        ("{others}", &postgres.url()),
        ("{another}", &another.url("root")),
    ];
    hold_runs(include_str!("data/demands/via.toml"), &names);
    assert!(!server.has_schema());
}

#[test]
fn each_of_several_ways_is_counted_whole() {
    let server = Server::start(&[]);
    let poolers = [Pooler::start(&server), Pooler::start(&server)];
    let (port, dir) = (free_port(), server.folder_path());
    let socket = |port: u16| dir.join(format!(".s.PGSQL.{port}"));
    // The server counts each login that is passed on to it.
    let _relay = Relay::start(&socket(port), &socket(server.port)).unwrap();
    let relayed = format!("postgres://boss@/postgres?host={}&port={port}", dir.display());
    let [first, second] = poolers.each_ref().map(|pooler| pooler.url("postgres"));
    let names = [("{url}", &*server.url()), ("{ways}", &format!("--via {first} --via {second} --via {relayed}"))];
    hold_runs(include_str!("data/demands/ways.toml"), &names);
}
