//! Names that a run holds of hosts, users and databases, and settings that hold such names.

use std::collections::BTreeMap;

use loadline_model::manifest::TargetInfo;
use loadline_model::{Manifest, TestRecord};

use super::text;

/// Words of loadline's and databases' own, and accounts that every installation has: they tell nothing, and without them a
/// report could not be read.
const COMMON: &[&str] = &[
    "a", "b", "admin", "auto", "client", "complete", "cpu", "data", "database", "db", "device", "end", "failed",
    "file", "host", "in", "innodb", "list", "loadline", "localhost", "log", "main", "mariadb", "mysql", "no", "null",
    "off", "ok", "on", "oracle", "passed", "postgres", "public", "read", "root", "run", "sqlite", "sys", "system",
    "target", "temp", "test", "user", "wal", "write", "yes",
];

/// In names of settings and of a device's facts that hold names, places or commands.
const TELLING: &[&str] = &[
    "host", "name", "addr", "command", "conninfo", "director", "_dir", "datadir", "basedir", "tmpdir", "path", "file",
    "uuid", "user", "domain", "dest", "location", "socket", "bind", "listen", "url", "service", "cert", "serial",
    "wwid", "wwn", "cluster", "prefix", "owner",
];

/// Flags whose values tell nothing.
const PLAIN_FLAGS: &[&str] = &[
    "--plan", "--workload", "--group", "--jobs", "--duration", "--warmup", "--repeat", "--driver", "--rate", "--think",
    "--seed", "--size", "--nodes", "--agents", "--pairs", "--precision", "--margin", "--latency", "--param",
    "--format", "--levels", "--delay", "--setting", "--payload-compressibility",
];

/// What is replaced, and by what.
#[derive(Debug, Default)]
pub(super) struct Names {
    /// Replacements of names, by the name in lower case.
    words: BTreeMap<String, String>,
    /// Replacements of what was found by its form, by its text.
    found: BTreeMap<String, String>,
    /// How many replacements of each kind there are.
    counts: BTreeMap<&'static str, usize>,
    /// Version of the run's product, which may look like an address.
    pub(super) version: String,
}

impl Names {
    /// Finds the names of hosts, users and databases in a run.
    pub(super) fn collect(&mut self, manifest: &Manifest, records: &[TestRecord]) {
        self.host(&manifest.machine.host);
        let of_arms = manifest.arms.iter().flat_map(|arms| arms.iter().map(|arm| &arm.target));
        let targets: Vec<&TargetInfo> = std::iter::once(&manifest.target).chain(of_arms).collect();
        targets.iter().filter_map(|target| target.host.as_ref()).for_each(|h| self.host(h));
        let plan = &manifest.plan;
        let agents = plan.agents.iter().map(|a| a.hub.as_str());
        let arms = plan.arms.iter().flat_map(|a| [a.a.target.as_str(), a.b.target.as_str()]);
        let standbys = plan.levels.iter().flat_map(|l| l.standbys.iter().map(String::as_str));
        let given = manifest.command.iter().map(String::as_str);
        let urls = targets.iter().map(|target| target.url.as_str()).chain([plan.target.as_str()]);
        let urls = urls.chain(agents).chain(arms).chain(standbys);
        for url in urls.chain(given).chain(plan.nodes.iter().map(String::as_str)) {
            self.url(url);
        }
        for record in records {
            self.url(&record.target);
            for agent in &record.by_agent {
                self.host(&agent.host);
                self.host(&agent.name);
            }
        }
        let facts = targets.iter().flat_map(|target| target.storage.values().flat_map(|s| &s.device_facts));
        let settings = targets.iter().flat_map(|target| &target.settings).chain(&plan.settings).chain(facts);
        for (_, value) in settings.filter(|(n, v)| tells(n, v)) {
            // Their parts appear in messages: `cluster_name` in the name of a process, hosts of a connection string by themselves.
            for word in value.split(|c: char| !(c.is_alphanumeric() || "-_.".contains(c))).filter(|w| w.len() > 3) {
                if !word.chars().all(|c| c.is_ascii_digit() || c == '.') {
                    self.add("name", word);
                }
            }
        }
        let places = targets.iter().flat_map(|target| [&target.data_dir, &target.log_dir]).flatten();
        places.chain(&manifest.command).for_each(|place| self.home(place));
    }

