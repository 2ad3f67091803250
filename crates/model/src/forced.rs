//! Qualifications of the figures of a test: the source of its blocks, and refusals that options overrode.

use std::fmt;

use serde::{Deserialize, Serialize};

crate::named! {
    /// Source of the blocks that a database read, the best proof first.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
    #[serde(rename_all = "kebab-case")]
    pub enum DataSource {
        Device: "device";
        /// The device, but for a share that is known to be no larger than a bound.
        Bounded: "bounded";
        /// Caches and the device.
        Lukewarm: "lukewarm";
        Cached: "cached";
    }
    pub fn name;
}

/// Refusals that options overrode. Stored as one string, in which that of `--allow-cached` comes last.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(from = "Option<String>", into = "Option<String>")]
pub struct Forced {
    /// Refusal that `--force` overrode, or that an arm has on purpose.
    pub refused: Option<String>,
    /// Whether `--allow-cached` kept storage figures that are not proved to be the device's.
    pub not_the_devices: bool,
}

const NOT_THE_DEVICES: &str = "--allow-cached: not the device's figures";

impl Forced {
    pub fn is_empty(&self) -> bool {
        *self == Forced::default()
    }
}

impl From<Option<String>> for Forced {
    fn from(stored: Option<String>) -> Forced {
        let Some(text) = stored else { return Forced::default() };
        let (refused, not_the_devices) = match text.strip_suffix(NOT_THE_DEVICES) {
            Some(rest) => (rest.strip_suffix("; ").unwrap_or(rest), true),
            None => (text.as_str(), false),
        };
        Forced { refused: (!refused.is_empty()).then(|| refused.to_owned()), not_the_devices }
    }
}

impl From<Forced> for Option<String> {
    fn from(forced: Forced) -> Option<String> {
        (!forced.is_empty()).then(|| forced.to_string())
    }
}

impl fmt::Display for Forced {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let refused = self.refused.as_deref().unwrap_or_default();
        let between = if self.refused.is_some() && self.not_the_devices { "; " } else { "" };
        let cached = if self.not_the_devices { NOT_THE_DEVICES } else { "" };
        write!(f, "{refused}{between}{cached}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_forced_is_stored_as_one_string() {
        for (refused, not_the_devices, stored) in [
            (None, false, None),
            (None, true, Some("--allow-cached: not the device's figures")),
            (Some("a; b"), false, Some("a; b")),
            (Some("fsync is off"), true, Some("fsync is off; --allow-cached: not the device's figures")),
        ] {
            let forced = Forced { refused: refused.map(str::to_owned), not_the_devices };
            let stored = stored.map(str::to_owned);
            assert_eq!(Forced::from(stored.clone()), forced);
            assert_eq!(Option::<String>::from(forced), stored);
        }
    }
}
