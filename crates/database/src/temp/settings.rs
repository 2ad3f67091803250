//! A private server's settings: loadline's defaults and the user's.

use std::collections::BTreeMap;

use super::product::Product;
use crate::error::TargetError;

/// Normal form of an option's name: `-` and `_`, and upper and lower case, are equal.
pub(crate) fn normal(name: &str) -> String {
    name.to_ascii_lowercase().replace('-', "_")
}

/// All settings of a server.
#[derive(Clone)]
pub(crate) struct Settings {
    product: &'static Product,
    /// loadline's defaults that the user did not replace.
    pub(crate) defaults: Vec<(&'static str, String)>,
    pub(crate) given: BTreeMap<String, String>,
}

impl Settings {
    /// The `given` settings, and the `defaults` that are not given.
    pub(crate) fn new(
        product: &'static Product,
        mut defaults: Vec<(&'static str, String)>,
        given: &BTreeMap<String, String>,
    ) -> Settings {
        defaults.retain(|(name, _)| !given.keys().any(|g| normal(g) == *name));
        Settings { product, defaults, given: given.clone() }
    }

    /// Name and value of all settings, the user's last.
    pub(crate) fn all(&self) -> impl Iterator<Item = (&str, &str)> {
        let defaults = self.defaults.iter().map(|(name, value)| (*name, value.as_str()));
        defaults.chain(self.given.iter().map(|(name, value)| (name.as_str(), value.as_str())))
    }

    /// Notes for the report.
    pub(crate) fn notes(&self) -> Vec<String> {
        let defaults: Vec<String> = self.defaults.iter().map(|(name, value)| format!("{name}={value}")).collect();
        let mut notes = vec![format!("settings that loadline chose: {}", defaults.join(", "))];
        if !self.given.is_empty() {
            notes.push(format!("settings given with --setting: {}", self.shown()));
        }
        notes
    }

    /// The user's settings as text, without values that may contain a password.
    pub(crate) fn shown(&self) -> String {
        let value = |name: &str, value| if self.product.is_secret(name) { "(not shown)" } else { value };
        self.given.iter().map(|(n, v)| format!("{n}={}", value(n, v))).collect::<Vec<_>>().join(", ")
    }
}

impl Product {
    /// Whether the value of the setting may contain a password.
    pub(crate) fn is_secret(&self, name: &str) -> bool {
        let name = normal(name);
        self.secrets.iter().any(|part| name.contains(part))
    }

    /// Checks the user's settings as far as possible without the server.
    ///
    /// # Errors
    /// [`TargetError::Usage`].
    pub(crate) fn check_names(&self, given: &BTreeMap<String, String>) -> Result<(), TargetError> {
        for (name, value) in given {
            if self.reserved.iter().any(|names| names.contains(&normal(name).as_str())) {
                return Err(TargetError::Usage(format!(
                    "--setting {name}: loadline itself sets '{name}' of its private server: leave it out"
                )));
            }
            if value.chars().any(char::is_control) {
                return Err(TargetError::Usage(format!("--setting {name}: its value contains a control character")));
            }
            // Two spellings of one name: it is undefined which one wins.
            if let Some(other) = given.keys().find(|other| *other != name && normal(other) == normal(name)) {
                return Err(TargetError::Usage(format!("the setting '{name}' is given twice, also as '{other}'")));
            }
        }
        Ok(())
    }
}