    /// A host, and its first label and domain if it has several.
    fn host(&mut self, host: &str) {
        self.add("host", host);
        if let Some((label, domain)) = host.split_once('.').filter(|_| host.parse::<std::net::IpAddr>().is_err()) {
            self.add("host", label);
            self.add("domain", domain);
        }
    }

    /// Users, hosts and the database of a URL such as `postgres://user@host:5432/database?host=/socket`.
    fn url(&mut self, url: &str) {
        self.home(url);
        let Some((_, rest)) = url.split_once("://") else { return };
        let (place, query) = rest.split_once('?').unwrap_or((rest, ""));
        let (authority, path) = place.split_once('/').unwrap_or((place, ""));
        let hosts = match authority.rsplit_once('@') {
            Some((user, hosts)) => {
                self.add("user", user.split(':').next().unwrap_or_default());
                hosts
            }
            None => authority,
        };
        for host in hosts.split(',') {
            let bare = host.rsplit_once(':').filter(|(_, port)| port.chars().all(|c| c.is_ascii_digit()));
            self.host(bare.map_or(host, |(h, _)| h).trim_matches(['[', ']']));
        }
        path.split('/').for_each(|part| self.add("database", part));
        for value in query.split('&').filter_map(|pair| pair.split_once('=')).filter(|(name, _)| telling(name)) {
            self.host(value.1);
        }
    }

    /// The user whose home a path is in.
    fn home(&mut self, path: &str) {
        for homes in ["/home/", "/Users/"] {
            if let Some((_, rest)) = path.split_once(homes) {
                self.add("user", rest.split('/').next().unwrap_or_default());
            }
        }
    }

    fn add(&mut self, kind: &'static str, name: &str) {
        let word = name.trim().to_lowercase();
        let plain = word.chars().all(|c| c.is_ascii_digit());
        if word.len() < 2
            || plain
            || word.contains('/')
            || COMMON.contains(&word.as_str())
            || self.words.contains_key(&word)
        {
            return;
        }
        let replacement = self.next(kind);
        self.words.insert(word, replacement);
    }

    /// Replaces `name` by `replacement`, whatever it looks like.
    pub(super) fn word(&mut self, name: &str, replacement: &str) {
        self.words.insert(name.to_lowercase(), replacement.to_owned());
    }

    /// What stands for `found`: always the same.
    pub(super) fn found(&mut self, kind: &'static str, found: &str) -> String {
        if let Some(known) = self.found.get(found) {
            return known.clone();
        }
        let replacement = self.next(kind);
        self.found.insert(found.to_owned(), replacement.clone());
        replacement
    }

    fn next(&mut self, kind: &'static str) -> String {
        let count = self.counts.entry(kind).or_default();
        *count += 1;
        format!("{kind}-{count}")
    }

    /// `text` with everything replaced.
    pub(super) fn hide(&mut self, text: &str) -> String {
        if text.is_empty() || text == self.version {
            return text.to_owned();
        }
        let version = self.version.clone();
        let formed = text::replace(text, &version, &mut |kind, found| {
            if kind == "name" && COMMON.contains(&found.to_lowercase().as_str()) {
                return found.to_owned();
            }
            self.found(kind, found)
        });
        text::without_processes(&text::replace_words(&formed, &self.words))
    }
}

/// Whether the setting or fact `name` holds a name, place, port or command: by its name, and not if the value is a number, a switch or
/// empty.
fn tells(name: &str, value: &str) -> bool {
    let value = value.trim();
    let plain = |c: char| c.is_ascii_digit() || "., ".contains(c);
    let size = value.trim_end_matches(|c: char| c.is_ascii_alphabetic() || c == '%').chars().all(plain)
        && value.starts_with(|c: char| c.is_ascii_digit())
        && value.matches('.').count() < 2;
    let switch = ["on", "off", "yes", "no", "true", "false", "none", "(disabled)", "*", "localhost", "default", "utc"];
    is_port(name) || telling(name) && !value.is_empty() && !size && !switch.contains(&value.to_lowercase().as_str())
}

