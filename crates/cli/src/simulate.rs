//! `loadline simulate`: what a measured platform would do if something about it were different.

use std::path::Path;
use std::time::Instant;

use loadline_model::format::{nearest, number, parse_duration_s};
use loadline_model::probe::{Operation, ProbeReport, ProbedDir, VERSION};
use loadline_report::render_simulation;
use loadline_simulate::{
    ASSUMED, Answer, CpuChange, Length, MOST, Measured, MeasuredDevice, OtherDevice, OutOfRange, Unfit, WhatIf,
    with_standby,
};
use loadline_store::StoredRun;

use crate::args::{SimulateArgs, StandbyLevel};
use crate::exit::Failure;
use crate::output;
use crate::target::run_folder;

impl From<Unfit> for Failure {
    fn from(e: Unfit) -> Failure {
        Failure::usage(e.to_string())
    }
}

impl From<OutOfRange> for Failure {
    fn from(e: OutOfRange) -> Failure {
        Failure::usage(e.to_string())
    }
}

pub(crate) fn simulate(args: &SimulateArgs) -> Result<u8, Failure> {
    let jobs = args.jobs.as_deref().map(parse_jobs).transpose()?;
    let stored = open(&args.run, args)?;
    let probe = args.probe.as_deref().map(probed).transpose()?;
    let measured = measured(&stored, args.workload.as_deref(), probe.as_ref())?;
    let what_if = what_if(args, &measured)?;
    let what_ifs = match (args.sweep, what_if.is_empty()) {
        (true, true) => WhatIf::usual(),
        (true, false) => what_if.each().into_iter().chain([what_if]).collect(),
        (false, true) => Vec::new(),
        (false, false) => vec![what_if],
    };
    let jobs = jobs.unwrap_or_else(|| usual_jobs(&measured, args.sweep));
    let length = Length { seed: args.seed, commits: args.commits };
    let begin = Instant::now();
    let mut answer = Answer::of(measured, &what_ifs, &jobs, length)?;
    if let Some(against) = &args.against {
        check(&mut answer, &open(against, args)?, args)?;
    }
    let s = begin.elapsed().as_secs_f64();
    if args.commits.is_some() {
        let again = Instant::now();
        let lines: Vec<_> =
            answer.lines.iter().flat_map(|l| jobs.iter().map(move |jobs| (&l.platform, *jobs))).collect();
        for (platform, jobs) in lines {
            loadline_simulate::simulate(platform, jobs, length)?;
        }
        let (commits, took) = (answer.commits() as f64, again.elapsed().as_secs_f64().max(1e-9));
        output::say(&format!(
            "{} commits simulated in {} s: {} million a second; calibration and lines took {} s",
            number(commits, 0),
            number(took, 3),
            number(commits / took / 1e6, 2),
            number(s, 2)
        ));
    }
    if !answer.calibration.good() {
        output::say(&format!(
            "warning: not calibrated well: the model is {} % off at a calibrated point",
            number(answer.calibration.worst_pct(), 1)
        ));
    }
    let bytes = render_simulation(&answer, args.format).map_err(|e| Failure::failed(e.to_string()))?;
    output::write(&args.output, &bytes)?;
    if args.output != Path::new("-") {
        output::say(&format!("simulation: {}", args.output.display()));
    }
    Ok(0)
}

fn open(run: &Path, args: &SimulateArgs) -> Result<StoredRun, Failure> {
    let stored = StoredRun::open(&run_folder(run, &args.results)?)?;
    stored.warnings.iter().for_each(|w| output::say(&format!("warning: {}: {w}", stored.id())));
    Ok(stored)
}

fn measured(stored: &StoredRun, workload: Option<&str>, probe: Option<&ProbedDir>) -> Result<Measured, Failure> {
    Ok(Measured::of(&stored.manifest, &stored.records, workload, probe)?)
}

/// `1,2,4`, or with `…` (also `...`) for doubling: `1,2,…,10000`.
fn parse_jobs(text: &str) -> Result<Vec<u32>, Failure> {
    let wrong = |part: &str| {
        Failure::usage(format!(
            "--jobs {text}: '{part}' is no number of jobs: write 1 to {MOST}, as in 1,2,4,8 or 1,…,10000"
        ))
    };
    let mut jobs: Vec<u32> = Vec::new();
    let mut doubling = false;
    for part in text.split(',').map(str::trim) {
        if matches!(part, "…" | "...") && !jobs.is_empty() && !doubling {
            doubling = true;
            continue;
        }
        let count: u32 = part.parse().ok().filter(|n| (1..=MOST).contains(n)).ok_or_else(|| wrong(part))?;
        while let Some(next) = jobs.last().and_then(|last| last.checked_mul(2)).filter(|next| doubling && *next < count)
        {
            jobs.push(next);
        }
        if doubling && jobs.last().is_some_and(|last| *last >= count) {
            return Err(wrong("…"));
        }
        doubling = false;
        jobs.push(count);
    }
    if doubling {
        return Err(wrong("…"));
    }
    jobs.sort_unstable();
    jobs.dedup();
    Ok(jobs)
}

