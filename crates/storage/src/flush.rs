//! Writes cache lines back to persistent memory with the CPU's best instruction.

#![allow(unsafe_code)]

/// A cache line on every x86-64, bytes.
#[cfg(target_arch = "x86_64")]
const LINE: usize = 64;

loadline_model::named! {
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum Flush {
        /// Writes back, keeps the line in the cache.
        Clwb: "clwb";
        /// Writes back and evicts, unordered.
        ClflushOpt: "clflushopt";
        /// Writes back and evicts, one after the other.
        Clflush: "clflush";
    }
    pub fn name;
}

impl Flush {
    /// The best instruction of this CPU.
    #[cfg(target_arch = "x86_64")]
    pub fn best() -> Result<Flush, String> {
        use std::arch::x86_64::{__cpuid, __cpuid_count};
        // SAFETY: every x86-64 has the instruction, and leaf 7 is read if it exists. Newer versions of Rust call these safe.
        #[allow(unused_unsafe)]
        let features = unsafe {
            if __cpuid(0).eax < 7 {
                return Ok(Flush::Clflush);
            }
            __cpuid_count(7, 0).ebx
        };
        Ok(match features {
            f if f & (1 << 24) != 0 => Flush::Clwb,
            f if f & (1 << 23) != 0 => Flush::ClflushOpt,
            _ => Flush::Clflush,
        })
    }

    /// The best instruction of this CPU.
    #[cfg(not(target_arch = "x86_64"))]
    pub fn best() -> Result<Flush, String> {
        Err(format!(
            "loadline can write cache lines back on x86-64 only, but this CPU is {}; use a log file with fdatasync instead",
            std::env::consts::ARCH
        ))
    }

    /// Writes the cache lines of `bytes` back and waits for them.
    #[cfg(target_arch = "x86_64")]
    pub(crate) fn write_back(self, bytes: &[u8]) {
        use std::arch::asm;
        let start = bytes.as_ptr() as usize;
        let mut line = start & !(LINE - 1);
        while line < start + bytes.len() {
            // SAFETY: the line contains a byte of `bytes`, so it is mapped; writing it back changes no memory; `best` chose
            // an instruction that this CPU has.
            unsafe {
                match self {
                    Flush::Clwb => asm!("clwb [{}]", in(reg) line, options(nostack, preserves_flags)),
                    Flush::ClflushOpt => asm!("clflushopt [{}]", in(reg) line, options(nostack, preserves_flags)),
                    Flush::Clflush => asm!("clflush [{}]", in(reg) line, options(nostack, preserves_flags)),
                }
            }
            line += LINE;
        }
        // SAFETY: a fence orders stores and does nothing else.
        unsafe { asm!("sfence", options(nostack, preserves_flags)) }
    }

    #[cfg(not(target_arch = "x86_64"))]
    pub(crate) fn write_back(self, _bytes: &[u8]) {}
}

#[cfg(all(test, target_arch = "x86_64"))]
mod tests {
    use super::*;

    #[test]
    fn the_best_instruction_is_one_that_the_kernel_lists() {
        let cpuinfo = std::fs::read_to_string("/proc/cpuinfo").unwrap();
        let flags: Vec<&str> = cpuinfo.lines().find(|l| l.starts_with("flags")).unwrap().split_whitespace().collect();
        let expected = ["clwb", "clflushopt"].into_iter().find(|f| flags.contains(f)).unwrap_or("clflush");
        assert_eq!(Flush::best().unwrap().name(), expected);
    }

    #[test]
    fn writing_back_leaves_the_bytes_as_they_are() {
        let bytes: Vec<u8> = (0..=255).collect();
        for way in [Flush::best().unwrap(), Flush::Clflush] {
            way.write_back(&bytes);
            way.write_back(&bytes[63..65]);
            way.write_back(&bytes[..0]);
        }
        assert!(bytes.iter().enumerate().all(|(i, b)| i == *b as usize));
    }
}
