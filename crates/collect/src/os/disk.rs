//! One block device, from `/proc/diskstats` (kernel: Documentation/admin-guide/iostats.rst).

use crate::{CollectError, read};

/// `/proc/diskstats` counts sectors of 512 bytes, independent of the device's sectors.
const SECTOR: u64 = 512;
const MIB: f64 = 1024.0 * 1024.0;

/// Counters of one block device since it appeared.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct DiskCounters {
    pub reads: u64,
    pub read_bytes: u64,
    pub writes: u64,
    pub written_bytes: u64,
    /// Time with at least one I/O in flight (`io_ticks`), ms. The kernel prints its low 32 bits.
    pub busy_ms: u32,
}

impl DiskCounters {
    /// Parses the line of `device` (e.g. `nvme0n1`) in `/proc/diskstats`.
    pub fn parse(text: &str, device: &str) -> Result<DiskCounters, CollectError> {
        let fields = text
            .lines()
            .map(|l| l.split_whitespace().collect::<Vec<_>>())
            .find(|f| f.get(2) == Some(&device))
            .ok_or_else(|| CollectError::NoDevice(device.to_owned()))?;
        let at = |i: usize| -> Result<u64, CollectError> {
            let field = fields.get(i).copied().unwrap_or_default();
            field.parse().map_err(|_| CollectError::Format {
                file: "/proc/diskstats",
                what: format!("field {} of '{device}' is '{field}'", i + 1),
            })
        };
        // major minor name, reads merged sectors ms, writes merged sectors ms, in_flight io_ticks …
        Ok(DiskCounters {
            reads: at(3)?,
            read_bytes: at(5)?.saturating_mul(SECTOR),
            writes: at(7)?,
            written_bytes: at(9)?.saturating_mul(SECTOR),
            busy_ms: at(12)? as u32,
        })
    }

    pub fn local(device: &str) -> Result<DiskCounters, CollectError> {
        DiskCounters::parse(&read("/proc/diskstats")?, device)
    }
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct DiskRates {
    pub reads_per_s: f64,
    pub read_mib_per_s: f64,
    pub writes_per_s: f64,
    pub write_mib_per_s: f64,
    /// Share of the time with at least one I/O in flight, %, at most 100. A device that serves many I/Os in parallel shows
    /// 100 long before it is saturated.
    pub util_pct: f64,
}

impl DiskRates {
    /// Rates from `a` to `b`, read `seconds` later. `None` if no time passed or a counter decreased (the device was replaced).
    pub fn between(a: &DiskCounters, b: &DiskCounters, seconds: f64) -> Option<DiskRates> {
        let rate = |a: u64, b: u64| b.checked_sub(a).map(|grown| grown as f64 / seconds);
        if seconds.is_nan() || seconds <= 0.0 {
            return None;
        }
        let busy_s = f64::from(b.busy_ms.wrapping_sub(a.busy_ms)) / 1000.0;
        Some(DiskRates {
            reads_per_s: rate(a.reads, b.reads)?,
            read_mib_per_s: rate(a.read_bytes, b.read_bytes)? / MIB,
            writes_per_s: rate(a.writes, b.writes)?,
            write_mib_per_s: rate(a.written_bytes, b.written_bytes)? / MIB,
            // Counters and clock are not read at the same instant: 100.1 % is 100 %.
            util_pct: (100.0 * busy_s / seconds).min(100.0),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STATS: &str = "   7       0 loop0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0
 259       0 nvme0n1 100 1 800 10 200 2 4096 20 3 4000 60 0 0 0 0 0 0
 259       1 nvme0n1p1 10 1 80 10 20 2 40 20 0 40 60 0 0 0 0 0 0
   8       0 sda 1 2 3 4 5 6 7 8 9 10 11
   8      16 sdb 1 2 3 4 5 6 x 8 9 10 11
   8      17 sdc 1 2
";

    #[test]
    fn the_line_of_the_device_is_read() {
        let nvme = DiskCounters::parse(STATS, "nvme0n1").unwrap();
        let expected =
            DiskCounters { reads: 100, read_bytes: 800 * 512, writes: 200, written_bytes: 4096 * 512, busy_ms: 4000 };
        assert_eq!(nvme, expected);
        assert_eq!(DiskCounters::parse(STATS, "sda").unwrap().busy_ms, 10, "kernels before 4.18 have 11 fields");
        assert!(DiskCounters::parse(STATS, "nvme0n").unwrap_err().to_string().contains("no device 'nvme0n'"));
        assert!(DiskCounters::parse(STATS, "sdb").unwrap_err().to_string().contains("field 10 of 'sdb' is 'x'"));
        assert!(DiskCounters::parse(STATS, "sdc").is_err());
    }

    #[test]
    fn rates_are_per_second() {
        let a = DiskCounters::parse(STATS, "nvme0n1").unwrap();
        let b = DiskCounters {
            reads: a.reads + 10,
            read_bytes: a.read_bytes + (1 << 20),
            writes: a.writes + 1000,
            written_bytes: a.written_bytes + (10 << 20),
            busy_ms: a.busy_ms + 500,
        };
        let r = DiskRates::between(&a, &b, 2.0).unwrap();
        assert_eq!((r.reads_per_s, r.read_mib_per_s, r.writes_per_s, r.write_mib_per_s), (5.0, 0.5, 500.0, 5.0));
        assert_eq!(r.util_pct, 25.0);
        assert_eq!(DiskRates::between(&b, &a, 2.0), None);
        assert_eq!(DiskRates::between(&a, &b, 0.0), None);
        assert_eq!(DiskRates::between(&a, &b, f64::NAN), None);
        assert_eq!(DiskRates::between(&a, &b, 0.1).unwrap().util_pct, 100.0);
        // The busy time wraps as the kernel prints it.
        let a = DiskCounters { busy_ms: u32::MAX - 99, ..DiskCounters::default() };
        let b = DiskCounters { busy_ms: 100, ..DiskCounters::default() };
        assert!((DiskRates::between(&a, &b, 1.0).unwrap().util_pct - 20.0).abs() < 1e-9);
    }
}
