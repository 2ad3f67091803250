//! Hosts as they are given to ssh, and the names of the agents on them.

use std::collections::BTreeSet;

/// `text`, if ssh can take it as a host: `host`, `user@host`, `ssh://user@host:port`, or an alias of its configuration.
///
/// Only characters of names and addresses: ssh would take a leading '-' as an option, and puts the host into commands of its
/// configuration (`ProxyCommand … %h`).
pub(super) fn host(text: &str) -> Result<String, String> {
    let inside = |b: u8| b.is_ascii_alphanumeric() || b"._-@:%[]/".contains(&b);
    if !text.is_empty() && !text.starts_with('-') && text.bytes().all(inside) {
        return Ok(text.to_owned());
    }
    Err(format!(
        "'{text}' is no host: write host, user@host, ssh://user@host:port or an alias of ssh's configuration; \
         letters, digits and ._-@:%[]/ only, and no '-' at its beginning"
    ))
}

/// The name that a host has among agents: without user and port, a DNS label.
fn label(host: &str) -> String {
    let place = host.strip_prefix("ssh://").unwrap_or(host);
    let place = place.rsplit_once('@').map_or(place, |(_, place)| place);
    let place = match place.strip_prefix('[').and_then(|inside| inside.split_once(']')) {
        Some((address, _)) => address,
        // One colon is before a port, several are of an address.
        None if place.matches(':').count() == 1 => place.split(':').next().unwrap_or(place),
        None => place,
    };
    let letters =
        place.bytes().map(|b| if b.is_ascii_alphanumeric() { char::from(b.to_ascii_lowercase()) } else { '-' });
    let letters: String = letters.take(54).collect();
    let label = letters.trim_matches('-');
    if label.is_empty() { "agent".to_owned() } else { label.to_owned() }
}

/// A name for the agent on each host. Hosts that would share one are numbered: `db-1`, `db-2`.
pub(super) fn names(hosts: &[String]) -> Vec<String> {
    let labels: Vec<String> = hosts.iter().map(|host| label(host)).collect();
    let shared = |label: &String| labels.iter().filter(|other| *other == label).count() > 1;
    let mut taken: BTreeSet<String> = labels.iter().filter(|label| !shared(label)).cloned().collect();
    let name = |label: &String| {
        if !shared(label) {
            return label.clone();
        }
        let mut numbered = (1..).map(|n| format!("{label}-{n}"));
        let free = numbered.find(|name| !taken.contains(name)).unwrap_or_else(|| label.clone());
        taken.insert(free.clone());
        free
    };
    labels.iter().map(name).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_and_commands_are_no_hosts() {
        for good in ["h", "a.b", "ann@10.0.0.1", "ssh://ann@h:22", "fe80::1%eth0", "[::1]", "under_score"] {
            assert_eq!(host(good).as_deref(), Ok(good));
        }
        for bad in [
            "", "-oProxyCommand=x", "a b", "a;b", "$(x)", "`x`", "a\nb", "a'b", "a\"b", "a|b", "a&b", "ä", "a\\b", "~",
            "a*",
        ] {
            assert!(host(bad).is_err_and(|e| e.contains(&format!("'{bad}'"))), "{bad}");
        }
    }

    #[test]
    fn each_agent_has_a_name_of_its_own() {
        let of = |hosts: &[&str]| names(&hosts.iter().map(|h| (*h).to_owned()).collect::<Vec<_>>());
        assert_eq!(
            of(&["ann@Load1.example", "ssh://bob@load2:2222", "10.0.0.7"]),
            ["load1-example", "load2", "10-0-0-7"]
        );
        assert_eq!(of(&["a", "a", "b"]), ["a-1", "a-2", "b"]);
        // A host may already have the name of another's number.
        assert_eq!(of(&["a", "a-1", "a"]), ["a-2", "a-1", "a-3"]);
        assert_eq!(of(&["a.b", "a-b"]), ["a-b-1", "a-b-2"]);
        assert_eq!(of(&["fe80::1", "[fe80::1]:22", "@"]), ["fe80--1-1", "fe80--1-2", "agent"]);
        let many: Vec<String> = names(&vec!["x".repeat(90); 1000]);
        assert_eq!(many.iter().collect::<BTreeSet<_>>().len(), 1000);
        assert!(many.iter().all(|name| super::super::super::dns_label(name).is_ok()), "{many:?}");
    }
}
