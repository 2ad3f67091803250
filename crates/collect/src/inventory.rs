//! Inventory of a machine, from the kernel: CPU, memory, kernel, operating system.

use std::collections::BTreeSet;
use std::path::Path;

use loadline_model::format;
use loadline_model::machine::Machine;

/// This machine. Unknown texts are empty, unknown numbers 0.
pub fn machine() -> Machine {
    machine_at(Path::new("/"))
}

/// The machine whose `/proc`, `/sys` and `/etc` are under `root`.
fn machine_at(root: &Path) -> Machine {
    let text = |path: &str| std::fs::read_to_string(root.join(path)).unwrap_or_default();
    let kernel = text("proc/sys/kernel/osrelease").trim().to_owned();
    let cpuinfo = text("proc/cpuinfo");
    let (sockets, cores) = sockets_and_cores(&cpuinfo);
    Machine {
        host: text("proc/sys/kernel/hostname").trim().to_owned(),
        cpu_model: cpu_model(&cpuinfo),
        // Affinity and the CPU quota of a container included.
        cpus: std::thread::available_parallelism().map_or(0, |n| u32::try_from(n.get()).unwrap_or(u32::MAX)),
        sockets,
        cores,
        memory_bytes: loadline_database::machine::total_memory(&text("proc/meminfo")).unwrap_or(0),
        os: pretty_name(&text("etc/os-release")),
        virtualisation: virtualisation(root, &cpuinfo, &kernel),
        kernel,
    }
}

fn cpu_field<'a>(cpuinfo: &'a str, key: &str) -> Option<&'a str> {
    let field = cpuinfo.lines().filter_map(|l| l.split_once(':')).find(|(k, _)| k.trim() == key);
    field.map(|(_, v)| v.trim()).filter(|v| !v.is_empty())
}

fn cpu_model(cpuinfo: &str) -> String {
    // x86; then POWER and s390; Arm states numbers only.
    if let Some(name) = ["model name", "cpu", "Model", "Processor"].iter().find_map(|k| cpu_field(cpuinfo, k)) {
        return name.to_owned();
    }
    match (cpu_field(cpuinfo, "CPU implementer"), cpu_field(cpuinfo, "CPU part")) {
        (Some(implementer), Some(part)) => format!("Arm, implementer {implementer}, part {part}"),
        _ => String::new(),
    }
}

/// Numbers of packages and of cores, where the kernel states of each thread to which it belongs (x86).
fn sockets_and_cores(cpuinfo: &str) -> (Option<u32>, Option<u32>) {
    let cores: BTreeSet<(&str, &str)> = cpuinfo
        .split("\n\n")
        .filter_map(|thread| Some((cpu_field(thread, "physical id")?, cpu_field(thread, "core id")?)))
        .collect();
    let sockets: BTreeSet<&str> = cores.iter().map(|(socket, _)| *socket).collect();
    let count = |n: usize| u32::try_from(n).ok().filter(|n| *n > 0);
    (count(sockets.len()), count(cores.len()))
}

fn pretty_name(os_release: &str) -> String {
    let name = os_release.lines().find_map(|l| l.strip_prefix("PRETTY_NAME="));
    name.unwrap_or_default().trim().trim_matches(['"', '\'']).to_owned()
}

