//! The buffer, by itself. Not in the module itself, which `tests/scheduler.rs` compiles with other locks.

use crate::Lsn;
use crate::layout::Layout;
use crate::ring::*;

const LAYOUT: Layout = Layout { block: 512, file_bytes: 2048 };

#[test]
fn claims_go_round_the_ring_and_wait_for_what_is_not_free() {
    let (ring, mut cursor) = ring(1024, LAYOUT, 1, 1, Lsn(0)).unwrap();
    let mut port = ring.port();
    for round in 0..100_u8 {
        let start = cursor.next();
        let mut claim = cursor.claim(&mut port, 480).unwrap();
        claim.put(0, &[round; 480]);
        drop(claim);
        cursor.seal();
        assert!(cursor.claim(&mut port, 1024).is_none());
        let batch = ring.settle(cursor.take().unwrap());
        assert!(cursor.take().is_none(), "one batch at a time");
        let mut seen = Vec::new();
        while seen.len() < 480 {
            let from = Lsn(start.0.max(batch.from.0) + seen.len() as u64);
            seen.extend_from_slice(ring.piece(&batch, from, 480 - seen.len() as u64));
        }
        assert!(seen.iter().all(|byte| *byte == round));
        cursor.free(batch);
        assert_eq!(cursor.freed(), LAYOUT.block_up(cursor.next()));
    }
}

#[test]
fn a_batch_waits_for_the_copies_inside_it_and_not_for_later_ones() {
    let (ring, mut cursor) = ring(4096, LAYOUT, 1, 1, Lsn(0)).unwrap();
    let (mut early, mut late) = (ring.port(), ring.port());
    let mut first = cursor.claim(&mut early, 64).unwrap();
    cursor.seal();
    let _second = cursor.claim(&mut late, 64).unwrap();
    let pending = cursor.take().unwrap();
    let batch = std::thread::scope(|scope| {
        let settling = scope.spawn(|| ring.settle(pending));
        std::thread::sleep(std::time::Duration::from_millis(5));
        assert!(!settling.is_finished());
        first.put(0, &[5; 64]);
        drop(first);
        settling.join().unwrap()
    });
    assert_eq!(ring.piece(&batch, Lsn(0), 64), [5; 64]);
}
