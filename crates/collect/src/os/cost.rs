//! Cost of the database for its machine: CPU time, context switches, I/O and hardware events of all of its processes, or of the threads
//! of loadline in which an embedded one runs.
//!
//! A process that its parent waits for adds its CPU time and I/O to the parent, so sums over a whole tree of processes only grow, and lose
//! nothing when some end. Context switches are not handed on: [`CostUsed::switches`] is absent if threads that ended matter.

use std::collections::BTreeMap;

use loadline_database::machine::task_times_ns;

use super::perf::{Counts, PerfEvents, PerfRefused, grown_counts};
use super::processes::{Process, Processes, Server, TICKS_PER_S, values};
use super::tasks::Tasks;
use crate::read;

/// Share of the CPU time that threads which ended in the window may have had, whose context switches are not known.
const UNSEEN: f64 = 0.05;
/// Bytes by which a write call may dirty more than it passes: the rest of its first and of its last page.
const CALL_BYTES: f64 = 8192.0;

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CostUnknown {
    #[error("there is no database whose cost could be measured")]
    NoDatabase,
    #[error("the database runs on another machine, where loadline cannot read its processes")]
    Elsewhere,
    #[error("the database runs in the jobs' threads, which are not threads of this process")]
    OtherThreads,
    #[error("no process of the database is seen on this machine")]
    Unseen,
    #[error("{0} servers of the database's name run on this machine, and which one is the target is unknown")]
    Several(usize),
    #[error("the database's processes could not be read at window start and window end")]
    Unread,
    #[error("a process of the database ended and nobody waited for it, so that its counts are lost")]
    Lost,
}

#[derive(Debug)]
pub enum Whose {
    /// The processes of a server on this machine.
    Server(Server),
    Threads(Tasks),
    None(CostUnknown),
}

#[derive(Debug)]
pub struct CostMeter {
    whose: Whose,
    events: Option<Result<PerfEvents, PerfRefused>>,
}

/// Sums over all processes or threads since they began.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Cost {
    at_ns: u64,
    /// CPU time in user mode and in the kernel, ticks.
    ticks: [u64; 2],
    /// As [`Process::io`] of one.
    io: Option<[u64; 4]>,
    /// Voluntary and involuntary context switches and CPU time, ns, of each thread that runs.
    threads: BTreeMap<u32, [u64; 3]>,
    processes: u64,
    events: Option<Result<Counts, PerfRefused>>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct CostUsed {
    pub seconds: f64,
    /// CPU time in user mode and in the kernel, µs. Error: 10 ms for each process.
    pub cpu_us: [f64; 2],
    /// Voluntary and involuntary context switches. `None` if threads that ended had more than 5 % of the CPU time.
    pub switches: Option<[f64; 2]>,
    /// Bytes read from and written to storage, if this user may read them.
    pub io_bytes: Option<[f64; 2]>,
    /// Most bytes that write calls can have written: of each what it passed, and its first and last page.
    pub write_calls_bytes: f64,
    /// Instructions and cache misses, or why they are not counted; `None` if they were not asked for.
    pub events: Option<Result<[f64; 2], PerfRefused>>,
}

impl CostMeter {
    /// A meter, which counts hardware events from now on if they are asked for (`with_events`).
    pub fn new(whose: Whose, with_events: bool) -> CostMeter {
        let open = || {
            let members = whose.members(Processes::read().ok().as_ref()).unwrap_or_default();
            PerfEvents::open(members.into_iter().flat_map(|(_, threads)| threads).map(|id| id as i32))
        };
        let events = with_events.then(open);
        CostMeter { whose, events }
    }

    /// The sums at `at_ns`, of which `seen` are all processes of this machine. Takes about 40 µs for each thread.
    pub fn read(&self, at_ns: u64, seen: Option<&Processes>) -> Result<Cost, CostUnknown> {
        let members = self.whose.members(seen)?;
        if members.is_empty() {
            return Err(CostUnknown::Unseen);
        }
        let events = self.events.as_ref().map(|events| events.as_ref().map_err(Clone::clone)?.read());
        let mut sum = Cost { at_ns, io: Some([0; 4]), processes: members.len() as u64, events, ..Cost::default() };
        for (process, threads) in members {
            sum.ticks = added(added(sum.ticks, process.own), process.children);
            sum.io = sum.io.zip(process.io).map(|(sum, io)| added(sum, io));
            sum.threads.extend(threads.into_iter().filter_map(|id| Some((id, thread(id)?))));
        }
        Ok(sum)
    }
}

fn added<const N: usize>(sum: [u64; N], more: [u64; N]) -> [u64; N] {
    std::array::from_fn(|i| sum[i].saturating_add(more[i]))
}

/// Voluntary and involuntary context switches of a thread, and its CPU time, ns.
fn thread(id: u32) -> Option<[u64; 3]> {
    let status = read(format!("/proc/{id}/status")).ok()?;
    let [voluntary, involuntary] = values(&status, ["voluntary_ctxt_switches:", "nonvoluntary_ctxt_switches:"])?;
    Some([voluntary, involuntary, task_times_ns(id)?[0]])
}

