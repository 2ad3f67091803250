//! LGWR-LAT1 against sysbench: the same UPDATE on the same table, one transaction each.
//!
//! A Lua script runs it like sysbench's own oltp tests: a prepared statement with bound parameters, autocommit. It binds one
//! of many random payloads: an UPDATE to the same value would be no work.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use loadline_database::{Target, Work};
use loadline_model::Driver;
use loadline_workload::data::LOOKUPS;

use crate::arena::{Arena, ArenaArgs, Load, Outcome, Said, number_after, said_by};

/// Number of payloads of the script. InnoDB does not log bytes that an UPDATE does not change, so with few payloads sysbench
/// would write less redo.
const PAYLOADS: usize = 512;
pub(crate) const MISSING: &str = "sysbench cannot be run: apt-get install sysbench";
const CONTENDERS: [(&str, Option<Driver>); 2] = [("sysbench", None), ("loadline client", Some(Driver::Client))];

pub(crate) fn run(args: &ArenaArgs) -> Outcome<()> {
    let arena = Arena::open("mariadb-temp:", "LGWR-LAT1", args, false)?;
    let socket = socket(arena.target.as_ref())?;
    let scripts = tempfile::tempdir()?;
    let script = scripts.path().join("lat1.lua");
    std::fs::write(&script, update_script(&arena.work))?;
    arena.compare(args, &CONTENDERS, |clients, load| sysbench(&socket, &script, clients, load))
}

/// The socket of the private server.
pub(crate) fn socket(target: &dyn Target) -> Outcome<PathBuf> {
    let data = PathBuf::from(target.info()?.data_dir.ok_or("the private server has no data directory")?);
    Ok(data.parent().ok_or("the data directory has no parent")?.join("socket/s"))
}

/// The server's own client, which prints values alone.
pub(crate) fn mariadb(socket: &Path) -> Command {
    let mut command = Command::new("mariadb");
    command.args(["--no-defaults", "-NB", "-uroot", "-S"]).arg(socket);
    command
}

/// A script whose threads prepare `statement`, bind what `bind` makes, and set it by `event` before each execution.
fn lua(statement: &str, bind: &str, event: &str) -> String {
    format!(include_str!("sysbench.lua"), statement = statement, bind = bind, event = event)
}

/// A script in `folder` with SRV-QUERY1's query, as sysbench's oltp_point_select.
pub(crate) fn lookup_script(folder: &Path) -> Outcome<PathBuf> {
    let script = folder.join("select.lua");
    let bind = "id = stmt:bind_create(sysbench.sql.type.BIGINT); stmt:bind_param(id)";
    let event = format!("id:set(sysbench.rand.uniform(0, {}))", LOOKUPS - 1);
    std::fs::write(&script, lua("SELECT id, k, n, payload FROM `loadline`.`data_lookup` WHERE id = ?", bind, &event))?;
    Ok(script)
}

/// LGWR-LAT1's change: each thread updates its own rows, like a job.
fn update_script(work: &Work) -> String {
    let (own, bytes) = (work.params.get("own-rows"), work.params.get("payload") as usize);
    let pool = work.pool(0);
    let step = (pool.len() - bytes) / PAYLOADS;
    let mut payloads = "local payloads = {\n".to_owned();
    for i in 0..PAYLOADS {
        // Decimal escapes: a Lua string that holds any byte.
        let text: String = pool[i * step..i * step + bytes].iter().map(|b| format!("\\{b:03}")).collect();
        payloads += &format!("  \"{text}\",\n");
    }
    let bind = format!(
        "payload = stmt:bind_create(sysbench.sql.type.VARCHAR, {bytes})\n  id = stmt:bind_create(sysbench.sql.type.BIGINT)\n  \
         stmt:bind_param(payload, id)"
    );
    let event = format!(
        "payload:set(payloads[sysbench.rand.uniform(1, {PAYLOADS})])\n  \
         id:set(sysbench.tid * {own} + sysbench.rand.uniform(0, {}))",
        own - 1
    );
    let update = "UPDATE `loadline`.`lgwr_lat1_redo` SET n = n + 1, payload = ? WHERE id = ?";
    format!("{payloads}}}\n\n{}", lua(update, &bind, &event))
}

pub(crate) fn command(socket: &Path, script: &Path, clients: u32, load: Load) -> Command {
    let mut command = Command::new("sysbench");
    command
        .arg("--db-driver=mysql")
        .arg(format!("--mysql-socket={}", socket.display()))
        .args(["--mysql-user=root", "--mysql-db=loadline", "--rand-type=uniform", "--percentile=0"])
        .arg(format!("--threads={clients}"))
        .args(match load {
            Load::Seconds(seconds) => [format!("--time={seconds}"), "--events=0".to_owned()],
            Load::Start => ["--time=0".to_owned(), format!("--events={clients}")],
        })
        .arg("--histogram=off")
        .arg(script)
        .arg("run")
        .stdin(Stdio::null());
    command
}

fn sysbench(socket: &Path, script: &Path, clients: u32, load: Load) -> Outcome<Said> {
    said(&said_by(&mut command(socket, script, clients, load), MISSING)?)
}

/// The figures at the end of sysbench's output.
pub(crate) fn said(text: &str) -> Outcome<Said> {
    let transactions = number_after(text, "total number of events:")?;
    let time = number_after(text, "total time:")?;
    Ok(Said { tps: transactions / time, transactions })
}
