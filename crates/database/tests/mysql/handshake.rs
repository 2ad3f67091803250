//! Servers that are not what they should be, played by a few lines.

use std::io::{Read, Write};
use std::net::TcpListener;

use loadline_database::{Cause, OpenRequest, TargetError};

/// A server that says `greeting` to whoever comes, and then `answers` to each packet.
fn play(greeting: Vec<u8>, answers: Vec<Vec<u8>>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let _ = stream.write_all(&greeting);
            for answer in &answers {
                let mut head = [0; 4];
                if stream.read_exact(&mut head).is_err() {
                    break;
                }
                let mut body = vec![0; usize::from(head[0]) + (usize::from(head[1]) << 8)];
                let _ = stream.read_exact(&mut body);
                let _ = stream.write_all(answer);
            }
        }
    });
    format!("mysql://ann:hunter2@127.0.0.1:{port}/?connect-timeout=2")
}

fn packet(number: u8, body: &[u8]) -> Vec<u8> {
    [&(body.len() as u32).to_le_bytes()[..3], &[number], body].concat()
}

fn greeting(version: &str, plugin: &str) -> Vec<u8> {
    let mut body = vec![10];
    body.extend_from_slice(version.as_bytes());
    body.extend_from_slice(&[0, 1, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8, 0, 0xff, 0xf7, 8, 2, 0, 0xff, 0x81, 21]);
    body.extend_from_slice(&[0; 10]);
    body.extend_from_slice(b"abcdefghijkl\0");
    body.extend_from_slice(plugin.as_bytes());
    body.push(0);
    packet(0, &body)
}

fn said(url: &str) -> TargetError {
    let e = loadline_database::open(&OpenRequest::new(url, std::env::temp_dir())).map(drop).unwrap_err();
    assert!(!e.to_string().contains("hunter2"), "{e}");
    e
}

#[test]
fn versions_that_are_not_supported_are_refused_by_name() {
    // The login is accepted; then no variable is known.
    let unknown = || packet(1, b"\xff\xa9\x04#HY000Unknown system variable");
    let answers = [packet(2, &[0, 0, 0, 2, 0, 0, 0]), unknown(), unknown(), unknown(), unknown()];
    for (version, shown) in [
        ("5.5.5-10.5.23-MariaDB", "MariaDB 10.5.23"),
        ("5.7.44-log", "MySQL 5.7.44"),
        ("8.0.11-TiDB-v8.5.0", "is TiDB"),
        ("8.0.99", "is a product that loadline does not know"),
    ] {
        let e = said(&play(greeting(version, "mysql_native_password"), answers.to_vec()));
        let TargetError::Refused(text) = &e else { panic!("{e:?}") };
        assert!(text.contains(shown) && text.contains("MariaDB 10.6 and newer, MySQL 8.0 and newer"), "{text}");
    }
}

#[test]
fn refusals_say_what_to_do() {
    let full = packet(0, b"\xff\x10\x04Too many connections");
    let e = said(&play(full, vec![]));
    let TargetError::Server(refusal) = &e else { panic!("{e:?}") };
    assert!(refusal.cause == Cause::Sessions && refusal.text.contains("max_connections is reached"), "{e}");
    let (native, caching) = ("mysql_native_password", "caching_sha2_password");
    for (plugin, answer, words) in [
        (native, &b"\xff\x15\x04#28000Access denied for user 'ann'"[..], ["password for user 'ann' is wrong"; 2]),
        (native, b"\xfeauth_gssapi_client\0abc\0", ["auth_gssapi_client", "caching_sha2"]),
        // A password is not sent in the clear over an open line.
        (native, b"\xfemysql_clear_password\0\0", ["'mysql_clear_password'", "nothing protects it"]),
        (caching, &[1, 4], ["'caching_sha2_password'", "nothing protects it"]),
    ] {
        let e = said(&play(greeting("10.11.6-MariaDB", plugin), vec![packet(2, answer)]));
        assert!(matches!(&e, TargetError::Refused(t) if words.iter().all(|part| t.contains(part))), "{plugin}: {e}");
    }
}

#[test]
fn what_is_no_server_is_unreachable() {
    for greeting in [b"HTTP/1.1 400 Bad Request\r\n\r\n".to_vec(), packet(0, &[9, 9, 9]), vec![]] {
        let url = play(greeting, vec![vec![]]);
        assert!(matches!(said(&url), TargetError::Unreachable(_)), "{url}");
    }
}
