//! The SQL of a workload for people to read, and the missing capabilities.

use loadline_model::{Capabilities, Capability, Driver};
use loadline_workload::Kernel;

use super::block;
use super::sql::{commit, create_table, query, session_settings, statement};
use crate::render::{NO_COUNTS, NO_SCRIPTS, Rendered, lacking};
use crate::work::Work;

/// How procedural code runs here.
const INTERPRETED: &str = "the code runs as an anonymous block, which leaves nothing behind and needs no privilege; \
     PLSQL_CODE_TYPE = NATIVE does not apply to such a block: it is interpreted, and the figures are those of the interpreter \
     (PLSQL_OPTIMIZE_LEVEL does apply; all three settings of the compiler are in the manifest)";

/// Both drivers have both kinds of commit: each `COMMIT WRITE` states whether it waits. PL/SQL's optimization,
/// by which plain commits wait only at the end of the call, does not apply to it.
pub(super) fn capabilities() -> Capabilities {
    let no_binds = "a block cannot receive rows: array binds need a client";
    let no_language = "a client computes nothing: procedural code runs inside the database";
    lacking([
        (Driver::Database, Capability::BulkLoad, no_binds),
        (Driver::Client, Capability::Procedures, no_language),
        (Driver::Database, Capability::Scripts, NO_SCRIPTS),
        (Driver::Database, Capability::CountChanges, NO_COUNTS),
        (Driver::Client, Capability::Scripts, NO_SCRIPTS),
    ])
}

/// The SQL of a workload for people to read.
pub(super) fn all(work: &Work) -> Vec<Rendered> {
    let mut out = vec![Rendered::new("never run against a live server", format!("-- {}", super::NEVER_RUN)).in_words()];
    if work.parallel_workers().is_some() || work.program.reads() {
        out.push(Rendered::new("session", format!("{};", session_settings(work).join(";\n"))));
    }
    if Kernel::ALL.iter().any(|kernel| work.program.computes(*kernel)) {
        out.push(Rendered::new("interpreted, not compiled", format!("-- {INTERPRETED}")).in_words());
    }
    for table in &work.workload.tables {
        let sql = create_table(work, table).join(";\n");
        out.push(Rendered::new(format!("table {}", table.name), format!("{sql};")));
    }
    for (i, s) in work.program.statements.iter().enumerate() {
        out.push(
            Rendered::new(format!("statement {i}"), format!("{};", statement(work, &s.template))).by(Driver::Client),
        );
    }
    out.push(Rendered::new("commit", format!("{};", commit(work.program.commit))).by(Driver::Client));
    if capabilities().refusal_for_good(Driver::Database, &work.workload.needs).is_none() {
        out.push(Rendered::new("in-database driver", block::run(work)).by(Driver::Database));
    }
    out.extend(work.rendered_queries(query, ";"));
    out
}
