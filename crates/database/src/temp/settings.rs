//! Reads `servers.toml`, which describes the products, and combines loadline's settings with the user's.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use nix::sys::signal::Signal;
use serde::Deserialize;

use crate::descriptor::{Embedded, Release, Versions};
use crate::error::TargetError;

const MIB: u64 = 1 << 20;

pub(crate) static SERVERS: Embedded<Knowledge> = Embedded::new("src/temp/servers.toml", include_str!("servers.toml"));

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Knowledge {
    pub(crate) postgres: Product,
    pub(crate) mariadb: Product,
    pub(crate) mysql: Product,
    pub(crate) galera: Product,
    reserved: BTreeMap<String, Vec<String>>,
    settings: BTreeMap<String, Vec<String>>,
}

/// A product of which loadline can start private servers. The file says what its keys mean.
#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Product {
    pub(crate) scheme: String,
    pub(crate) name: String,
    pub(crate) prefix: String,
    pub(crate) user: String,
    pub(crate) program: String,
    pub(crate) also: Vec<String>,
    pub(crate) folders: Vec<String>,
    pub(crate) supported: String,
    pub(crate) oldest: Vec<u32>,
    pub(crate) packages: [String; 2],
    pub(crate) bin: String,
    pub(crate) log_setting: String,
    pub(crate) providers: Vec<String>,
    needs: Vec<String>,
    pub(crate) socket: String,
    pub(crate) unfit: String,
    pub(crate) files: Vec<String>,
    pub(crate) check: Vec<String>,
    pub(super) list: Vec<String>,
    pub(super) free: Vec<Vec<String>>,
    pub(super) maker: Vec<String>,
    pub(super) beside: Vec<String>,
    pub(super) make: Vec<String>,
    pub(super) lasting: Vec<String>,
    pub(super) base: String,
    pub(crate) start: Vec<String>,
    pub(crate) option_file: String,
    fixed: Vec<String>,
    further: Vec<String>,
    pub(super) url: String,
    pub(super) note: String,
    pub(crate) server: String,
    pub(crate) parameter: Option<String>,
    pub(crate) counts_all: bool,
    pub(crate) servers: u32,
    pub(crate) levels: bool,
    pub(crate) disk_mib: u64,
    pub(crate) memory_mib: Option<u64>,
    pub(crate) restart: Vec<Stage>,
    pub(crate) end: Vec<Stage>,
    secrets: Vec<String>,
    reserved: Vec<List>,
    settings: Vec<List>,
    pub(crate) cache: Cache,
    errors: Errors,
}

/// The name of a list, and the servers that it is for.
#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct List {
    list: String,
    versions: Versions,
    further: bool,
    levels: bool,
    log_bin: bool,
}

/// Block cache: an eighth of the memory within these limits.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Cache {
    pub(crate) settings: Vec<String>,
    step_mib: u64,
    least_mib: u64,
    most_mib: u64,
}

#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Errors {
    marks: Vec<String>,
    causes: Vec<String>,
    noise: Vec<String>,
    unknown: Vec<String>,
    adjusted: Vec<String>,
    first: bool,
    most: usize,
}

/// A signal, and the time to wait for the end of the processes that got it.
#[derive(Clone, Copy, Deserialize)]
#[serde(try_from = "(String, u64)")]
pub(crate) struct Stage {
    pub(crate) signal: Signal,
    pub(crate) patience: Duration,
}

impl TryFrom<(String, u64)> for Stage {
    type Error = nix::Error;

    fn try_from((signal, seconds): (String, u64)) -> Result<Stage, nix::Error> {
        Ok(Stage { signal: signal.parse()?, patience: Duration::from_secs(seconds) })
    }
}

impl Product {
    /// Default size of the block cache of a server that may use `memory` bytes.
    pub(crate) fn cache_mib(&self, memory: u64) -> u64 {
        let Cache { step_mib, least_mib, most_mib, .. } = &self.cache;
        (memory / 8 / MIB / step_mib * step_mib).clamp(*least_mib, *most_mib)
    }

