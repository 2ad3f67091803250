//! What fibers wait for, and in which order they go on.

#![allow(clippy::unwrap_used, clippy::panic)]

use std::cell::{Cell, RefCell};
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::rc::Rc;
use std::time::Duration;

use loadline_fibers::{Late, Loop, Ready, active, give_way, park, sleep_until, take_late, waker};
use loadline_storage::now_ns;
use nix::time::{ClockId, clock_gettime};

fn run(on_loop: &mut Loop) {
    on_loop.run(|| false, || false).unwrap();
}

/// Reads one byte as a session does.
fn read(mut socket: &UnixStream, ready: &Ready) -> u8 {
    let mut byte = [0];
    loop {
        match socket.read(&mut byte) {
            Ok(_) => return byte[0],
            Err(e) if e.kind() == std::io::ErrorKind::WouldBlock => assert!(ready.readable(None).unwrap()),
            Err(e) => panic!("{e}"),
        }
    }
}

#[test]
fn fibers_run_in_turn_and_outside_nothing_waits() {
    let mut on_loop = Loop::new(3).unwrap();
    let order = Rc::new(RefCell::new(Vec::new()));
    for fiber in 0..3 {
        let order = Rc::clone(&order);
        assert!(on_loop.spawn(move || {
            for round in 0..2 {
                assert!(active());
                order.borrow_mut().push((round, fiber));
                give_way();
            }
        }));
    }
    assert!(!on_loop.spawn(|| ()), "more than asked for");
    run(&mut on_loop);
    assert_eq!(*order.borrow(), [(0, 0), (0, 1), (0, 2), (1, 0), (1, 1), (1, 2)]);
    assert!(!active() && !sleep_until(u64::MAX) && take_late().is_none() && waker().is_none());
    park();
    give_way();
}

#[test]
fn a_thousand_sockets_are_read_as_their_answers_come() {
    const N: usize = 1000;
    let mut on_loop = Loop::new(N).unwrap();
    let (mine, theirs): (Vec<_>, Vec<_>) = (0..N / 2).map(|_| UnixStream::pair().unwrap()).unzip();
    let sum = Rc::new(Cell::new(0_u64));
    for mut socket in mine {
        let sum = Rc::clone(&sum);
        on_loop.spawn(move || {
            socket.set_nonblocking(true).unwrap();
            let ready = Ready::watch(&socket).unwrap().unwrap();
            for i in 0..20 {
                socket.write_all(&[i]).unwrap();
                let byte = read(&socket, &ready);
                sum.set(sum.get() + u64::from(byte));
            }
        });
    }
    // An echo on threads of its own.
    let echo = std::thread::spawn(move || {
        std::thread::scope(|scope| {
            for some in theirs.chunks(50) {
                scope.spawn(move || {
                    for _ in 0..20 {
                        for mut socket in some {
                            let mut byte = [0];
                            socket.read_exact(&mut byte).unwrap();
                            socket.write_all(&byte).unwrap();
                        }
                    }
                });
            }
        });
    });
    run(&mut on_loop);
    echo.join().unwrap();
    assert_eq!(sum.get(), (N as u64 / 2) * (0..20).sum::<u64>());
}

#[test]
fn a_read_ends_when_its_time_has_passed_or_the_other_side_is_gone() {
    let mut on_loop = Loop::new(2).unwrap();
    let (mine, theirs) = UnixStream::pair().unwrap();
    on_loop.spawn(move || {
        mine.set_nonblocking(true).unwrap();
        let ready = Ready::watch(&mine).unwrap().unwrap();
        let began = now_ns();
        assert!(!ready.readable(Some(Duration::from_millis(30))).unwrap());
        assert!(now_ns() - began >= 30_000_000);
        assert!(ready.readable(None).unwrap(), "closed");
        assert_eq!((&mine).read(&mut [0]).unwrap(), 0);
    });
    on_loop.spawn(move || {
        sleep_until(now_ns() + 60_000_000);
        drop(theirs);
    });
    run(&mut on_loop);
}

#[test]
fn a_write_waits_for_space() {
    let mut on_loop = Loop::new(2).unwrap();
    let (mut mine, mut theirs) = UnixStream::pair().unwrap();
    const BYTES: usize = 4 << 20;
    let read = Rc::new(Cell::new(0));
    on_loop.spawn(move || {
        mine.set_nonblocking(true).unwrap();
        let ready = Ready::watch(&mine).unwrap().unwrap();
        let (block, mut written) = ([7; 64 << 10], 0);
        while written < BYTES {
            match mine.write(&block) {
                Ok(n) => written += n,
                Err(_) => assert!(ready.writable(std::os::fd::AsFd::as_fd(&mine), None).unwrap()),
            }
        }
    });
    let sum = Rc::clone(&read);
    on_loop.spawn(move || {
        theirs.set_nonblocking(true).unwrap();
        let ready = Ready::watch(&theirs).unwrap().unwrap();
        let mut buf = [0; 64 << 10];
        loop {
            match theirs.read(&mut buf) {
                Ok(0) => return,
                Ok(n) => sum.set(sum.get() + n),
                Err(_) => assert!(ready.readable(None).unwrap()),
            }
        }
    });
    run(&mut on_loop);
    assert!(read.get() >= BYTES);
}

