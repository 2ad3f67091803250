//! PostgreSQL's statistics views: `[[statistics]]` of `postgres.toml`, and the rows that no single query has.

use loadline_model::activity::View;

use super::connect::SessionRole;
use super::knowledge::{KNOWLEDGE, ViewNeeds, ViewRows, message};
use super::server::{PgInstance, Postgres};
use super::settings::PgSettings;
use super::sql::{OWN, own};
use super::wire::{Connection, Values};
use crate::descriptor::Release;
use crate::error::{TargetError, unless_refused};
use crate::role::StatisticsViews;
use crate::view::{ViewQuery, of_servers};

/// The views of a version, without rows.
fn queries(version: Release) -> impl Iterator<Item = (ViewQuery, &'static ViewNeeds)> {
    let views = &KNOWLEDGE.statistics;
    views.iter().filter_map(move |v| Some((v.at(version, &KNOWLEDGE.fragments, &[("own", OWN)])?, &v.needs)))
}

/// The time that `sql` returns; `None` if it was never or the server cannot say it.
fn reset_time(c: &mut Connection, sql: &str) -> Result<Option<String>, TargetError> {
    unless_refused(c.value(&own(sql)))
}

/// The statements of this database, if the extension that counts them is in it.
fn statements(c: &mut Connection, query: &ViewQuery, reset: &str, private: bool) -> Result<View, TargetError> {
    let found = c.value(&own(&KNOWLEDGE.queries.text("extension", &[])))?;
    let Some(schema) = found else {
        let why = if private { message("no-statements-private", &[]) } else { message("no-statements", &[]) };
        return Ok(query.absent(why));
    };
    let view = query.view(c.query(&query.sql.replace("{schema}", &schema)))?;
    Ok(View { epoch: reset_time(c, &reset.replace("{schema}", &schema))?, ..view })
}

impl StatisticsViews for Postgres {
    fn views(&self) -> Result<Vec<View>, TargetError> {
        let read = |c: &mut Connection, own_prefix: &str| {
            let settings = PgSettings::read(c)?;
            // Whether the role sees what sessions of other roles do.
            let sees_all = c.row(&own("SELECT pg_has_role('pg_read_all_stats', 'USAGE')"))?.is_true(0);
            let view = |(query, needs): (ViewQuery, &ViewNeeds)| {
                if let Some(why) = needs.absent.at(self.first().version) {
                    return Ok(query.absent(why));
                }
                let parameters = match needs.rows {
                    ViewRows::Extension => return statements(c, &query, &needs.reset, self.server.is_some()),
                    ViewRows::Settings => {
                        let rows = settings.changed().into_iter().map(|(name, value)| vec![Some(name), Some(value)]);
                        return Ok(query.with(rows.collect()));
                    }
                    ViewRows::AllSessions if !sees_all => {
                        let why = "only sessions of this role can be seen: GRANT pg_monitor TO the role";
                        return Ok(query.absent(why));
                    }
                    ViewRows::AllSessions | ViewRows::OtherSessions => &[own_prefix][..],
                    ViewRows::Query => &[],
                };
                let epoch = if needs.reset.is_empty() { None } else { reset_time(c, &needs.reset)? };
                Ok(View { epoch, ..query.view(c.query_with(&own(&query.sql), parameters))? })
            };
            queries(self.first().version).map(view).collect()
        };
        let of = |instance: &PgInstance| {
            instance.endpoint.session(SessionRole::Inspect, |c| read(c, &instance.endpoint.name))
        };
        Ok(of_servers(self.nodes.instances.iter().map(of).collect::<Result<_, _>>()?, "instance"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::postgres::knowledge::release;

    #[test]
    fn views_per_version() {
        let mut text = String::new();
        for major in [15, 16, 18] {
            for (query, _) in queries(release(&major.to_string())) {
                text.push_str(&format!("{major} {}\n", query.described()));
            }
        }
        insta::assert_snapshot!("views", text);
    }
}
