//! The operating system user that a private server runs as: never root.

use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};

use nix::errno::Errno;
use nix::sys::prctl::set_pdeathsig;
use nix::sys::signal::Signal;
use nix::unistd::{Pid, Uid, User, getegid, geteuid, getpid, getppid};

use super::product::Product;
use crate::error::TargetError;

/// A user, and whether loadline has to switch to it.
#[derive(Debug, Clone)]
pub(crate) struct ServerUser {
    pub(crate) uid: u32,
    pub(crate) gid: u32,
    pub(crate) name: String,
    /// loadline is root: the server's files must belong to the user, and its processes run as the user.
    pub(crate) switch: bool,
}

impl ServerUser {
    /// The present user; for root the product's preferred user if it exists, else `nobody`.
    pub(crate) fn choose(product: &Product) -> Result<ServerUser, TargetError> {
        let (product, preferred) = (product.name, product.user);
        let me = geteuid();
        if !me.is_root() {
            let name = User::from_uid(me).ok().flatten().map_or_else(|| me.to_string(), |user| user.name);
            return Ok(ServerUser { uid: me.as_raw(), gid: getegid().as_raw(), name, switch: false });
        }
        [preferred, "nobody"]
            .into_iter()
            .filter_map(|name| User::from_name(name).ok().flatten())
            .find(|user| !user.uid.is_root())
            .map(|user| ServerUser { uid: user.uid.as_raw(), gid: user.gid.as_raw(), name: user.name, switch: true })
            .ok_or_else(|| {
                TargetError::Local(format!("{product} does not run as root, and there is no user '{preferred}' or 'nobody' to run it as: make one (useradd -r {preferred}) or run loadline as another user"))
            })
    }

    /// The user that a leftover server ran as.
    pub(crate) fn of_ids(uid: u32, gid: u32) -> ServerUser {
        ServerUser { uid, gid, name: uid.to_string(), switch: geteuid().is_root() && !Uid::from_raw(uid).is_root() }
    }

    /// A command that runs as this user without supplementary groups, in its own process group (Ctrl-C must reach
    /// loadline only), in English, without `PG…` variables. It gets the signal `at_death` when the thread that spawned
    /// it ends, so also when loadline dies.
    #[allow(unsafe_code)]
    pub(crate) fn command(&self, program: impl AsRef<Path>, at_death: Signal) -> Command {
        let mut command = Command::new(program.as_ref());
        command.env_clear().env("PATH", "/usr/bin:/bin").env("LC_ALL", "C").env("TZ", "UTC");
        command.current_dir("/").stdin(Stdio::null()).process_group(0);
        if self.switch {
            // For root, `uid` also drops the supplementary groups.
            command.uid(self.uid).gid(self.gid);
        } else if let Some(libraries) = std::env::var_os("LD_LIBRARY_PATH") {
            command.env("LD_LIBRARY_PATH", libraries);
        }
        let loadline = getpid();
        // SAFETY: runs between fork and exec, where only async-signal-safe calls are allowed: prctl
        // and getppid are plain system calls, and no memory is allocated (an `io::Error` of an
        // errno holds none). It runs after the change of user, which would undo the prctl.
        unsafe {
            command.pre_exec(move || die_with(loadline, at_death));
        }
        command
    }
}

fn die_with(parent: Pid, signal: Signal) -> std::io::Result<()> {
    set_pdeathsig(signal)?;
    // The parent may have died before the call above.
    if getppid() != parent {
        return Err(Errno::ESRCH.into());
    }
    Ok(())
}
