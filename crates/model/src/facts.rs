//! Facts of a platform, as tables of published studies state them: a fixed list. The machine and the database show some; the user states the
//! others ([`Plan::facts`](crate::Plan::facts)), and loadline cannot check them.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::format::{bytes, did_you_mean, size};
use crate::machine::{Machine, Storage};
use crate::manifest::Manifest;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FactKind {
    Text,
    Year,
    Count,
    /// A number with its unit: `25.6 TB` is decimal, `512 GiB` binary.
    Size,
    YesNo,
}

#[derive(Debug)]
pub struct FactName {
    /// As plans and files have it: `launch-year`.
    pub id: &'static str,
    /// As tables have it: `Launch year`.
    pub title: &'static str,
    pub kind: FactKind,
    found: fn(&Manifest) -> Option<String>,
}

const fn fact(
    id: &'static str,
    title: &'static str,
    kind: FactKind,
    found: fn(&Manifest) -> Option<String>,
) -> FactName {
    FactName { id, title, kind, found }
}

/// All facts in the order of tables. Sockets, cores, threads and memory are those of one node.
pub static FACTS: [FactName; 19] = [
    fact("system", "System", FactKind::Text, |m| machine(m)?.virtualisation.clone()),
    fact("processor", "Processor", FactKind::Text, |m| Some(machine(m)?.cpu_model.clone())),
    fact("storage-system", "Storage system", FactKind::Text, |m| each(m, |device| fact_of(device, "model"))),
    fact("launch-year", "Launch year", FactKind::Year, |_| None),
    // Of imported and published runs there is no target, and nobody counted.
    fact("nodes", "Nodes", FactKind::Count, |m| if m.plan.target.is_empty() { None } else { count(m.target.nodes) }),
    fact("sockets", "Sockets", FactKind::Count, |m| count(machine(m)?.sockets?)),
    fact("cores", "Cores", FactKind::Count, |m| count(machine(m)?.cores?)),
    fact("threads", "Threads", FactKind::Count, |m| {
        // Fewer threads than cores are those that loadline may use.
        machine(m).filter(|machine| machine.cores.is_none_or(|cores| machine.cpus >= cores)).and_then(|m| count(m.cpus))
    }),
    fact("memory", "Memory", FactKind::Size, |m| {
        let found = machine(m).map(|machine| machine.memory_bytes).or(m.target.memory_bytes);
        found.filter(|n| *n > 0).map(|n| bytes(n as f64))
    }),
    fact("persistent-memory", "Persistent memory", FactKind::Size, |m| each(m, |device| capacity(device, "pmem"))),
    fact("flash", "Flash capacity", FactKind::Size, |m| each(m, |device| capacity(device, "0"))),
    fact("disk", "Disk capacity", FactKind::Size, |m| each(m, |device| capacity(device, "1"))),
    fact("connectivity", "Connectivity", FactKind::Text, |_| None),
    fact("filesystem", "Filesystem", FactKind::Text, |m| each(m, |device| Some(device.filesystem.clone()))),
    fact("redundancy", "Redundancy", FactKind::Text, |m| each(m, |device| fact_of(device, "md_level"))),
    fact("deduplication", "Deduplication", FactKind::YesNo, |_| None),
    fact("compression", "Compression", FactKind::YesNo, |_| None),
    fact("database-version", "Database version", FactKind::Text, |m| {
        (!m.target.version.is_empty()).then(|| format!("{} {}", m.target.product, m.target.version).trim().to_owned())
    }),
    fact("database-size", "Database size", FactKind::Size, |m| {
        (!m.data_set.is_empty()).then(|| format!("{} (data set)", bytes(m.plan.size_bytes as f64)))
    }),
];

/// The machine of the database, if it is the one that ran loadline.
fn machine(m: &Manifest) -> Option<&Machine> {
    m.target.local.then_some(&m.machine)
}

fn count(n: u32) -> Option<String> {
    (n > 0).then(|| n.to_string())
}

/// Value of `of` for the storage under log and data, once.
fn each(m: &Manifest, of: impl Fn(&Storage) -> Option<String>) -> Option<String> {
    let mut found: Vec<String> = m.target.storage.values().filter_map(of).filter(|text| !text.is_empty()).collect();
    found.sort_unstable();
    found.dedup();
    (!found.is_empty()).then(|| found.join(", "))
}

