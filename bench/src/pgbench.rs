//! LGWR-LAT1 and SRV-QUERY1 against pgbench: the same statement on the same table, one transaction each.
//!
//! pgbench runs the same kind of transaction as loadline's client driver: prepared, one statement, autocommit. It cannot
//! generate random bytes, so it chooses between a few scripts with different payloads: an UPDATE to the same value would be
//! no work.

use std::fmt::Write as _;
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
    let arena = Arena::open("postgres-temp:", "LGWR-LAT1", args, true)?;
    let server = place(arena.target.as_ref())?;
    let scripts = tempfile::tempdir()?;
    write_scripts(scripts.path(), &arena.work)?;
    arena.compare(args, &CONTENDERS, |clients, load| {
        let mut command = command(clients, clients, load)?;
        payloads(&mut command, &arena.work, scripts.path());
        pgbench(command, &server)
    })
}

/// `pgbench -S` with loadline's own table and columns.
pub(crate) fn select(args: &ArenaArgs) -> Outcome<()> {
    let arena = Arena::open("postgres-temp:", "SRV-QUERY1", args, true)?;
    let server = place(arena.target.as_ref())?;
    let scripts = tempfile::tempdir()?;
    let script = lookup_script(scripts.path())?;
    arena.compare(args, &CONTENDERS, |clients, load| {
        let mut command = command(clients, clients, load)?;
        command.arg("-f").arg(&script);
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

/// pgbench's scripts, one per payload.
fn write_scripts(dir: &Path, work: &Work) -> Outcome<()> {
    let own = work.params.get("own-rows");
    for i in 0..PAYLOADS {
        let script = format!(
            "\\set id :client_id * {own} + random(0, {})\nUPDATE \"loadline\".\"lgwr_lat1_redo\" SET n = n + 1, payload = :p{i} WHERE id = :id;\n",
            own - 1
        );
        std::fs::write(dir.join(format!("{i}.sql")), script)?;
    }
    Ok(())
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

fn payloads(command: &mut Command, work: &Work, scripts: &Path) {
    let pool = work.pool(0);
    let bytes = work.params.get("payload") as usize;
    for i in 0..PAYLOADS {
        let hex = pool[i * 1990..i * 1990 + bytes].iter().fold(String::from("\\x"), |mut s, b| {
            let _ = write!(s, "{b:02x}");
            s
        });
        command.arg("-D").arg(format!("p{i}={hex}")).arg("-f").arg(scripts.join(format!("{i}.sql")));
    }
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
