//! The processes that listen at an address of this machine, found by the inode of their socket (proc_pid_net(5)).

use std::collections::BTreeSet;
use std::path::Path;

use loadline_database::Listening;

use crate::read;

/// State of a TCP socket that listens: `TCP_LISTEN` of the kernel's `include/net/tcp_states.h`.
const LISTEN: &str = "0A";
/// Flag of a Unix socket that listens: `__SO_ACCEPTCON` of the kernel's `include/uapi/linux/net.h`.
const ACCEPTS: u32 = 0x10000;

pub fn listeners(at: &Listening) -> Result<Vec<u32>, String> {
    let text = |file: &str| read(format!("/proc/net/{file}")).unwrap_or_default();
    let (inodes, place) = match at {
        Listening::Port(port) => {
            let end = format!(":{port:04X}");
            let listens = |of: &[&str]| of.get(1).is_some_and(|at| at.ends_with(&end)) && of.get(3) == Some(&LISTEN);
            (inodes(&(text("tcp") + &text("tcp6")), listens, 9), format!("port {port}"))
        }
        Listening::Socket(path) => {
            let accepts = |flags: &str| u32::from_str_radix(flags, 16).is_ok_and(|flags| flags & ACCEPTS != 0);
            let is_at = |at: &str| Path::new(at) == path;
            let listens = |of: &[&str]| of.get(3).is_some_and(|f| accepts(f)) && of.get(7).is_some_and(|at| is_at(at));
            (inodes(&text("unix"), listens, 6), format!("the socket {}", path.display()))
        }
    };
    let found = holders(&inodes);
    if found.is_empty() {
        return Err(format!(
            "no process of this machine is seen that listens at {place}: it is of another user, or in a container"
        ));
    }
    Ok(found)
}

/// Inodes, which stand in field `at`, of the sockets of a list whose fields are as `is_wanted` says.
fn inodes(list: &str, is_wanted: impl Fn(&[&str]) -> bool, at: usize) -> BTreeSet<String> {
    let fields = list.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
    fields.filter(|of| is_wanted(of)).filter_map(|of| of.get(at).map(|inode| (*inode).to_owned())).collect()
}

/// Processes that have one of these sockets open.
fn holders(inodes: &BTreeSet<String>) -> Vec<u32> {
    let holds = |id: u32| {
        let open = std::fs::read_dir(format!("/proc/{id}/fd")).into_iter().flatten().flatten();
        let links = open.filter_map(|file| std::fs::read_link(file.path()).ok());
        let mut sockets =
            links.filter_map(|link| Some(link.to_str()?.strip_prefix("socket:[")?.strip_suffix(']')?.to_owned()));
        sockets.any(|inode| inodes.contains(&inode))
    };
    let all = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let ids = all.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    ids.filter(|id| !inodes.is_empty() && holds(*id)).collect()
}

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, TcpStream};
    use std::os::unix::net::UnixListener;

    use super::*;

    #[test]
    fn this_process_is_found_by_what_it_listens_at() {
        let own = vec![std::process::id()];
        let tcp = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = Listening::Port(tcp.local_addr().unwrap().port());
        assert_eq!(listeners(&port), Ok(own.clone()));
        let _client = TcpStream::connect(tcp.local_addr().unwrap()).unwrap();
        let _accepted = tcp.accept().unwrap();
        drop(tcp);
        assert!(listeners(&port).is_err(), "a connection is no listener");
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("s");
        let unix = UnixListener::bind(&path).unwrap();
        let socket = Listening::Socket(path);
        assert_eq!(listeners(&socket), Ok(own));
        drop(unix);
        assert!(listeners(&socket).is_err(), "the file is left, and nobody listens");
    }
}
