//! One private server for all tests of this binary. It is stopped when the test process ends or is killed.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;

use loadline_database::{OpenRequest, Target};

/// Of the role `scram`, as in `server.sh`.
pub(crate) const SCRAM_PASSWORD: &str = "s:c\\r@m pässword";
const PORT: u16 = 54329;

pub(crate) struct Server {
    pub(crate) dir: PathBuf,
    /// Standard input is a pipe from this process: the server is stopped when the pipe closes.
    _keeper: Child,
}

static SERVER: OnceLock<Server> = OnceLock::new();

pub(crate) fn server() -> &'static Server {
    SERVER.get_or_init(Server::start)
}

fn psql_in(sockets: &Path, port: u16, database: &str) -> Command {
    let mut psql = Command::new("psql");
    psql.args(["-XqAt", "-v", "ON_ERROR_STOP=1", "-U", "postgres", "-p", &port.to_string(), "-d", database, "-h"]);
    psql.arg(sockets);
    psql
}

/// Runs SQL with psql, to check loadline's work without loadline.
pub(crate) fn psql(sockets: &Path, port: u16, database: &str, sql: &str) -> String {
    let out = psql_in(sockets, port, database).args(["-c", sql]).output().unwrap();
    assert!(out.status.success(), "{sql}: {}", String::from_utf8_lossy(&out.stderr));
    String::from_utf8(out.stdout).unwrap().trim().to_owned()
}

impl Server {
    fn start() -> Server {
        let root = Command::new("id").arg("-u").output().unwrap().stdout == b"0\n";
        let mut command = Command::new(if root { "runuser" } else { "sh" });
        if root {
            command.args(["-u", "postgres", "--", "sh"]);
        }
        command.args(["-c", include_str!("server.sh"), "server", &PORT.to_string()]).current_dir("/");
        let mut keeper = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let said: Vec<String> =
            BufReader::new(keeper.stdout.take().unwrap()).lines().map_while(Result::ok).take(2).collect();
        let [dir, ready] = &said[..] else { panic!("{said:?}") };
        let log = std::fs::read_to_string(Path::new(dir).join("log")).unwrap_or_default();
        assert_eq!(ready, "ready", "{log}");
        Server { dir: dir.into(), _keeper: keeper }
    }

    pub(crate) fn psql(&self, database: &str, sql: &str) -> String {
        psql(&self.dir, PORT, database, sql)
    }

    /// Creates a database for one test.
    pub(crate) fn database(&self, name: &str) -> Db {
        self.psql("postgres", &format!("CREATE DATABASE {name}"));
        Db { name: name.to_owned() }
    }

    pub(crate) fn socket_url(&self, user: &str, database: &str) -> String {
        format!("postgres://{user}@/{database}?host={}&port={PORT}", self.dir.display())
    }

    pub(crate) fn tcp_url(&self, credentials: &str, host: &str, rest: &str) -> String {
        format!("postgres://{credentials}@{host}:{PORT}/{rest}")
    }
}

/// A session that runs `sql` in a transaction and leaves it open, until it is killed.
pub(crate) fn open_transaction(database: &str, sql: &str) -> Child {
    let mut psql = psql_in(&server().dir, PORT, database);
    let mut psql = psql.stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
    psql.stdin.as_mut().unwrap().write_all(format!("BEGIN; {sql};\n").as_bytes()).unwrap();
    psql
}

pub(crate) struct Db {
    pub(crate) name: String,
}

impl Db {
    pub(crate) fn psql(&self, sql: &str) -> String {
        server().psql(&self.name, sql)
    }

    pub(crate) fn url(&self) -> String {
        server().socket_url("postgres", &self.name)
    }

    pub(crate) fn target(&self) -> Box<dyn Target> {
        open(&self.url()).unwrap()
    }
}

pub(crate) fn request(url: &str) -> OpenRequest {
    OpenRequest { run: "test-run".into(), ..OpenRequest::new(url, "/var/tmp".into()) }
}

pub(crate) fn open(url: &str) -> Result<Box<dyn Target>, loadline_database::TargetError> {
    loadline_database::open(&request(url))
}

pub(crate) fn ca(name: &str) -> String {
    Path::new(&server().dir).join(name).display().to_string()
}
