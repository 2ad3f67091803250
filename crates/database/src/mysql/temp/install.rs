//! The command that makes a private server's database, and which dies with loadline.

use std::ffi::OsString;
use std::path::Path;
use std::process::Command;

use nix::sys::signal::Signal;

use super::binaries::Binaries;
use crate::temp::user::ServerUser;

/// `mariadb-install-db` is a shell script, and the signal that ends it with loadline does not reach the
/// `mariadbd --bootstrap` that it starts, which worked on for up to three seconds. So a shell around
/// both waits until the pipe from loadline on its standard input is closed, by loadline's death if it
/// comes to that, and ends its whole process group. Its own exit status is the script's.
const GUARD: &str = "exec 3<&0 </dev/null; { read -r _ <&3; kill -KILL 0; } & guard=$!; \"$@\" 3<&-; status=$?; \
     kill -KILL $guard; exit $status";

/// The command; its standard input must be a pipe that stays open until it has ended.
pub(super) fn command(binaries: &Binaries, user: &ServerUser, data: &Path, temporary: &Path) -> Command {
    let mut command = user.command("/bin/sh", Signal::SIGKILL);
    command.env("PATH", "/usr/bin:/bin:/usr/sbin:/sbin:/usr/local/bin:/usr/local/sbin");
    command.args(["-c", GUARD, "loadline"]).arg(&binaries.install);
    command.args([
        "--no-defaults",
        "--auth-root-authentication-method=normal",
        "--skip-test-db",
        "--skip-name-resolve",
    ]);
    command.arg(of_path("datadir", data)).arg(of_path("tmpdir", temporary));
    command.args(base(binaries));
    command
}

/// The argument that tells a server where its files are, if the user has named its binaries.
pub(super) fn base(binaries: &Binaries) -> Option<OsString> {
    binaries.base.as_deref().map(|base| of_path("basedir", base))
}

/// `--name=path`, whatever bytes the path has.
pub(super) fn of_path(name: &str, path: &Path) -> OsString {
    let mut argument = OsString::from(format!("--{name}="));
    argument.push(path);
    argument
}
