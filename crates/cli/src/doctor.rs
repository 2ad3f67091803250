//! `loadline doctor`: connects and says what would spoil the figures.

use std::path::Path;
use std::time::{Duration, Instant};

use loadline_collect::os::{CpuTimes, Processes};
use loadline_database::{Privilege, Target, TargetKind, Use, Work, is_temporary, kind_of, open};
use loadline_load::server_of;
use loadline_model::disturbance::measured_by;
use loadline_model::format;
use loadline_model::group::grouped;
use loadline_model::manifest::TargetInfo;
use loadline_model::{Capabilities, Column, Driver, Finding, Severity, column};
use loadline_report::Format;
use loadline_run::plan::{AWR_FLAG, refusal};
use loadline_run::server_memory::{DATA_PER_CACHE, DATA_PER_MEMORY, beyond_cache, beyond_memory};
use loadline_storage::StorageFacts;
use loadline_workload::{CATALOGUE, Workload};
use minijinja::{Value, context};

use crate::args::DoctorArgs;
use crate::exit::{self, Failure};
use crate::template::filled;
use crate::{listing, output};

pub(crate) fn doctor(args: &DoctorArgs) -> Result<u8, Failure> {
    let url = args.target.url();
    let kind = kind_of(&url)?;
    kind.check_url(&url)?;
    let mut request = args.target.request(&args.results);
    if args.oracle_awr {
        let Some(report) = kind.native_report.as_ref().filter(|r| r.flag == AWR_FLAG) else {
            return Err(Failure::usage(format!("{AWR_FLAG} is for Oracle: {} has no AWR", kind.product)));
        };
        output::say(&report.notice);
        request.native_report = true;
    }
    let target = open(&request)?;
    let info = target.info()?;
    if args.grants || args.revoke {
        output::write(&args.list.output, script(&info, &target.privileges()?, args.revoke)?.as_bytes())?;
        return Ok(0);
    }
    let mut findings = target.doctor()?;
    // Storage findings replace the plain directory settings.
    let places = places(&info);
    findings.retain(|f| f.severity != Severity::Ok || !places.iter().any(|p| p.subject == f.subject));
    findings.extend(places);
    findings.extend(others(target.as_ref())?);
    let limit = target.job_limit()?;
    let jobs = limit.jobs.map_or("no limit".to_owned(), |j| j.to_string());
    let advice = if limit.jobs == Some(0) { "no session is free for a job" } else { "" };
    let severity = if limit.jobs == Some(0) { Severity::Impossible } else { Severity::Ok };
    let subject =
        if limit.because.is_empty() { "jobs at most".to_owned() } else { format!("jobs at most ({})", limit.because) };
    findings.push(Finding::new("jobs", severity, subject, jobs, advice));
    findings.extend(storage_size(target.as_ref(), &info, &url, None)?);
    findings.extend(missing_figures(target.as_ref(), kind));
    let of_server = target.capabilities()?;
    findings.extend(CATALOGUE.iter().map(|workload| can_run(workload, kind, &of_server, target.as_ref())));
    findings.sort_by_key(|f| std::cmp::Reverse(f.severity));
    let refused = findings.iter().filter(|f| f.severity >= Severity::Refused).count();
    if args.list.format == Format::Text {
        output::write(&args.list.output, text(&info, &findings).as_bytes())?;
    } else {
        let row =
            |f: &Finding| vec![f.severity.word().to_owned(), f.subject.clone(), f.value.clone(), f.advice.clone()];
        listing::write(&args.list, &["verdict", "subject", "value", "advice"], findings.iter().map(row).collect())?;
    }
    if refused > 0 {
        output::say(&format!("a run refuses {refused} of these: REFUSED can be forced, IMPOSSIBLE cannot be measured"));
    }
    Ok(if refused > 0 { exit::TARGET } else { 0 })
}

/// One finding for all figures that are missing for the same reason.
fn missing_figures(target: &dyn Target, kind: &dyn TargetKind) -> impl Iterator<Item = Finding> {
    // What the database never has is no surprise of this server.
    let of_database = |column: &Column| column.source(&kind.source_key).is_some();
    let missing = target.absent_columns().into_iter().filter(|(column, _)| of_database(column));
    grouped(missing, |(_, reason)| reason.clone()).into_iter().map(|(reason, of)| {
        let titles: Vec<String> = of.iter().map(|(column, _)| column.heading()).collect();
        let subject = format!("figure{} {}", if titles.len() > 1 { "s" } else { "" }, titles.join(", "));
        Finding::new("figure", Severity::Warning, subject, "–", reason)
    })
}

