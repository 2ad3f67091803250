//! Relations only: the machine may be busy.

use std::time::{Duration, Instant};

use super::*;

const MS: Duration = Duration::from_millis(1);

/// A relay with a connection through it: the client's end and the server's.
fn connected(delay: Duration) -> (tempfile::TempDir, Relay, UnixStream, UnixStream) {
    let dir = tempfile::tempdir().unwrap();
    let (relay, server) = (dir.path().join("relay"), dir.path().join("server"));
    let listener = UnixListener::bind(&server).unwrap();
    let made = Relay::start(&relay, &server).unwrap();
    made.set_delay(delay);
    let client = UnixStream::connect(&relay).unwrap();
    let (server, _) = listener.accept().unwrap();
    (dir, made, client, server)
}

fn noise(bytes: u32) -> Vec<u8> {
    (0..bytes).map(|i| (i.wrapping_mul(1_664_525).rotate_left(16).wrapping_mul(1_013_904_223) >> 24) as u8).collect()
}

/// Sends `bytes` in pieces from `from` and returns what arrives at `to`.
fn through(from: &mut UnixStream, to: &mut UnixStream, bytes: &[u8]) -> Vec<u8> {
    let mut arrived = vec![0; bytes.len()];
    std::thread::scope(|scope| {
        scope.spawn(|| bytes.chunks(77_777).for_each(|piece| from.write_all(piece).unwrap()));
        to.read_exact(&mut arrived).unwrap();
    });
    arrived
}

#[test]
fn bytes_arrive_unchanged_and_in_order_while_the_link_is_changed() {
    let (_dir, relay, mut client, mut server) = connected(Duration::ZERO);
    let (bytes, over) = (noise(8 << 20), AtomicBool::new(false));
    assert!(through(&mut server, &mut client, &bytes) == bytes);
    assert_eq!(relay.bytes(), bytes.len() as u64);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for delay in (0..4).cycle().take_while(|_| !over.load(Ordering::Relaxed)) {
                relay.set_delay(delay * MS);
                std::thread::sleep(MS);
            }
        });
        let whole = (0..5).all(|_| through(&mut client, &mut server, &bytes) == bytes);
        over.store(true, Ordering::Relaxed);
        assert!(whole);
    });
}

/// Round trip of a byte through the connection.
fn round_trip(client: &mut UnixStream, server: &mut UnixStream) -> Duration {
    let (begin, mut byte) = (Instant::now(), [1]);
    client.write_all(&byte).unwrap();
    server.read_exact(&mut byte).unwrap();
    server.write_all(&byte).unwrap();
    client.read_exact(&mut byte).unwrap();
    begin.elapsed()
}

#[test]
fn each_way_takes_its_delay_and_probes_see_it() {
    let (_dir, relay, mut client, mut server) = connected(Duration::ZERO);
    let fastest =
        |client: &mut UnixStream, server: &mut UnixStream| (0..20).map(|_| round_trip(client, server)).min().unwrap();
    let plain = fastest(&mut client, &mut server);
    let prober = relay.prober().unwrap();
    relay.set_delay(15 * MS);
    // The one under way.
    std::thread::sleep(10 * MS);
    prober.take();
    let delayed = fastest(&mut client, &mut server);
    assert!(delayed >= 30 * MS, "{delayed:?}");
    assert!(delayed < 40 * MS + 10 * plain, "{delayed:?}, without delay {plain:?}");
    let mut probes = prober.take();
    probes.sort_unstable();
    assert!(probes.len() > 3 && probes[1] >= 30_000_000, "{probes:?}");
    assert!(probes[0] < 40_000_000 + 10 * plain.as_nanos() as u64, "{probes:?}");
    assert_eq!(relay.bytes(), 80, "probes are not counted");
}

#[test]
fn one_end_closes_the_other() {
    for by_client in [true, false] {
        let (dir, _relay, client, server) = connected(5 * MS);
        let (mut closing, mut other) = if by_client { (client, server) } else { (server, client) };
        closing.write_all(b"last words").unwrap();
        drop(closing);
        let mut heard = String::new();
        other.read_to_string(&mut heard).unwrap();
        assert_eq!(heard, "last words");
        // The server is gone: a new client is closed, and the relay lives on.
        std::fs::remove_file(dir.path().join("server")).unwrap();
        let mut late = UnixStream::connect(dir.path().join("relay")).unwrap();
        assert_eq!(late.read(&mut [0]).unwrap(), 0);
    }
}

#[test]
fn a_dropped_relay_closes_everything() {
    let (dir, relay, mut client, mut server) = connected(Duration::from_secs(5));
    let prober = relay.prober().unwrap();
    client.write_all(b"never arrives").unwrap();
    let begin = Instant::now();
    drop(relay);
    assert_eq!(client.read(&mut [0]).unwrap_or(0), 0);
    assert_eq!(server.read(&mut [0]).unwrap_or(0), 0);
    assert!(begin.elapsed() < Duration::from_secs(4), "{:?}", begin.elapsed());
    assert!(!dir.path().join("relay").exists());
    drop(prober);
}
