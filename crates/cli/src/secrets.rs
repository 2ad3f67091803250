//! Secrets on the command line: arguments and values of the plan that hold a password.

use std::sync::{Mutex, PoisonError};

use loadline_database::{names_secret, redact};
use serde_json::Value;

/// Arguments and values of the plan with a password in them.
static SECRETS: Mutex<Vec<String>> = Mutex::new(Vec::new());

/// Remembers those of `texts` that hold a password, for [`hide`].
pub(crate) fn keep<'a>(texts: impl Iterator<Item = &'a str>) {
    let mut secrets = SECRETS.lock().unwrap_or_else(PoisonError::into_inner);
    // A message may quote a setting without the option before it.
    let bare =
        |t: &str| t.split_once('=').filter(|(option, _)| option.starts_with("--")).map(|(_, value)| value.to_owned());
    secrets.extend(texts.filter(|t| shown(t).is_some()).flat_map(|t| [Some(t.to_owned()), bare(t)]).flatten());
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
    secrets.iter().fold(text.to_owned(), |text, secret| match shown(secret) {
        Some(shown) if !secret.contains("://") => text.replace(secret, &shown),
        _ => loadline_database::hide(&text, secret),
    })
}

/// `text` for a terminal: without these passwords, and without characters in names of a file that would control it.
pub(crate) fn harmless(text: &str) -> String {
    hide(text).split('\n').map(loadline_report::clean).collect::<Vec<_>>().join("\n")
}

/// `text` without its secret, if it has one: a URL with a password, or `name=value` whose name says so.
pub(crate) fn shown(text: &str) -> Option<String> {
    if text.contains("://") {
        return Some(redact(text)).filter(|clean| clean != text);
    }
    let (at, _) = text.match_indices('=').find(|(at, _)| names_secret(&text[..*at]))?;
    // What is shown is no secret any more, or loadline would start itself again without end.
    Some(format!("{}=…", &text[..at])).filter(|clean| clean != text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_shown_nowhere_and_other_arguments_as_they_are() {
        for (text, is_shown) in [
            ("report_password=hush", "report_password=…"),
            ("--setting=REPORT_PASSWD=hush", "--setting=REPORT_PASSWD=…"),
            ("primary_conninfo=host=h password=hush", "primary_conninfo=host=h password=…"),
            ("postgres://ann:hush@h/d", "postgres://ann@h/d"),
        ] {
            assert_eq!(shown(text).as_deref(), Some(is_shown));
            assert_eq!(shown(is_shown), None, "it is shown once");
            keep([text].into_iter());
        }
        assert_eq!(hide("'REPORT_PASSWD=hush' and report_password=hush"), "'REPORT_PASSWD=…' and report_password=…");
        for text in
            ["work_mem=8MB", "--setting-a=work_mem=8MB", "postgres://ann@h/secret?connect_timeout=5", "password"]
        {
            assert_eq!(shown(text), None);
        }
    }
}