    pub(super) fn cannot_use(&self, path: &Path, e: &io::Error) -> TargetError {
        TargetError::Local(format!(
            "the private server cannot be created in '{}': {e}. Name another directory with {}:/dir",
            path.display(),
            self.scheme
        ))
    }

    /// Refuses several servers without a program that they need in one of `dirs`.
    pub(super) fn check_needs(&self, servers: u32, dirs: &[PathBuf]) -> Result<(), TargetError> {
        let lacks = |name: &&String| !dirs.iter().any(|dir| dir.join(name).is_file());
        let missing = if servers > 1 { self.needs.iter().find(lacks) } else { None };
        let Some(name) = missing else { return Ok(()) };
        Err(TargetError::Local(format!(
            "'{name}' is missing, with which a {} that joins gets its data: install it ('apt-get install rsync {}' on Debian and \
             Ubuntu)",
            self.server, self.packages[0]
        )))
    }

    /// Finds in what a program wrote why it failed.
    pub(crate) fn cause(&self, log: &str) -> String {
        let Errors { marks, causes, noise, adjusted, first, most, .. } = &self.errors;
        let is_noise = |line: &&str| noise.iter().any(|words| line.contains(words.as_str()));
        let lines: Vec<&str> = log.lines().filter(|line| !is_noise(line)).collect();
        let marked = |marks: &[String]| lines.iter().filter_map(|line| message(line, marks)).collect::<Vec<_>>();
        let mut parts = marked(marks);
        if parts.is_empty() || parts.iter().any(|part| part.contains("contains errors")) {
            parts.extend(marked(causes));
        }
        if *first {
            parts.truncate(*most);
        }
        if parts.is_empty() {
            let is_adjusted = |line: &&&str| adjusted.iter().any(|words| line.contains(words.as_str()));
            parts = lines.iter().filter(is_adjusted).map(|line| line.trim()).collect();
        }
        if parts.is_empty() {
            parts = lines.iter().map(|line| line.trim()).filter(|line| !line.is_empty()).collect();
        }
        parts[parts.len().saturating_sub(*most)..].join(" – ")
    }

    /// The setting of the user that the program does not know according to its log.
    pub(super) fn unknown<'s>(&self, settings: &'s Settings, log: &str) -> Option<&'s String> {
        settings.named_in(log, &self.errors.unknown)
    }

    /// Name and value of the settings behind all others, of the server of this number.
    pub(super) fn own_settings(&self, number: u32) -> impl Iterator<Item = (&str, &str)> {
        let further = self.further.iter().filter(move |_| number > 0);
        self.fixed.iter().chain(further).filter_map(|setting| setting.split_once('='))
    }

    pub(crate) fn is_secret(&self, name: &str) -> bool {
        let name = normal(name);
        self.secrets.iter().any(|part| name.contains(part))
    }

    /// Checks the user's settings of so many servers as far as possible without a server.
    pub(crate) fn check_names(
        &self,
        given: &BTreeMap<String, String>,
        servers: u32,
        levels: bool,
    ) -> Result<(), TargetError> {
        let lists = self.reserved.iter().filter(|of| (!of.further || servers > 1) && (!of.levels || levels));
        let reserved: Vec<&String> = lists.filter_map(|of| SERVERS.reserved.get(&of.list)).flatten().collect();
        for (name, value) in given {
            let usage = |what: String| Err(TargetError::Usage(what));
            if !is_name(name) {
                return usage(format!("--setting {name}: '{name}' is not the name of a setting"));
            }
            if reserved.iter().any(|reserved| **reserved == normal(name)) {
                return usage(format!(
                    "--setting {name}: loadline itself sets '{name}' of its private server: leave it out"
                ));
            }
            if value.chars().any(char::is_control) {
                return usage(format!("--setting {name}: its value contains a control character"));
            }
            // Two spellings of one name: it is undefined which one wins.
            if let Some(other) = given.keys().find(|other| *other != name && normal(other) == normal(name)) {
                return usage(format!("the setting '{name}' is given twice, also as '{other}'"));
            }
        }
        Ok(())
    }
}