/// By which drivers a workload can run, with its parameters and the size of the data at their defaults.
fn can_run(workload: &Workload, kind: &dyn TargetKind, of_server: &Capabilities, target: &dyn Target) -> Finding {
    let of_kind = |d| refusal(workload, kind, d).map(|refused| refused.reason);
    let refusal = |d| of_kind(d).or_else(|| of_server.refusal(d, &workload.needs));
    let refusals: Vec<_> = Driver::ALL.iter().map(|d| (d, refusal(*d))).collect();
    let drivers: Vec<_> = refusals.iter().filter(|(_, r)| r.is_none()).map(|(d, _)| d.name()).collect();
    let reasons: Vec<_> = match &refusals[..] {
        [(_, Some(a)), (_, Some(b))] if a == b => vec![a.clone()],
        _ => refusals.iter().filter_map(|(d, r)| Some(format!("not with the {d} driver: {}", r.as_ref()?))).collect(),
    };
    let refused = || Work::from_catalogue(&workload.code, &[]).ok().and_then(|work| target.refuses(&work));
    if let Some(why) = refused()
        && !drivers.is_empty()
    {
        let value = "cannot run with its defaults";
        return Finding::new("workload", Severity::Warning, workload.code.as_str(), value, why);
    }
    let severity = if drivers.is_empty() { Severity::Warning } else { Severity::Ok };
    let value = if drivers.is_empty() { "cannot run".to_owned() } else { format!("{} driver", drivers.join(", ")) };
    Finding::new("workload", severity, workload.code.as_str(), value, reasons.join("; "))
}

/// The missing privileges as a script for an administrator, or the way back from all that the role has; what changes the server
/// beyond them, and what loadline can do without, as comments.
fn script(info: &TargetInfo, privileges: &[Privilege], back: bool) -> Result<String, Failure> {
    let shown = |Privilege { sql, gives, used, .. }: &Privilege| {
        // Backwards: a grant on something ends before it is dropped.
        let statements: Vec<&String> = match back {
            true => sql.iter().rev().filter_map(|sql| sql.revoke.as_ref()).collect(),
            false => sql.iter().map(|sql| &sql.grant).collect(),
        };
        let (dashes, word) = match used {
            Use::Needed | Use::Figures => ("", "Gives"),
            Use::Setting => ("-- ", "Changes the server for all its users; it would give"),
            Use::Machine => ("-- ", "Not needed; it would give"),
        };
        context! { gives, dashes, word => if back { "Gave" } else { word }, statements }
    };
    let privileges: Vec<Value> = privileges.iter().filter(|p| p.granted == back).map(shown).collect();
    filled(include_str!("grants.jinja"), context! { back, url => info.url, privileges })
}

/// One line per finding, the worst first, and workloads with the same verdict in one line; then the notes.
fn text(info: &TargetInfo, findings: &[Finding]) -> String {
    let place = if info.local { "on this machine" } else { "on another machine" };
    let mut out = format!("{} {} at {} ({place})\n\n", info.product, info.version, info.url);
    let mut lines: Vec<Finding> = Vec::new();
    for f in findings {
        let alike = |l: &&mut Finding| {
            f.id == "workload" && (&l.id, l.severity, &l.value, &l.advice) == (&f.id, f.severity, &f.value, &f.advice)
        };
        match lines.iter_mut().find(alike) {
            Some(same) => same.subject += &format!(", {}", f.subject),
            None => lines.push(f.clone()),
        }
    }
    out.extend(lines.iter().map(|f| {
        let advice = if f.advice.is_empty() { String::new() } else { format!(": {}", f.advice) };
        format!("{:<10} {} = {}{advice}\n", f.severity.word(), f.subject, f.value)
    }));
    if findings.iter().any(|f| f.id == "privilege") {
        out += "note       all missing privileges in one script: loadline doctor --grants, with the same target\n";
    }
    for note in &info.notes {
        out += &format!("note       {note}\n");
    }
    out
}

