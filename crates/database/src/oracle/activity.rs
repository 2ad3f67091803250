//! Statistics views that need no licence of a pack: SQL statistics, the wait and time models, and counters from the start of the
//! instance (Database Reference; Database Licensing Information). Never run against a live server. A test checks that none
//! of AWR, the history of sessions or that of metrics is named.

use loadline_model::activity::{Topic, View};

use super::cluster::Oracle;
use super::counters::{OraObserver, ViewAccess, whose};
use super::knowledge::KNOWLEDGE;
use super::session::{NO_VIEW, OraSession, answered};
use crate::error::TargetError;
use crate::role::{Observer, StatisticsViews};
use crate::scope::Scope;
use crate::view::ViewQuery;

fn read(session: &mut dyn OraSession, query: &ViewQuery) -> Result<View, TargetError> {
    match answered(session.query(&query.sql, &[]))? {
        Ok(mut rows) => {
            if query.empty.topic == Topic::Settings {
                rows.iter_mut().for_each(|row| hide_secret(row));
            }
            Ok(query.with(rows))
        }
        Err(e) if e.is(NO_VIEW) => Ok(query.absent(format!("{}: GRANT SELECT_CATALOG_ROLE TO the user", e.text))),
        Err(e) => Ok(query.absent(e.text)),
    }
}

fn hide_secret(row: &mut [Option<String>]) {
    if let [Some(name), Some(value)] = row
        && KNOWLEDGE.secret.iter().any(|part| name.contains(part))
    {
        "(set, not shown)".clone_into(value);
    }
}

impl StatisticsViews for Oracle {
    fn views(&self) -> Result<Vec<View>, TargetError> {
        let all_instances = self.views.iter().any(|(_, access)| *access == ViewAccess::All);
        let mut session = self.admin()?;
        let whose = whose(Scope::All, &self.run);
        let queries = KNOWLEDGE.statistics_views(if all_instances { "GV$" } else { "V$" }, &whose);
        queries.map(|query| read(session.as_mut(), &query)).collect()
    }

    fn observer_of_all(&self) -> Result<Box<dyn Observer>, TargetError> {
        let session = self.nodes.session(0, "observer")?;
        Ok(Box::new(OraObserver::new(session, &self.views, &self.run, Scope::All)))
    }
}
