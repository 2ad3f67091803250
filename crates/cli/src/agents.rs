//! `loadline agents`: starts agents on load hosts and in Kubernetes. What an agent does is in docs/agents.md.

mod hub;
mod kubernetes;
mod ssh;

use clap::Subcommand;

use crate::exit::Failure;

/// Where to start agents.
#[derive(Debug, Subcommand)]
pub(crate) enum StartAgents {
    /// Start an agent on each of these hosts by ssh, each with a tunnel back to the hub, and end them with this command
    Ssh(Box<ssh::SshArgs>),
    /// Print a Kubernetes Job of agents, with a network policy: `loadline agents kubernetes … | kubectl apply -f -`
    Kubernetes(Box<kubernetes::KubernetesArgs>),
}

/// Runs `command`.
pub(crate) fn start(command: &StartAgents) -> Result<u8, Failure> {
    match command {
        StartAgents::Ssh(args) => ssh::ssh(args),
        StartAgents::Kubernetes(args) => kubernetes::kubernetes(args),
    }
}

/// `text`, if it is a DNS label (RFC 1123): what Kubernetes takes as a name, and NATS as part of a subject.
fn dns_label(text: &str) -> Result<String, String> {
    let inside = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-';
    let edge = |b: Option<&u8>| b.is_some_and(|b| inside(*b) && *b != b'-');
    let bytes = text.as_bytes();
    if bytes.len() <= 63 && bytes.iter().all(|b| inside(*b)) && edge(bytes.first()) && edge(bytes.last()) {
        return Ok(text.to_owned());
    }
    Err(format!(
        "'{text}' is no DNS label: write at most 63 of a-z, 0-9 and '-', which begin and end with a letter or a digit"
    ))
}

#[cfg(test)]
mod tests {
    use super::dns_label;

    #[test]
    fn labels_are_those_of_rfc_1123() {
        let long = "a".repeat(63);
        for good in ["a", "0", "load-1", "1-a", long.as_str()] {
            assert_eq!(dns_label(good).as_deref(), Ok(good));
        }
        let longer = "a".repeat(64);
        for bad in ["", "-a", "a-", "A", "a.b", "a_b", "ä", "a b", "a\nb", longer.as_str()] {
            let message = dns_label(bad).expect_err(bad);
            assert!(message.contains(&format!("'{bad}'")), "{message}");
        }
    }
}
