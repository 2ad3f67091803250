//! LGWR-LAT1 and SRV-QUERY1 against pgbench: the same statement on the same table, one transaction each.
//!
//! pgbench runs the same kind of transaction as loadline's client driver: prepared, one statement, autocommit. It cannot generate
//! random bytes, so it chooses between a few scripts with different payloads: an UPDATE to the same value would be no work.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use loadline_database::{Target, Work};
use loadline_model::Driver;
use loadline_workload::data::LOOKUPS;

use crate::arena::{Arena, ArenaArgs, Load, Outcome, PAYLOADS, Said, number_after, said_by};

/// How to get PostgreSQL's programs.
pub(crate) const MISSING: &str = "apt-get install postgresql";

const CONTENDERS: [(&str, Option<Driver>); 3] =
    [("pgbench", None), ("loadline client", Some(Driver::Client)), ("loadline database", Some(Driver::Database))];

pub(crate) fn run(args: &ArenaArgs) -> Outcome<()> {
    compare(args, "LGWR-LAT1", payloads)
}

/// `pgbench -S` with loadline's own table and columns.
pub(crate) fn select(args: &ArenaArgs) -> Outcome<()> {
    compare(args, "SRV-QUERY1", |_, folder| Ok(vec!["-f".into(), lookup_script(folder)?.into()]))
}

/// `scripts` makes pgbench's scripts for the work in a folder, and the words that name them.
fn compare(args: &ArenaArgs, code: &str, scripts: fn(&Work, &Path) -> Outcome<Vec<OsString>>) -> Outcome<()> {
    let arena = Arena::open("postgres-temp:", code, args, true)?;
    let (server, folder) = (place(arena.target.as_ref())?, tempfile::tempdir()?);
    let words = scripts(&arena.work, folder.path())?;
    arena.compare(args, &CONTENDERS, |clients, load| {
        let mut command = command(clients, clients, load)?;
        command.args(&words);
        pgbench(command, &server)
    })
}

/// A script in `folder` with SRV-QUERY1's query.
pub(crate) fn lookup_script(folder: &Path) -> Outcome<PathBuf> {
    let script = folder.join("select.sql");
    let text = format!(
        "\\set id random(0, {})\nSELECT id, k, n, payload FROM \"loadline\".\"data_lookup\" WHERE id = :id;\n",
        LOOKUPS - 1
    );
    std::fs::write(&script, text)?;
    Ok(script)
}

/// Connection arguments of the private server, which listens only on its socket.
pub(crate) fn place(target: &dyn Target) -> Outcome<Vec<String>> {
    let settings = target.info()?.settings;
    let folder = settings.get("unix_socket_directories").ok_or("the private server has no socket")?;
    let port = settings.get("port").map_or("5432", String::as_str);
    Ok(["-h", folder, "-p", port, "-U", "postgres", "postgres"].map(str::to_owned).to_vec())
}

/// The server's own client, which prints values alone.
pub(crate) fn psql(server: &[String]) -> Outcome<Command> {
    let mut command = Command::new(binary("psql")?);
    command.args(["-XAtq", "-v", "ON_ERROR_STOP=1"]).args(server).stdin(Stdio::null());
    Ok(command)
}

/// A script per payload, each with its payload as a variable.
fn payloads(work: &Work, folder: &Path) -> Outcome<Vec<OsString>> {
    let (own, bytes, pool) = (work.params.get("own-rows"), work.params.get("payload") as usize, work.pool(0));
    let mut words = Vec::new();
    for i in 0..PAYLOADS {
        let file = folder.join(format!("{i}.sql"));
        let script = format!(
            "\\set id :client_id * {own} + random(0, {})\nUPDATE \"loadline\".\"lgwr_lat1_redo\" SET n = n + 1, payload = :p{i} WHERE id = :id;\n",
            own - 1
        );
        std::fs::write(&file, script)?;
        let hex: String = pool[i * 1990..i * 1990 + bytes].iter().map(|byte| format!("{byte:02x}")).collect();
        words.extend(["-D".into(), format!("p{i}=\\x{hex}").into(), "-f".into(), file.into()]);
    }
    Ok(words)
}

/// pgbench with this number of clients over so many threads.
pub(crate) fn command(clients: u32, threads: u32, load: Load) -> Outcome<Command> {
    let mut command = Command::new(binary("pgbench")?);
    command.args(["-n", "-M", "prepared", "-c", &clients.to_string(), "-j", &threads.to_string()]);
    match load {
        Load::Seconds(seconds) => command.args(["-T", &seconds.to_string()]),
        Load::Start => command.args(["-t", "1"]),
    };
    Ok(command)
}

pub(crate) fn pgbench(mut command: Command, server: &[String]) -> Outcome<Said> {
    said(&said_by(command.args(server), MISSING)?)
}

/// The figures at the end of pgbench's output.
pub(crate) fn said(text: &str) -> Outcome<Said> {
    Ok(Said { tps: number_after(text, "tps =")?, transactions: number_after(text, "actually processed:")? })
}

/// A PostgreSQL program: the newest installed.
pub(crate) fn binary(name: &str) -> Outcome<String> {
    let mut found: Vec<_> = std::fs::read_dir("/usr/lib/postgresql")
        .into_iter()
        .flatten()
        .flatten()
        .map(|e| e.path().join("bin").join(name))
        .filter(|p| p.exists())
        .collect();
    found.sort();
    Ok(found.pop().map_or(name.to_owned(), |p| p.display().to_string()))
}
