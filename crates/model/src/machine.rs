//! A machine, and the storage under a directory of it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Storage {
    pub path: String,
    pub mount_point: String,
    /// Filesystem type, e.g. `ext4`.
    pub filesystem: String,
    pub mount_options: String,
    /// Mounted device, e.g. `/dev/vda`.
    pub source: String,
    /// Device name in `/proc/diskstats`, if there is one.
    pub device: Option<String>,
    /// Model, `rotational`, `scheduler`, `write_cache`, `size`, … as the kernel states them.
    pub device_facts: BTreeMap<String, String>,
    pub free_bytes: Option<u64>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Machine {
    pub host: String,
    pub cpu_model: String,
    /// Logical CPUs usable by this process.
    pub cpus: u32,
    /// Processor packages, if the kernel states them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sockets: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cores: Option<u32>,
    pub memory_bytes: u64,
    pub kernel: String,
    /// Operating system, e.g. `Debian GNU/Linux 12 (bookworm)`.
    pub os: String,
    /// Virtualisation or container, if detected.
    pub virtualisation: Option<String>,
}
