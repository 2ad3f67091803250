//! Waits of the slowest transactions: samples of the sessions' wait events within them against all others of the same jobs.
//!
//! Both are on loadline's clock. The database took a sample at some time until it had answered, so a sample counts as within a
//! transaction only if that had begun before the question and ended after the answer; one that is partly within a slow transaction
//! counts nowhere.

use std::collections::{BTreeMap, BTreeSet};

use loadline_database::WaitEvents;
use loadline_load::{JobResult, Schedule, Slowest, WATCHED_JOBS};
use loadline_model::slow::{NoCause, SlowFigures, SlowWait, WaitClass};
use loadline_model::snapshot::WaitSample;
use loadline_model::{Detail, column};

use crate::evidence::Evidence;
use crate::test::Test;

const SLOWEST: f64 = 0.01;

/// Distinction of the slowest transactions.
pub(crate) fn figures(e: &Evidence<'_>, out: &mut Test) {
    let (measured, events) = (e.measured, e.request.target.facts().waits);
    let p99_ns = e.merged().transaction.quantile_ns(1.0 - SLOWEST).unwrap_or(0);
    let samples = &measured.collected.wait_samples;
    let slow = of_samples(&measured.jobs, samples, p99_ns, &measured.schedule, |event| class(events, event));
    let shares = slow.as_ref().map_err(|why| *why).and_then(|slow| Ok(slow.shares(slow.cause()?)));
    let pct = shares.map(|shares| shares.map(|share| share * 100.0)).map_err(|why| why.to_string());
    if let Err(why) = &pct {
        out.set_absent(column::SLOW_WAIT, why);
    }
    out.set_all([column::SLOW_WAIT_PCT, column::SLOW_WAIT_OTHERS_PCT], pct);
    out.details.extend(slow.ok().map(Detail::Slow));
}

/// The slowest transactions of a test.
fn of_samples(
    jobs: &[JobResult],
    samples: &[(u64, WaitSample)],
    p99_ns: u64,
    schedule: &Schedule,
    class: impl Fn(&str) -> WaitClass,
) -> Result<SlowFigures, NoCause> {
    let jobs = jobs.get(..WATCHED_JOBS as usize).unwrap_or(jobs);
    let watched = || jobs.iter().filter_map(|job| Some((job, job.slowest.as_ref()?)));
    // Above it no job's are missing.
    let above_ns = watched().map(|(_, slowest)| slowest.floor_ns).max().ok_or(NoCause::NotKept)?.max(p99_ns);
    let samples = || samples.iter().filter(|(at_ns, _)| schedule.counts(*at_ns));
    let known = samples().filter(|(_, sample)| sample.jobs.values().any(|jobs| !jobs.is_empty())).count();
    if known == 0 {
        return Err(NoCause::NotSampled);
    }
    let slow: Vec<Option<Vec<[u64; 2]>>> =
        jobs.iter().map(|job| Some(slow_of(job.slowest.as_ref()?, above_ns))).collect();
    // That in progress at the window end has samples, but is none of those that completed.
    let completed = || slow.iter().flatten().flatten().filter(|[_, end]| *end < schedule.close_ns);
    let transactions = completed().count() as u64;
    let of = watched().map(|(job, _)| job.completed).sum();
    if transactions == 0 {
        return Err(NoCause::NoneSlower(of));
    }
    let (mut events, mut moments, mut counts) = (EventSamples::new(), BTreeSet::new(), [0; 2]);
    for (at_ns, sample) in samples() {
        let asked_ns = at_ns - sample.took_ns / 2;
        let work: BTreeSet<&String> = sample.background.iter().flatten().collect();
        for (event, numbers) in &sample.jobs {
            let of = |job: &u32| place(slow.get(*job as usize)?.as_ref()?, [asked_ns, asked_ns + sample.took_ns]);
            for place in numbers.iter().filter_map(of) {
                counts[place] += 1;
                if place == SLOW {
                    moments.insert(asked_ns);
                }
                let meanwhile = work.iter().map(|work| (WaitClass::Background, *work));
                meanwhile.chain([(class(event), event)]).for_each(|of| events.entry(of).or_default()[place] += 1);
            }
        }
    }
    // Between two transactions sessions wait for their clients too: so often, as the jobs' clocks say.
    let between_ns = |job: &JobResult| (job.thinking_ns as f64 + job.time_outside_ns(schedule)).max(0.0);
    let between: f64 = watched().map(|(job, _)| between_ns(job)).sum::<f64>() / schedule.window_ns().max(1) as f64;
    let mut waits = by_class(events);
    let client = waits.iter_mut().find(|wait| wait.class == WaitClass::Client);
    let idle = client.map_or(0, |wait| {
        let idle = wait.others.min((between * known as f64) as u64);
        wait.others -= idle;
        idle
    });
    let is_work = |wait: &SlowWait| wait.class == WaitClass::Background;
    for work in waits.iter_mut().filter(|wait| is_work(wait)) {
        work.others -= work.others * idle / counts[OTHER].max(1);
    }
    let [samples, others] = [counts[SLOW], counts[OTHER] - idle];
    let slow_ns: u64 = completed().map(|[start, end]| end - start).sum();
    let others_ns = watched().map(|(job, _)| job.sum_ns).sum::<u64>().saturating_sub(slow_ns);
    let mean = |ns: u64, n: u64| ns as f64 / n.max(1) as f64;
    let mut found = SlowFigures {
        transactions,
        of,
        above_ns,
        mean_ns: [mean(slow_ns, transactions), mean(others_ns, of - transactions)],
        samples,
        moments: moments.len() as u64,
        others,
        waits: Vec::new(),
    };
    waits.sort_by(|a, b| is_work(a).cmp(&is_work(b)).then(found.explained(b).total_cmp(&found.explained(a))));
    found.waits = waits;
    Ok(found)
}

