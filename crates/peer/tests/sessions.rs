//! The peer against loadline's own sessions: what jobs send is answered by the script, all else by a real server behind it.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use loadline_database::{ClientSession, OpenRequest, Target, Work, open};
use loadline_peer::{Listen, Options, Peer, Protocol, raise_open_files};
use loadline_workload::Arg;

/// A folder that a server's user can pass through.
fn folder() -> tempfile::TempDir {
    tempfile::Builder::new().prefix("loadline-peer-").tempdir_in("/var/tmp").unwrap()
}

fn work(code: &str) -> Work {
    Work::of(code, &[]).unwrap()
}

fn target(url: &str, scratch: &Path) -> Box<dyn Target> {
    open(&OpenRequest::new(url, scratch.to_owned())).unwrap()
}

/// A private server.
struct Real {
    protocol: Protocol,
    socket: PathBuf,
    _server: Box<dyn Target>,
    dir: tempfile::TempDir,
}

impl Real {
    fn postgres() -> Real {
        let dir = folder();
        let server = target("postgres-temp:", dir.path());
        let info = server.info().unwrap();
        let port = info.settings.get("port").map_or("5432", String::as_str);
        let socket = Path::new(&info.settings["unix_socket_directories"]).join(format!(".s.PGSQL.{port}"));
        Real { protocol: Protocol::Postgres, socket, _server: server, dir }
    }

    fn mariadb() -> Real {
        let dir = folder();
        let server = target("mariadb-temp:", dir.path());
        let data = PathBuf::from(server.info().unwrap().data_dir.unwrap());
        let socket = data.parent().unwrap().join("socket/s");
        Real { protocol: Protocol::Mysql, socket, _server: server, dir }
    }

    /// A peer before it; the number is its own.
    fn peer(&self, number: u16, with: impl FnOnce(&mut Options)) -> Before {
        let own = self.dir.path().join(format!(".s.PGSQL.{number}"));
        let url = match self.protocol {
            Protocol::Postgres => {
                format!("postgres://postgres@/postgres?host={}&port={number}", self.dir.path().display())
            }
            Protocol::Mysql => format!("mariadb://root@/?socket={}", own.display()),
        };
        let mut options = Options::new(self.protocol, Listen::Unix(own));
        options.behind = Some(self.socket.clone());
        with(&mut options);
        Before { peer: Peer::start(&options).unwrap(), target: target(&url, self.dir.path()) }
    }
}

/// A peer before a real server, and a target that leads to it.
struct Before {
    peer: Peer,
    target: Box<dyn Target>,
}

/// One transaction of a read by key.
fn read(session: &mut dyn ClientSession) -> u64 {
    session.execute_and_commit(0, &[Arg::Int(1)]).unwrap().0
}

/// Opens many sessions, which read; then one that changes rows in longer transactions.
fn jobs_are_answered(before: &Before, sessions: u32, rows: u64) {
    let target = &before.target;
    let work_of_reads = work("SRV-QUERY1");
    let passed_on = before.peer.opened();
    assert!(passed_on > 0, "opening the target asks the real server, through the peer");
    assert_eq!(before.peer.statements(), 0, "the script has answered what the real server is asked");
    let mut open: Vec<_> = (0..sessions).map(|job| target.client_session(&work_of_reads, job).unwrap()).collect();
    assert_eq!(before.peer.opened() - passed_on, u64::from(sessions));
    assert_eq!(before.peer.open(), u64::from(sessions));
    let prepared = before.peer.statements();
    for session in &mut open {
        assert_eq!(read(session.as_mut()), rows);
    }
    assert_eq!(before.peer.statements() - prepared, u64::from(sessions));
    drop(open);
    let deadline = Instant::now() + Duration::from_secs(60);
    while before.peer.open() > 0 && Instant::now() < deadline {
        std::thread::sleep(Duration::from_millis(5));
    }
    assert_eq!(before.peer.open(), 0, "sessions that have ended are forgotten");
    let writes = work("LGWR-LAT1");
    let mut session = target.client_session(&writes, 0).unwrap();
    let args = [Arg::Bytes(&[1; 900]), Arg::Int(1)];
    assert_eq!(session.execute_and_commit(0, &args).unwrap().0, rows);
    session.begin().unwrap();
    assert_eq!(session.execute(0, &args).unwrap(), rows);
    session.commit().unwrap();
    session.begin().unwrap();
    session.execute(0, &args).unwrap();
    session.rollback().unwrap();
    assert_eq!(session.execute_and_commit(0, &args).unwrap().0, rows);
}

#[test]
fn postgres_jobs_are_answered_by_the_script() {
    of_all_kinds(&Real::postgres());
}

