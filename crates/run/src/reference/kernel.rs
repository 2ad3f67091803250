//! The limit of procedural code: the same computations, compiled.

use std::hint::black_box;

use super::threads::{calls_per_s, threads};
use super::{Part, References, Subject};

/// Computations of a transaction, compiled.
#[derive(Default)]
pub(super) struct Kernel {
    threads: u32,
}

impl Part for Kernel {
    fn sample(&mut self, subject: Subject<'_>, references: &References) -> Result<Option<f64>, String> {
        references.on_its_machine()?;
        let program = &subject.request.work.program;
        self.threads = threads(subject.request.jobs);
        let compute = |_| {
            |_| {
                let _ = black_box(program.compute());
            }
        };
        calls_per_s(self.threads, &references.interrupted, compute).map(Some)
    }

    fn of(&self, _: &References) -> String {
        format!("the same computations, compiled, by {} threads", self.threads)
    }
}
