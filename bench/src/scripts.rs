//! pgbench scripts run by loadline against the same scripts run by pgbench, on the same tables.

use std::process::Command;
use std::sync::Arc;

use loadline_database::Work;
use loadline_model::Driver;
use loadline_run::{PlanSpec, make_plan};
use loadline_workload::SCALE;

use crate::arena::{self, Arena, Outcome, said_by, target};
use crate::pgbench::{MISSING, binary, command, pgbench, place};

const CONTENDERS: [(&str, Option<Driver>); 2] = [("pgbench", None), ("loadline", Some(Driver::Client))];

#[derive(Debug, clap::Args)]
pub(crate) struct ScriptsArgs {
    #[command(flatten)]
    common: arena::ArenaArgs,
    /// pgbench's own scripts to run
    #[arg(long, value_delimiter = ',', default_value = "select-only,tpcb-like")]
    scripts: Vec<String>,
    /// Scale of pgbench's tables: at least the largest number of clients, or they wait for each other's branch
    #[arg(long, default_value_t = 32)]
    scale: u32,
}

pub(crate) fn run(args: &ScriptsArgs) -> Outcome<()> {
    let target = target("postgres-temp:", &args.common.results)?;
    let server = place(target.as_ref())?;
    let scale = args.scale.to_string();
    said_by(Command::new(binary("pgbench")?).args(["-i", "-q", "-s", &scale]).args(&server), MISSING)?;
    for script in &args.scripts {
        let plan = make_plan(&PlanSpec {
            target: Some("postgres-temp:".to_owned()),
            pgbench_script: Some(vec![format!("builtin:{script}")]),
            allow_writes: Some(true),
            ..PlanSpec::default()
        })?;
        let code = plan.workloads.first().map(|w| w.code.as_str()).ok_or("the plan has no workload")?;
        let work = Arc::new(Work::from_catalogue(code, &[(SCALE, args.scale.into())])?);
        let arena = Arena { target: Arc::clone(&target), work };
        println!("\n{script}, scale {}, simple protocol, {} s a measurement", args.scale, args.common.seconds);
        arena.compare(&args.common, &CONTENDERS, |clients, load| {
            let mut command = command(clients, clients, load)?;
            // Before the script; the last one holds.
            command.args(["-M", "simple", "-b", script]);
            pgbench(command, &server)
        })?;
    }
    Ok(())
}