/// The jobs that were measured; for charts also twice and four times as many.
fn usual_jobs(measured: &Measured, sweep: bool) -> Vec<u32> {
    let mut jobs: Vec<u32> = measured.points.iter().map(|p| p.jobs).collect();
    let most = jobs.last().copied().unwrap_or(1);
    if sweep {
        jobs.extend([2, 4].iter().filter_map(|times| most.checked_mul(*times)).filter(|jobs| *jobs <= MOST));
    }
    jobs
}

/// What the flags change.
fn what_if(args: &SimulateArgs, measured: &Measured) -> Result<WhatIf, Failure> {
    let us = |flag: &str, text: &Option<String>| {
        let parse = |text: &String| {
            let wrong = |e: String| Failure::usage(format!("{flag} {text}: {e}"));
            // Seconds would be the default, which nobody means here.
            if text.trim().parse::<f64>().is_ok_and(|value| value > 0.0) {
                return Err(wrong("write the unit, such as 200us or 1ms".to_owned()));
            }
            let seconds = parse_duration_s(text).map_err(wrong)?;
            Ok::<f64, Failure>(seconds * 1e6)
        };
        text.as_ref().map(parse).transpose()
    };
    let rtt = us("--standby-rtt", &args.standby_rtt)?;
    let device = match (&args.device, args.sync_us) {
        (Some(device), _) => Some(other_device(device, args, measured)?),
        (None, Some(us)) => Some(OtherDevice::Takes(us)),
        (None, None) => None,
    };
    Ok(WhatIf {
        device,
        standby: rtt.map(|rtt| (rtt, args.standby_level == StandbyLevel::Written)),
        cpus: args.cpus.as_deref().map(parse_cpus).transpose()?,
        nodes: args.nodes,
        delay_us: us("--group-commit-delay", &args.group_commit_delay)?,
    })
}

/// `64` or `2x`.
fn parse_cpus(text: &str) -> Result<CpuChange, Failure> {
    let wrong = || {
        Failure::usage(format!(
            "--cpus {text}: write a number of CPUs from 1 to {MOST}, or a factor such as 2x or 0.5x"
        ))
    };
    match text.strip_suffix(['x', '×']) {
        Some(times) => {
            let times: f64 = times.trim().parse().map_err(|_| wrong())?;
            if times.is_finite() && times > 0.0 { Ok(CpuChange::Times(times)) } else { Err(wrong()) }
        }
        None => {
            let count = text.parse().ok().filter(|n| (1..=MOST).contains(n)).ok_or_else(wrong)?;
            Ok(CpuChange::Count(count))
        }
    }
}

/// The device of `--device`: an assumed one, a probe, or that of another run.
fn other_device(text: &str, args: &SimulateArgs, measured: &Measured) -> Result<OtherDevice, Failure> {
    if let Some(assumed) = ASSUMED.iter().find(|d| d.name == text) {
        if let Some(operation) = &args.device_operation {
            return Err(Failure::usage(format!(
                "--device-operation {operation}: {text} is assumed and not probed: give it with --device FILE"
            )));
        }
        return Ok(OtherDevice::Assumed(assumed));
    }
    let path = run_folder(Path::new(text), &args.results)?;
    let names: Vec<&str> = ASSUMED.iter().map(|d| d.name).collect();
    if !path.exists() {
        return Err(Failure::usage(format!(
            "--device {text}: no such file or run: give {}, the output of  loadline probe DIR --format json, or a run",
            names.join(", ")
        )));
    }
    let operation = args.device_operation.as_deref().map(operation).transpose()?;
    if path.join("manifest.json").exists() {
        let run = open(&path, args)?;
        let other = self::measured(&run, Some(&measured.workload), None)?;
        let timed = other.timed_device().zip(measured.timed_device());
        if let (Some((other, own)), None) = (timed, operation) {
            return Ok(OtherDevice::Measured { other, own: Some(own) });
        }
        let dir = run.manifest.probes.get("log").ok_or_else(|| {
            Failure::usage(format!(
                "--device {text}: neither did its database time the syncs of its log nor has it a probe"
            ))
        })?;
        return probed_device(dir, operation, text, measured);
    }
    probed_device(&probed(&path)?, operation, text, measured)
}

