//! Prints a report to PDF with a browser of the Chromium family. (WeasyPrint does not apply a page's style to its charts: lines become
//! black areas.) The page holds all it needs; the browser may not ask the network for more.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::exit::Failure;

/// Names of browsers whose `--print-to-pdf` is known.
const BROWSERS: [&str; 6] =
    ["chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "microsoft-edge", "brave-browser"];
/// Longest time that printing may take.
const PATIENCE: Duration = Duration::from_secs(180);

/// The PDF of the page `html`.
pub(crate) fn print(html: &[u8]) -> Result<Vec<u8>, Failure> {
    let program = browser()?;
    let name = program.display().to_string();
    let failed = |what: String| Failure::failed(format!("the report could not be printed by {name}: {what}"));
    let folder = tempfile::tempdir().map_err(|e| failed(format!("no temporary folder: {e}")))?;
    let [page, pdf, said] = ["report.html", "report.pdf", "said"].map(|file| folder.path().join(file));
    std::fs::write(&page, html).map_err(|e| failed(e.to_string()))?;
    let log = File::create(&said).map_err(|e| failed(e.to_string()))?;
    let mut command = command(&program, &page, &pdf, folder.path());
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log);
    let mut child = command.spawn().map_err(|e| failed(e.to_string()))?;
    let began = Instant::now();
    let status = loop {
        match child.try_wait() {
            Ok(Some(status)) => break status,
            Ok(None) if began.elapsed() < PATIENCE => std::thread::sleep(Duration::from_millis(20)),
            Ok(None) => {
                let _ = child.kill().and_then(|()| child.wait());
                return Err(failed(format!("it did not end within {} s", PATIENCE.as_secs())));
            }
            Err(e) => return Err(failed(e.to_string())),
        }
    };
    let bytes = std::fs::read(&pdf).unwrap_or_default();
    if !status.success() || !bytes.starts_with(b"%PDF-") {
        let said = std::fs::read_to_string(&said).unwrap_or_default();
        let last = said.lines().rev().find(|l| !l.trim().is_empty()).unwrap_or("it said nothing");
        return Err(failed(format!("{status}, without a PDF: {last}")));
    }
    Ok(bytes)
}

/// The first of [`BROWSERS`] that is in PATH.
fn browser() -> Result<PathBuf, Failure> {
    let folders: Vec<PathBuf> = std::env::split_paths(&std::env::var_os("PATH").unwrap_or_default()).collect();
    let find = |name: &&str| folders.iter().map(|f| f.join(name)).find(|p| p.is_file());
    BROWSERS.iter().find_map(find).ok_or_else(|| {
        Failure::usage(format!(
            "--format pdf needs a browser that prints pages, and none of {} is in PATH: install one, such as the package chromium; or \
             write --format html and print it from any browser",
            BROWSERS.join(", ")
        ))
    })
}

fn command(program: &Path, page: &Path, pdf: &Path, folder: &Path) -> Command {
    let mut command = Command::new(program);
    command.args(["--headless", "--disable-gpu", "--no-pdf-header-footer", "--no-first-run", "--disable-extensions"]);
    command.args(["--disable-background-networking", "--disable-component-update", "--disable-sync"]);
    // Nothing is looked up, and nothing is reached by number either.
    command.args(["--host-resolver-rules=MAP * ~NOTFOUND", "--proxy-server=127.0.0.1:9"]);
    // Chromium has no sandbox for root, and none in most containers. The page is loadline's own, without a script.
    if nix::unistd::geteuid().is_root() {
        command.arg("--no-sandbox");
    }
    let profile = folder.join("profile");
    command
        .args([format!("--print-to-pdf={}", pdf.display()), format!("--user-data-dir={}", profile.display())])
        .arg(page);
    command
}
