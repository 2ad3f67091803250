//! The processes that listen at an address of this machine, found by the inode of their socket (proc_pid_net(5)).

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use loadline_database::Address;

use crate::read;

/// State of a TCP socket that listens: `TCP_LISTEN` of the kernel's `include/net/tcp_states.h`.
const LISTEN: &str = "0A";
/// Flag of a Unix socket that listens: `__SO_ACCEPTCON` of the kernel's `include/uapi/linux/net.h`.
const ACCEPTS: u32 = 0x10000;

pub fn listeners(at: &Address) -> Result<Vec<u32>, String> {
    let text = |file: &str| read(format!("/proc/net/{file}")).unwrap_or_default();
    let (sockets, place) = match at {
        Address::Tcp(_, port) => {
            let end = format!(":{port:04X}");
            let listens = |of: &[&str]| of.get(1).is_some_and(|at| at.ends_with(&end)) && of.get(3) == Some(&LISTEN);
            (links(&(text("tcp") + &text("tcp6")), listens, 9), format!("port {port}"))
        }
        Address::Unix(path) => {
            let accepts = |flags: &str| u32::from_str_radix(flags, 16).is_ok_and(|flags| flags & ACCEPTS != 0);
            let is_at = |at: &&str| Path::new(at) == path;
            let listens = |of: &[&str]| of.get(3).is_some_and(|f| accepts(f)) && of.get(7).is_some_and(is_at);
            (links(&text("unix"), listens, 6), format!("the socket {}", path.display()))
        }
    };
    let found = holders(&sockets);
    if found.is_empty() {
        let why = "it is of another user, or in a container";
        return Err(format!("no process of this machine is seen that listens at {place}: {why}"));
    }
    Ok(found)
}

/// Links to the sockets of a list whose fields are as `is_wanted` says, by their inodes, which stand in field `at`.
fn links(list: &str, is_wanted: impl Fn(&[&str]) -> bool, at: usize) -> BTreeSet<PathBuf> {
    let fields = list.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
    fields.filter(|of| is_wanted(of)).filter_map(|of| Some(format!("socket:[{}]", of.get(at)?).into())).collect()
}

/// Processes that have one of these sockets open.
fn holders(links: &BTreeSet<PathBuf>) -> Vec<u32> {
    let holds = |id: &u32| {
        let open = std::fs::read_dir(format!("/proc/{id}/fd")).into_iter().flatten().flatten();
        open.filter_map(|file| std::fs::read_link(file.path()).ok()).any(|link| links.contains(&link))
    };
    let all = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    all.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok()).filter(holds).collect()
}

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, TcpStream};
    use std::os::unix::net::UnixListener;

    use super::*;

    #[test]
    fn this_process_is_found_by_what_it_listens_at() {
        let own = Ok(vec![std::process::id()]);
        let tcp = TcpListener::bind("127.0.0.1:0").unwrap();
        let (at, dir) = (tcp.local_addr().unwrap(), tempfile::tempdir().unwrap());
        let port = Address::Tcp("localhost".to_owned(), at.port());
        assert_eq!(listeners(&port), own);
        let _open = (TcpStream::connect(at).unwrap(), tcp.accept().unwrap());
        drop(tcp);
        assert!(listeners(&port).is_err(), "a connection is no listener");
        let path = dir.path().join("s");
        let (unix, socket) = (UnixListener::bind(&path).unwrap(), Address::Unix(path));
        assert_eq!(listeners(&socket), own);
        drop(unix);
        assert!(listeners(&socket).is_err(), "the file is left, and nobody listens");
    }
}
