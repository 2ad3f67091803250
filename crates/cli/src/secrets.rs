//! Secrets on the command line: arguments and values of the plan that hold a password.

use std::sync::{Mutex, PoisonError};

use loadline_database::redact;
use serde_json::Value;

/// Arguments and values of the plan with a password in them.
static SECRETS: Mutex<Vec<String>> = Mutex::new(Vec::new());

/// Remembers those of `texts` that hold a password, for [`hide`].
pub(crate) fn keep<'a>(texts: impl Iterator<Item = &'a str>) {
    let mut secrets = SECRETS.lock().unwrap_or_else(PoisonError::into_inner);
    secrets.extend(texts.filter(|t| is_secret(t)).map(str::to_owned));
}

/// Remembers those of the names and texts in `value` that hold a password.
pub(crate) fn keep_all(value: &Value) {
    match value {
        Value::String(text) => keep(std::iter::once(text.as_str())),
        Value::Array(all) => all.iter().for_each(keep_all),
        Value::Object(all) => {
            keep(all.keys().map(String::as_str));
            all.values().for_each(keep_all);
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// `text` without the passwords of the command line and of the plan. An error may quote a URL that stands in the place
/// of something else.
pub(crate) fn hide(text: &str) -> String {
    let secrets = SECRETS.lock().unwrap_or_else(PoisonError::into_inner);
    secrets.iter().fold(text.to_owned(), |text, secret| loadline_database::hide(&text, secret))
}

/// `text` for a terminal: without these passwords, and without characters in names of a file that would control it.
pub(crate) fn harmless(text: &str) -> String {
    hide(text).split('\n').map(loadline_report::clean).collect::<Vec<_>>().join("\n")
}

/// Whether a text is a URL with a password.
pub(crate) fn is_secret(text: &str) -> bool {
    text.contains("://") && redact(text) != text
}