/// The text behind the first of `marks` in a line of a log, and behind tags: `2026-… [ERROR] [MY-000067] [Server] unknown variable …`.
fn message<'l>(line: &'l str, marks: &[impl AsRef<str>]) -> Option<&'l str> {
    let end_of = |mark: &str| Some(line.find(mark)? + mark.len());
    let begin = marks.iter().filter_map(|mark| end_of(mark.as_ref())).min()?;
    let mut text = line.get(begin..)?.trim();
    while let Some((_, rest)) = text.strip_prefix('[').and_then(|tag| tag.split_once("] ")) {
        text = rest;
    }
    Some(text.trim())
}

/// Whether `name` can be a setting's name, so that it adds no other argument or line.
fn is_name(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && name.bytes().all(|b| b.is_ascii_alphanumeric() || b"_-.$".contains(&b))
}

/// Whether a value of MariaDB's or MySQL's `log_bin` means that there is none.
pub(crate) fn is_off(value: &str) -> bool {
    matches!(value, "0" | "OFF" | "off")
}

/// Normal form of a setting's name: `-` and `_`, and upper and lower case, are equal.
pub(crate) fn normal(name: &str) -> String {
    name.to_ascii_lowercase().replace('-', "_")
}

#[derive(Clone)]
pub(crate) struct Settings {
    product: &'static Product,
    /// loadline's defaults that the user did not replace.
    defaults: Vec<(&'static str, &'static str)>,
    pub(crate) given: BTreeMap<String, String>,
    /// Size of the block cache, unless the user chose it.
    pub(crate) cache_mib: u64,
}

impl Settings {
    /// The `given` settings, and those of loadline for this `release` that are not given.
    pub(crate) fn new(
        product: &'static Product,
        release: Release,
        levels: bool,
        given: &BTreeMap<String, String>,
        cache_mib: u64,
    ) -> Settings {
        let logs = levels || given.iter().any(|(name, value)| normal(name) == "log_bin" && !is_off(value));
        let is_for = |of: &&List| of.versions.has(release) && (!of.levels || levels) && (!of.log_bin || logs);
        let mut defaults: Vec<(&str, &str)> = Vec::new();
        for list in product.settings.iter().filter(is_for).filter_map(|of| SERVERS.settings.get(&of.list)) {
            let list: Vec<_> = list.iter().filter_map(|setting| setting.split_once('=')).collect();
            defaults.retain(|(name, _)| list.iter().all(|(newer, _)| newer != name));
            defaults.extend(list);
        }
        defaults.retain(|(name, _)| !given.keys().any(|given| normal(given) == *name));
        Settings { product, defaults, given: given.clone(), cache_mib }
    }

    /// Whether loadline chose the size of the block cache.
    pub(crate) fn own_cache(&self) -> bool {
        let chosen = |name: &String| self.product.cache.settings.contains(&normal(name));
        !self.given.keys().any(chosen)
    }

    fn defaults(&self) -> impl Iterator<Item = (String, String)> {
        let cache = self.cache_mib.to_string();
        self.defaults.iter().map(move |(name, value)| ((*name).to_owned(), value.replace("{cache}", &cache)))
    }

    /// Name and value of all settings, the user's last.
    pub(crate) fn all(&self) -> impl Iterator<Item = (String, String)> {
        self.defaults().chain(self.given.iter().map(|(name, value)| (name.clone(), value.clone())))
    }