/// Places of a sample: within a slow transaction, or in none.
const SLOW: usize = 0;
const OTHER: usize = 1;

/// Where a sample of a job belongs, of whose slow transactions these are start and end, in order; `None` if that is not known.
fn place(slow: &[[u64; 2]], [asked_ns, answered_ns]: [u64; 2]) -> Option<usize> {
    // The last that began before the answer.
    match slow[..slow.partition_point(|[start, _]| *start < answered_ns)].last() {
        Some([start, end]) if *start <= asked_ns && answered_ns <= *end => Some(SLOW),
        Some([_, end]) if *end > asked_ns => None,
        _ => Some(OTHER),
    }
}

/// Start and end of a job's transactions that took longer than `above_ns`, in order.
fn slow_of(slowest: &Slowest, above_ns: u64) -> Vec<[u64; 2]> {
    let mut slow: Vec<[u64; 2]> = slowest.kept.iter().copied().filter(|[start, end]| end - start > above_ns).collect();
    slow.sort_unstable();
    slow
}

/// Class of a wait event, as the database's descriptor groups it.
fn class(events: &WaitEvents, event: &str) -> WaitClass {
    let classes = [
        (&events.log_file, WaitClass::LogFile),
        (&events.log_sync, WaitClass::LogSync),
        (&events.log_write, WaitClass::LogBuffer),
        (&events.buffer, WaitClass::Buffer),
        (&events.replica, WaitClass::Replica),
        (&events.lock, WaitClass::Lock),
        (&events.idle, WaitClass::Client),
    ];
    classes.into_iter().find(|(known, _)| known.has(event)).map_or(WaitClass::Other, |(_, class)| class)
}

/// Samples of events and of work in the background, within slow transactions and others.
type EventSamples<'a> = BTreeMap<(WaitClass, &'a String), [u64; 2]>;

