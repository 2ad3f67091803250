//! Pressure stall information (kernel: Documentation/accounting/psi.rst): time in which tasks waited for a resource.

use crate::error::{CollectError, read};

/// Time since boot in which tasks waited for one resource, µs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Pressure {
    /// Some task waited.
    pub some_us: u64,
    /// All tasks that were not idle waited.
    pub full_us: Option<u64>,
}

impl Pressure {
    /// That of `resource` (`cpu`, `memory` or `io`) on this machine.
    ///
    /// # Errors
    /// The kernel does not keep it, or the file has an unknown format.
    pub fn local(resource: &str) -> Result<Pressure, CollectError> {
        Pressure::parse(&read(format!("/proc/pressure/{resource}"))?)
    }

    /// Parses `some avg10=0.00 avg60=0.00 avg300=0.00 total=0` and the same with `full`.
    fn parse(text: &str) -> Result<Pressure, CollectError> {
        let total = |kind: &str| {
            let line = text.lines().find_map(|l| l.strip_prefix(kind))?;
            line.split_whitespace().find_map(|field| field.strip_prefix("total=")?.parse().ok())
        };
        let wrong = || CollectError::Format { file: "/proc/pressure", what: format!("'{}'", text.trim()) };
        Ok(Pressure { some_us: total("some ").ok_or_else(wrong)?, full_us: total("full ") })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn totals_are_read() {
        let text =
            "some avg10=1.00 avg60=0.00 avg300=0.00 total=500\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=20\n";
        assert_eq!(Pressure::parse(text).unwrap(), Pressure { some_us: 500, full_us: Some(20) });
        assert_eq!(Pressure::parse("some total=7\n").unwrap(), Pressure { some_us: 7, full_us: None });
        assert!(Pressure::parse("").is_err() && Pressure::parse("some total=x").is_err());
    }
}