    pub(crate) fn notes(&self) -> Vec<String> {
        let defaults: Vec<String> = self.defaults().map(|(name, value)| format!("{name}={value}")).collect();
        let mut notes = vec![format!("settings that loadline chose: {}", defaults.join(", "))];
        if !self.given.is_empty() {
            notes.push(format!("settings given with --setting: {}", self.shown()));
        }
        notes
    }

    /// The user's setting that a line of `log` with one of these words names; of several the longest, as `log_bin` is a part of
    /// `log_bin_index`.
    fn named_in(&self, log: &str, words: &[String]) -> Option<&String> {
        let lines = log.lines().filter(|line| words.iter().any(|word| line.contains(word.as_str())));
        let lines: Vec<String> = lines.map(normal).collect();
        let named = self.given.keys().filter(|name| lines.iter().any(|line| line.contains(&normal(name))));
        named.max_by_key(|name| name.len())
    }

    /// Fails if a server that wrote this log has started with other values than those given.
    pub(super) fn check_taken(&self, log: &str) -> Result<(), String> {
        match self.named_in(log, &self.product.errors.adjusted) {
            Some(name) => Err(format!("it would run with another value of {name}")),
            None => Ok(()),
        }
    }

    /// `text` without the values of settings that may contain a password.
    pub(super) fn without_secrets(&self, text: String) -> String {
        let secret = self.given.iter().filter(|(name, value)| self.product.is_secret(name) && !value.is_empty());
        secret.fold(text, |text, (_, value)| text.replace(value.as_str(), "(not shown)"))
    }

