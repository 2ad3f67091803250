//! The list of databases. Opens a target by its URL.

use loadline_model::format::nearest;

use crate::error::TargetError;
use crate::kind::TargetKind;
use crate::request::OpenRequest;
use crate::target::Target;
use crate::{duckdb, mysql, null, oracle, postgres, sqlite, wal};

/// All kinds of targets.
pub static TARGETS: &[&TargetKind] = &[
    &sqlite::KIND,
    &duckdb::KIND,
    &postgres::KIND,
    &postgres::TEMP_KIND,
    &mysql::KIND,
    &mysql::MARIADB_TEMP_KIND,
    &mysql::MYSQL_TEMP_KIND,
    &mysql::GALERA_TEMP_KIND,
    &oracle::KIND,
    &wal::KIND,
    &null::KIND,
];

/// The kind that `url` names.
pub fn kind_of(url: &str) -> Result<&'static TargetKind, TargetError> {
    let names = |k: &TargetKind| std::iter::once(k.scheme).chain(k.aliases.iter().copied()).collect::<Vec<_>>();
    let scheme = url.split_once(':').map_or(url, |(scheme, _)| scheme).to_ascii_lowercase();
    if url.contains(':')
        && let Some(kind) = TARGETS.iter().find(|k| names(k).contains(&scheme.as_str()))
    {
        return Ok(kind);
    }
    let known = TARGETS.iter().flat_map(|k| names(k));
    let hint = nearest(&scheme, known.clone()).map_or(String::new(), |n| format!(": did you mean '{n}:'?"));
    let known = known.map(|n| format!("{n}:")).collect::<Vec<_>>().join(", ");
    Err(TargetError::Usage(format!("'{}' is not a target{hint} (known: {known})", crate::redact(url))))
}

/// Whether `url` names a target that loadline makes and removes.
#[must_use]
pub fn is_temporary(url: &str) -> bool {
    kind_of(url).is_ok_and(|kind| (kind.is_temporary)(url))
}

/// Opens the target that `request` names.
///
/// # Errors
/// [`TargetError`] of the kind; never [`TargetError::Local`], because a server that cannot be started answers as little as
/// one that is away.
pub fn open(request: &OpenRequest) -> Result<Box<dyn Target>, TargetError> {
    let kind = kind_of(&request.url)?;
    for node in &request.nodes {
        if kind_of(node)?.scheme != kind.scheme {
            return Err(TargetError::Usage(format!(
                "the node '{}' is not of the same kind as the target: all nodes must be {}:",
                crate::redact(node),
                kind.scheme
            )));
        }
    }
    for standby in &request.standbys {
        if kind.level_settings.is_empty() || kind_of(standby)?.scheme != kind.scheme {
            return Err(TargetError::Usage(format!(
                "the standby '{}' does not fit the target: --standby is for a target of yours whose level loadline can change, and \
                 of the same kind",
                crate::redact(standby)
            )));
        }
    }
    (kind.open)(request).map_err(|e| match e {
        TargetError::Local(text) => TargetError::Unreachable(text),
        e => e,
    })
}
