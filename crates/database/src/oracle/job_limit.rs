//! The sessions that the server and the user's profile leave for jobs.

use super::descriptor::KNOWLEDGE;
use super::session::OraSession;
use crate::error::TargetError;
use crate::role::JobLimit;

/// The highest number of jobs, with three sessions reserved for loadline itself.
pub(super) fn job_limit(session: &mut dyn OraSession) -> Result<JobLimit, TargetError> {
    let mut limit: Option<(i64, String)> = None;
    let mut unknown = Vec::new();
    let mut tighten = |free: i64, because: String| {
        if limit.as_ref().is_none_or(|(l, _)| free < *l) {
            limit = Some((free, because));
        }
    };
    for id in ["gv$resource_limit", "profile"] {
        let Some(q) = KNOWLEDGE.question(id) else { continue };
        let rows = match session.query(&q.sql, &[]) {
            Ok(rows) => rows,
            Err(e) if e.lost => return Err(e.into()),
            Err(e) => {
                unknown.push(format!("{id} cannot be read: {}", e.text));
                continue;
            }
        };
        for row in rows {
            let text = |i: usize| row.get(i).cloned().flatten().unwrap_or_default();
            let number = |i: usize| text(i).trim().parse::<i64>().ok();
            match (id, text(0).as_str()) {
                ("profile", "SESSIONS_PER_USER") => {
                    if let Some(most) = number(1) {
                        tighten(most - 3, format!("the profile's SESSIONS_PER_USER = {most} (3 for loadline itself)"));
                    }
                }
                ("gv$resource_limit", name) => {
                    // UNLIMITED does not parse.
                    if let (Some(used), Some(most)) = (number(1), number(2)) {
                        // This session is one of those in use.
                        tighten(most - used - 2, format!("{name} = {most} ({used} in use, 3 for loadline itself)"));
                    }
                }
                _ => {}
            }
        }
    }
    Ok(match limit {
        Some((free, because)) => JobLimit { jobs: Some(u32::try_from(free.max(0)).unwrap_or(u32::MAX)), because },
        None => JobLimit { jobs: None, because: unknown.join("; ") },
    })
}
