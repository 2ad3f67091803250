//! PostgreSQL, LGWR-LAT1 inside the database: loadline's own binary on a private server.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use nix::sys::resource::UsageWho;

use crate::harness::{Figures, Length, Outcome, cpu_us};

/// loadline's release binary, and the window of the short runs.
pub(crate) struct Postgres {
    binary: PathBuf,
    short: Duration,
}

impl Postgres {
    /// Checks that loadline's binary exists.
    pub(crate) fn find(binary: &Path) -> Outcome<Postgres> {
        if !binary.is_file() {
            let binary = binary.display();
            return Err(
                format!("{binary} does not exist: run cargo build --release, or name it with --loadline").into()
            );
        }
        Ok(Postgres { binary: binary.to_owned(), short: Duration::from_secs(1) })
    }

    /// One round: commits per second as reported by loadline. CPU time of the server's processes and of loadline, as the
    /// difference between a long and a short run.
    pub(crate) fn run(&self, root: &Path, jobs: usize, length: Length) -> Outcome<Figures> {
        let (short_cpu, _) = self.once(root, jobs, self.short)?;
        let (cpu, rate) = self.once(root, jobs, self.short + length.window)?;
        Ok(Figures { rate, cpu_us: (cpu - short_cpu) / (rate * length.window.as_secs_f64()) })
    }

    /// Commits per second of one round, as reported by loadline.
    pub(crate) fn rate(&self, root: &Path, jobs: usize, length: Length) -> Outcome<f64> {
        Ok(self.once(root, jobs, length.window)?.1)
    }

    /// CPU time of the whole run, µs, and its throughput.
    fn once(&self, root: &Path, jobs: usize, window: Duration) -> Outcome<(f64, f64)> {
        let dir = tempfile::Builder::new().prefix("postgres-").tempdir_in(root)?;
        let before = cpu_us(UsageWho::RUSAGE_CHILDREN)?;
        let out = Command::new(&self.binary)
            .args(["run", "--target", "postgres-temp:", "--driver", "database", "--workload", "LGWR-LAT1"])
            .args(["--jobs", &jobs.to_string(), "--duration", &format!("{}ms", window.as_millis()), "--warmup", "1s"])
            .arg("--results")
            .arg(dir.path())
            .stdin(Stdio::null())
            .output()?;
        let cpu = cpu_us(UsageWho::RUSAGE_CHILDREN)? - before;
        let text = String::from_utf8_lossy(&out.stdout);
        let run = text.lines().last().filter(|_| out.status.success());
        let Some(run) = run else {
            return Err(format!("loadline run failed: {}", String::from_utf8_lossy(&out.stderr)).into());
        };
        // The reason is the last one, because it may hold commas.
        let columns = "valid,commit_throughput_tps,invalid_reason";
        let out = Command::new(&self.binary)
            .args(["report", run, "--format", "csv", "--columns", columns, "--output", "-"])
            .output()?;
        let table = String::from_utf8_lossy(&out.stdout);
        let mut values = table.lines().nth(1).ok_or_else(|| format!("no row in the report of {run}"))?.splitn(3, ',');
        let (valid, rate, why) = (values.next(), values.next(), values.next());
        if valid != Some("true") {
            return Err(format!("the test is invalid: {}", why.unwrap_or_default()).into());
        }
        Ok((cpu, rate.ok_or("the report has no throughput")?.parse()?))
    }
}