    /// The user's settings as text, without values that may contain a password.
    pub(crate) fn shown(&self) -> String {
        let value = |name: &str, value| if self.product.is_secret(name) { "(not shown)" } else { value };
        self.given.iter().map(|(n, v)| format!("{n}={}", value(n, v))).collect::<Vec<_>>().join(", ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cases::cases;

    const RELEASE: Release = Release { product: crate::descriptor::Product::Mysql, number: [8, 0, 33] };

    #[test]
    fn the_file_is_right() {
        let all = SERVERS.checked(|_| &[]);
        for product in [&all.postgres, &all.mariadb, &all.mysql, &all.galera] {
            let Product { scheme, prefix, program, socket, supported, bin, log_setting, packages, .. } = product;
            let lists = |lists: &[List], all: &BTreeMap<_, _>| lists.iter().all(|of| all.contains_key(&of.list));
            assert!(
                lists(&product.reserved, &all.reserved) && lists(&product.settings, &all.settings),
                "{scheme}: lists"
            );
            let texts =
                [scheme, &product.name, prefix, &product.user, program, socket, &product.server, supported, bin];
            let texts = texts.into_iter().chain([log_setting, &product.url]).chain(packages);
            assert!(texts.into_iter().all(|text| !text.is_empty()), "servers.toml: {scheme}: a text is missing");
            let Errors { marks, noise, unknown, .. } = &product.errors;
            let lists = [&product.folders, &product.make, &product.start, &product.secrets, &product.list];
            let lists = lists.into_iter().chain([marks, noise, unknown]);
            assert!(lists.into_iter().all(|list| !list.is_empty()), "servers.toml: {scheme}: a list is missing");
            // Names are checked before the program is found, and defaults are those of the first server, too.
            let unused = |of: &List| of.versions != Versions::default() || of.log_bin;
            assert!(!product.reserved.iter().any(unused), "servers.toml: {scheme}: reserved by version or log_bin");
            assert!(!product.settings.iter().any(|of| of.further), "servers.toml: {scheme}: settings of further ones");
            assert!(!product.restart.is_empty() && !product.end.is_empty(), "servers.toml: {scheme}: signals");
            assert!(product.servers > 0 && product.disk_mib > 0, "servers.toml: {scheme}: servers, disk_mib");
            assert!(product.cache.step_mib > 0 && product.errors.most > 0, "servers.toml: {scheme}: cache, errors");
        }
        for product in [&all.mariadb, &all.mysql, &all.galera] {
            assert!(product.start.iter().any(|of| of == "--tmpdir={sockets}"), "servers.toml: {}", product.scheme);
        }
        assert_eq!(all.galera.oldest, all.mariadb.oldest, "servers.toml");
        assert_eq!(all.galera.needs.len(), 2, "servers.toml: galera: needs");
        let products = [&all.postgres, &all.mariadb, &all.mysql, &all.galera].into_iter();
        let settings = products.flat_map(|p| p.fixed.iter().chain(&p.further)).chain(all.settings.values().flatten());
        let names = settings.map(|s| s.split_once('=').unwrap_or_else(|| panic!("servers.toml: '{s}'")).0);
        for name in names.chain(all.reserved.values().flatten().map(String::as_str)) {
            assert_eq!(normal(name), name, "servers.toml");
        }
    }

    #[test]
    fn the_servers_own_words() {
        let products = [&SERVERS.postgres, &SERVERS.mysql, &SERVERS.mariadb];
        for (scheme, log, cause) in cases::<(String, String, String)>("causes") {
            let product = products.into_iter().find(|p| p.scheme == scheme).unwrap();
            assert_eq!(product.cause(&log), cause);
        }
    }

    #[test]
    fn names_are_checked() {
        let check = |pairs: &[(&str, &str)], servers, levels| {
            let given = pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
            SERVERS.postgres.check_names(&given, servers, levels).is_ok()
        };
        for (name, servers, levels, fine) in cases::<(String, u32, bool, bool)>("setting-names") {
            assert_eq!(check(&[(&name, "1")], servers, levels), fine, "{name} {servers} {levels}");
        }
        assert!(!check(&[("fsync", "on"), ("FSYNC", "off")], 1, false));
        assert!(!check(&[("a", "b\nport = 1")], 1, false));
    }

    #[test]
    fn an_error_is_about_the_setting_that_it_names() {
        let given = ["log_bin", "log_bin_index", "Nonsense_xyz"].map(|name| (name.to_owned(), String::new())).into();
        let settings = Settings::new(&SERVERS.mysql, RELEASE, false, &given, 512);
        let unknown = |log| SERVERS.mysql.unknown(&settings, log).map(String::as_str);
        assert_eq!(unknown("log_bin is on\n[ERROR] unknown variable 'nonsense-xyz=1'."), Some("Nonsense_xyz"));
        assert_eq!(unknown("[ERROR] unknown option '--log-bin-index'"), Some("log_bin_index"));
        assert_eq!(unknown("[ERROR] out of memory: log_bin"), None);
        assert!(settings.check_taken("log_bin: value 1 adjusted to 2").is_err());
        assert!(settings.check_taken("other: value 1 adjusted to 2\nlog_bin is on").is_ok());
    }

    #[test]
    fn a_given_setting_replaces_a_default_and_a_password_is_not_shown() {
        let given = [("FSYNC", "off"), ("primary_conninfo", "password=abc")];
        let given = given.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
        let settings = Settings::new(&SERVERS.postgres, RELEASE, false, &given, 512);
        let all: Vec<String> = settings.all().map(|(name, value)| format!("{name}={value}")).collect();
        assert!(all.contains(&"FSYNC=off".to_owned()) && !all.contains(&"fsync=on".to_owned()), "{all:?}");
        assert!(all.contains(&"shared_buffers=512MB".to_owned()) && settings.own_cache(), "{all:?}");
        assert_eq!(settings.shown(), "FSYNC=off, primary_conninfo=(not shown)");
        assert_eq!(settings.without_secrets("no 'password=abc'".to_owned()), "no '(not shown)'");
        for (memory, mib) in [(4 << 30, 512), (1 << 20, 16), (1 << 50, 1024)] {
            assert_eq!(SERVERS.postgres.cache_mib(memory), mib);
        }
    }
}