impl Cost {
    /// Use until `later`. Fails if a sum is smaller than before.
    pub fn used_until(&self, later: &Cost) -> Result<CostUsed, CostUnknown> {
        let ticks = grown(self.ticks, later.ticks).ok_or(CostUnknown::Lost)?;
        let io = self.io.zip(later.io).and_then(|(a, b)| grown(a, b));
        let (ticks_s, slack_s) = ((ticks[0] + ticks[1]) / TICKS_PER_S, later.processes as f64 / TICKS_PER_S);
        let [voluntary, involuntary, ns] = self.of_threads(later);
        let off_s = (ns / 1e9 - ticks_s).abs();
        // Of all that ran, and to the ns: better than ticks. If threads that ended had more than ticks are off, ticks have all.
        let cpu_s = if off_s <= slack_s && ticks_s > 0.0 { ns / 1e9 } else { ticks_s };
        let tick_us = cpu_s / ticks_s.max(1e-9) * 1e6 / TICKS_PER_S;
        let events = match (&self.events, &later.events) {
            (Some(Ok(a)), Some(Ok(b))) => Some(grown_counts(a, b)),
            (Some(Err(why)), _) | (_, Some(Err(why))) => Some(Err(*why)),
            _ => None,
        };
        Ok(CostUsed {
            seconds: later.at_ns.saturating_sub(self.at_ns) as f64 / 1e9,
            cpu_us: ticks.map(|n| n * tick_us),
            switches: (off_s <= UNSEEN * ticks_s + slack_s).then_some([voluntary, involuntary]),
            io_bytes: io.map(|[read, written, ..]| [read, written]),
            write_calls_bytes: io.map_or(0.0, |[.., bytes, calls]| bytes + calls * CALL_BYTES),
            events,
        })
    }

    /// Growth until `later` of what the threads that run then have done: voluntary and involuntary context switches, and CPU time, ns.
    fn of_threads(&self, later: &Cost) -> [f64; 3] {
        let mut sum = [0.0; 3];
        for (id, now) in &later.threads {
            let before = self.threads.get(id).copied().unwrap_or_default();
            let is_new = now.iter().zip(before).any(|(now, before)| *now < before);
            let before = if is_new { [0; 3] } else { before };
            sum.iter_mut().zip(now).zip(before).for_each(|((sum, now), before)| *sum += (now - before) as f64);
        }
        sum
    }
}

fn grown<const N: usize>(before: [u64; N], now: [u64; N]) -> Option<[f64; N]> {
    let is_less = now.iter().zip(before).any(|(now, before)| *now < before);
    (!is_less).then(|| std::array::from_fn(|i| (now[i] - before[i]) as f64))
}

impl Whose {
    /// The processes or threads, each with its threads. What a process that has ended used is its parent's.
    fn members(&self, seen: Option<&Processes>) -> Result<Vec<(Process, Vec<u32>)>, CostUnknown> {
        match self {
            Whose::None(why) => Err(why.clone()),
            Whose::Threads(tasks) => {
                let read = |id: u32| {
                    let mut thread = Process::read(format!("/proc/self/task/{id}").as_ref())?;
                    // The children of its process are none of the database.
                    thread.children = [0; 2];
                    Some((thread, vec![id]))
                };
                Ok(tasks.ids().filter_map(read).collect())
            }
            Whose::Server(server) => {
                let of = seen.ok_or(CostUnknown::Unread)?.of_server(server);
                let is_root = |process: &Process| of.binary_search_by_key(&process.parent, |(id, _)| *id).is_err();
                match of.iter().filter(|(_, process)| is_root(process)).count() {
                    n @ 2.. if matches!(server, Server::Named(_)) => Err(CostUnknown::Several(n)),
                    _ => Ok(of.into_iter().map(|(id, process)| (process.clone(), threads(id))).collect()),
                }
            }
        }
    }
}

