//! Options of a probe.

use loadline_model::format::bytes;
use loadline_model::probe::Engine;

use crate::probe::ProbeError;
use crate::probe::plan::Point;

/// The smallest test file, bytes.
pub const SMALLEST_FILE: u64 = 16 << 20;

#[derive(Debug, Clone, PartialEq)]
pub struct ProbeOptions {
    /// Size of the test file, bytes. `None`: 1 GiB, or less if space is short.
    pub size: Option<u64>,
    /// Time per directory, filling the file included, s.
    pub seconds: f64,
    /// Compressible share of the data, 0 to 1.
    pub compressibility: f64,
    /// Share of repeated 4 KiB pages in the written data, 0 to 1.
    pub dedup: f64,
    /// I/O engine. `None`: io_uring, or threads if that is forbidden.
    pub engine: Option<Engine>,
    /// Seed of data and offsets.
    pub seed: u64,
    /// Rows to measure. `None`: all.
    pub only: Option<Vec<Point>>,
}

impl Default for ProbeOptions {
    fn default() -> Self {
        ProbeOptions { size: None, seconds: 30.0, compressibility: 0.0, dedup: 0.0, engine: None, seed: 42, only: None }
    }
}

impl ProbeOptions {
    pub fn check(&self) -> Result<(), ProbeError> {
        let wrong = |option, value: String, allowed: String| Err(ProbeError::Option { option, value, allowed });
        for (option, share) in [("--compressibility", self.compressibility), ("--dedup", self.dedup)] {
            if !(0.0..=1.0).contains(&share) {
                return wrong(option, share.to_string(), "it must be a share from 0 to 1".to_owned());
            }
        }
        if !(1.0..=3600.0).contains(&self.seconds) {
            return wrong("--seconds", self.seconds.to_string(), "it must be 1 to 3600".to_owned());
        }
        const LARGEST: u64 = 1 << 50;
        if let Some(size) = self.size.filter(|s| !(SMALLEST_FILE..=LARGEST).contains(s)) {
            let allowed = format!("it must be {} to {}", bytes(SMALLEST_FILE as f64), bytes(LARGEST as f64));
            return wrong("--size", bytes(size as f64), allowed);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn invalid_values_are_named_with_what_is_allowed() {
        let good = ProbeOptions::default();
        assert!(good.check().is_ok());
        let wrong = [
            (ProbeOptions { dedup: 1.5, ..good.clone() }, ["--dedup", "'1.5'", "0 to 1"]),
            (ProbeOptions { compressibility: f64::NAN, ..good.clone() }, ["--compressibility", "'NaN'", "0 to 1"]),
            (ProbeOptions { seconds: 0.0, ..good.clone() }, ["--seconds", "'0'", "1 to 3600"]),
            (ProbeOptions { size: Some(1 << 20), ..good.clone() }, ["--size", "'1.0 MiB'", "16.0 MiB to"]),
        ];
        for (options, parts) in wrong {
            let error = options.check().unwrap_err().to_string();
            assert!(parts.iter().all(|p| error.contains(p)), "{error}");
        }
    }
}