fn by_class(events: EventSamples<'_>) -> Vec<SlowWait> {
    let mut events: Vec<_> = events.into_iter().collect();
    events.sort_by_key(|(_, counts)| std::cmp::Reverse(*counts));
    let mut waits: Vec<SlowWait> = Vec::new();
    for ((class, event), [samples, others]) in events {
        let is_alone = matches!(class, WaitClass::Other | WaitClass::Background);
        match waits.iter_mut().find(|wait| wait.class == class && !is_alone) {
            Some(wait) => (wait.samples, wait.others) = (wait.samples + samples, wait.others + others),
            None => waits.push(SlowWait { class, event: event.clone(), samples, others }),
        }
    }
    waits
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    /// A job that does nothing but a transaction of `slow_ms` each second, from `begin_ms` on, and short ones in between.
    fn job(begin_ms: u64, slow_ms: u64) -> JobResult {
        let mut slowest = Slowest::default();
        for second in 0..10 {
            let start = (second * 1000 + begin_ms) * MS;
            slowest.add(start, start + slow_ms * MS);
            (0..50).for_each(|i| slowest.add(start + (slow_ms + i) * MS, start + (slow_ms + i + 1) * MS));
        }
        let sum_ns = 10 * (slow_ms + 50) * MS;
        JobResult { completed: 510, sum_ns, slowest: Some(slowest), ..JobResult::default() }
    }

    /// Samples each 50 ms, answered in 2 ms, of two jobs; what the first waits for follows from the ms in its second.
    fn samples(waits: impl Fn(u64) -> &'static str) -> Vec<(u64, WaitSample)> {
        let sample = |i: u64| {
            let mut jobs = BTreeMap::<String, Vec<u32>>::new();
            jobs.entry(waits(i * 50 % 1000).to_owned()).or_default().push(0);
            jobs.entry("IO:WALSync".to_owned()).or_default().push(1);
            let background = Some(if i * 50 % 1000 < 500 { vec!["checkpoint".to_owned()] } else { Vec::new() });
            (i * 50 * MS + MS, WaitSample { jobs, background, took_ns: 2 * MS, ..WaitSample::default() })
        };
        (0..200).map(sample).collect()
    }

    fn slowest_of(jobs: &[JobResult], samples: &[(u64, WaitSample)]) -> Result<SlowFigures, NoCause> {
        let events = WaitEvents {
            lock: ["Lock:*"].into(),
            log_sync: ["IO:WALSync"].into(),
            idle: ["Client:idle"].into(),
            ..WaitEvents::default()
        };
        let schedule = Schedule { start_ns: 0, open_ns: 0, close_ns: 10_000 * MS };
        of_samples(jobs, samples, 10 * MS, &schedule, |event| class(&events, event))
    }

    #[test]
    fn what_slow_transactions_wait_for_is_their_cause() {
        // From 190 ms to 390 ms of each second the first job waits for a lock.
        let jobs = [job(190, 200), job(990, 1)];
        let locked = samples(|ms| if (190..390).contains(&ms) { "Lock:tuple" } else { "IO:WALSync" });
        let slow = slowest_of(&jobs, &locked).unwrap();
        assert_eq!((slow.transactions, slow.of, slow.above_ns), (10, 1020, 10 * MS));
        // At 200, 250, 300 and 350 ms.
        assert_eq!((slow.samples, slow.moments, slow.others), (40, 40, 360));
        assert_eq!((slow.waits[0].samples, slow.waits[0].others), (40, 0));
        assert_eq!(slow.words().as_deref(), Some("locks (Lock:tuple), during checkpoint"));
        let longer = slowest_of(&jobs, &samples(|_| "IO:WALSync")).unwrap();
        assert_eq!(longer.cause().map(|wait| wait.class), Ok(WaitClass::LogSync));
    }

    #[test]
    fn what_is_between_transactions_or_of_a_job_without_times_counts_nowhere() {
        let locked = samples(|ms| if (250..390).contains(&ms) { "Lock:tuple" } else { "Client:idle" });
        let slow = slowest_of(&[job(190, 200), job(990, 1)], &locked).unwrap();
        assert_eq!((slow.samples, slow.others), (40, 200));
        assert_eq!(slow.words().as_deref(), Some("locks (Lock:tuple), during checkpoint"));
        let unknown = JobResult { slowest: None, ..job(990, 1) };
        // Of each second's 16 outside slow transactions, 15 are between transactions and one, at 400 ms, is within short ones.
        assert_eq!(slowest_of(&[job(190, 200), unknown], &locked).unwrap().others, 10);
    }

    #[test]
    fn a_sample_that_is_partly_in_a_slow_transaction_counts_nowhere() {
        // From 199 to 251 ms: the sample of 200 ms is within it, that of 250 ms is answered after its end.
        let slow = slowest_of(&[job(199, 52), job(990, 1)], &samples(|_| "CPU")).unwrap();
        assert_eq!((slow.samples, slow.others), (10, 380));
        assert!(matches!(slow.cause(), Err(NoCause::FewSamples { samples: 10, moments: 10, .. })));
    }

    #[test]
    fn without_a_time_or_a_job_nothing_is_said() {
        let two = || [job(190, 200), job(990, 1)];
        for samples in [&[][..], &[(0, WaitSample::default())]] {
            assert_eq!(slowest_of(&two(), samples), Err(NoCause::NotSampled));
        }
        let unknown = two().map(|job| JobResult { slowest: None, ..job });
        assert_eq!(slowest_of(&unknown, &samples(|_| "CPU")), Err(NoCause::NotKept));
        assert_eq!(slowest_of(&[job(190, 2)], &samples(|_| "CPU")), Err(NoCause::NoneSlower(510)));
    }
}
