//! Managed services, recognised by names of settings that only they have: what their servers do not show, and which of the
//! cloud's metrics does.

use loadline_model::{Column, Finding, Severity, column};

/// A managed service.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Cloud {
    /// Beginning of its settings' names.
    prefixes: &'static [&'static str],
    name: &'static str,
    /// Metric of the CPU columns.
    cpu: &'static str,
    /// Metrics of the device columns.
    device: &'static str,
    /// What spoils figures and is not shown by the server.
    unseen: &'static str,
}

/// The first that fits counts: a product built on another one comes before it.
static CLOUDS: [Cloud; 5] = [
    Cloud {
        prefixes: &["neon."],
        name: "Neon",
        cpu: "CPU on the Monitoring page of its console",
        device: "none: its log and data are in a storage service",
        unseen: "autoscaling changes CPUs and memory while tests run, and an idle server is suspended: give minimum and maximum \
                 the same size, and switch scale to zero off. Caches on local disks count as --server-memory",
    },
    Cloud {
        prefixes: &["alloydb."],
        name: "AlloyDB",
        cpu: "alloydb.googleapis.com/instance/cpu/average_utilization",
        device: "none: its log and data are in a storage service",
        unseen: "its log and data are in a storage service, and caches on local disks count as --server-memory",
    },
    Cloud {
        prefixes: &["cloudsql.", "cloudsql_"],
        name: "Google Cloud SQL",
        cpu: "cloudsql.googleapis.com/database/cpu/utilization",
        device: "cloudsql.googleapis.com/database/disk/read_ops_count and write_ops_count",
        unseen: "machine types with a shared core slow down when their burst is used up, and a disk's speed grows with its size",
    },
    Cloud {
        prefixes: &["azure."],
        name: "Azure Database",
        cpu: "cpu_percent",
        device: "read_iops and write_iops",
        unseen: "burstable sizes slow down when their credits are used up: watch cpu_credits_remaining",
    },
    Cloud {
        // MySQL has no setting of its own there, but its folder.
        prefixes: &["rds.", "/rdsdbdata/"],
        name: "Amazon RDS or Aurora",
        cpu: "CPUUtilization of CloudWatch",
        device: "ReadIOPS, WriteIOPS, ReadThroughput and WriteThroughput of CloudWatch",
        unseen: "burstable classes (db.t…) and volumes slow down when their credits are used up, and serverless ones change CPUs and \
                 memory while tests run; caches on local disks count as --server-memory: watch CPUCreditBalance, BurstBalance, EBSIOBalance%, EBSByteBalance% and \
                 ServerlessDatabaseCapacity of CloudWatch",
    },
];

impl Cloud {
    /// The service that has settings with these names.
    pub(crate) fn of<'a>(names: impl Iterator<Item = &'a str> + Clone) -> Option<&'static Cloud> {
        let fits = |cloud: &&Cloud| names.clone().any(|name| cloud.prefixes.iter().any(|p| name.starts_with(p)));
        CLOUDS.iter().find(fits)
    }

    /// What the doctor says of it.
    pub(crate) fn finding(&self) -> Finding {
        Finding::new("cloud", Severity::Warning, "managed service", self.name, self.unseen)
    }
}

/// Why the columns of CPUs, or of the devices, are absent for a server on another machine; `without`: what is missing if it
/// is no managed service.
pub(crate) fn why_absent(cloud: Option<&Cloud>, of: Part, without: &str) -> String {
    let elsewhere = "the server runs on another machine";
    match (cloud, of) {
        (Some(cloud), Part::Cpus) => format!("{elsewhere}; the metric of {}: {}", cloud.name, cloud.cpu),
        (Some(cloud), Part::Devices) => format!("{elsewhere}; the metric of {}: {}", cloud.name, cloud.device),
        (None, _) => format!("{elsewhere}, {without}"),
    }
}

/// Part of a machine.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Part {
    Cpus,
    Devices,
}

/// The columns of devices, absent for a server on another machine.
pub(crate) fn absent_devices(cloud: Option<&Cloud>, without: &str) -> impl Iterator<Item = (&'static Column, String)> {
    let why = why_absent(cloud, Part::Devices, without);
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
        let of = |names: &[&str]| Cloud::of(names.iter().copied()).map(|cloud| cloud.name);
        assert_eq!(of(&["shared_buffers", "rds.extensions"]), Some("Amazon RDS or Aurora"));
        assert_eq!(of(&["cloudsql.iam_authentication", "alloydb.iam_authentication"]), Some("AlloyDB"));
        assert_eq!(of(&["cloudsql_iam_authentication"]), Some("Google Cloud SQL"));
        assert_eq!(of(&["azure.extensions"]), Some("Azure Database"));
        assert_eq!(of(&["neon.tenant_id"]), Some("Neon"));
        assert_eq!(of(&["shared_buffers", "pg_stat_statements.max", "hordes"]), None);
        for cloud in &CLOUDS {
            assert!(!cloud.finding().advice.is_empty());
            assert!(
                absent_devices(Some(cloud), "").all(|(_, why)| why.contains(cloud.name) && why.contains(cloud.device))
            );
        }
    }
}
