//! Oracle Database, from 19c on: written against its documentation, never run against a live server.
//!
//! All that loadline sends is text from this module, which compiles and is tested without the driver
//! (`session.rs` is the interface). The driver, Oracle's own in pure Rust, is the cargo feature `oracle`,
//! because its second cryptography library takes longer to compile than all other dependencies.

mod address;
mod awr;
mod block;
mod cluster;
mod counters;
mod doctor;
#[cfg(feature = "oracle")]
mod driver;
mod jobs;
mod knowledge;
mod schema;
mod service;
mod session;

use loadline_model::Driver;
use loadline_workload::Kernel;

use crate::error::TargetError;
use crate::kind::TargetKind;
use crate::render::{Rendered, queries, statements, tables};
use crate::request::OpenRequest;
use crate::target::Target;
use crate::work::Work;
use knowledge::KNOWLEDGE;
use session::{commit, session_settings};

/// Shown with figures and checks of this target.
const NEVER_RUN: &str = "this target was written against Oracle's documentation and has never been run against a live server: \
     tell us what `loadline doctor` says on yours";

pub(crate) struct Kind;

impl TargetKind for Kind {
    fn scheme(&self) -> &'static str {
        "oracle"
    }

    fn check_url(&self, url: &str) -> Result<u32, TargetError> {
        address::OraAddress::parse(url).map(|_| 1)
    }

    fn open(&self, request: &OpenRequest) -> Result<Box<dyn Target>, TargetError> {
        let address = address::OraAddress::parse(&request.url)?;
        cluster::Oracle::open(request, DRIVER.ok_or_else(|| no_driver(&address))?)
    }

    fn render(&self, work: &Work) -> Vec<Rendered> {
        render(work)
    }
}

#[cfg(feature = "oracle")]
const DRIVER: Option<&session::Connector> = Some(&driver::connect);
#[cfg(not(feature = "oracle"))]
const DRIVER: Option<&session::Connector> = None;

fn no_driver(address: &address::OraAddress) -> TargetError {
    TargetError::Unsupported(format!(
        "{}: this loadline was built without the Oracle driver. Build it in, in loadline's source folder: \
         cargo install --path crates/cli --features oracle",
        address.shown()
    ))
}

const INTERPRETED: &str = "the code runs as an anonymous block, which leaves nothing behind and needs no privilege; \
     PLSQL_CODE_TYPE = NATIVE does not apply to such a block: it is interpreted, and the figures are those of the interpreter \
     (PLSQL_OPTIMIZE_LEVEL does apply; all three settings of the compiler are in the manifest)";

fn render(work: &Work) -> Vec<Rendered> {
    let mut out = vec![Rendered::new("never run against a live server", format!("-- {NEVER_RUN}")).in_words()];
    if work.parallel_workers().is_some() || work.program.reads() {
        out.push(Rendered::new("session", format!("{};", session_settings(work).join(";\n"))));
    }
    if Kernel::ALL.iter().any(|kernel| work.program.computes(*kernel)) {
        out.push(Rendered::new("interpreted, not compiled", format!("-- {INTERPRETED}")).in_words());
    }
    out.extend(tables(work, &KNOWLEDGE.dialect));
    out.extend(statements(work, &KNOWLEDGE.dialect, ";"));
    out.push(Rendered::new("commit", format!("{};", commit(work.program.commit))).by(Driver::Client));
    if Kind.facts().capabilities().refusal_for_good(Driver::Database, &work.workload.needs).is_none() {
        out.push(Rendered::new("in-database driver", block::run(work)).by(Driver::Database));
    }
    out.extend(queries(work, &KNOWLEDGE.dialect, ";"));
    out
}

#[cfg(test)]
mod tests;