fn fact_of(storage: &Storage, name: &str) -> Option<String> {
    storage.device_facts.get(name).cloned()
}

/// Capacity of the device, if it is persistent memory (`pmem`), or rotational (`1`) or not (`0`) as the kernel states it.
fn capacity(storage: &Storage, medium: &str) -> Option<String> {
    let (device, rotational) = (storage.device.as_deref()?, fact_of(storage, "rotational")?);
    let found = if device.starts_with("pmem") { "pmem" } else { &rotational };
    (found == medium).then_some(format!("{} ({device})", fact_of(storage, "size")?))
}

impl FactName {
    /// The fact called `name`, by its id or title in any case.
    pub fn find(name: &str) -> Option<&'static FactName> {
        let id = name.trim().to_lowercase().replace([' ', '_'], "-");
        FACTS.iter().find(|fact| fact.id == id || fact.title.to_lowercase().replace(' ', "-") == id)
    }

    fn value(&self, given: &str) -> Result<String, String> {
        /// Most characters: it is a cell of a table.
        const MOST: usize = 120;
        let (text, title) = (given.trim(), self.title);
        if text.is_empty() || text.chars().any(char::is_control) || text.chars().count() > MOST {
            return Err(format!("the fact {title} must be one line of 1 to {MOST} characters"));
        }
        let number = |least: u32, most: u32| match text.parse::<u32>() {
            Ok(n) if (least..=most).contains(&n) => Ok(n.to_string()),
            _ => Err(format!("the fact {title} is '{text}': give a number from {least} to {most}")),
        };
        match self.kind {
            FactKind::Text => Ok(text.to_owned()),
            FactKind::Year => number(1950, 2100),
            FactKind::Count => number(1, 1_000_000),
            FactKind::Size => {
                capacity_bytes(text).map(|_| text.to_owned()).map_err(|e| format!("the fact {title}: {e}"))
            }
            FactKind::YesNo => match text.to_lowercase().as_str() {
                "yes" | "true" => Ok("yes".to_owned()),
                "no" | "false" => Ok("no".to_owned()),
                _ => Err(format!("the fact {title} is '{text}': give yes or no")),
            },
        }
    }
}

/// Bytes of a capacity as vendors and systems write it: `25.6 TB` is decimal, `512 GiB` binary.
pub fn capacity_bytes(text: &str) -> Result<f64, String> {
    let size = if text.to_lowercase().ends_with('b') { size(text, 1000.0) } else { None };
    size.filter(|bytes| *bytes > 0.0).ok_or_else(|| {
        format!("'{text}' is no size: give a number above 0 with GB, TB or PB (1000), or GiB, TiB or PiB (1024)")
    })
}

/// The facts that a user gives, by id, as they are stored.
pub fn stated<'a>(given: impl IntoIterator<Item = (&'a str, &'a str)>) -> Result<BTreeMap<String, String>, String> {
    let mut all = BTreeMap::new();
    for (name, value) in given {
        let Some(fact) = FactName::find(name) else {
            let known = FACTS.iter().map(|fact| fact.id);
            let near = did_you_mean(name, known.clone());
            return Err(format!("there is no fact '{name}'{near} (known: {})", known.collect::<Vec<_>>().join(", ")));
        };
        if all.insert(fact.id.to_owned(), fact.value(value)?).is_some() {
            return Err(format!("the fact {} is given twice: keep one", fact.title));
        }
    }
    Ok(all)
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Fact {
    pub id: &'static str,
    pub title: &'static str,
    pub stated: Option<String>,
    /// Value found by the machine or the database.
    pub found: Option<String>,
}

impl Fact {
    /// The value with its origin: `15.6 GiB`, `2021 (stated)`, `64 GiB (stated; found: 15.6 GiB)`.
    pub fn words(&self) -> String {
        match (&self.stated, &self.found) {
            (Some(stated), Some(found)) if !is_same(stated, found) => format!("{stated} (stated; found: {found})"),
            (Some(stated), None) => format!("{stated} (stated)"),
            (_, found) => found.clone().unwrap_or_default(),
        }
    }
}

/// Whether both say the same: `64 GiB` is `64.0 GiB`, as far as that has decimals.
fn is_same(stated: &str, found: &str) -> bool {
    let shown = |text: &str| capacity_bytes(text).map(bytes);
    stated == found || shown(stated).is_ok_and(|size| shown(found) == Ok(size))
}

