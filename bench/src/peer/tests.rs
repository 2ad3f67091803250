//! The peer against loadline's own sessions: what jobs send is answered by the script, all else by a real server behind it.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::{Duration, Instant};

use loadline_database::{ClientSession, OpenRequest, Target, Work, open};
use loadline_workload::Arg;

use super::{Peer, raise_open_files};

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

/// One transaction of a read by key.
fn read(session: &mut dyn ClientSession) -> u64 {
    session.execute_and_commit(0, &[Arg::Int(1)]).unwrap().0
}

/// Waits until the peer has had so many sessions, and none is open.
fn all_have_ended(peer: &Peer, opened: u64) {
    let deadline = Instant::now() + Duration::from_secs(5);
    while (peer.opened() < opened || peer.open() > 0) && Instant::now() < deadline {
        std::thread::sleep(Duration::from_millis(5));
    }
    assert_eq!(peer.open(), 0, "sessions that have ended are forgotten");
}

/// Opens many sessions, which read; then one that changes rows in longer transactions.
#[test]
fn jobs_are_answered_by_the_script_and_all_else_by_the_server_behind() {
    let dir = folder();
    let server = target("postgres-temp:", dir.path());
    let (at, port) = crate::pgbench::socket(server.as_ref()).unwrap();
    let peer = Peer::start(&dir.path().join(".s.PGSQL.1"), Some(at.join(format!(".s.PGSQL.{port}")))).unwrap();
    let url = format!("postgres://postgres@/postgres?host={}&port=1", dir.path().display());
    let target = target(&url, dir.path());
    let work_of_reads = work("SRV-QUERY1");
    let passed_on = peer.opened();
    assert!(passed_on > 0, "opening the target asks the real server, through the peer");
    assert_eq!(peer.statements(), 0, "the script has answered what the real server is asked");
    let mut open: Vec<_> = (0..300).map(|job| target.client_session(&work_of_reads, job).unwrap()).collect();
    assert_eq!((peer.opened() - passed_on, peer.open()), (300, 300));
    let prepared = peer.statements();
    for session in &mut open {
        assert_eq!(read(session.as_mut()), 1);
    }
    assert_eq!(peer.statements() - prepared, 300);
    drop(open);
    all_have_ended(&peer, 300);
    let writes = work("LGWR-LAT1");
    let mut session = target.client_session(&writes, 0).unwrap();
    let args = [Arg::Bytes(&[1; 900]), Arg::Int(1)];
    assert_eq!(session.execute_and_commit(0, &args).unwrap().0, 1);
    session.begin().unwrap();
    assert_eq!(session.execute(0, &args).unwrap(), 1);
    session.commit().unwrap();
    session.begin().unwrap();
    session.execute(0, &args).unwrap();
    session.rollback().unwrap();
    assert_eq!(session.execute_and_commit(0, &args).unwrap().0, 1);
}

#[test]
fn a_peer_needs_no_server_behind_it() {
    let dir = folder();
    let path = dir.path().join("s");
    let _peer = Peer::start(&path, None).unwrap();
    assert!(Peer::start(&path, None).is_err(), "two at one place");
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
}

/// What no client of the protocol sends ends its session, and no other.
#[test]
fn nonsense_ends_its_session_only() {
    let dir = folder();
    let path = dir.path().join("s");
    let peer = Peer::start(&path, None).unwrap();
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
    all_have_ended(&peer, 7);
    assert_eq!(peer.opened(), 7);
}

#[test]
fn the_limit_of_open_files_is_raised_or_its_obstacle_named() {
    let limit = raise_open_files(64).unwrap();
    assert!(limit >= 64);
    let message = raise_open_files(u64::MAX).unwrap_err();
    assert!(message.contains("ulimit -n") && message.contains(&limit.to_string()), "{message}");
}