/// The size of the data set from which on storage figures are the device's, and how it comes. `given`: memory of the server's
/// machine (`--server-memory`), bytes. `None` if the target has no block cache that it keeps.
pub(crate) fn storage_size(
    target: &dyn Target,
    info: &TargetInfo,
    url: &str,
    given: Option<u64>,
) -> Result<Option<Finding>, Failure> {
    let Some(cache) = target.abilities().tables else { return Ok(None) };
    let of_nodes = |memory: u64| memory.saturating_mul(u64::from(info.nodes.max(1)));
    let (value, why) = if is_temporary(url) {
        ("any".to_owned(), "the server gets a cache that is small for the data".to_owned())
    } else if info.local && reads(info) {
        let Some(bytes) = cache.set_cache(None)? else { return Ok(None) };
        let cache = format::bytes(bytes as f64);
        let why = format!("{DATA_PER_CACHE} times the database's cache of {cache}; the page cache is kept empty");
        (format!("{} or more", beyond_cache(bytes)), why)
    } else if info.local {
        let bytes = given.unwrap_or_else(|| loadline_collect::inventory::machine().memory_bytes);
        let because = match &info.data_dir {
            None => "because this role cannot see the data directory (GRANT pg_monitor)",
            Some(_) => "unless loadline runs as root or as the server's user",
        };
        let memory = format::bytes(bytes as f64);
        let why = format!(
            "{DATA_PER_MEMORY} times this machine's memory of {memory}: the data files cannot be kept out of the page cache {because}"
        );
        (format!("{} or more", beyond_memory(of_nodes(bytes))), why)
    } else if let Some(bytes) = given.or(info.memory_bytes).map(of_nodes) {
        let why = format!("{DATA_PER_MEMORY} times the memory of its machine ({})", format::bytes(bytes as f64));
        (format!("{} or more", beyond_memory(bytes)), why)
    } else {
        let why = "`loadline run --server-memory SIZE --dry-run` says it".to_owned();
        (format!("{DATA_PER_MEMORY} times the memory of its machine"), why)
    };
    Ok(Some(Finding::new("size", Severity::Ok, "--size for storage workloads", value, why)))
}

/// Whether loadline may read the data files, and so keep them out of the page cache.
fn reads(info: &TargetInfo) -> bool {
    info.data_dir.as_ref().is_some_and(|dir| std::fs::read_dir(dir).is_ok())
}

/// Who else uses this machine for half a second, if tests would say so.
fn others(target: &dyn Target) -> Result<Option<Finding>, Failure> {
    let server = server_of(target)?;
    let (begin, before) = (Instant::now(), Processes::read());
    std::thread::sleep(Duration::from_millis(500));
    let (Ok(before), Ok(after), Ok(cpus)) = (before, Processes::read(), CpuTimes::of_each()) else { return Ok(None) };
    let seconds = begin.elapsed().as_secs_f64();
    let mut used = before.used_until(&after, &[std::process::id()], &server);
    used.limit_others(cpus.len() as f64 * seconds);
    let pct = 100.0 * used.others_s / (cpus.len() as f64 * seconds);
    let kind = measured_by(column::OTHER_CPU_PCT).filter(|d| d.is_noted(pct));
    Ok(kind.map(|kind| {
        let value = format!("{pct:.0} % of the CPUs ({})", used.names(seconds));
        let disturbed = kind.disturbed_from.map_or(String::new(), |pct| format!(", disturbed from {pct} %"));
        let advice = format!("stop them before a run: a test is marked from {} % on{disturbed}", kind.noted_from);
        Finding::new("place", Severity::Warning, "other processes", value, advice)
    }))
}

/// Filesystem and device under log and data.
fn places(info: &TargetInfo) -> Vec<Finding> {
    if !info.local {
        let so = match info.memory_bytes.map(|n| format::bytes(n as f64)) {
            Some(memory) => format!("storage figures are bounded by its memory of {memory}"),
            None => "give its memory with --server-memory, which bounds storage figures".to_owned(),
        };
        let advice = format!("its devices cannot be read: {so}");
        return vec![Finding::new("place", Severity::Warning, "log and data", "on another machine", advice)];
    }
    let mut findings = Vec::new();
    for (role, dir) in [("log", &info.log_dir), ("data", &info.data_dir)] {
        let Some(dir) = dir else { continue };
        let finding = match StorageFacts::read(Path::new(dir)).map(|facts| facts.storage) {
            Ok(s) => {
                let free = s.free_bytes.map_or(String::new(), |b| format!(", {} free", format::bytes(b as f64)));
                let device = s.device.map_or(String::new(), |d| format!(" on {d}"));
                let value = format!("{dir}: {} ({}){device}{free}", s.filesystem, s.mount_options);
                Finding::new("place", Severity::Ok, format!("{role} directory"), value, "")
            }
            Err(e) => Finding::new("place", Severity::Warning, format!("{role} directory"), dir.clone(), e.to_string()),
        };
        findings.push(finding);
    }
    findings
}