/// The facts that are known of the platform of a run, in the order of tables.
pub fn facts(m: &Manifest) -> Vec<Fact> {
    let one = |fact: &FactName| {
        // The same is stated by an option of its own.
        let memory = if fact.id == "memory" { m.plan.server_memory_bytes() } else { None };
        let stated = m.plan.facts.get(fact.id).cloned().or(memory.map(|n| bytes(n as f64)));
        let found = (fact.found)(m).filter(|text| !text.is_empty());
        (stated.is_some() || found.is_some()).then_some(Fact { id: fact.id, title: fact.title, stated, found })
    };
    FACTS.iter().filter_map(one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_found_in_any_spelling() {
        for name in ["Launch year", "launch-year", "LAUNCH_YEAR", " launch year "] {
            assert_eq!(stated([(name, " 2021 ")]), Ok(BTreeMap::from([("launch-year".to_owned(), "2021".to_owned())])));
        }
        for fact in &FACTS {
            assert!(
                [fact.id, fact.title].map(FactName::find).iter().all(|found| found.is_some_and(|f| f.id == fact.id))
            );
        }
    }

    #[test]
    fn a_value_of_another_kind_is_refused_and_named() {
        let bad = [
            ("launch-year", "21"),
            ("sockets", "0"),
            ("cores", "many"),
            ("flash", "25.6"),
            ("flash", "-1 TB"),
            ("flash", "1 iB"),
            ("disk", "TB"),
            ("compression", "some"),
        ];
        for (name, value) in bad {
            let e = stated([(name, value)]).unwrap_err();
            assert!(e.contains(&format!("'{value}'")), "{name}: {e}");
        }
        for text in ["", "a\nb", &"x".repeat(121)] {
            assert!(stated([("system", text)]).is_err(), "{text}");
        }
    }

    #[test]
    fn decimal_and_binary_sizes_differ() {
        let size = |text: &str| capacity_bytes(text).unwrap();
        assert_eq!(["+1TB", "1 TiB", "1.5 gb", "2 PB"].map(size), [1e12, 1_099_511_627_776.0, 1.5e9, 2e15]);
    }

    #[test]
    fn what_is_found_and_what_is_stated_are_distinguished() {
        let machine = Machine { cpus: 8, cores: Some(4), memory_bytes: 16 << 30, ..Machine::default() };
        let mut m = Manifest { machine, ..Manifest::default() };
        let device_facts =
            [("rotational", "0"), ("size", "1.8 TiB")].map(|(name, of)| (name.to_owned(), of.to_owned()));
        let device = Some("nvme0n1".to_owned());
        let flash = Storage { device, device_facts: device_facts.into(), ..Storage::default() };
        m.target.storage = ["log", "data"].map(|role| (role.to_owned(), flash.clone())).into();
        m.plan.facts = stated([("Launch year", "2021"), ("memory", "64 GiB"), ("threads", "8")]).unwrap();
        let words = |m: &Manifest, id: &str| facts(m).iter().find(|fact| fact.id == id).map(Fact::words);
        // The machine that ran loadline is not that of a database elsewhere.
        assert_eq!([words(&m, "cores"), words(&m, "threads")], [None, Some("8 (stated)".to_owned())]);
        m.target.local = true;
        let known = ["cores", "threads", "memory", "launch-year", "flash", "disk"].map(|id| words(&m, id));
        let wanted = ["4", "8", "64 GiB (stated; found: 16.0 GiB)", "2021 (stated)", "1.8 TiB (nvme0n1)"];
        assert_eq!(known[..5], wanted.map(|text| Some(text.to_owned())));
        assert_eq!(known[5], None);
        m.plan.facts = stated([("memory", "16 GiB")]).unwrap();
        assert_eq!(words(&m, "memory").as_deref(), Some("16.0 GiB"), "the same in another spelling");
        // What loadline may use is not what the machine has, and an import has no nodes and no version.
        m.machine.cpus = 2;
        m.target.nodes = 1;
        assert_eq!(["threads", "nodes", "database-version"].map(|id| words(&m, id)), [None, None, None]);
        m.plan.target = "sqlite:".to_owned();
        assert_eq!(words(&m, "nodes").as_deref(), Some("1"));
    }
}
