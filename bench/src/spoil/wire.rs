//! What a server's transactions were on the wire: a relay before it notes when each request of a job's statement came and
//! when the last byte of its answer went.

use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::spawn;
use std::time::{SystemTime, UNIX_EPOCH};

/// Begin and end of each transaction of a session, s since 1970.
pub(super) type Session = Vec<(f64, f64)>;

/// A relay on a port of its own.
pub(super) struct Wire {
    pub(super) port: u16,
    sessions: Arc<Mutex<Vec<Shared>>>,
}

type Shared = Arc<Mutex<Session>>;

impl Wire {
    /// Before the server at `socket`. `is_job` knows a job's statement by the first bytes of its request.
    pub(super) fn before(socket: PathBuf, is_job: fn(&[u8]) -> bool) -> io::Result<Wire> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let wire = Wire { port: listener.local_addr()?.port(), sessions: Arc::default() };
        let sessions = Arc::clone(&wire.sessions);
        spawn(move || {
            for client in listener.incoming().flatten() {
                let noted = Shared::default();
                lock(&sessions).push(Arc::clone(&noted));
                // A session that fails ends, which loadline sees.
                let _ = relay(client, &socket, is_job, noted);
            }
        });
        Ok(wire)
    }

    /// All sessions until now.
    pub(super) fn sessions(&self) -> Vec<Session> {
        lock(&self.sessions).iter().map(|noted| lock(noted).clone()).collect()
    }
}

fn relay(client: TcpStream, socket: &PathBuf, is_job: fn(&[u8]) -> bool, noted: Shared) -> io::Result<()> {
    client.set_nodelay(true)?;
    let server = UnixStream::connect(socket)?;
    let (mut from_client, mut to_client) = (client.try_clone()?, client);
    let (mut from_server, mut to_server) = (server.try_clone()?, server);
    let answered = Arc::clone(&noted);
    let of_job = Arc::new(Mutex::new(false));
    let answers_job = Arc::clone(&of_job);
    spawn(move || {
        let _ = copy(&mut from_client, &mut to_server, |bytes| {
            *lock(&of_job) = is_job(bytes);
            if is_job(bytes) {
                let now = now_s();
                lock(&noted).push((now, now));
            }
        });
        to_server.shutdown(Shutdown::Both)
    });
    spawn(move || {
        let _ = copy(&mut from_server, &mut to_client, |_| {
            if let Some(last) = lock(&answered).last_mut().filter(|_| *lock(&answers_job)) {
                last.1 = now_s();
            }
        });
        to_client.shutdown(Shutdown::Both)
    });
    Ok(())
}

/// Passes on what comes, after `note` has seen it.
fn copy(from: &mut impl Read, to: &mut impl Write, note: impl Fn(&[u8])) -> io::Result<()> {
    let mut buffer = vec![0; 1 << 16];
    loop {
        let n = from.read(&mut buffer)?;
        if n == 0 {
            return Ok(());
        }
        note(&buffer[..n]);
        to.write_all(&buffer[..n])?;
    }
}

fn lock<T>(of: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

fn now_s() -> f64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0.0, |d| d.as_secs_f64())
}
