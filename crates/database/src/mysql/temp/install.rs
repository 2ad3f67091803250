//! The command that creates a private server's data directory and dies with loadline.

use std::path::Path;
use std::process::Command;

use nix::sys::signal::Signal;

use super::binaries::{Binaries, of_path};
use crate::temp::user::ServerUser;

/// `mariadb-install-db` is a shell script. The signal that kills it with loadline does not reach the
/// `mariadbd --bootstrap` that it starts, which ran on for up to three seconds. So an outer shell waits until
/// loadline's pipe on its standard input is closed, at the latest by loadline's death, and kills its whole
/// process group. Its exit status is the script's, which it reads itself: archives lose the permission to run it.
const GUARD: &str = "exec 3<&0 </dev/null; { read -r _ <&3; kill -KILL 0; } & guard=$!; /bin/sh \"$@\" 3<&-; status=$?; \
     kill -KILL $guard; exit $status";

/// The command; its standard input must be a pipe that stays open until it has ended. `settings` are the arguments of the
/// server that will run.
pub(super) fn command(
    binaries: &Binaries,
    user: &ServerUser,
    (data, temporary): (&Path, &Path),
    settings: &[String],
) -> Command {
    let mut command = match &binaries.install {
        Some(install) => {
            let mut command = user.command("/bin/sh", Signal::SIGKILL);
            command.env("PATH", "/usr/bin:/bin:/usr/sbin:/sbin:/usr/local/bin:/usr/local/sbin");
            command.args(["-c", GUARD, "loadline"]).arg(install);
            command.args(["--no-defaults", "--auth-root-authentication-method=normal", "--skip-test-db"]);
            command.arg("--skip-name-resolve");
            command
        }
        None => {
            let mut command = user.command(&binaries.server, Signal::SIGKILL);
            // Such as the size of a page, which cannot be changed later.
            let lasting = settings.iter().filter(|s| s.starts_with("--innodb-") || s.starts_with("--lower-case-"));
            command.args(["--no-defaults", "--initialize-insecure", "--secure-file-priv=NULL"]).args(lasting);
            command
        }
    };
    command.arg(of_path("datadir", data)).arg(of_path("tmpdir", temporary)).args(binaries.paths());
    command
}
