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
fn a_closed_port_is_unreachable() {
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let address = OraAddress::parse(&format!("oracle://ann@127.0.0.1:{port}/x")).unwrap();
    assert!(matches!(outcome(&address, SOON), TargetError::Unreachable(_)));
}

#[test]
fn a_listener_that_refuses_says_why() {
    for (code, says) in [
        (12514, "knows no such service"),
        (12516, "no more sessions"),
        (12528, "wait"),
        (12505, "knows no such service"),
        (12500, "listener's log"),
    ] {
        let text = format!("(DESCRIPTION=(TMP=)(VSNNUM=0)(ERR={code})(ERROR_STACK=(ERROR=(CODE={code})(EMFI=4))))");
        let address = peer(move |s| s.write_all(&refuse(&text)).unwrap());
        let error = outcome(&address, SOON);
        let refused = matches!(error, TargetError::Refused(_));
        assert!(refused && error.to_string().contains(says), "{code}: {error:?}");
    }
}

#[test]
fn other_services_are_unreachable_without_a_panic() {
    let answers: [Vec<u8>; 5] = [
        b"HTTP/1.1 400 Bad Request\r\n\r\n".to_vec(),
        b"SSH-2.0-OpenSSH_9.2\r\n".to_vec(),
        // An unknown kind of packet, and a refusal without a number: the driver panics at both.
        packet(99, b"????"),
        refuse("(ERR=many)"),
        Vec::new(),
    ];
    for answer in answers {
        let shown = String::from_utf8_lossy(&answer).into_owned();
        let bytes = answer.clone();
        let address = peer(move |s| {
            let _ = s.write_all(&bytes);
        });
        let error = outcome(&address, SOON);
        assert!(matches!(error, TargetError::Unreachable(_)), "{shown}: {error:?}");
        // The text of the panic is in the error instead of being printed.
        let panicked = answer == packet(99, b"????") || answer == refuse("(ERR=many)");
        assert_eq!(error.to_string().contains(".rs:"), panicked, "{shown}: {error:?}");
    }
}

#[test]
fn a_silent_peer_times_out() {
    let address = peer(|s| {
        let _ = s.read(&mut [0; 16]);
    });
    let began = Instant::now();
    let error = outcome(&address, Duration::from_millis(500));
    assert!(matches!(error, TargetError::Unreachable(_)) && error.to_string().contains("within"), "{error:?}");
    assert!(began.elapsed() < SOON);
}
