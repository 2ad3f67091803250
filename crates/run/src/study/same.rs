//! Whether limits and earlier tests are those of the same machine and server.

use loadline_database::TargetError;
use loadline_model::LogWriterPoint;
use loadline_model::manifest::TargetInfo;

use crate::checks::settings::changes;
use crate::plan::PlanError;

/// Figures of the reference log writer from a file.
#[derive(Debug, Clone)]
pub struct KnownLimits {
    /// Host name of the machine on which they were measured.
    pub host: String,
    pub points: Vec<LogWriterPoint>,
}

impl KnownLimits {
    /// The figures, labelled with their machine; and a warning if it is probably not the database's. `here`: host name of
    /// loadline's machine.
    ///
    /// # Errors
    /// If they are of another machine than the database.
    pub(super) fn for_target(
        &self,
        info: &TargetInfo,
        here: &str,
    ) -> Result<(Vec<LogWriterPoint>, Option<String>), PlanError> {
        let host = &self.host;
        let other = |runs_on: &str| {
            format!(
                "the file of --limits was measured on '{host}', but the database runs on '{runs_on}': make it there with `loadline \
                 probe`"
            )
        };
        if info.local && host != here {
            return Err(PlanError::Value(other(here)));
        }
        // A container has another host name than its machine.
        let warning = info.host.as_deref().filter(|of| !info.local && of != host).map(other);
        let label = match (&info.host, info.local) {
            (_, true) => format!(" on {host}"),
            (Some(of), _) if of == host => format!(" on {host}"),
            (Some(of), _) => format!(" on '{host}', not on the database's '{of}'"),
            (None, _) => format!(" on {host} (the database does not tell its machine's name)"),
        };
        let points = self.points.iter().map(|p| LogWriterPoint { of: p.of.clone() + &label, ..p.clone() });
        Ok((points.collect(), warning))
    }
}

/// Changes in the server since the earlier tests of a resumed run: `upgraded` to another version, or `settings`.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Changes {
    pub(super) upgraded: Option<String>,
    pub(super) settings: Option<String>,
}

impl Changes {
    /// Between `before` and `now`. A private server is made anew from the settings of the plan.
    pub(super) fn between(before: &TargetInfo, now: &TargetInfo, private: bool) -> Changes {
        let product = |info: &TargetInfo| format!("{} {}", info.product, info.version);
        let (was, is) = (product(before), product(now));
        let upgraded =
            (was != is).then(|| format!("the earlier tests of this run are of {was}, and the server is now {is}"));
        let changed = changes(before, now);
        let settings = (!private && upgraded.is_none() && !changed.is_empty())
            .then(|| format!("settings of the server have changed since the earlier tests of this run: {changed}"));
        Changes { upgraded, settings }
    }

    /// Both, for the notes on the target.
    pub(super) fn said(&self) -> impl Iterator<Item = String> {
        self.upgraded.iter().chain(&self.settings).cloned()
    }

    /// Refuses another version, unless `force`; then returns how its tests are marked.
    pub(super) fn forced(&self, force: bool) -> Result<Option<String>, TargetError> {
        match &self.upgraded {
            Some(text) if !force => Err(TargetError::Refused(format!(
                "{text}: a run is of one server. Start a new run and compare the two, or --force the rest of this one (its tests \
                 are then marked)"
            ))),
            upgraded => Ok(upgraded.clone()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn info(version: &str, setting: &str) -> TargetInfo {
        TargetInfo {
            product: "PostgreSQL".into(),
            version: version.into(),
            settings: [("shared_buffers".to_owned(), setting.to_owned())].into(),
            ..TargetInfo::default()
        }
    }

    #[test]
    fn a_run_is_of_one_version() {
        let old = info("15.1", "1GB");
        assert_eq!(Changes::between(&old, &old, false), Changes::default());
        let upgraded = Changes::between(&old, &info("16.0", "2GB"), false);
        let why = upgraded.forced(false).unwrap_err().to_string();
        assert!(why.contains("PostgreSQL 15.1") && why.contains("PostgreSQL 16.0"), "{why}");
        assert!(upgraded.forced(true).unwrap().is_some() && upgraded.settings.is_none());
        let changed = Changes::between(&old, &info("15.1", "2GB"), false);
        assert!(changed.settings.as_ref().unwrap().contains("shared_buffers") && changed.forced(false) == Ok(None));
        assert_eq!(Changes::between(&old, &info("15.1", "2GB"), true), Changes::default(), "a private server");
    }

    #[test]
    fn limits_of_another_machine_are_refused_or_marked_with_both_names() {
        let point = LogWriterPoint { of: "log in /d".into(), ..LogWriterPoint::default() };
        let limits = KnownLimits { host: "db1".into(), points: vec![point] };
        let of = |local, host: Option<&str>, here: &str| {
            let info = TargetInfo { local, host: host.map(str::to_owned), ..TargetInfo::default() };
            limits.for_target(&info, here).map(|(points, warning)| (points[0].of.clone(), warning.is_some()))
        };
        assert_eq!(of(true, None, "db1").unwrap(), ("log in /d on db1".to_owned(), false));
        let why = of(true, None, "laptop").unwrap_err().to_string();
        assert!(why.contains("'db1'") && why.contains("'laptop'"), "{why}");
        assert_eq!(of(false, Some("db1"), "laptop").unwrap(), ("log in /d on db1".to_owned(), false));
        let (text, warned) = of(false, Some("db2"), "laptop").unwrap();
        assert!(warned && text.contains("'db1'") && text.contains("'db2'"), "{text}");
        assert!(of(false, None, "laptop").unwrap().0.contains("does not tell"));
    }
}
