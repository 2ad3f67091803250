//! The command that creates a private server's data directory and dies with loadline.

use std::ffi::OsString;
use std::path::Path;
use std::process::Command;

use nix::sys::signal::Signal;

use super::binaries::Binaries;
use crate::temp::user::ServerUser;

/// `mariadb-install-db` is a shell script. The signal that kills it with loadline does not reach the
/// `mariadbd --bootstrap` that it starts, which ran on for up to three seconds. So an outer shell waits until
/// loadline's pipe on its standard input is closed, at the latest by loadline's death, and kills its whole
/// process group. Its exit status is the script's.
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

/// The argument `--basedir`, if the user named the binaries.
pub(super) fn base(binaries: &Binaries) -> Option<OsString> {
    binaries.base.as_deref().map(|base| of_path("basedir", base))
}

/// `--name=path`, whatever bytes the path has.
pub(super) fn of_path(name: &str, path: &Path) -> OsString {
    let mut argument = OsString::from(format!("--{name}="));
    argument.push(path);
    argument
}
