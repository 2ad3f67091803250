//! Managed services, recognised by names of settings that only they have: `clouds.toml`.

use loadline_model::{Column, Finding, Severity, column};
use serde::Deserialize;

use crate::descriptor::Embedded;

static CLOUDS: Embedded<Clouds> = Embedded::new("src/clouds.toml", include_str!("clouds.toml"));

/// The file, which describes its parts.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Clouds {
    cloud: Vec<Cloud>,
}

#[derive(Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Cloud {
    settings: Vec<String>,
    name: String,
    pub(crate) cpu: String,
    device: String,
    unseen: String,
}

impl Cloud {
    pub(crate) fn from_settings<'a>(names: impl Iterator<Item = &'a str> + Clone) -> Option<&'static Cloud> {
        let begins = |name: &str, cloud: &Cloud| cloud.settings.iter().any(|begin| name.starts_with(begin.as_str()));
        CLOUDS.cloud.iter().find(|cloud| names.clone().any(|name| begins(name, cloud)))
    }

    pub(crate) fn finding(&self) -> Finding {
        Finding::new("cloud", Severity::Warning, "managed service", &self.name, &self.unseen)
    }
}

/// Why columns are absent for a server on another machine: the `metric` of the managed service, or what is missing `without` one.
pub(crate) fn why_absent(cloud: Option<&Cloud>, metric: fn(&Cloud) -> &String, without: &str) -> String {
    let elsewhere = "the server runs on another machine";
    match cloud {
        Some(cloud) => format!("{elsewhere}; the metric of {}: {}", cloud.name, metric(cloud)),
        None => format!("{elsewhere}, {without}"),
    }
}

pub(crate) fn absent_devices(cloud: Option<&Cloud>, without: &str) -> impl Iterator<Item = (&'static Column, String)> {
    let why = why_absent(cloud, |cloud| &cloud.device, without);
    let columns = [
        column::DEVICE_WRITES_PER_S,
        column::DEVICE_WRITE_MIB_PER_S,
        column::DEVICE_UTIL_PCT,
        column::DEVICE_READS_PER_S,
        column::DEVICE_READ_MIB_PER_S,
        column::DATA_DEVICE_UTIL_PCT,
    ];
    columns.into_iter().map(move |c| (c, why.clone()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_name_the_service() {
        let of = |names: &[&str]| Cloud::from_settings(names.iter().copied()).map(|cloud| cloud.name.as_str());
        assert_eq!(of(&["shared_buffers", "rds.extensions"]), Some("Amazon RDS or Aurora"));
        assert_eq!(of(&["cloudsql.iam_authentication", "alloydb.iam_authentication"]), Some("AlloyDB"));
        assert_eq!(of(&["cloudsql_iam_authentication"]), Some("Google Cloud SQL"));
        assert_eq!(of(&["azure.extensions"]), Some("Azure Database"));
        assert_eq!(of(&["neon.tenant_id"]), Some("Neon"));
        assert_eq!(of(&["shared_buffers", "pg_stat_statements.max", "hordes"]), None);
        for cloud in &CLOUDS.checked(|_| &[]).cloud {
            assert!(!cloud.finding().advice.is_empty());
            let names = |why: String| why.contains(&cloud.name) && why.contains(&cloud.device);
            assert!(absent_devices(Some(cloud), "").all(|(_, why)| names(why)));
        }
    }
}
