//! Runs plans on real servers of many versions, and says which tests were valid, skipped or invalid, and why.
//!
//! Each server comes from a package (`list.rs`), is unpacked (`fetch.rs`), started as a private server through `?bin=`,
//! measured and removed. `--docs` writes the outcomes of this and earlier invocations as a page (`page.rs`).

mod fetch;
mod list;
mod page;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use loadline_database::OpenRequest;
use loadline_model::plan::PlanSpec;
use loadline_model::{Driver, TestRecord};
use loadline_run::study::Ended;
use loadline_run::{PlanError, make_plan, plans};
use loadline_store::StoredRun;
use serde::{Deserialize, Serialize};

use crate::arena::Outcome;
use crate::outcomes;
use crate::short::{Windows, study};
use list::{SERVERS, Server};

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Servers; by default all. 'list' prints their names
    names: Vec<String>,
    /// Plans; by default quick and those of the groups
    #[arg(long, value_delimiter = ',')]
    plan: Vec<String>,
    /// Drivers
    #[arg(long, value_delimiter = ',', default_value = "database,client", value_parser = ["database", "client"])]
    driver: Vec<String>,
    /// Only these workloads of the plans
    #[arg(long, value_delimiter = ',')]
    workload: Vec<String>,
    #[command(flatten)]
    windows: Windows,
    /// Also measure the limits of the tests
    #[arg(long)]
    probe: bool,
    /// Folder of packages and outcomes [default: servers in cargo's target directory]
    #[arg(long)]
    cache: Option<PathBuf>,
    /// Also remove the packages at the end
    #[arg(long)]
    forget: bool,
    /// Write the page about all outcomes in the cache to this file
    #[arg(long)]
    docs: Option<PathBuf>,
    /// Measure nothing: only write the page
    #[arg(long, requires = "docs")]
    only_docs: bool,
}

/// What a plan did on a server with a driver.
#[derive(Debug, Serialize, Deserialize)]
struct Measured {
    server: String,
    /// As the server says it; `None` if it was not started.
    version: Option<String>,
    plan: String,
    driver: String,
    date: String,
    valid: usize,
    /// Workload and reason.
    skipped: Vec<(String, String)>,
    /// Workload with its jobs, and reason.
    invalid: Vec<(String, String)>,
    /// Why the plan did not run, or did not end.
    failed: Option<String>,
}