#[test]
fn sleepers_wake_in_the_order_of_their_times_and_at_once_in_a_hurry() {
    let order = Rc::new(RefCell::new(Vec::new()));
    let mut on_loop = Loop::new(3).unwrap();
    let began = now_ns();
    for ms in [30, 10, 20] {
        let order = Rc::clone(&order);
        on_loop.spawn(move || {
            sleep_until(began + ms * 1_000_000);
            assert!(now_ns() >= began + ms * 1_000_000);
            order.borrow_mut().push(ms);
        });
    }
    run(&mut on_loop);
    assert_eq!(*order.borrow(), [10, 20, 30]);
    let mut on_loop = Loop::new(1).unwrap();
    on_loop.spawn(|| assert!(sleep_until(u64::MAX)));
    on_loop.run(|| false, || now_ns() > began + 50_000_000).unwrap();
    assert!(now_ns() < began + 10_000_000_000);
}

#[test]
fn a_parked_fiber_is_woken_from_another_thread_also_before_it_parks() {
    let mut on_loop = Loop::new(2).unwrap();
    for early in [false, true] {
        on_loop.spawn(move || {
            let waker = waker().unwrap();
            let other = std::thread::spawn(move || {
                if !early {
                    std::thread::sleep(Duration::from_millis(20));
                }
                waker.wake();
            });
            if early {
                other.join().unwrap();
                // The loop hears of it while others run.
                sleep_until(now_ns() + 5_000_000);
            }
            park();
        });
    }
    run(&mut on_loop);
}

/// How long a byte is late that comes while another fiber does `meanwhile`.
fn late_after(meanwhile: impl FnOnce() + 'static) -> Late {
    let mut on_loop = Loop::new(2).unwrap();
    let (mine, mut theirs) = UnixStream::pair().unwrap();
    let late = Rc::new(Cell::new(Late::default()));
    let seen = Rc::clone(&late);
    on_loop.spawn(move || {
        mine.set_nonblocking(true).unwrap();
        let ready = Ready::watch(&mine).unwrap().unwrap();
        assert_eq!(read(&mine, &ready), 1);
        seen.set(take_late().unwrap());
        assert_eq!(take_late(), Some(Late::default()), "asked again");
    });
    on_loop.spawn(move || {
        give_way();
        theirs.write_all(&[1]).unwrap();
        meanwhile();
    });
    run(&mut on_loop);
    late.get()
}

#[test]
fn what_comes_while_others_run_is_late() {
    const MS: u64 = 1_000_000;
    // A session that waits for a CPU: loadline had none meanwhile.
    let waited = late_after(|| std::thread::sleep(Duration::from_millis(40)));
    assert!((40 * MS..2000 * MS).contains(&waited.ns) && waited.cpu_ns < 20 * MS, "{waited:?}");
    // A session that computes, for so long on a CPU, however often it loses it.
    let used = Rc::new(Cell::new(0));
    let seen = Rc::clone(&used);
    let cpu = || Duration::from(clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID).unwrap()).as_nanos() as u64;
    let computed = late_after(move || {
        let from = cpu();
        while cpu() - from < 20 * MS {}
        seen.set(cpu() - from);
    });
    assert!(computed.cpu_ns >= used.get() && computed.ns >= computed.cpu_ns, "{computed:?} {}", used.get());
    assert!(computed.cpu_ns < 2000 * MS, "{computed:?}");
}

#[test]
fn an_answer_that_comes_while_the_question_is_sent_is_late() {
    let mut on_loop = Loop::new(1).unwrap();
    let late = Rc::new(Cell::new(Late::default()));
    let seen = Rc::clone(&late);
    on_loop.spawn(move || {
        let (mine, mut theirs) = UnixStream::pair().unwrap();
        mine.set_nonblocking(true).unwrap();
        let ready = Ready::watch(&mine).unwrap().unwrap();
        ready.sends();
        // Who is asked answers while the thread still sends, as a server does that takes its CPU.
        theirs.write_all(&[1]).unwrap();
        std::thread::sleep(Duration::from_millis(20));
        assert!(ready.readable(None).unwrap());
        seen.set(take_late().unwrap());
    });
    run(&mut on_loop);
    let late = late.get();
    assert!(late.ns >= 20_000_000 && late.cpu_ns < 15_000_000, "{late:?}");
}

#[test]
fn a_fiber_that_panics_ends_alone() {
    let mut on_loop = Loop::new(2).unwrap();
    let done = Rc::new(Cell::new(false));
    let set = Rc::clone(&done);
    on_loop.spawn(|| panic!("as asked for by this test"));
    on_loop.spawn(move || {
        give_way();
        set.set(true);
    });
    run(&mut on_loop);
    assert!(done.get() && !active());
}

#[test]
fn a_hundred_thousand_fibers_have_stacks() {
    const N: usize = 100_000;
    let mut on_loop = Loop::new(N).unwrap();
    let count = Rc::new(Cell::new(0));
    for _ in 0..N {
        let count = Rc::clone(&count);
        assert!(on_loop.spawn(move || {
            give_way();
            count.set(count.get() + 1);
        }));
    }
    run(&mut on_loop);
    assert_eq!(count.get(), N);
}
