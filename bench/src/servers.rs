//! Runs plans on real servers of many versions, and says which tests were proved, skipped or refused, and why.
//!
//! Each server comes from a package (`list.rs`), is unpacked (`fetch.rs`), started as a private server through `?bin=`,
//! measured and removed. Each outcome of a server, plan and driver is kept, and not measured again: what was cut off goes on
//! where it ended. `--docs` writes all outcomes as a page (`page.rs`).

mod fetch;
mod list;
mod page;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use loadline_database::OpenRequest;
use loadline_model::{Driver, TestRecord};
use loadline_run::study::Ended;
use loadline_run::{PlanError, PlanSpec, make_plan, plans};
use loadline_store::StoredRun;
use loadline_workload::{CATALOGUE, Workload, find, find_group};
use serde::{Deserialize, Serialize};

use crate::arena::Outcome;
use crate::outcomes;
use crate::short::{Windows, study};
use list::{List, Server};

#[derive(Debug, clap::Args)]
pub(crate) struct ServersArgs {
    /// Servers; by default all. 'list' prints their names
    names: Vec<String>,
    /// Plans; by default quick, those of the groups, and 'rest' of the workloads that are in none of these
    #[arg(long, value_delimiter = ',')]
    plan: Vec<String>,
    /// Drivers
    #[arg(long, value_delimiter = ',', default_value = "database,client", value_parser = ["database", "client"])]
    driver: Vec<String>,
    /// Only these workloads of the plans; what is measured of a part of a plan is printed and not kept
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
    /// Also measure what the cache has an outcome of
    #[arg(long)]
    again: bool,
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

/// Outcome of a plan on a server with a driver.
#[derive(Debug, Serialize, Deserialize)]
struct Measured {
    server: String,
    /// As the server says it; `None` if it was not started.
    version: Option<String>,
    plan: String,
    driver: String,
    date: String,
    /// Tests that the server's counters prove, whether or not its machine was quiet.
    #[serde(alias = "valid")]
    proved: usize,
    /// Workload and reason.
    skipped: Vec<(String, String)>,
    /// Workload with its jobs, and reason.
    #[serde(alias = "invalid")]
    refused: Vec<(String, String)>,
    /// Why the plan did not run, or did not end.
    failed: Option<String>,
}

pub(crate) fn run(args: &ServersArgs) -> Outcome<ExitCode> {
    let list = List::read()?;
    for plan in &args.plan {
        spec(plan)?;
    }
    if args.names.iter().any(|name| name == "list") {
        list.servers.iter().for_each(|s| println!("{:<22} {}", s.name, s.from()));
        return Ok(ExitCode::SUCCESS);
    }
    let cache = outcomes::folder(args.cache.as_deref(), "servers")?;
    let mut good = true;
    let chosen = chosen(&list, &args.names)?;
    let measured = if args.only_docs { Vec::new() } else { chosen };
    for server in measured {
        let due = due(args, server, &cache)?;
        if due.is_empty() {
            eprintln!("{}: measured already; --again measures it once more", server.name);
            continue;
        }
        eprintln!("{}: {}", server.name, server.from());
        // Dropped, and with it removed, when the server was measured.
        let tree = fetch::unpack(server, &cache)?;
        good &= on_server(args, server, &tree.bin, &due, &cache)?;
        if args.forget {
            fetch::forget(server, &cache)?;
        }
    }
    if let Some(docs) = &args.docs {
        fs::write(docs, page::page(&list, &outcomes::all(&cache)?))?;
    }
    Ok(if good { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn chosen<'a>(list: &'a List, names: &[String]) -> Outcome<Vec<&'a Server>> {
    if names.is_empty() {
        return Ok(list.servers.iter().collect());
    }
    let find = |name: &String| list.servers.iter().find(|s| s.name == *name);
    names
        .iter()
        .map(|n| {
            find(n).ok_or_else(|| format!("there is no server '{n}': `loadline-bench servers list` names all").into())
        })
        .collect()
}

/// Name of the plan of all workloads that are in no other.
const REST: &str = "rest";

fn spec(name: &str) -> Outcome<PlanSpec> {
    if name != REST {
        return Ok(plans::find(name)?.spec()?);
    }
    let usual = usual_plans()?.into_iter().map(|plan| workloads(&spec(plan)?)).collect::<Outcome<Vec<_>>>()?;
    let named: BTreeSet<&str> = usual.iter().flatten().map(|w| w.code.as_str()).collect();
    let rest = CATALOGUE.iter().filter(|w| !named.contains(w.code.as_str())).map(|w| w.code.clone()).collect();
    Ok(PlanSpec { workload: Some(rest), ..PlanSpec::default() })
}

fn workloads(spec: &PlanSpec) -> Outcome<Vec<Arc<Workload>>> {
    let mut all = Vec::new();
    for group in spec.group.iter().flatten() {
        all.extend(find_group(group)?);
    }
    for code in spec.workload.iter().flatten() {
        all.push(find(code)?);
    }
    Ok(all)
}

/// The default plan and those of groups.
fn usual_plans() -> Outcome<Vec<&'static str>> {
    let mut usual = Vec::new();
    for plan in plans::PLANS {
        let groups: BTreeSet<String> = workloads(&plan.spec()?)?.into_iter().map(|w| w.group.clone()).collect();
        // That of storage has the database writer as well.
        if plan.name == plans::DEFAULT_PLAN || groups.len() <= 2 {
            usual.push(plan.name);
        }
    }
    Ok(usual)
}

/// Plans and drivers that are to be measured on a server.
fn due(args: &ServersArgs, server: &Server, cache: &Path) -> Outcome<Vec<(String, Driver)>> {
    let names: Vec<String> = if args.plan.is_empty() {
        usual_plans()?.into_iter().chain([REST]).map(str::to_owned).collect()
    } else {
        args.plan.clone()
    };
    let drivers = || Driver::ALL.into_iter().filter(|d| args.driver.contains(&d.to_string()));
    let all = names.iter().flat_map(|name| drivers().map(|driver| (name.clone(), driver)));
    let known = |(name, driver): &(String, Driver)| cache.join(stored_as(server, name, *driver) + ".json").exists();
    let again = args.again || !args.workload.is_empty();
    Ok(all.filter(|due| again || !known(due)).collect())
}

fn stored_as(server: &Server, plan: &str, driver: Driver) -> String {
    format!("{}-{plan}-{driver}", server.name)
}

/// Measures what is due on a server and stores each outcome; returns whether all tests were valid.
fn on_server(args: &ServersArgs, server: &Server, bin: &Path, due: &[(String, Driver)], cache: &Path) -> Outcome<bool> {
    let scratch = outcomes::runs(cache)?;
    let mut good = true;
    for (name, driver) in due {
        let measured = measure(args, server, bin, (name, *driver), scratch.path())?;
        // Who names workloads wants them measured.
        let is_missing = !args.workload.is_empty() && !measured.skipped.is_empty();
        good &= measured.failed.is_none() && measured.refused.is_empty() && !is_missing;
        println!("{}", measured.line());
        // A part of a plan is not the plan.
        if args.workload.is_empty() {
            outcomes::store(cache, &stored_as(server, name, *driver), &measured)?;
        }
    }
    Ok(good)
}

fn measure(
    args: &ServersArgs,
    server: &Server,
    bin: &Path,
    (name, driver): (&str, Driver),
    results: &Path,
) -> Outcome<Measured> {
    let url = format!("{}:?bin={}", server.scheme, bin.display());
    let settings = server.settings.clone();
    let only = Some(args.workload.clone()).filter(|codes| !codes.is_empty());
    let spec = spec(name)?;
    let spec = PlanSpec { group: if only.is_none() { spec.group.clone() } else { None }, ..spec };
    let spec = spec.overridden_by(PlanSpec {
        workload: only,
        driver: Some(driver),
        repeat: Some(1),
        setting: Some(settings.clone()),
        probe: Some(args.probe),
        ..args.windows.spec(&url)
    });
    let mut measured = Measured {
        server: server.name.clone(),
        version: None,
        plan: name.to_owned(),
        driver: driver.to_string(),
        date: outcomes::today(),
        proved: 0,
        skipped: Vec::new(),
        refused: Vec::new(),
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
    match study(plan, request, Vec::new()) {
        Err(e) => measured.failed = Some(e.to_string()),
        Ok(outcome) => {
            let stored = StoredRun::open(&outcome.folder)?.manifest;
            measured.version = Some(format!("{} {}", stored.target.product, stored.target.version));
            measured.skipped = stored.plan.skipped.into_iter().map(|s| (s.code, s.reason)).collect();
            measured.proved = outcome.records.iter().filter(|r| r.is_usable()).count();
            measured.refused = outcome.records.iter().filter(|r| !r.is_usable()).filter_map(refused).collect();
            measured.failed = match outcome.ended {
                Ended::Complete => None,
                Ended::Interrupted => return Err("interrupted".into()),
                Ended::Failed(e) => Some(e.to_string()),
            };
        }
    }
    Ok(measured)
}

fn refused(record: &TestRecord) -> Option<(String, String)> {
    let why = record.invalid_reason.clone()?;
    Some((format!("{} with {} jobs", record.workload, record.jobs), why))
}

impl Measured {
    /// For the terminal: the counts, then a line for each reason.
    fn line(&self) -> String {
        let counts = format!("{} proved, {} skipped, {} refused", self.proved, self.skipped.len(), self.refused.len());
        let mut out = format!("{} {} ({} driver): {counts}", self.server, self.plan, self.driver);
        out.extend(self.failed.iter().map(|why| format!("\n  failed: {why}")));
        for (kind, of) in [("skipped", &self.skipped), ("refused", &self.refused)] {
            out.extend(of.iter().map(|(what, why)| format!("\n  {kind} {what}: {why}")));
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_workload_is_in_a_plan_that_is_run_and_none_asks_for_a_target() {
        let page = include_str!("../../docs/servers.md");
        let servers = List::read().unwrap().servers;
        assert!(servers.iter().all(|server| page.contains(&server.version)), "{page}");
        let all = |kind: &str| servers.iter().filter(|server| server.name.starts_with(kind)).count() > 1;
        assert!(["postgres-", "mysql-", "mariadb-"].into_iter().all(all));
        let plans: Vec<PlanSpec> = usual_plans().unwrap().into_iter().chain([REST]).map(|n| spec(n).unwrap()).collect();
        assert!(plans.iter().all(|plan| plan.target.is_none() && plan.nodes.is_none()));
        let all: Vec<String> = plans.iter().flat_map(|plan| workloads(plan).unwrap()).map(|w| w.code.clone()).collect();
        assert!(CATALOGUE.iter().all(|w| all.contains(&w.code)), "{all:?}");
        assert_eq!(spec(REST).unwrap().workload.unwrap(), ["SRV-QUERY25", "SRV-MIXED", "LGWR-MIXED", "LGWR-SIZE"]);
    }
}
