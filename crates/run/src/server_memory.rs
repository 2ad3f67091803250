//! Capacity of caches: the memory of a server's machine, and how large the data set must be for storage figures to be the device's,
//! which doctor, dry run, checks and guide say.

use loadline_model::format::bytes;
use loadline_model::manifest::TargetInfo;
use loadline_model::plan::Plan;

use crate::plan::PlanError;

/// A cache smaller than 1/n of the data does not matter.
pub const DATA_PER_CACHE: u64 = 12;
/// At most 1/n of random reads are cached by a memory that is n times smaller than the data.
pub const DATA_PER_MEMORY: u64 = 10;

/// The `--size` that passes the database's own cache, on a machine whose page cache loadline keeps empty.
pub fn beyond_cache(cache_bytes: u64) -> String {
    size(cache_bytes, DATA_PER_CACHE)
}

/// The `--size` that passes all caches of a machine that loadline cannot enter.
pub fn beyond_memory(memory_bytes: u64) -> String {
    size(memory_bytes, DATA_PER_MEMORY)
}

/// As the option takes it: `3GiB`.
fn size(bytes: u64, times: u64) -> String {
    let mib = bytes.saturating_mul(times).div_ceil(1 << 20);
    if mib >= 1 << 10 { format!("{}GiB", mib.div_ceil(1 << 10)) } else { format!("{mib}MiB") }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ServerMemory {
    /// Of all nodes together, bytes.
    pub(crate) bytes: u64,
    pub(crate) source: &'static str,
}

/// The memory that the plan gives, or else the server states. `cache_bytes`: the database's own cache; `here_bytes`: memory of
/// loadline's machine.
pub(crate) fn known(
    plan: &Plan,
    info: &TargetInfo,
    cache_bytes: Option<u64>,
    here_bytes: u64,
) -> Result<Option<ServerMemory>, PlanError> {
    // Nodes may be machines of their own.
    let all = |bytes: u64| bytes.saturating_mul(u64::from(info.nodes.max(1)));
    let (stated, source) =
        if info.local { (Some(here_bytes), "this machine's") } else { (info.memory_bytes, "as the server states") };
    let Some(given) = plan.server_memory_bytes() else {
        return Ok(stated.map(|bytes| ServerMemory { bytes: all(bytes), source }));
    };
    let more = [(stated, "the machine of the server has"), (cache_bytes, "the database's own cache has")];
    let more = more.into_iter().find_map(|(known, what)| known.filter(|known| *known > given).map(|n| (n, what)));
    match more {
        Some((known, what)) => Err(PlanError::Value(format!(
            "server-memory {} is too small: {what} {}. Give the memory of the whole machine, which is what its caches may hold",
            bytes(given as f64),
            bytes(known as f64)
        ))),
        None => Ok(Some(ServerMemory { bytes: all(given), source: "--server-memory" })),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::planned;

    #[test]
    fn the_larger_memory_counts_and_a_contradiction_is_refused() {
        let of = |given: Option<&str>, info: &TargetInfo, cache: u64| {
            let plan = planned(&given.map_or(String::new(), |bytes| format!("server-memory = '{bytes}'")));
            known(&plan, info, Some(cache), 8 << 30).map(|m| m.map(|m| m.bytes >> 30)).map_err(|e| e.to_string())
        };
        let remote = TargetInfo { nodes: 1, ..TargetInfo::default() };
        let stated = TargetInfo { memory_bytes: Some(16 << 30), ..remote.clone() };
        assert_eq!(of(None, &remote, 0), Ok(None));
        assert_eq!(of(None, &stated, 0), Ok(Some(16)));
        assert_eq!(of(Some("32GiB"), &stated, 0), Ok(Some(32)));
        assert_eq!(of(Some("32GiB"), &TargetInfo { nodes: 3, ..remote.clone() }, 0), Ok(Some(96)));
        let local = TargetInfo { local: true, ..remote.clone() };
        for (info, cache, says) in
            [(&stated, 0, "16.0 GiB"), (&local, 0, "8.0 GiB"), (&remote, 6 << 30, "own cache has 6.0 GiB")]
        {
            let why = of(Some("4GiB"), info, cache).unwrap_err();
            assert!(why.contains(says) && why.contains("4.0 GiB is too small"), "{why}");
        }
    }

    #[test]
    fn sizes_are_as_the_option_takes_them() {
        assert_eq!(beyond_cache(16 << 20), "192MiB");
        assert_eq!(beyond_cache(256 << 20), "3GiB");
        assert_eq!(beyond_memory(128 << 30), "1280GiB");
    }
}
