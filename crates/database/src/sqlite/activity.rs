//! What SQLite shows of itself: its settings. It keeps no statistics.

use loadline_model::activity::{Topic, View};
use loadline_workload::Commit;

use super::Sqlite;
use super::connect::pragma;
use super::knowledge::KNOWLEDGE;
use crate::error::TargetError;
use crate::role::{Observer, StatisticsViews};
use crate::view::{ViewQuery, column};

impl StatisticsViews for Sqlite {
    fn views(&self) -> Result<Vec<View>, TargetError> {
        let absent = |(topic, why): &(Topic, String)| ViewQuery::new(*topic, topic.title(), Vec::new()).absent(why);
        let mut views: Vec<View> = KNOWLEDGE.absent.iter().map(absent).collect();
        let db = self.connector.connect(Commit::Wait)?;
        let mut rows = Vec::new();
        for (name, default) in &KNOWLEDGE.defaults {
            let value = pragma(&db, name)?;
            if value != *default {
                rows.push(vec![Some(name.clone()), Some(value), Some(default.clone())]);
            }
        }
        let columns = ["key name", "text value", "text default"].into_iter().filter_map(column).collect();
        views.push(ViewQuery::new(Topic::Settings, "Pragmas of a session whose commits wait", columns).with(rows));
        Ok(views)
    }

    fn observer_of_all(&self) -> Result<Box<dyn Observer>, TargetError> {
        Err(TargetError::Unsupported(
            "SQLite runs inside the process that uses it, and nothing counts the work of other processes: name a server"
                .to_owned(),
        ))
    }
}