fn threads(process: u32) -> Vec<u32> {
    let entries = std::fs::read_dir(format!("/proc/{process}/task")).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// After so many s, with 80 ticks a second in user mode and 20 in the kernel.
    fn after(seconds: u64) -> Cost {
        Cost {
            at_ns: seconds * 1_000_000_000,
            ticks: [100 + 80 * seconds, 50 + 20 * seconds],
            threads: [(7, [1000 * seconds, 10 * seconds, 5 + seconds * 1_000_000_000])].into(),
            io: Some([0, 4096 * seconds, 100 * seconds, seconds]),
            processes: 1,
            events: None,
        }
    }

    #[test]
    fn what_threads_that_ended_took_along_is_not_made_up() {
        let used = |later: Cost| after(1).used_until(&later);
        let all = used(after(5)).unwrap();
        assert_eq!((all.seconds, all.cpu_us), (4.0, [3.2e6, 0.8e6]));
        assert_eq!((all.switches, all.io_bytes), (Some([4000.0, 40.0]), Some([0.0, 16384.0])));
        assert_eq!(all.write_calls_bytes, 400.0 + 4.0 * 8192.0);
        // The ns of the threads are better than ticks, as far as these may be off.
        let with = |less_ns: u64, more: &[(u32, [u64; 3])]| {
            let mut later = after(5);
            later.threads.values_mut().for_each(|of| of[2] -= less_ns);
            later.threads.extend(more.iter().copied());
            used(later).unwrap()
        };
        let exact = with(10_000_000, &[]);
        assert!((exact.cpu_us[0] - 3.192e6).abs() < 1.0 && exact.switches.is_some(), "{exact:?}");
        // Sessions that ended had a fortieth of the CPU time, or a tenth.
        let few = with(100_000_000, &[]);
        assert_eq!((few.cpu_us, few.switches), ([3.2e6, 0.8e6], Some([4000.0, 40.0])));
        let ended = with(400_000_000, &[]);
        assert_eq!((ended.cpu_us, ended.switches), ([3.2e6, 0.8e6], None));
        // One that began is counted, and so is one that has the id of an older one.
        assert_eq!(with(100_000_000, &[(8, [50, 5, 100_000_000])]).switches, Some([4050.0, 45.0]));
        assert_eq!(with(0, &[(7, [50, 5, 3_990_000_000])]).switches, Some([50.0, 5.0]));
        // One that ended takes what it did before the window along.
        let older = Cost { threads: [(6, [90_000; 3]), (7, after(1).threads[&7])].into(), ..after(1) };
        assert_eq!(older.used_until(&after(5)).unwrap().switches, Some([4000.0, 40.0]));
        assert_eq!(used(Cost { ticks: [1; 2], ..after(5) }), Err(CostUnknown::Lost));
        assert_eq!(used(Cost { io: None, ..after(5) }).unwrap().io_bytes, None);
    }

    /// Ticks of all of a tree that a shell is the root of, however many of its children have ended.
    #[test]
    fn children_that_ended_stay_in_the_sum() {
        let script = "i=0; while :; do (j=0; while [ $j -lt 3000 ]; do j=$((j+1)); done); i=$((i+1)); done";
        let mut shell = std::process::Command::new("sh").args(["-c", script]).spawn().unwrap();
        let meter = CostMeter::new(Whose::Server(Server::Roots([shell.id()].into())), false);
        let begin = std::time::Instant::now();
        let now = || meter.read(loadline_storage::now_ns(), Processes::read().ok().as_ref());
        let first = now().unwrap();
        let used = loop {
            let used = first.used_until(&now().unwrap()).unwrap();
            if used.cpu_us[0] + used.cpu_us[1] > 3e5 || begin.elapsed().as_secs() >= 20 {
                break used;
            }
        };
        shell.kill().unwrap();
        shell.wait().unwrap();
        let cpu_s = (used.cpu_us[0] + used.cpu_us[1]) / 1e6;
        assert!(cpu_s > 0.3 && cpu_s <= used.seconds * 1.2 + 0.05, "one process at a time: {used:?}");
        assert_eq!(used.switches, None, "the children took theirs along: {used:?}");
        assert_eq!(now(), Err(CostUnknown::Unseen));
    }

    #[test]
    fn this_thread_costs_what_it_does() {
        let own = nix::unistd::gettid().as_raw().unsigned_abs();
        let meter = CostMeter::new(Whose::Threads(Tasks::own(vec![own])), false);
        let before = meter.read(0, None).unwrap();
        for _ in 0..20 {
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        let used = before.used_until(&meter.read(1, None).unwrap()).unwrap();
        assert!(used.switches.unwrap()[0] >= 20.0, "each sleep is one: {used:?}");
        assert_eq!(used.events, None);
        let none = CostMeter::new(Whose::None(CostUnknown::Elsewhere), true);
        assert_eq!(none.read(0, None), Err(CostUnknown::Elsewhere));
    }

    #[test]
    fn servers_of_one_name_are_not_added_up() {
        let mut children: Vec<_> =
            (0..2).map(|_| std::process::Command::new("sleep").arg("30").spawn().unwrap()).collect();
        let (all, ids) = (Processes::read().unwrap(), children.iter().map(std::process::Child::id));
        let of = |server| Whose::Server(server).members(Some(&all)).map(|of| of.len());
        let [named, one] = [of(Server::Named(&["sleep"])), of(Server::Roots(ids.take(1).collect()))];
        let unseen = CostMeter::new(Whose::Server(Server::Named(&["no-such-server"])), false).read(0, Some(&all));
        children.iter_mut().for_each(|child| {
            child.kill().unwrap();
            child.wait().unwrap();
        });
        assert!(matches!(named, Err(CostUnknown::Several(n)) if n >= 2), "{named:?}");
        assert_eq!((one, unseen), (Ok(1), Err(CostUnknown::Unseen)));
    }
}
