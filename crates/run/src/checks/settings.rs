//! The target's settings must stay the same: a change in the middle of a test makes its figures those of two platforms.

use loadline_database::TargetError;
use loadline_model::Note;
use loadline_model::manifest::TargetInfo;

use crate::test::{Verdict, failed, not_made, passed};

pub(crate) fn unchanged(before: &TargetInfo, after: &Result<TargetInfo, TargetError>) -> Verdict {
    match after.as_ref().map(|after| changes(before, after)) {
        Err(e) => not_made(format!("the settings could not be read after the test: {e}")),
        Ok(changes) if changes.is_empty() => passed("no setting changed during the test"),
        Ok(changes) => failed(format!("settings changed during the test: {changes}")),
    }
}

/// Note about settings that are others than when the run began.
pub(crate) fn changed_since(start: &TargetInfo, now: &TargetInfo) -> Option<Note> {
    let changes = changes(start, now);
    (!changes.is_empty()).then_some(Note::SettingsChanged { changes })
}

/// `fsync = on, now off; …`; empty if nothing changed.
pub(crate) fn changes(before: &TargetInfo, after: &TargetInfo) -> String {
    let names = before.settings.keys().chain(after.settings.keys().filter(|name| !before.settings.contains_key(*name)));
    let value = |of: &TargetInfo, name| of.settings.get(name).map_or("not set", String::as_str).to_owned();
    let settings = names.map(|name| (name.as_str(), [before, after].map(|of| value(of, name))));
    let version = ("version", [before, after].map(|of| of.version.clone()));
    let changed = settings.chain([version]).filter(|(_, [was, is])| was != is);
    changed.map(|(name, [was, is])| format!("{name} = {was}, now {is}")).collect::<Vec<_>>().join("; ")
}

#[cfg(test)]
mod tests {
    use loadline_model::Outcome;

    use super::*;

    fn target(version: &str, settings: &[(&str, &str)]) -> TargetInfo {
        let settings = settings.iter().map(|(n, v)| ((*n).to_owned(), (*v).to_owned())).collect();
        TargetInfo { version: version.into(), settings, ..TargetInfo::default() }
    }

    #[test]
    fn a_change_in_the_test_refuses_it_and_one_before_it_is_noted() {
        let before = target("16.1", &[("fsync", "on"), ("jit", "off"), ("work_mem", "4MB")]);
        assert_eq!(unchanged(&before, &Ok(before.clone())).outcome, Outcome::Passed);
        let check = unchanged(&before, &Ok(target("16.2", &[("fsync", "off"), ("jit", "off"), ("new", "1")])));
        assert_eq!(check.outcome, Outcome::Failed);
        for part in
            ["fsync = on, now off", "work_mem = 4MB, now not set", "new = not set, now 1", "version = 16.1, now 16.2"]
        {
            assert!(check.detail.contains(part), "{part}: {}", check.detail);
        }
        assert!(!check.detail.contains("jit"), "{}", check.detail);
        let unread = unchanged(&before, &Err(TargetError::Lost("gone".into())));
        assert!(unread.outcome == Outcome::NotMade && unread.detail.contains("gone"), "{unread:?}");
        // A change since the start of the run is noted.
        let start = target("16.1", &[("fsync", "on")]);
        assert_eq!(changed_since(&start, &start), None);
        let changes = "fsync = on, now off".to_owned();
        let changed = changed_since(&start, &target("16.1", &[("fsync", "off")]));
        assert_eq!(changed, Some(Note::SettingsChanged { changes }));
    }
}
