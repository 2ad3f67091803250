//! pgbench scripts, compared with what pgbench itself did with them.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod mix;
mod pgbench;
mod statements;

use std::sync::Arc;

use loadline_workload::script::{Client, Event, Mix, Script};

/// Scripts by weight, with what the user gives.
fn mix(scripts: &[(&str, i64)], given: &[(&str, &str)]) -> Option<Arc<Mix>> {
    let script =
        |(n, (text, weight)): (usize, &(&str, i64))| Some((Script::read(&format!("s{n}"), text).ok()?, *weight));
    let given = given.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned())).collect();
    Mix::new(scripts.iter().enumerate().map(script).collect::<Option<_>>()?, given).map(Arc::new)
}

/// The next statement of a client, whose result it does not keep.
fn statement(client: &mut Client) -> String {
    match client.advance() {
        Ok(Event::Statement(sql, None)) => sql,
        other => panic!("{other:?}"),
    }
}