#[test]
fn mariadb_jobs_are_answered_by_the_script() {
    of_all_kinds(&Real::mariadb());
}

fn of_all_kinds(real: &Real) {
    jobs_are_answered(&real.peer(1, |_| ()), 300, 1);
    jobs_are_answered(&real.peer(2, |o| (o.rows, o.threads) = (300, 2)), 20, 300);
    answers_take_their_time(&real.peer(3, |o| o.delay = Duration::from_millis(30)));
}

/// Sessions wait beside each other.
fn answers_take_their_time(before: &Before) {
    let work = work("SRV-QUERY1");
    let mut open: Vec<_> = (0..20).map(|job| before.target.client_session(&work, job).unwrap()).collect();
    let begin = Instant::now();
    let times = std::thread::scope(|scope| {
        let threads = open.iter_mut().map(|session| {
            scope.spawn(move || {
                let begin = Instant::now();
                (0..5).for_each(|_| assert_eq!(read(session.as_mut()), 1));
                begin.elapsed()
            })
        });
        let threads: Vec<_> = threads.collect();
        threads.into_iter().map(|t| t.join().unwrap()).collect::<Vec<_>>()
    });
    assert!(times.iter().all(|t| *t >= Duration::from_millis(150)), "{times:?}");
    // One after the other they would take 3 s.
    assert!(begin.elapsed() < Duration::from_secs(3), "{:?}", begin.elapsed());
}

#[test]
fn a_peer_needs_no_server_behind_it() {
    let dir = folder();
    let path = dir.path().join("s");
    let peer = Peer::start(&Options::new(Protocol::Postgres, Listen::Unix(path.clone()))).unwrap();
    assert!(Peer::start(&Options::new(Protocol::Postgres, Listen::Unix(path.clone()))).is_err(), "two at one place");
    let mut client = UnixStream::connect(&path).unwrap();
    client.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
    // A start, byte by byte, then a query that has a script and one that has none.
    let start = [&[0, 0, 0, 16, 0, 3, 0, 0][..], b"user\0a\0\0"].concat();
    for byte in start {
        client.write_all(&[byte]).unwrap();
    }
    let query = |sql: &str| [b"Q", &(sql.len() as u32 + 5).to_be_bytes()[..], sql.as_bytes(), &[0]].concat();
    client.write_all(&[query("SELECT 1"), query("VACUUM"), query("")].concat()).unwrap();
    let (mut said, mut piece) = (Vec::new(), [0; 4096]);
    while said.iter().filter(|(tag, _)| *tag == b'Z').count() < 4 {
        let n = client.read(&mut piece).unwrap();
        assert!(n > 0, "the peer closed the session");
        let mut rest = &piece[..n];
        while let [tag, a, b, c, d, ..] = *rest {
            let len = u32::from_be_bytes([a, b, c, d]) as usize;
            said.push((tag, rest[5..=len].to_vec()));
            rest = &rest[len + 1..];
        }
    }
    let tags: String = said.iter().map(|(tag, _)| char::from(*tag)).collect();
    assert_eq!(tags, "RSSSKZTDCZEZIZ");
    assert!(String::from_utf8_lossy(&said[10].1).contains("no answer"), "{said:?}");
    drop(peer);
    assert!(!path.exists());
}

/// What no client of the protocol sends ends its session, and no other.
#[test]
fn nonsense_ends_its_session_only() {
    let dir = folder();
    for (protocol, name) in [(Protocol::Postgres, "p"), (Protocol::Mysql, "m")] {
        let path = dir.path().join(name);
        let peer = Peer::start(&Options::new(protocol, Listen::Unix(path.clone()))).unwrap();
        let mut random = 1_u64;
        for length in [0_usize, 1, 4, 5, 9, 100, 5000] {
            let mut client = UnixStream::connect(&path).unwrap();
            let bytes: Vec<u8> = (0..length)
                .map(|_| {
                    random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                    (random >> 56) as u8
                })
                .collect();
            // The peer may have ended the session already.
            let _ = client.write_all(&bytes);
        }
        let deadline = Instant::now() + Duration::from_secs(60);
        while (peer.opened() < 7 || peer.open() > 0) && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(5));
        }
        assert_eq!((peer.opened(), peer.open()), (7, 0), "{protocol:?}");
    }
}

#[test]
fn the_limit_of_open_files_is_raised_or_its_obstacle_named() {
    let limit = raise_open_files(64).unwrap();
    assert!(limit >= 64);
    let message = raise_open_files(u64::MAX).unwrap_err();
    assert!(message.contains("ulimit -n") && message.contains(&limit.to_string()), "{message}");
}