pub(crate) fn run(args: &Args) -> Outcome<ExitCode> {
    if args.names.iter().any(|name| name == "list") {
        SERVERS.iter().for_each(|s| println!("{:<22} {}", s.name, s.from()));
        return Ok(ExitCode::SUCCESS);
    }
    let cache = outcomes::folder(args.cache.as_deref(), "servers")?;
    let mut good = true;
    for server in chosen(&args.names)?.into_iter().filter(|_| !args.only_docs) {
        eprintln!("{}: {}", server.name, server.from());
        // Dropped, and with it removed, when the server was measured.
        let tree = fetch::unpack(server, &cache)?;
        good &= on_server(args, server, &tree.bin, &cache)?;
        if args.forget {
            fetch::forget(server, &cache)?;
        }
    }
    if let Some(docs) = &args.docs {
        fs::write(docs, page::page(&outcomes::all(&cache)?))?;
    }
    Ok(if good { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn chosen(names: &[String]) -> Outcome<Vec<&'static Server>> {
    if names.is_empty() {
        return Ok(SERVERS.iter().collect());
    }
    let find = |name: &String| SERVERS.iter().find(|s| s.name == name);
    names.iter().map(|n| find(n).ok_or_else(|| format!("no server '{n}': `servers list`").into())).collect()
}

/// Measures a server and stores each outcome; returns whether all tests were valid.
fn on_server(args: &Args, server: &Server, bin: &Path, cache: &Path) -> Outcome<bool> {
    let names: Vec<String> = if args.plan.is_empty() {
        plans::PLANS.iter().map(|p| p.name.to_owned()).filter(|name| name != "full").collect()
    } else {
        args.plan.clone()
    };
    let scratch = outcomes::runs(cache)?;
    let mut good = true;
    for name in &names {
        for driver in Driver::ALL.into_iter().filter(|d| args.driver.contains(&d.to_string())) {
            let measured = measure(args, server, bin, (name, driver), scratch.path())?;
            good &= measured.failed.is_none() && measured.invalid.is_empty();
            println!("{}", measured.line());
            let name = format!("{}-{}-{}", measured.server, measured.plan, measured.driver);
            outcomes::store(cache, &name, &measured)?;
        }
    }
    Ok(good)
}

fn measure(
    args: &Args,
    server: &Server,
    bin: &Path,
    (name, driver): (&str, Driver),
    results: &Path,
) -> Outcome<Measured> {
    let url = format!("{}:?bin={}", server.scheme, bin.display());
    let settings: BTreeMap<String, String> =
        server.settings.iter().map(|(n, v)| ((*n).to_owned(), (*v).to_owned())).collect();
    let only = Some(args.workload.clone()).filter(|codes| !codes.is_empty());
    let spec = plans::find(name)?.spec()?;
    let spec = PlanSpec { group: spec.group.clone().filter(|_| only.is_none()), ..spec };
    let spec = spec.overridden_by(PlanSpec {
        workload: only,
        driver: Some(driver),
        repeat: Some(1),
        // Whether the server's counters prove a test, not whether its machine was quiet.
        allow_disturbed: Some(true),
        setting: Some(settings.clone()),
        probe: Some(args.probe),
        ..args.windows.spec(&url)
    });
    let mut measured = Measured {
        server: server.name.to_owned(),
        version: None,
        plan: name.to_owned(),
        driver: driver.to_string(),
        date: outcomes::today(),
        valid: 0,
        skipped: Vec::new(),
        invalid: Vec::new(),
        failed: None,
    };
    eprintln!("  {name}, {driver} driver");
    let plan = match make_plan(&spec) {
        Ok(plan) => plan,
        Err(PlanError::Nothing { reasons, .. }) => {
            measured.skipped = vec![(format!("all of {name}"), reasons)];
            return Ok(measured);
        }
        Err(e) => {
            measured.failed = Some(e.to_string());
            return Ok(measured);
        }
    };
    let mut request = OpenRequest::new(&url, results.to_owned());
    request.settings = settings;
    match study(plan, request, None) {
        Err(e) => measured.failed = Some(e.to_string()),
        Ok(outcome) => {
            let stored = StoredRun::open(&outcome.folder)?.manifest;
            measured.version = Some(format!("{} {}", stored.target.product, stored.target.version));
            measured.skipped = stored.plan.skipped.into_iter().map(|s| (s.code, s.reason)).collect();
            measured.valid = outcome.records.iter().filter(|r| r.invalid_reason.is_none()).count();
            measured.invalid = outcome.records.iter().filter_map(invalid).collect();
            measured.failed = match outcome.ended {
                Ended::Complete => None,
                Ended::Interrupted => return Err("interrupted".into()),
                Ended::Failed(e) => Some(e.to_string()),
            };
        }
    }
    Ok(measured)
}

fn invalid(record: &TestRecord) -> Option<(String, String)> {
    let why = record.invalid_reason.clone()?;
    Some((format!("{} with {} jobs", record.workload, record.jobs), why))
}

impl Measured {
    /// For the terminal: the counts, then a line for each reason.
    fn line(&self) -> String {
        let counts = format!("{} valid, {} skipped, {} invalid", self.valid, self.skipped.len(), self.invalid.len());
        let mut out = format!("{} {} ({} driver): {counts}", self.server, self.plan, self.driver);
        out.extend(self.failed.iter().map(|why| format!("\n  failed: {why}")));
        for (kind, of) in [("skipped", &self.skipped), ("invalid", &self.invalid)] {
            out.extend(of.iter().map(|(what, why)| format!("\n  {kind} {what}: {why}")));
        }
        out
    }
}
