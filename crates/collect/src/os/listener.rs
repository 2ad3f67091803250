//! The processes that listen at an address of this machine, found by the inode of their socket (proc_pid_net(5)).

use std::collections::BTreeSet;
use std::path::Path;

use crate::error::read;

/// State of a TCP socket that listens: `TCP_LISTEN` of the kernel's `include/net/tcp_states.h`.
const LISTEN: &str = "0A";
/// Flag of a Unix socket that listens: `__SO_ACCEPTCON` of the kernel's `include/uapi/linux/net.h`.
const ACCEPTS: u32 = 0x10000;

/// Processes that listen at the TCP `port`.
///
/// # Errors
/// Why they are unknown.
pub fn at_port(port: u16) -> Result<Vec<u32>, String> {
    let inodes = ["tcp", "tcp6"].into_iter().filter_map(|file| read(format!("/proc/net/{file}")).ok());
    let inodes: BTreeSet<String> = inodes.flat_map(|text| of_port(&text, port)).collect();
    holders(&inodes).ok_or_else(|| unknown(&format!("port {port}")))
}

/// Processes that listen at the Unix socket `path`.
///
/// # Errors
/// Why they are unknown.
pub fn at_socket(path: &Path) -> Result<Vec<u32>, String> {
    let inodes = read("/proc/net/unix".to_owned()).map(|text| of_socket(&text, path)).unwrap_or_default();
    holders(&inodes).ok_or_else(|| unknown(&format!("the socket {}", path.display())))
}

fn unknown(place: &str) -> String {
    format!("no process of this machine is seen that listens at {place}: it is of another user, or in a container")
}

/// Inodes of the sockets in `/proc/net/tcp` that listen at `port`.
fn of_port(text: &str, port: u16) -> BTreeSet<String> {
    let end = format!(":{port:04X}");
    let fields = text.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
    let here = fields.filter(|of| of.get(1).is_some_and(|at| at.ends_with(&end)) && of.get(3) == Some(&LISTEN));
    here.filter_map(|of| of.get(9).map(|inode| (*inode).to_owned())).collect()
}

/// Inodes of the sockets in `/proc/net/unix` that listen at `path`.
fn of_socket(text: &str, path: &Path) -> BTreeSet<String> {
    let inode = |line: &str| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let accepts = u32::from_str_radix(fields.get(3)?, 16).ok()? & ACCEPTS != 0;
        (accepts && Path::new(fields.get(7)?) == path).then(|| fields[6].to_owned())
    };
    text.lines().filter_map(inode).collect()
}

/// Processes that have one of these sockets open; `None` if there is none.
fn holders(inodes: &BTreeSet<String>) -> Option<Vec<u32>> {
    let holds = |id: u32| {
        let open = std::fs::read_dir(format!("/proc/{id}/fd")).into_iter().flatten().flatten();
        let links = open.filter_map(|file| std::fs::read_link(file.path()).ok());
        let mut sockets =
            links.filter_map(|link| Some(link.to_str()?.strip_prefix("socket:[")?.strip_suffix(']')?.to_owned()));
        sockets.any(|inode| inodes.contains(&inode))
    };
    let all = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let ids = all.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let found: Vec<u32> = ids.filter(|id| !inodes.is_empty() && holds(*id)).collect();
    (!found.is_empty()).then_some(found)
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;
    use std::os::unix::net::UnixListener;

    use super::*;

    #[test]
    fn this_process_is_found_by_what_it_listens_at() {
        let own = vec![std::process::id()];
        let tcp = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = tcp.local_addr().unwrap().port();
        assert_eq!(at_port(port), Ok(own.clone()));
        drop(tcp);
        assert!(at_port(port).unwrap_err().contains(&port.to_string()));
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("s");
        let unix = UnixListener::bind(&path).unwrap();
        assert_eq!(at_socket(&path), Ok(own));
        drop(unix);
        assert!(at_socket(&path).is_err(), "the file is left, and nobody listens");
    }

    #[test]
    fn a_connection_to_the_port_is_no_listener() {
        let text = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n   \
                    0: 0100007F:1920 00000000:0000 0A 00000000:00000000 00:00000000 00000000   105        0 7001 1\n   \
                    1: 0100007F:1920 0100007F:9000 01 00000000:00000000 00:00000000 00000000   105        0 7002 1\n   \
                    2: 0100007F:1921 00000000:0000 0A 00000000:00000000 00:00000000 00000000   105        0 7003 1\n";
        assert_eq!(of_port(text, 6432), ["7001".to_owned()].into());
        assert!(of_port("", 6432).is_empty() && of_port("0: :1920", 6432).is_empty());
    }
}
