//! `loadline doctor`: connects and says what would spoil the figures.

use std::path::Path;

use loadline_model::manifest::TargetInfo;
use loadline_model::{Driver, Finding, Severity};
use loadline_target::{kind_of, open};
use loadline_workload::CATALOGUE;

use crate::args::{DoctorArgs, ListFormat};
use crate::exit::{self, Failure};
use crate::listing::Listing;
use crate::output;

pub(crate) fn doctor(args: &DoctorArgs) -> Result<u8, Failure> {
    let url = args.target.url();
    let kind = kind_of(&url)?;
    (kind.check_url)(&url)?;
    let target = open(&args.target.request(&args.results))?;
    let info = target.info()?;
    let mut findings = target.doctor()?;
    findings.extend(places(&info));
    let limit = target.job_limit()?;
    let jobs = limit.jobs.map_or("no limit".to_owned(), |j| j.to_string());
    let advice = if limit.jobs == Some(0) { "no session is free for a job" } else { "" };
    let severity = if limit.jobs == Some(0) { Severity::Refused } else { Severity::Ok };
    let subject =
        if limit.because.is_empty() { "jobs at most".to_owned() } else { format!("jobs at most ({})", limit.because) };
    findings.push(Finding::new("jobs", severity, subject, jobs, advice));
    for (column, reason) in target.absent_columns() {
        findings.push(Finding::new("figure", Severity::Warning, format!("figure {column}"), "–", reason));
    }
    let capabilities = (kind.capabilities)();
    for workload in CATALOGUE {
        let refusals: Vec<_> = Driver::ALL.iter().map(|d| (d, capabilities.refusal(*d, workload.needs))).collect();
        let drivers: Vec<_> = refusals.iter().filter(|(_, r)| r.is_none()).map(|(d, _)| d.name()).collect();
        let reasons: Vec<_> =
            refusals.iter().filter_map(|(d, r)| r.as_ref().map(|r| format!("not with the {d} driver: {r}"))).collect();
        let severity = if drivers.is_empty() { Severity::Warning } else { Severity::Ok };
        let value = if drivers.is_empty() { "cannot run".to_owned() } else { format!("{} driver", drivers.join(", ")) };
        findings.push(Finding::new("workload", severity, workload.code, value, reasons.join("; ")));
    }
    findings.sort_by_key(|f| std::cmp::Reverse(f.severity));
    let refused = findings.iter().filter(|f| f.severity == Severity::Refused).count();
    let rows = findings.iter().map(|f| {
        let severity = match f.severity {
            Severity::Ok => "ok",
            Severity::Warning => "warning",
            Severity::Refused => "REFUSED",
        };
        vec![severity.to_owned(), f.subject.clone(), f.value.clone(), f.advice.clone()]
    });
    let listing = Listing { columns: vec!["verdict", "subject", "value", "advice"], rows: rows.collect() };
    if args.list.format == ListFormat::Text && args.list.output == Path::new("-") {
        let place = if info.local { "on this machine" } else { "on another machine" };
        output::stdout(format!("{} {} at {} ({place})\n\n", info.product, info.version, info.url).as_bytes())?;
    }
    listing.write(&args.list)?;
    for note in &info.notes {
        output::say(&format!("note: {note}"));
    }
    if refused > 0 {
        output::say(&format!("{refused} of these would give false figures: a run refuses them unless forced"));
    }
    Ok(if refused > 0 { exit::TARGET } else { 0 })
}

/// Filesystem and device under log and data.
fn places(info: &TargetInfo) -> Vec<Finding> {
    if !info.local {
        let advice = "CPU figures come through the database where it allows reading /proc, device figures are missing";
        return vec![Finding::new("place", Severity::Warning, "log and data", "on another machine", advice)];
    }
    let mut findings = Vec::new();
    for (role, dir) in [("log", &info.log_dir), ("data", &info.data_dir)] {
        let Some(dir) = dir else { continue };
        let finding = match loadline_collect::inventory::storage(Path::new(dir)) {
            Ok(s) => {
                let free = s
                    .free_bytes
                    .map_or(String::new(), |b| format!(", {} free", loadline_model::format::bytes(b as f64)));
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