/// Virtual machine, container and the container's memory limit, as far as they are visible.
fn virtualisation(root: &Path, cpuinfo: &str, kernel: &str) -> Option<String> {
    let text = |path: &str| std::fs::read_to_string(root.join(path)).ok().map(|t| t.trim().to_owned());
    let mut found: Vec<String> = Vec::new();
    let hypervisor = cpu_field(cpuinfo, "flags").is_some_and(|f| f.split(' ').any(|w| w == "hypervisor"));
    let xen = text("sys/hypervisor/type");
    if kernel.to_lowercase().contains("microsoft") {
        found.push("WSL".to_owned());
    } else if hypervisor || xen.is_some() {
        let vendor = text("sys/class/dmi/id/sys_vendor").filter(|v| !v.is_empty());
        let product = text("sys/class/dmi/id/product_name").filter(|v| !v.is_empty());
        let maker: Vec<String> = [xen, vendor, product].into_iter().flatten().collect();
        let maker = if maker.is_empty() { String::new() } else { format!(" ({})", maker.join(" ")) };
        found.push(format!("virtual machine{maker}"));
    }
    let container = text("run/systemd/container").filter(|c| !c.is_empty());
    if root.join("run/.containerenv").exists() {
        found.push("Podman container".to_owned());
    } else if root.join(".dockerenv").exists() {
        found.push("Docker container".to_owned());
    } else if let Some(kind) = container {
        found.push(format!("{kind} container"));
    }
    if let Some(bytes) = loadline_storage::memory_limit(root) {
        found.push(format!("memory limited to {}", format::bytes(bytes as f64)));
    }
    (!found.is_empty()).then(|| found.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_machine_is_told() {
        let m = machine();
        assert!(!m.host.is_empty() && !m.kernel.is_empty() && !m.cpu_model.is_empty(), "{m:?}");
        assert!(m.cpus >= 1 && m.memory_bytes > 1 << 26, "{m:?}");
    }

    #[test]
    fn a_machine_of_files_is_told() {
        let root = tempfile::tempdir().unwrap();
        let put = |path: &str, text: &str| {
            let path = root.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        assert_eq!(machine_at(root.path()), Machine { cpus: machine().cpus, ..Machine::default() });
        put("proc/sys/kernel/hostname", "db1\n");
        put("proc/sys/kernel/osrelease", "6.1.0-18-amd64\n");
        put("proc/cpuinfo", "processor\t: 0\nmodel name\t: Some CPU @ 2.00GHz\nflags\t\t: fpu hypervisor lahf_lm\n");
        put("proc/meminfo", "MemTotal:       16384 kB\nMemFree: 1 kB\n");
        put("etc/os-release", "NAME=x\nPRETTY_NAME=\"Debian GNU/Linux 12 (bookworm)\"\n");
        put("sys/class/dmi/id/sys_vendor", "QEMU\n");
        put("proc/self/cgroup", "0::/bench.slice/run\n");
        put("sys/fs/cgroup/bench.slice/memory.max", "2147483648\n");
        put(".dockerenv", "");
        let m = machine_at(root.path());
        assert_eq!((m.host.as_str(), m.kernel.as_str()), ("db1", "6.1.0-18-amd64"));
        assert_eq!((m.cpu_model.as_str(), m.memory_bytes), ("Some CPU @ 2.00GHz", 16 << 20));
        assert_eq!(m.os, "Debian GNU/Linux 12 (bookworm)");
        let virtualisation = "virtual machine (QEMU), Docker container, memory limited to 2.0 GiB";
        assert_eq!(m.virtualisation.as_deref(), Some(virtualisation));
        put("sys/fs/cgroup/bench.slice/memory.max", "max\n");
        assert!(!machine_at(root.path()).virtualisation.unwrap().contains("memory"));
    }

    #[test]
    fn sockets_and_cores_are_counted_once() {
        let thread =
            |socket: u32, core: u32| format!("processor\t: 0\nphysical id\t: {socket}\ncore id\t\t: {core}\n\n");
        // Two packages of two cores, each with two threads; numbers of cores begin anew in each package.
        let all = (0..8).map(|n| thread(n / 4, n % 2)).collect::<String>();
        assert_eq!(sockets_and_cores(&all), (Some(2), Some(4)));
        assert_eq!(sockets_and_cores("CPU implementer\t: 0x41\n"), (None, None));
        // Arm and Power state their CPU otherwise.
        assert_eq!(cpu_model("CPU implementer\t: 0x41\nCPU part\t: 0xd0c\n"), "Arm, implementer 0x41, part 0xd0c");
        assert_eq!(cpu_model("cpu\t\t: POWER9\n"), "POWER9");
    }
}
