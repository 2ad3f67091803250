//! The options that a test needs to be valid.

use crate::record::TestRecord;

impl TestRecord {
    /// The options that this test needs to be valid; empty if none.
    #[must_use]
    pub fn kept_by(&self) -> Vec<&'static str> {
        let options = [
            ("--allow-cached", self.forced.not_the_devices),
            // An arm's settings are its purpose, without an option.
            (if self.variant.is_some() { "the arm's settings" } else { "--force" }, self.forced.refused.is_some()),
        ];
        options.into_iter().filter(|(_, needed)| *needed).map(|(option, _)| option).collect()
    }
}
