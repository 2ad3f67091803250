//! One private server for all tests of this binary. It is stopped when the test process ends or is killed.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;

use loadline_database::{OpenRequest, Target, Work};

pub(crate) const SCRAM_PASSWORD: &str = "s:c\\r@m pässword";
const PORT: u16 = 54329;

pub(crate) struct Server {
    pub(crate) dir: PathBuf,
    /// Its standard input is a pipe from this process: the server is stopped when the pipe closes.
    _keeper: Child,
}

static SERVER: OnceLock<Server> = OnceLock::new();

pub(crate) fn server() -> &'static Server {
    SERVER.get_or_init(Server::start)
}

fn as_postgres(script: &str) -> Command {
    let root = Command::new("id").arg("-u").output().unwrap().stdout == b"0\n";
    let mut command = Command::new(if root { "runuser" } else { "sh" });
    if root {
        command.args(["-u", "postgres", "--", "sh"]);
    }
    command.args(["-c", script]).current_dir("/");
    command
}

/// Runs SQL with psql, to check loadline's work without loadline.
pub(crate) fn psql(sockets: &Path, port: u16, database: &str, sql: &str) -> String {
    let mut psql = Command::new("psql");
    psql.args(["-XqAt", "-v", "ON_ERROR_STOP=1", "-U", "postgres", "-p", &port.to_string(), "-h"]).arg(sockets);
    let out = psql.args(["-d", database, "-c", sql]).output().unwrap();
    assert!(out.status.success(), "{sql}: {}", String::from_utf8_lossy(&out.stderr));
    String::from_utf8(out.stdout).unwrap().trim().to_owned()
}

fn bin() -> String {
    let mut found: Vec<_> = std::fs::read_dir("/usr/lib/postgresql")
        .expect("PostgreSQL's server binaries (Debian: apt install postgresql) are needed for these tests")
        .map(|e| e.unwrap().path().join("bin"))
        .filter(|p| p.join("initdb").exists())
        .collect();
    found.sort();
    found.pop().expect("initdb").display().to_string()
}

impl Server {
    fn start() -> Server {
        let made = as_postgres("mktemp -d /var/tmp/loadline-test-XXXXXX && chmod 755 /var/tmp").output().unwrap();
        let dir = PathBuf::from(String::from_utf8(made.stdout).unwrap().trim());
        assert!(dir.is_dir(), "{}", String::from_utf8_lossy(&made.stderr));
        let (b, d) = (bin(), dir.display());
        let script = format!(
            r#"set -e; chmod 755 {d}; cd {d}; exec 2>&1
{b}/initdb -D data -k -A trust -U postgres -E UTF8 --no-locale >initdb.log
openssl req -x509 -newkey rsa:2048 -nodes -days 2 -keyout ca.key -out ca.crt -subj /CN=loadline-test-ca >openssl.log 2>&1
openssl req -newkey rsa:2048 -nodes -keyout server.key -out server.csr -subj /CN=localhost >>openssl.log 2>&1
printf 'subjectAltName=DNS:localhost\n' > san
openssl x509 -req -in server.csr -CA ca.crt -CAkey ca.key -CAcreateserial -days 2 -extfile san -out server.crt >>openssl.log 2>&1
openssl req -x509 -newkey rsa:2048 -nodes -days 2 -keyout other.key -out other.crt -subj /CN=other-ca >>openssl.log 2>&1
chmod 600 server.key; chmod 644 *.crt
cat >> data/postgresql.conf <<C
listen_addresses = '127.0.0.1'
port = {PORT}
unix_socket_directories = '{d}'
max_connections = 60
max_worker_processes = 16
max_parallel_workers = 16
shared_buffers = 64MB
max_wal_size = 2GB
ssl = on
ssl_cert_file = '{d}/server.crt'
ssl_key_file = '{d}/server.key'
autovacuum = off
C
cat > data/pg_hba.conf <<C
local all all trust
host all scram 127.0.0.1/32 scram-sha-256
host all md5 127.0.0.1/32 md5
host all plain 127.0.0.1/32 password
host all postgres 127.0.0.1/32 trust
C
{b}/pg_ctl -D data -l log -w start >pg_ctl.log
trap '' INT TERM
echo ready
cat >/dev/null
{b}/pg_ctl -D data -m immediate -w stop >/dev/null || true
cd /; rm -rf {d}"#
        );
        let mut keeper =
            as_postgres(&script).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(keeper.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let log = std::fs::read_to_string(dir.join("log")).unwrap_or_default();
        assert_eq!(line.trim(), "ready", "{log}");
        let server = Server { dir, _keeper: keeper };
        let quoted = SCRAM_PASSWORD.replace('\'', "''");
        server.psql(
            "postgres",
            &format!(
                "CREATE ROLE scram LOGIN PASSWORD '{quoted}'; CREATE ROLE plain LOGIN PASSWORD 'plain'; \
                 SET password_encryption = md5; CREATE ROLE md5 LOGIN PASSWORD 'md5secret'; \
                 CREATE ROLE limited LOGIN CONNECTION LIMIT 5; CREATE ROLE nothba LOGIN"
            ),
        );
        server
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
    let mut psql = Command::new("psql")
        .args(["-X", "-q", "-U", "postgres", "-p", &PORT.to_string(), "-d", database, "-h"])
        .arg(&server().dir)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
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
    let mut request = OpenRequest::new(url, PathBuf::from("/var/tmp"));
    request.run = "test-run".into();
    request
}

pub(crate) fn open(url: &str) -> Result<Box<dyn Target>, loadline_database::TargetError> {
    loadline_database::open(&request(url))
}

pub(crate) fn work(code: &str, given: &[(&str, i64)]) -> Work {
    Work::of(code, given).unwrap()
}

pub(crate) fn ca(name: &str) -> String {
    Path::new(&server().dir).join(name).display().to_string()
}
