//! Connecting: passwords, encryption, refusals.

use loadline_database::{OpenRequest, Secret, TargetError};

use crate::server::*;
use crate::shared::*;

#[test]
fn all_password_methods_work_and_a_missing_password_is_asked_for() {
    let encoded = SCRAM_PASSWORD.replace(':', "%3A").replace('\\', "%5C").replace('@', "%40").replace(' ', "%20");
    for (credentials, rest) in [
        (format!("scram:{encoded}"), "postgres?sslmode=disable"),
        (format!("scram:{encoded}"), "postgres?sslmode=require"),
        ("md5:md5secret".into(), "postgres"),
        ("plain:plain".into(), "postgres"),
    ] {
        let target = open(&server().tcp_url(&credentials, "127.0.0.1", rest)).unwrap();
        let info = target.info().unwrap();
        assert!(!format!("{info:?}").contains("md5secret"));
        assert!(info.local, "loopback, and the process is here");
    }
    let url = server().tcp_url("scram", "127.0.0.1", "postgres?passfile=/nonexistent");
    let mut asking = request(&url);
    asking.ask_password = std::sync::Arc::new(|_| Some(Secret::new(SCRAM_PASSWORD.to_owned())));
    assert!(loadline_database::open(&asking).is_ok());
    assert_refused(open(&url), &["requires a password for user 'scram'", "PGPASSWORD"]);
}

#[test]
fn refusals_say_what_to_do_and_hide_the_password() {
    let s = server();
    for (url, words) in [
        (s.tcp_url("scram:hunter2", "127.0.0.1", "postgres"), "password for user 'scram' is wrong"),
        (s.tcp_url("md5:hunter2", "127.0.0.1", "postgres"), "password for user 'md5' is wrong"),
        (s.socket_url("postgres", "no_such_db"), "create the database 'no_such_db'"),
        (s.socket_url("no_such_role", "postgres"), "create the role 'no_such_role'"),
        (s.tcp_url("nothba:hunter2", "127.0.0.1", "postgres"), "pg_hba.conf has no line"),
    ] {
        let refused = open(&url);
        assert!(refused.as_ref().is_err_and(|e| !e.to_string().contains("hunter2")));
        assert_refused(refused, &[words]);
    }
}

#[test]
fn where_no_postgres_listens_it_is_said_what_is_there() {
    // A server that says this in each of two sessions.
    let says = |text: &'static [u8], sslmode| {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("postgres://a@{}/b?sslmode={sslmode}&connect_timeout=2", listener.local_addr().unwrap());
        std::thread::spawn(move || {
            for mut stream in listener.incoming().flatten().take(2) {
                let _ = std::io::Write::write_all(&mut stream, text);
            }
        });
        url
    };
    let web = b"HTTP/1.1 400 Bad Request\r\n\r\nthis is not a database";
    let socket = format!("postgres://postgres@/postgres?host={}&port=7", server().dir.display());
    for (url, words) in [
        (&socket, [".s.PGSQL.7", "54329"]),
        (&"postgres://a@/b?host=/no/folder".into(), ["/no/folder", "there is no folder"]),
        (&says(web, "disable"), ["does not speak", "PostgreSQL's protocol"]),
        (&says(b"D\0\0\0\x06\0\0", "disable"), ["PostgreSQL's protocol", "out of order"]),
        (&says(b"R\0\0\0\x06\0\0", "disable"), ["PostgreSQL's protocol", "cut off"]),
        (&says(b"R\0\0\0\x0b\0\0\0\x05abc", "disable"), ["PostgreSQL's protocol", "cut off"]),
        (&says(b"SHTTP/1.1 400 Bad Request", "prefer"), ["PostgreSQL's protocol", "; before that: the TLS handshake"]),
    ] {
        match open(url).map(drop) {
            Err(TargetError::Unreachable(text)) if words.iter().all(|word| text.contains(word)) => {}
            other => panic!("{url}: {other:?}"),
        }
    }
    let (gss, unknown) = (b"R\0\0\0\x08\0\0\0\x07", b"v\0\0\0\x0c\0\x03\0\0\0\0\0\0R\0\0\0\x08\0\0\0\x63");
    assert_refused(open(&says(gss, "disable")), &["asks for Kerberos", "use a password"]);
    assert_refused(open(&says(unknown, "disable")), &["asks for authentication method 99, which loadline"]);
    // What is given is looked at before anything is connected to.
    assert_usage(
        loadline_database::open(&OpenRequest { nodes: vec![socket.clone()], ..request(&socket) }),
        &["given twice"],
    );
}

#[test]
fn certificates_are_checked_as_sslmode_says() {
    let s = server();
    let (ca, other) = (ca("ca.crt"), ca("other.crt"));
    for (host, rest) in [
        ("localhost", format!("postgres?sslmode=verify-full&sslrootcert={ca}")),
        ("127.0.0.1", format!("postgres?sslmode=verify-ca&sslrootcert={ca}")),
        ("127.0.0.1", "postgres?sslmode=require".into()),
        ("127.0.0.1", "postgres?sslmode=prefer".into()),
    ] {
        open(&s.tcp_url("postgres", host, &rest)).map(|_| ()).unwrap_or_else(|e| panic!("{host} {rest}: {e}"));
    }
    for (host, rest, words) in [
        ("127.0.0.1", format!("postgres?sslmode=verify-full&sslrootcert={ca}"), "another name"),
        ("localhost", format!("postgres?sslmode=verify-full&sslrootcert={other}"), "sslrootcert"),
        ("127.0.0.1", format!("postgres?sslmode=verify-ca&sslrootcert={other}"), "sslrootcert"),
        ("127.0.0.1", format!("postgres?sslmode=require&sslrootcert={other}"), "sslrootcert"),
    ] {
        assert_refused(open(&s.tcp_url("postgres", host, &rest)), &["TLS handshake", words]);
    }
    let no_file = s.tcp_url("postgres", "localhost", "postgres?sslmode=verify-full&sslrootcert=/no/file");
    assert_usage(open(&no_file), &["/no/file"]);
}

#[test]
fn encryption_is_real() {
    let s = server();
    let db = s.database("encrypted");
    let target = open(&s.tcp_url("postgres", "localhost", "encrypted?sslmode=require")).unwrap();
    let work = loaded(target.as_ref(), work("LGWR-LAT1", &[]), 1);
    let session = target.client_session(&work, 0).unwrap();
    let sql = "SELECT ssl FROM pg_stat_ssl JOIN pg_stat_activity USING (pid) \
               WHERE datname = 'encrypted' AND application_name = 'loadline test-run job 0'";
    assert_eq!(db.psql(sql), "t");
    // A canceller ends a call through the encryption as well.
    session.canceller().cancel();
    let mut session = session;
    assert!(matches!(session.execute(0, &[]), Err(TargetError::Lost(_))));
}