fn is_port(name: &str) -> bool {
    name == "port" || name.ends_with("_port")
}

fn telling(name: &str) -> bool {
    let name = name.to_lowercase();
    TELLING.iter().any(|part| name.contains(part))
}

/// Replaces values of settings and facts that hold names, places or commands.
pub(super) fn hide_settings(manifest: &mut Manifest, records: &mut [TestRecord]) {
    let (plan, mut values) = (&mut manifest.plan, Vec::new());
    let mut replace = |settings: &mut BTreeMap<String, String>| {
        for (name, value) in settings.iter_mut().filter(|(name, value)| tells(name, value)) {
            let value = std::mem::replace(value, "redacted".to_owned());
            // A number alone is also a figure.
            values.push(if is_port(name) { format!("port {value}") } else { value });
        }
    };
    replace(&mut plan.settings);
    plan.arms.iter_mut().flat_map(|a| [&mut a.a.settings, &mut a.b.settings]).for_each(&mut replace);
    let (mut targets, mut doctor) = (vec![&mut manifest.target], vec![&mut manifest.doctor]);
    for arm in manifest.arms.iter_mut().flat_map(|arms| arms.iter_mut()) {
        targets.push(&mut arm.target);
        doctor.push(&mut arm.doctor);
    }
    for target in &mut targets {
        replace(&mut target.settings);
        target.storage.values_mut().for_each(|s| replace(&mut s.device_facts));
    }
    for finding in doctor
        .into_iter()
        .flatten()
        .filter(|f| tells(&f.id.replace('-', "_"), &f.value) || tells(&f.subject.replace(' ', "_"), &f.value))
    {
        values.push(std::mem::replace(&mut finding.value, "redacted".to_owned()));
    }
    // Checks and notes cite values; shorter ones are words that appear for other reasons.
    values.retain(|v| v.len() > 3);
    let hide = |text: &mut String| {
        for value in &values {
            if text.contains(value.as_str()) {
                *text = text.replace(value.as_str(), "redacted");
            }
        }
    };
    targets.into_iter().flat_map(|target| &mut target.notes).for_each(hide);
    for record in records {
        record.notes.iter_mut().for_each(hide);
        record.checks.iter_mut().for_each(|c| hide(&mut c.detail));
        record.invalid_reason.iter_mut().for_each(hide);
    }
}

/// Replaces the names of imported files, also in the name of the platform, which is made of one by default.
pub(super) fn hide_files(manifest: &mut Manifest, records: &mut [TestRecord]) {
    let mut known: Vec<String> = Vec::new();
    let files = records.iter_mut().filter_map(|r| r.imported.as_mut()).flat_map(|i| &mut i.files);
    for file in files {
        let at = known.iter().position(|name| *name == file.name).unwrap_or_else(|| {
            known.push(file.name.clone());
            known.len() - 1
        });
        file.name = format!("file-{}", at + 1);
    }
    let hide = |text: &mut String| {
        for (n, name) in known.iter().enumerate().filter(|(_, name)| name.len() > 3) {
            *text = text.replace(name.as_str(), &format!("file-{}", n + 1));
        }
    };
    hide(&mut manifest.plan.platform);
    records.iter_mut().for_each(|r| hide(&mut r.platform));
}

/// The command with the values of flags that tell nothing; others are replaced.
pub(super) fn command(command: &[String]) -> Vec<String> {
    let mut out: Vec<String> = Vec::new();
    let mut plain = true;
    for (n, argument) in command.iter().enumerate() {
        let (flag, value) = argument.split_once('=').map_or((argument.as_str(), None), |(f, v)| (f, Some(v)));
        let shown = match (n, argument.starts_with("--"), value) {
            (0, ..) => "loadline".to_owned(),
            (1, false, _) => argument.clone(),
            (_, true, Some(_)) if !PLAIN_FLAGS.contains(&flag) => format!("{flag}=redacted"),
            (_, false, _) if !plain => "redacted".to_owned(),
            _ => argument.clone(),
        };
        // A value belongs to the flag before it.
        plain = argument.starts_with("--") && value.is_none() && PLAIN_FLAGS.contains(&flag);
        out.push(shown);
    }
    out
}
