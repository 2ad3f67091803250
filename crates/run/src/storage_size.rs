//! How large the data set must be for storage figures to be the device's: what doctor, dry run, checks and guide say.

/// A cache smaller than 1/n of the data does not matter.
pub const DATA_PER_CACHE: u64 = 12;
/// At most 1/n of random reads are cached by a memory that is n times smaller than the data.
pub const DATA_PER_MEMORY: u64 = 10;

/// The `--size` that passes the database's own cache, on a machine whose page cache loadline keeps empty.
#[must_use]
pub fn beyond_cache(cache_bytes: u64) -> String {
    size(cache_bytes, DATA_PER_CACHE)
}

/// The `--size` that passes all caches of a machine that loadline cannot enter.
#[must_use]
pub fn beyond_memory(memory_bytes: u64) -> String {
    size(memory_bytes, DATA_PER_MEMORY)
}

pub(crate) const MIB: f64 = 1024.0 * 1024.0;

/// As the option takes it: `3GiB`.
fn size(bytes: u64, times: u64) -> String {
    let mib = bytes.saturating_mul(times).div_ceil(1 << 20);
    if mib >= 1 << 10 { format!("{}GiB", mib.div_ceil(1 << 10)) } else { format!("{mib}MiB") }
}

#[cfg(test)]
mod tests {
    #[test]
    fn sizes_are_as_the_option_takes_them() {
        assert_eq!(super::beyond_cache(16 << 20), "192MiB");
        assert_eq!(super::beyond_cache(256 << 20), "3GiB");
        assert_eq!(super::beyond_memory(128 << 30), "1280GiB");
    }
}
