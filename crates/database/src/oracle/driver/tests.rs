//! The driver against peers that are not Oracle, and against a listener that refuses. Without a server no test
//! here shows that a session works.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::time::Instant;

use super::*;

/// A peer that reads the first packet and then calls `answer`.
fn peer(answer: impl FnOnce(&mut std::net::TcpStream) + Send + 'static) -> OraAddress {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        let (mut socket, _) = listener.accept().unwrap();
        let mut first = [0; 4096];
        let _ = socket.read(&mut first);
        answer(&mut socket);
    });
    OraAddress::parse(&format!("oracle://ann:geheim@127.0.0.1:{port}/pdb1")).unwrap()
}

fn outcome(address: &OraAddress, at_most: Duration) -> TargetError {
    let password = Secret::new("geheim".into());
    let error = connect_within(address, &password, "test", at_most).err().expect("no session without a server");
    assert!(!error.to_string().contains("geheim"), "{error}");
    assert!(error.to_string().contains("127.0.0.1"), "the error says where: {error}");
    error
}

const SOON: Duration = Duration::from_secs(5);

/// A TNS packet (python-oracledb, `packet.pyx`): length, checksum, type, flags, checksum, payload.
fn packet(kind: u8, payload: &[u8]) -> Vec<u8> {
    let mut out = u16::try_from(payload.len() + 8).unwrap().to_be_bytes().to_vec();
    out.extend([0, 0, kind, 0, 0, 0]);
    out.extend(payload);
    out
}

/// A packet of type 4 (refuse) as a listener sends it: two reasons, length, text.
fn refuse(text: &str) -> Vec<u8> {
    let mut payload = vec![4, 0];
    payload.extend(u16::try_from(text.len()).unwrap().to_be_bytes());
    payload.extend(text.as_bytes());
    packet(4, &payload)
}

#[test]
fn a_peer_that_is_no_database_is_refused_or_unreachable() {
    let refusal = |code: u32| {
        refuse(&format!("(DESCRIPTION=(TMP=)(VSNNUM=0)(ERR={code})(ERROR_STACK=(ERROR=(CODE={code})(EMFI=4))))"))
    };
    for (answer, is_refused, says) in [
        (refusal(12514), true, "knows no such service"),
        (refusal(12505), true, "knows no such service"),
        (refusal(12516), true, "no more sessions"),
        (refusal(12528), true, "wait"),
        (refusal(12500), true, "listener's log"),
        (b"HTTP/1.1 400 Bad Request\r\n\r\n".to_vec(), false, ""),
        (b"SSH-2.0-OpenSSH_9.2\r\n".to_vec(), false, ""),
        (Vec::new(), false, ""),
        // An unknown kind of packet, and a refusal without a number: the driver panics at both. The text of the panic is in
        // the error instead of being printed.
        (packet(99, b"????"), false, ".rs:"),
        (refuse("(ERR=many)"), false, ".rs:"),
    ] {
        let shown = String::from_utf8_lossy(&answer).into_owned();
        let error = outcome(&peer(move |s| drop(s.write_all(&answer))), SOON);
        assert_eq!(matches!(error, TargetError::Refused(_)), is_refused, "{shown}: {error:?}");
        assert_eq!(matches!(error, TargetError::Unreachable(_)), !is_refused, "{shown}: {error:?}");
        let panicked = error.to_string().contains(".rs:");
        assert!(error.to_string().contains(says) && panicked == (says == ".rs:"), "{shown}: {error:?}");
    }
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let closed = OraAddress::parse(&format!("oracle://ann@127.0.0.1:{port}/x")).unwrap();
    assert!(matches!(outcome(&closed, SOON), TargetError::Unreachable(_)));
}

#[test]
fn a_silent_peer_times_out() {
    let address = peer(|s| drop(s.read(&mut [0; 16])));
    let began = Instant::now();
    let error = outcome(&address, Duration::from_millis(500));
    assert!(matches!(error, TargetError::Unreachable(_)) && error.to_string().contains("within"), "{error:?}");
    assert!(began.elapsed() < SOON);
}
