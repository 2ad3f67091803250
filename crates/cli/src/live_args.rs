//! Flags of `watch` and `serve`.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{Args, ValueHint};

/// Environment variable with the token of a server.
pub(crate) const TOKEN_VARIABLE: &str = "LOADLINE_TOKEN";

/// `loadline watch`.
#[derive(Debug, Args)]
pub(crate) struct WatchArgs {
    /// Run folder or run id [default: the newest run, and each newer one that begins meanwhile, until one ends that was not over
    /// before]
    #[arg(value_name = "RUN", value_hint = ValueHint::DirPath)]
    pub(crate) run: Option<PathBuf>,
    /// Folder of the runs that are named by id
    #[arg(long, value_name = "DIR", default_value = loadline_run::plan::DEFAULT_RESULTS, value_hint = ValueHint::DirPath)]
    pub(crate) results: PathBuf,
    /// Print lines of text instead, until the run ends; exit code 1 if it is not complete then [default where there is no terminal, or
    /// TERM is dumb]
    #[arg(long)]
    pub(crate) plain: bool,
}

/// `loadline serve`.
#[derive(Debug, Args)]
pub(crate) struct ServeArgs {
    /// Folder that holds the runs
    #[arg(value_name = "DIR", default_value = loadline_run::plan::DEFAULT_RESULTS, value_hint = ValueHint::DirPath)]
    pub(crate) dir: PathBuf,
    /// Address and port; any but those of this machine alone need a token. Port 0: any that is free
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:8377", value_parser = address)]
    pub(crate) listen: SocketAddr,
    /// File with the token that browsers are asked for; else the environment variable LOADLINE_TOKEN
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) token_file: Option<PathBuf>,
    /// Name by which browsers may ask for this machine, besides localhost and its addresses; repeatable
    #[arg(long, value_name = "NAME")]
    pub(crate) name: Vec<String>,
    /// End with standard input, and listen at the socket that is standard output: of `run --metrics`
    #[arg(long, hide = true)]
    pub(crate) until_stdin_ends: bool,
}

/// `127.0.0.1:8377`, `[::1]:8377`, `localhost:8377`.
pub(crate) fn address(text: &str) -> Result<SocketAddr, String> {
    let numeric = text.strip_prefix("localhost:").map_or_else(|| text.to_owned(), |port| format!("127.0.0.1:{port}"));
    numeric.parse().map_err(|_| {
        format!(
            "'{text}' is no address with a port, such as 127.0.0.1:8377, localhost:8377, [::1]:8377 or 0.0.0.0:8377"
        )
    })
}
