//! A private server's settings: loadline's own and the user's.

use std::collections::BTreeMap;

use super::product::Product;
use crate::error::TargetError;

/// `-` and `_` mean the same in names of options, and so do capitals and small letters.
pub(crate) fn normal(name: &str) -> String {
    name.to_ascii_lowercase().replace('-', "_")
}

/// All settings of a server.
pub(crate) struct Settings {
    product: &'static Product,
    /// loadline's own that the user has not replaced.
    pub(crate) defaults: Vec<(&'static str, String)>,
    pub(crate) given: BTreeMap<String, String>,
}

impl Settings {
    /// Those of `defaults` that are not among the `given` ones, and these.
    pub(crate) fn new(
        product: &'static Product,
        mut defaults: Vec<(&'static str, String)>,
        given: &BTreeMap<String, String>,
    ) -> Settings {
        defaults.retain(|(name, _)| !given.keys().any(|g| normal(g) == *name));
        Settings { product, defaults, given: given.clone() }
    }

    /// Name and value of each, the user's last.
    pub(crate) fn all(&self) -> impl Iterator<Item = (&str, &str)> {
        let defaults = self.defaults.iter().map(|(name, value)| (*name, value.as_str()));
        defaults.chain(self.given.iter().map(|(name, value)| (name.as_str(), value.as_str())))
    }

    /// For the report.
    pub(crate) fn notes(&self) -> Vec<String> {
        let defaults: Vec<String> = self.defaults.iter().map(|(name, value)| format!("{name}={value}")).collect();
        let mut notes = vec![format!("settings that loadline chose: {}", defaults.join(", "))];
        if !self.given.is_empty() {
            notes.push(format!("settings given with --setting: {}", self.shown()));
        }
        notes
    }

    /// The user's settings for people to read; a value that may hold a password is not shown.
    pub(crate) fn shown(&self) -> String {
        let value = |name: &str, value| if self.product.is_secret(name) { "(not shown)" } else { value };
        self.given.iter().map(|(n, v)| format!("{n}={}", value(n, v))).collect::<Vec<_>>().join(", ")
    }
}

impl Product {
    /// Whether the value of the setting may hold a password.
    pub(crate) fn is_secret(&self, name: &str) -> bool {
        let name = normal(name);
        self.secrets.iter().any(|part| name.contains(part))
    }

    /// What can be said of the user's settings before a server is asked.
    ///
    /// # Errors
    /// [`TargetError::Usage`].
    pub(crate) fn check_names(&self, given: &BTreeMap<String, String>) -> Result<(), TargetError> {
        for (name, value) in given {
            if self.reserved.contains(&normal(name).as_str()) {
                return Err(TargetError::Usage(format!(
                    "--setting {name}: loadline sets «{name}» of its private server itself, leave it out"
                )));
            }
            if value.chars().any(char::is_control) {
                return Err(TargetError::Usage(format!("--setting {name}: its value holds a control character")));
            }
            // Two spellings of one name: which of them wins would be a matter of luck.
            if let Some(other) = given.keys().find(|other| *other != name && normal(other) == normal(name)) {
                return Err(TargetError::Usage(format!("the setting «{name}» is given twice, also as «{other}»")));
            }
        }
        Ok(())
    }
}
