//! The manifests of all platforms side by side, and the commands to repeat the runs.

use loadline_model::format::{bytes, duration_ns, duration_s, number};
use loadline_model::machine::Storage;
use loadline_model::manifest::{Manifest, TableLoad};
use loadline_model::{Finding, Jobs, Severity};
use minijinja::context;

use super::settings::{self, Facts, collect, fact, side_by_side};
use super::{stop, when};
use crate::doc::{Block, Row, Section};
use crate::platform_run::PlatformRun;
use crate::spec::TableSpec;
use crate::templates::prose;

/// The section.
pub(crate) fn section(sides: &[PlatformRun<'_>]) -> Section {
    let facts: [(&str, Facts); 8] = [
        ("Run and plan", collect(sides, plan)),
        ("Database", collect(sides, database)),
        ("Settings", settings::all(sides)),
        ("Machine", collect(sides, machine)),
        ("Storage", collect(sides, storage)),
        ("Storage probe before the run", collect(sides, probes)),
        ("Cost of loadline itself", collect(sides, overhead)),
        ("Calibration: redo per transaction", collect(sides, calibration)),
    ];
    let facts = facts.into_iter().map(|(title, rows)| Block::under(title, Block::table(side_by_side(sides, rows))));
    let rest = [loads(sides), doctor(sides), target_notes(sides)];
    Section::evidence("platforms", "Platforms", facts.chain(rest).flatten().collect())
}

fn optional(name: &str, value: Option<String>) -> Option<(String, String)> {
    value.map(|v| fact(name, v))
}

fn plan(m: &Manifest) -> Vec<(String, String)> {
    let p = &m.plan;
    let jobs = match &p.jobs {
        Jobs::Auto { max } => format!("auto: doubled until saturated, at most {max}"),
        Jobs::List(list) => {
            let each = if p.jobs_per_node { " on each node" } else { "" };
            format!("{}{each}", list.iter().map(u32::to_string).collect::<Vec<_>>().join(", "))
        }
    };
    let workloads = p.workloads.iter().map(|w| {
        let parameters = w.parameters.iter().map(|(k, v)| format!("{k} {v}"));
        let reason = Some(w.driver_reason.clone()).filter(|r| !r.is_empty());
        let forced = w.forced.as_ref().map(|f| format!("forced: {f}"));
        let more: Vec<String> = parameters.chain(reason).chain(forced).collect();
        let more = if more.is_empty() { String::new() } else { format!(" ({})", more.join("; ")) };
        format!("{}: {} driver{more}", w.code, w.driver)
    });
    let mut out = vec![
        fact("Run", &m.run),
        fact("Started", when(&m.started_at)),
        fact("loadline", &m.loadline_version),
        fact("Workloads", workloads.collect::<Vec<_>>().join("\n")),
        fact("Jobs", jobs),
        fact("Measured window", seconds(p.duration_s)),
        fact("Warm-up", p.warmup()),
        fact("Repetitions", p.repeat.to_string()),
        fact("Load", p.load.words()),
        fact("Payload that can be compressed away", format!("{:.0} %", p.payload_compressibility * 100.0)),
        fact("Seed", p.seeds()),
        fact("Size of the data set", bytes(p.size_bytes as f64)),
        fact("Latency objective", p.latency_objective_ns.map_or("none".to_owned(), |ns| duration_ns(ns as f64))),
    ];
    let skipped: Vec<String> = p.skipped.iter().map(|s| format!("{}: {}", s.code, s.reason)).collect();
    out.extend(optional("Skipped", (!skipped.is_empty()).then(|| skipped.join("\n"))));
    let cached = "kept and marked (--allow-cached)";
    out.extend(optional("Storage figures not from the device", p.allow_cached.then(|| cached.to_owned())));
    out.extend(optional("Refusals overridden", p.force.then(|| "yes (--force)".to_owned())));
    out
}

/// Short times with decimals, long ones in minutes or hours.
fn seconds(s: f64) -> String {
    if s < 60.0 && s.fract() != 0.0 { format!("{s} s") } else { duration_s(s) }
}

fn database(m: &Manifest) -> Vec<(String, String)> {
    let t = &m.target;
    let mut out = vec![
        fact("Product", &t.product),
        fact("Version", &t.version),
        fact("Target", &t.url),
        fact("Nodes", t.nodes.to_string()),
        fact("Location", if t.local { "on the machine that ran loadline" } else { "remote" }),
    ];
    let nodes = &m.plan.nodes;
    out.extend(optional("Further nodes", (!nodes.is_empty()).then(|| nodes.join("\n"))));
    out
}

fn machine(m: &Manifest) -> Vec<(String, String)> {
    let c = &m.machine;
    vec![
        fact("Host", &c.host),
        fact("CPU", format!("{} × {}", c.cpus, c.cpu_model)),
        fact("Memory", bytes(c.memory_bytes as f64)),
        fact("Kernel", &c.kernel),
        fact("Operating system", &c.os),
        fact("Virtualisation", c.virtualisation.as_deref().unwrap_or("none detected")),
        fact("Runs the database", if m.target.local { "yes" } else { "no, only loadline" }),
    ]
}

/// Probe of the storage under log and data before the first test.
fn probes(m: &Manifest) -> Vec<(String, String)> {
    let mut out = Vec::new();
    for (role, probed) in &m.probes {
        for row in &probed.rows {
            let in_flight = if row.depth > 1 { format!(", {} in flight", row.depth) } else { String::new() };
            let name = format!("{}: {}, {}{in_flight}", role, row.operation.title(), bytes(row.size_bytes as f64));
            out.push((
                name,
                format!(
                    "{}/s, {} MiB/s, {} each",
                    number(row.per_s, 0),
                    number(row.mib_per_s, 1),
                    duration_ns(row.mean_ns)
                ),
            ));
        }
        let cache = if probed.direct { "page cache bypassed" } else { "through the page cache" };
        let notes = probed.notes.iter().map(|n| format!("; {}", stop(n))).collect::<String>();
        out.push((format!("{role}: method"), format!("{} in {}, {cache}{notes}", probed.engine.name(), probed.dir)));
    }
    out
}

fn storage(m: &Manifest) -> Vec<(String, String)> {
    let t = &m.target;
    let mut out = Vec::new();
    for (role, dir) in [("log", &t.log_dir), ("data", &t.data_dir)] {
        if let (false, Some(dir)) = (t.storage.contains_key(role), dir) {
            out.push((format!("Storage of {role}"), format!("{dir} (filesystem and device unknown)")));
        }
    }
    for (role, s) in &t.storage {
        out.push((format!("Storage of {role}"), place(s)));
        let facts: Vec<String> = s.device_facts.iter().map(|(k, v)| format!("{k}: {v}")).collect();
        if let Some(device) = &s.device {
            out.push((format!("Device of {role}"), format!("{device}\n{}", facts.join(", ")).trim().to_owned()));
        }
    }
    out
}

fn place(s: &Storage) -> String {
    let free = s.free_bytes.map(|f| format!(", {} free", bytes(f as f64))).unwrap_or_default();
    format!("{}\n{} on {} ({}), mounted at {}{free}", s.path, s.filesystem, s.source, s.mount_options, s.mount_point)
}

fn overhead(m: &Manifest) -> Vec<(String, String)> {
    let o = &m.overhead;
    let per_tx =
        |ns: Option<f64>| ns.map_or("not measured".to_owned(), |ns| format!("{} per transaction", duration_ns(ns)));
    let on = o.workload.as_ref().map(|w| format!(", {w}")).unwrap_or_default();
    vec![
        (
            format!("Client driver, on null:{on}"),
            o.client_absent.as_ref().map_or_else(|| per_tx(o.client_ns_per_tx), |why| format!("not measured: {why}")),
        ),
        fact("Clock and histogram inside the database", per_tx(o.in_database_ns_per_tx)),
    ]
}

fn calibration(m: &Manifest) -> Vec<(String, String)> {
    let one = |(code, c): (&String, &loadline_model::manifest::Calibration)| {
        let seen = c.redo_bytes_per_tx.map_or("not measured".to_owned(), |b| format!("{} measured", bytes(b)));
        let nominal = c
            .nominal
            .map(|[low, mid, high]| format!("nominal {}, allowed {} to {}", bytes(mid), bytes(low), bytes(high)));
        let parameters: Vec<String> = c.parameters.iter().map(|(k, v)| format!("{k} {v}")).collect();
        let with = (!parameters.is_empty()).then(|| format!("with {}", parameters.join(", ")));
        let parts: Vec<String> = [Some(seen), nominal, with, c.note.clone()].into_iter().flatten().collect();
        (code.clone(), parts.join("; "))
    };
    m.calibration.iter().map(one).collect()
}

fn doctor(sides: &[PlatformRun<'_>]) -> Vec<Block> {
    let mut findings: Vec<(&str, &Finding)> = Vec::new();
    for side in sides {
        let mut own: Vec<&Finding> = side.run.manifest.doctor.iter().collect();
        own.sort_by_key(|finding| std::cmp::Reverse(finding.severity));
        findings.extend(own.into_iter().map(|finding| (side.label.as_str(), finding)));
    }
    let severity = |severity: Severity| match severity {
        Severity::Ok => "ok",
        Severity::Warning => "warning",
        Severity::Refused => "REFUSED",
        Severity::Impossible => "IMPOSSIBLE",
    };
    let table = TableSpec::<(&str, &Finding)>::of("facts", findings)
        .text("Platform", |(label, _)| label)
        .once()
        .text("Severity", |(_, finding)| severity(finding.severity))
        .text("Subject", |(_, finding)| &finding.subject)
        .text("Value", |(_, finding)| &finding.value)
        .text("Advice", |(_, finding)| &finding.advice)
        .lines(|(_, finding)| Row { invalid: finding.severity >= Severity::Refused, ..Row::default() });
    Block::under("Doctor findings before the run", Block::table(table.build()))
}

fn target_notes(sides: &[PlatformRun<'_>]) -> Vec<Block> {
    let of = |side: &PlatformRun<'_>| if sides.len() > 1 { format!("{}: ", side.label) } else { String::new() };
    let notes = sides.iter().flat_map(|side| side.run.manifest.target.notes.iter().map(move |note| (side, note)));
    let items = notes.map(|(side, note)| format!("{}{}.", of(side), stop(note)));
    Block::under("About the target", Block::list(items))
}

/// The tables that the runs loaded; empty if none did.
fn loads(sides: &[PlatformRun<'_>]) -> Vec<Block> {
    let loads = sides.iter().flat_map(|side| side.run.manifest.data_set.iter().map(move |t| (side.label.as_str(), t)));
    let table = TableSpec::<(&str, &TableLoad)>::of("facts", loads)
        .text("Platform", |(label, _)| label)
        .once()
        .when(sides.len() > 1)
        .text("Table", |(_, t)| &t.table)
        .number("Rows", "", |(_, t)| number(t.rows as f64, 0))
        .tip("Rows of the table.")
        .number("Loaded", "rows", |(_, t)| number(t.rows_loaded as f64, 0))
        .tip("Rows loaded by this run; the others existed already.")
        .number("Values", "", |(_, t)| bytes(t.bytes_loaded as f64))
        .tip("Bytes of the values, without the database's overhead.")
        .number("Load", "s", |(_, t)| number(t.load_s, 2))
        .tip("Time to load all rows.")
        .number("Finish", "s", |(_, t)| number(t.finish_s, 2))
        .tip("Time to build keys, indexes and statistics after that.")
        .number("Rate", "rows/s", |(_, t)| number(t.rows_per_s(), 0))
        .tip("Rows loaded / load, without keys, indexes and statistics.")
        .number("Rate", "MiB/s", |(_, t)| number(t.mib_per_s(), 1))
        .tip("Bytes of values / load, without keys, indexes and statistics.")
        .number("Sessions", "", |(_, t)| t.loaders.to_string())
        .tip("Parallel loader sessions.")
        .text("Method", |(_, t)| &t.path)
        .text("Fingerprint", |(_, t)| format!("{} (version {})", t.fingerprint, t.version))
        .tip("Fingerprint of the rows, with the version of the data.");
    Block::under("Data set", Block::table(table.build()))
}

/// The section with the commands.
pub(crate) fn again(sides: &[PlatformRun<'_>]) -> Section {
    let mut blocks = Vec::new();
    for side in sides {
        let command = &side.run.manifest.command;
        if command.is_empty() {
            continue;
        }
        if sides.len() > 1 {
            blocks.push(Block::heading(side.label.clone()));
        }
        blocks.push(Block::Code { text: command.iter().map(|a| shell(a)).collect::<Vec<_>>().join(" ") });
    }
    if !blocks.is_empty() {
        let seeds: Vec<String> = sides.iter().map(|s| s.run.manifest.plan.seeds()).collect();
        blocks.push(Block::para(prose("again", context! { seeds })));
    }
    Section::evidence("again", "Run it again", blocks)
}

/// `argument`, quoted for a shell if needed.
fn shell(argument: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=,@%+".contains(c);
    if !argument.is_empty() && argument.chars().all(plain) {
        return argument.to_owned();
    }
    format!("'{}'", argument.replace('\'', "'\\''"))
}

#[cfg(test)]
mod tests {
    use super::shell;

    #[test]
    fn arguments_are_quoted_for_a_shell() {
        assert_eq!(shell("postgres://u@h/db"), "postgres://u@h/db");
        assert_eq!(shell("postgres://u@/db?host=/tmp&port=5"), "'postgres://u@/db?host=/tmp&port=5'");
        assert_eq!(shell("it's"), "'it'\\''s'");
        assert_eq!(shell(""), "''");
    }
}
