//! What can be chosen.

use loadline_model::format::bytes;
use loadline_model::probe::Engine;

use crate::error::ProbeError;
use crate::plan::Point;

/// The smallest test file, bytes.
pub const SMALLEST_FILE: u64 = 16 << 20;

/// What can be chosen.
#[derive(Debug, Clone, PartialEq)]
pub struct ProbeOptions {
    /// Size of the test file, bytes; none: 1 GiB, or less where space is short.
    pub size: Option<u64>,
    /// Time for a directory, filling the file included, s.
    pub seconds: f64,
    /// Share of the data that compresses away, 0 to 1.
    pub compressibility: f64,
    /// Share of the 4 KiB pages written that repeats, 0 to 1.
    pub dedup: f64,
    /// How operations reach the kernel; none: io_uring, or threads where that is forbidden.
    pub engine: Option<Engine>,
    /// Seed of data and of offsets.
    pub seed: u64,
    /// The rows to be measured; none: all.
    pub only: Option<Vec<Point>>,
}

impl Default for ProbeOptions {
    fn default() -> Self {
        ProbeOptions { size: None, seconds: 30.0, compressibility: 0.0, dedup: 0.0, engine: None, seed: 42, only: None }
    }
}

impl ProbeOptions {
    /// Refuses what cannot be.
    ///
    /// # Errors
    /// [`ProbeError::Option`], which names the value and what is allowed.
    pub fn check(&self) -> Result<(), ProbeError> {
        let wrong = |option, value: String, allowed: String| Err(ProbeError::Option { option, value, allowed });
        for (option, share) in [("--compressibility", self.compressibility), ("--dedup", self.dedup)] {
            if !(0.0..=1.0).contains(&share) {
                return wrong(option, share.to_string(), "a share from 0 to 1 is needed".to_owned());
            }
        }
        if !(1.0..=3600.0).contains(&self.seconds) {
            return wrong("--seconds", self.seconds.to_string(), "1 to 3600 are possible".to_owned());
        }
        const LARGEST: u64 = 1 << 50;
        if let Some(size) = self.size.filter(|s| !(SMALLEST_FILE..=LARGEST).contains(s)) {
            let allowed = format!("{} to {} are possible", bytes(SMALLEST_FILE as f64), bytes(LARGEST as f64));
            return wrong("--size", bytes(size as f64), allowed);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_is_named_with_what_can() {
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
