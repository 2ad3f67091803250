//! Priority of a thread.

#![allow(unsafe_code)]

use std::io;

/// Lets the calling thread run only while its CPU has nothing else to do: `SCHED_IDLE`, sched(7).
pub fn run_only_when_idle() -> io::Result<()> {
    // The kernel's struct sched_param.
    let no_priority: libc::c_int = 0;
    // SAFETY: the call reads `no_priority` and changes the scheduling of the calling thread (0) only. The function
    // sched_setscheduler of musl always fails with ENOSYS.
    match unsafe { libc::syscall(libc::SYS_sched_setscheduler, 0, libc::SCHED_IDLE, &raw const no_priority) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Nice value of a thread that reads counters beside a thousand jobs. Else it has 1/500 of a CPU, and reads for a minute.
const FIRST: libc::c_int = -15;

/// Runs `f`, if `first` before other threads where the kernel allows it (`CAP_SYS_NICE`, setpriority(2)), else as they run. What `f` starts would be
/// before others as well: it starts no thread and no process.
pub fn before_others<T>(first: bool, f: impl FnOnce() -> T) -> T {
    // SAFETY: the call reads the scheduling of the calling thread (0).
    let own = unsafe { libc::getpriority(libc::PRIO_PROCESS, 0) };
    // SAFETY: the call changes the scheduling of the calling thread (0) only.
    let set = |nice| unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, nice) };
    let allowed = first && own > FIRST && set(FIRST) == 0;
    let done = f();
    if allowed {
        set(own);
    }
    done
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_calling_thread_changes() {
        // SAFETY: the call reads the scheduling of the calling thread.
        let policy = || unsafe { libc::sched_getscheduler(0) };
        let before = policy();
        let inside = std::thread::spawn(move || {
            run_only_when_idle().unwrap();
            policy()
        });
        assert_eq!(inside.join().unwrap(), libc::SCHED_IDLE);
        assert_eq!(policy(), before);
    }

    #[test]
    fn a_thread_is_before_others_for_a_while_at_most() {
        // SAFETY: the call reads the scheduling of the calling thread.
        let nice = || unsafe { libc::getpriority(libc::PRIO_PROCESS, 0) };
        let before = nice();
        assert!([before, FIRST].contains(&before_others(true, nice)));
        assert_eq!(before_others(false, nice), before);
        assert_eq!(nice(), before);
    }
}