fn probed_device(
    dir: &ProbedDir,
    operation: Option<Operation>,
    text: &str,
    measured: &Measured,
) -> Result<OtherDevice, Failure> {
    let wanted = operation.unwrap_or(measured.operation);
    let other = MeasuredDevice::of(dir, wanted).ok_or_else(|| {
        Failure::usage(format!(
            "--device {text}: the probe has no figures of {wanted}: choose another with --device-operation"
        ))
    })?;
    // Only the same operation says how much the log adds to it.
    let own = measured.probe.clone().filter(|_| wanted == measured.operation);
    Ok(OtherDevice::Measured { other, own })
}

/// An operation that makes data durable.
fn operation(name: &str) -> Result<Operation, Failure> {
    use Operation as O;
    let reads = [O::RandomRead, O::SequentialRead, O::SequentialWrite];
    let durable = || O::ALL.into_iter().filter(move |o| !reads.contains(o));
    durable().find(|o| o.id() == name).ok_or_else(|| {
        let near = nearest(name, durable().map(O::id)).map_or_else(String::new, |id| format!(" did you mean '{id}'?"));
        let all = durable().map(O::id).collect::<Vec<_>>().join(", ");
        Failure::usage(format!("--device-operation {name}: the log is not written so;{near} there are {all}"))
    })
}

/// The directory of a stored probe.
fn probed(path: &Path) -> Result<ProbedDir, Failure> {
    let shown = path.display();
    let make = format!("make it with  loadline probe LOG_DIR --format json --output {shown}");
    let text =
        std::fs::read_to_string(path).map_err(|e| Failure::usage(format!("cannot read {shown}: {e}; {make}")))?;
    let report: ProbeReport = serde_json::from_str(&text)
        .map_err(|e| Failure::usage(format!("{shown} is not the output of a probe: {e}; {make}")))?;
    let dirs = report.dirs.len();
    match report.dirs.into_iter().next() {
        Some(dir) if dirs == 1 && report.version == VERSION => Ok(dir),
        _ if report.version != VERSION => Err(Failure::usage(format!(
            "{shown} has probe format {}; this loadline reads {VERSION}: probe again",
            report.version
        ))),
        _ => Err(Failure::usage(format!("{shown} holds {dirs} directories: probe the log's directory alone"))),
    }
}

/// Sets the last line beside what `against` measured.
fn check(answer: &mut Answer, against: &StoredRun, args: &SimulateArgs) -> Result<(), Failure> {
    let workload = answer.measured.workload.clone();
    let standby = answer.lines.last().and_then(|l| l.platform.standby);
    let mut points = match standby {
        Some(s) => with_standby(&against.records, &workload, s.rtt_us, s.written),
        None => measured(against, Some(&workload), None)?.points.iter().map(|p| (p.jobs, p.tps)).collect(),
    };
    if let Some(jobs) = args.jobs.as_deref() {
        let asked = parse_jobs(jobs)?;
        points.retain(|(jobs, _)| asked.contains(jobs));
    }
    if points.is_empty() {
        return Err(Failure::usage(format!(
            "--against {}: it has no valid test of {workload} to hold the last line against{}",
            against.id(),
            if standby.is_some() {
                " with commits that wait for a standby at such a round trip (within a fifth): `loadline replica-cost` measures them"
            } else {
                ""
            }
        )));
    }
    Ok(answer.check_against(&against.id(), &points)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jobs_are_listed_or_doubled() {
        assert_eq!(parse_jobs("1,2,4").unwrap(), [1, 2, 4]);
        assert_eq!(parse_jobs("1, …,10").unwrap(), [1, 2, 4, 8, 10]);
        assert_eq!(parse_jobs("4,3,...,12").unwrap(), [3, 4, 6, 12]);
        for bad in ["", "0", "1,x", "…,4", "1,…", "1,…,…,4", "4,…,1", "-2", "1000001"] {
            assert!(parse_jobs(bad).unwrap_err().message.contains("is no number of jobs"), "{bad}");
        }
    }

    #[test]
    fn cpus_are_a_number_or_a_factor() {
        assert_eq!(parse_cpus("64").unwrap(), CpuChange::Count(64));
        assert_eq!(parse_cpus("2x").unwrap(), CpuChange::Times(2.0));
        for bad in ["0", "x", "-1", "0x", "nanx", "infx", "2y", "1000001"] {
            assert!(parse_cpus(bad).is_err(), "{bad}");
        }
    }
}
