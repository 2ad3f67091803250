//! What DuckDB shows of itself: its settings and its memory. It keeps no statistics.

use loadline_model::activity::{Topic, View};

use super::DuckDb;
use super::knowledge::KNOWLEDGE;
use crate::error::TargetError;
use crate::role::{Observer, StatisticsViews};
use crate::view::{ViewQuery, column};

impl StatisticsViews for DuckDb {
    fn views(&self) -> Result<Vec<View>, TargetError> {
        let absent = |(topic, why): &(Topic, String)| ViewQuery::new(*topic, topic.title(), Vec::new()).absent(why);
        let mut views: Vec<View> = KNOWLEDGE.absent.iter().map(absent).collect();
        let columns = ["key name", "text value"].into_iter().filter_map(column).collect();
        views.push(
            ViewQuery::new(Topic::Settings, "Settings", columns).with(self.connect()?.texts(&KNOWLEDGE.settings)?),
        );
        Ok(views)
    }

    fn observer_of_all(&self) -> Result<Box<dyn Observer>, TargetError> {
        Err(TargetError::Unsupported(
            "DuckDB runs inside the process that uses it, and nothing counts the work of other processes: name a server"
                .to_owned(),
        ))
    }
}
