//! Chooses the driver of a workload, and says why others are refused.

use loadline_database::TargetKind;
use loadline_model::capability::Driver;
use loadline_model::plan::PlannedWorkload;
use loadline_workload::Workload;

/// Why a workload cannot run with a driver.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    pub reason: String,
    /// Whether `--force` runs it anyway; such tests are marked.
    pub forceable: bool,
}

/// Why `workload` cannot run on targets of `kind` with `driver`; `None` if it can. Limits from a server's settings
/// are checked when it is opened.
#[must_use]
pub fn refusal(workload: &Workload, kind: &TargetKind, driver: Driver) -> Option<Refusal> {
    let at_client = if driver == Driver::Database { workload.only_at_client() } else { None };
    let at_client = at_client.map(|reason| Refusal { reason: reason.to_owned(), forceable: false });
    if workload.scan.is_some() && at_client.is_some() {
        return at_client;
    }
    let capabilities = (kind.capabilities)();
    let forceable = capabilities.refusal_for_good(driver, &workload.needs).is_none();
    let refused = capabilities.refusal(driver, &workload.needs).map(|reason| Refusal { reason, forceable });
    refused.or(at_client)
}

/// `workload` with the driver asked for, or the first with the capabilities that it needs.
pub(super) fn choose_driver(
    workload: &Workload,
    kind: &TargetKind,
    asked: Option<Driver>,
    force: bool,
) -> Result<PlannedWorkload, String> {
    let refusal = |driver| refusal(workload, kind, driver);
    let chosen = |driver, driver_reason, forced| {
        let driver_given = asked.is_some();
        Ok(PlannedWorkload { driver_given, driver_reason, forced, ..PlannedWorkload::new(&workload.code, driver) })
    };
    if workload.scan.is_some() && asked != Some(Driver::Database) {
        let why = workload.only_at_client().unwrap_or_default().to_owned();
        return match refusal(Driver::Client) {
            None => chosen(Driver::Client, why, None),
            Some(r) if force => chosen(Driver::Client, why, Some(r.reason)),
            Some(r) => Err(r.reason),
        };
    }
    let not_with = |driver, r: &Refusal| format!("not with the {driver} driver: {}", r.reason);
    if let Some(driver) = asked {
        return match refusal(driver) {
            None => chosen(driver, String::new(), None),
            Some(r) if force && r.forceable => chosen(driver, String::new(), Some(r.reason)),
            Some(r) => Err(not_with(driver, &r)),
        };
    }
    let mut reasons = Vec::new();
    for driver in Driver::ALL {
        match refusal(driver) {
            None => return chosen(driver, reasons.join("; "), None),
            Some(r) => reasons.push(not_with(driver, &r)),
        }
    }
    Err(reasons.join("; "))
}
