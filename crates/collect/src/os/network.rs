//! Network interfaces, from `/sys/class/net` (kernel: Documentation/ABI/testing/sysfs-class-net).

use std::collections::BTreeMap;
use std::path::Path;

use loadline_model::record::LinkUse;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Interface {
    received: u64,
    sent: u64,
    /// Speed of its link in each direction, bytes/s; `None` if the kernel does not know.
    speed: Option<u64>,
}

/// All interfaces of this machine but the loopback.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Interfaces(BTreeMap<String, Interface>);

impl Interfaces {
    /// Of this machine. What cannot be read is left out.
    pub fn local() -> Interfaces {
        Interfaces::at(Path::new("/sys/class/net"))
    }

    fn at(folder: &Path) -> Interfaces {
        let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
        let interface = |of: std::fs::DirEntry| {
            let name = of.file_name().into_string().ok().filter(|name| name != "lo")?;
            let number = |file: &str| std::fs::read_to_string(of.path().join(file)).ok()?.trim().parse::<u64>().ok();
            let (received, sent) = (number("statistics/rx_bytes")?, number("statistics/tx_bytes")?);
            // Mbit/s; -1, 0 or an error if unknown.
            let speed = number("speed").filter(|n| (1..u64::from(u32::MAX)).contains(n)).map(|n| n * 125_000);
            Some((name, Interface { received, sent, speed }))
        };
        Interfaces(entries.filter_map(interface).collect())
    }

    /// The interface that was used most from `self` to `later`, by the share of its link, or by bytes where no speed is known. `None`
    /// if none was used.
    pub fn busiest(&self, later: &Interfaces, seconds: f64) -> Option<LinkUse> {
        let of = |(name, now): (&String, &Interface)| {
            let before = self.0.get(name)?;
            // Links carry both directions at a time.
            let bytes = now.received.saturating_sub(before.received).max(now.sent.saturating_sub(before.sent));
            let bytes_per_s = bytes as f64 / seconds.max(1e-9);
            let pct = now.speed.map(|speed| bytes_per_s / speed as f64 * 100.0);
            (bytes > 0).then(|| LinkUse { interface: name.clone(), bytes_per_s, pct })
        };
        let busier = |a: &LinkUse, b: &LinkUse| {
            a.pct.unwrap_or(0.0).total_cmp(&b.pct.unwrap_or(0.0)).then(a.bytes_per_s.total_cmp(&b.bytes_per_s))
        };
        later.0.iter().filter_map(of).max_by(busier)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_busiest_link_is_the_one_nearest_to_its_speed() {
        let folder = tempfile::tempdir().unwrap();
        let put = |name: &str, received: u64, sent: u64, speed: &str| {
            let at = folder.path().join(name);
            std::fs::create_dir_all(at.join("statistics")).unwrap();
            std::fs::write(at.join("statistics/rx_bytes"), format!("{received}\n")).unwrap();
            std::fs::write(at.join("statistics/tx_bytes"), format!("{sent}\n")).unwrap();
            std::fs::write(at.join("speed"), speed).unwrap();
        };
        let read = || Interfaces::at(folder.path());
        put("lo", 0, 0, "-1\n");
        put("eth0", 1_000, 5_000, "1000\n");
        put("eth1", 0, 0, "10000\n");
        let before = read();
        assert_eq!(before.busiest(&read(), 2.0), None, "nothing was sent");
        put("lo", 1 << 40, 1 << 40, "-1\n");
        put("eth0", 1_000, 5_000 + 200_000_000, "1000\n");
        put("eth1", 300_000_000, 0, "10000\n");
        let used = before.busiest(&read(), 2.0).unwrap();
        assert_eq!(used, LinkUse { interface: "eth0".into(), bytes_per_s: 1e8, pct: Some(80.0) });
        put("eth0", 1_000, 5_000 + 200_000_000, "-1\n");
        assert_eq!(before.busiest(&read(), 2.0).unwrap().interface, "eth1", "its speed is known");
        put("eth1", 300_000_000, 0, "-1\n");
        assert_eq!(before.busiest(&read(), 2.0).unwrap().pct, None);
    }
}
