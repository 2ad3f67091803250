//! `loadline agents kubernetes`: a Job of agents and their network policy, as YAML.
//!
//! Every value is checked before, and quoted as JSON does, which is YAML too. The tests hold what is printed against the
//! types of Kubernetes' own OpenAPI description.

use std::net::IpAddr;

use clap::Args;

use super::dns_label;
use super::hub::Hub;
use crate::exit::Failure;
use crate::output;

/// Most agents of a Job.
const MOST: u32 = 10_000;
/// Time for which a Job that has ended can still be looked at, s.
const KEPT_S: u32 = 3600;

/// `loadline agents kubernetes`.
#[derive(Debug, Args)]
pub(crate) struct KubernetesArgs {
    /// Number of agents, 1 to 10000: each is a pod
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=i64::from(MOST)))]
    count: u32,
    /// Image with the program `loadline` as its entry point
    #[arg(long, value_name = "IMAGE", value_parser = image)]
    image: String,
    /// Hub as the pods reach it, nats://host:4222; its token or password is in a secret, not here
    #[arg(long, value_name = "URL")]
    hub: String,
    /// Secret (of the same namespace) whose key `hub` is the hub's URL with its token or password. Its other keys, as far as there are:
    /// `nkey`, `creds` and `ca` (what --hub-nkey, --hub-creds and --hub-ca hold), `password` of the database (--agent-credentials
    /// local)
    #[arg(long, value_name = "NAME", value_parser = dns_label)]
    secret: Option<String>,
    /// Namespace
    #[arg(long, value_name = "NAME", default_value = "default", value_parser = dns_label)]
    namespace: String,
    /// Name of the Job; the agents are NAME-0, NAME-1, …
    #[arg(long, value_name = "NAME", default_value = "loadline-agent", value_parser = dns_label)]
    name: String,
    /// CPUs of each agent, requested and at most, e.g. 2 or 500m
    #[arg(long, value_name = "CPUS", default_value = "2", value_parser = cpus)]
    cpu: String,
    /// Memory of each agent, requested and at most
    #[arg(long, value_name = "BYTES", default_value = "1Gi", value_parser = memory)]
    memory: String,
    /// Port of the database that agents may connect to; repeatable
    #[arg(long, value_name = "PORT", default_value = "5432", value_delimiter = ',', value_parser = clap::value_parser!(u16).range(1..))]
    target_port: Vec<u16>,
}

/// Prints the manifests.
pub(super) fn kubernetes(args: &KubernetesArgs) -> Result<u8, Failure> {
    let hub = args.hub.parse().map_err(|e: String| Failure::usage(e))?;
    check(args, &hub)?;
    output::stdout(manifests(args, &hub).as_bytes())?;
    Ok(0)
}

/// What single values do not say.
fn check(args: &KubernetesArgs, hub: &Hub) -> Result<(), Failure> {
    if hub.has_credentials() {
        return Err(Failure::usage(
            "the hub's URL holds a token or a password, which would stand in the manifest: put the whole URL into a secret \
             (kubectl create secret generic NAME --from-file=hub=FILE), leave it out of --hub, and give --secret NAME",
        ));
    }
    // A pod's host name is that of the Job, '-' and its number.
    let longest = format!("{}-{}", args.name, args.count - 1);
    if longest.len() > 63 {
        return Err(Failure::usage(format!(
            "the name '{longest}' of the last agent is longer than 63: shorten --name by {}",
            longest.len() - 63
        )));
    }
    Ok(())
}

/// A text as JSON and YAML write it.
fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

/// The environment: what is secret only by reference.
fn environment(args: &KubernetesArgs, hub: &Hub) -> String {
    let of_secret = |variable: &str, secret: &str, key: &str, optional: bool| {
        format!(
            "
            - name: {variable}
              valueFrom:
                secretKeyRef:
                  name: {}
                  key: {key}
                  optional: {optional}",
            quoted(secret)
        )
    };
    match &args.secret {
        Some(secret) => [
            of_secret("LOADLINE_HUB", secret, "hub", false),
            of_secret("LOADLINE_HUB_NKEY", secret, "nkey", true),
            of_secret("LOADLINE_HUB_CREDS", secret, "creds", true),
            of_secret("LOADLINE_HUB_CA", secret, "ca", true),
            of_secret("PGPASSWORD", secret, "password", true),
            of_secret("MYSQL_PWD", secret, "password", true),
        ]
        .concat(),
        None => format!(
            "
            - name: LOADLINE_HUB
              value: {}",
            quoted(&hub.url())
        ),
    }
}

/// The hub in the network policy: an address can be named there, a host name cannot.
fn to_hub(hub: &Hub) -> String {
    match hub.host.parse::<IpAddr>() {
        Ok(address) => format!(
            "
    - to:
        - ipBlock:
            cidr: {}
      ports:",
            quoted(&format!("{address}/{}", if address.is_ipv4() { 32 } else { 128 }))
        ),
        Err(_) => "
    # A policy cannot name a host: this port is open to any address. An address in --hub is the only one allowed.
    - ports:"
            .to_owned(),
    }
}

fn manifests(args: &KubernetesArgs, hub: &Hub) -> String {
    let KubernetesArgs { count, .. } = args;
    let (name, namespace) = (quoted(&args.name), quoted(&args.namespace));
    let (image, cpu, memory) = (quoted(&args.image), quoted(&args.cpu), quoted(&args.memory));
    let agent = quoted(&format!("{}-$(LOADLINE_AGENT_INDEX)", args.name));
    let ports: String =
        args.target_port.iter().map(|port| format!("\n        - {{ protocol: TCP, port: {port} }}")).collect();
    format!(
        r#"# {count} loadline agents, which wait for work at {hub}. Made by: loadline agents kubernetes
apiVersion: batch/v1
kind: Job
metadata:
  name: {name}
  namespace: {namespace}
  labels:
    app.kubernetes.io/name: loadline-agent
    app.kubernetes.io/instance: {name}
spec:
  completionMode: Indexed
  parallelism: {count}
  completions: {count}
  # As many restarts in all as there are agents.
  backoffLimit: {count}
  ttlSecondsAfterFinished: {KEPT_S}
  template:
    metadata:
      labels:
        app.kubernetes.io/name: loadline-agent
        app.kubernetes.io/instance: {name}
    spec:
      restartPolicy: Never
      automountServiceAccountToken: false
      enableServiceLinks: false
      securityContext:
        runAsNonRoot: true
        runAsUser: 65532
        runAsGroup: 65532
        seccompProfile:
          type: RuntimeDefault
      topologySpreadConstraints:
        - maxSkew: 1
          topologyKey: kubernetes.io/hostname
          whenUnsatisfiable: ScheduleAnyway
          labelSelector:
            matchLabels:
              app.kubernetes.io/instance: {name}
      containers:
        - name: agent
          image: {image}
          args: ["agent", "--name", {agent}]
          env:
            - name: LOADLINE_AGENT_INDEX
              valueFrom:
                fieldRef:
                  fieldPath: metadata.annotations['batch.kubernetes.io/job-completion-index']{environment}
          resources:
            requests:
              cpu: {cpu}
              memory: {memory}
            limits:
              cpu: {cpu}
              memory: {memory}
          securityContext:
            allowPrivilegeEscalation: false
            readOnlyRootFilesystem: true
            capabilities:
              drop: ["ALL"]
---
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata:
  name: {name}
  namespace: {namespace}
  labels:
    app.kubernetes.io/name: loadline-agent
    app.kubernetes.io/instance: {name}
spec:
  podSelector:
    matchLabels:
      app.kubernetes.io/instance: {name}
  # No ingress rule: nobody connects to an agent.
  policyTypes: ["Ingress", "Egress"]
  egress:{to_hub}
        - {{ protocol: TCP, port: {hub_port} }}
    # The database.
    - ports:{ports}
    # DNS.
    - ports:
        - {{ protocol: UDP, port: 53 }}
        - {{ protocol: TCP, port: 53 }}
"#,
        hub_port = hub.port,
        environment = environment(args, hub),
        to_hub = to_hub(hub),
    )
}

/// `500m`, `2`, `0.5`: a quantity of CPUs above 0, in thousandths at the finest.
fn cpus(text: &str) -> Result<String, String> {
    let wrong = || format!("'{text}' is no number of CPUs above 0: write 2, 0.5 or 500m");
    let (digits, decimals) = match text.strip_suffix('m') {
        Some(digits) => (digits, 0),
        None => (text, 3),
    };
    quantity(digits, decimals).map(|()| text.to_owned()).ok_or_else(wrong)
}

/// `1Gi`, `512Mi`: a quantity of bytes above 0.
fn memory(text: &str) -> Result<String, String> {
    let wrong = || format!("'{text}' is no amount of memory above 0: write it with its unit, as in 512Mi or 1Gi");
    let digits = ["Mi", "Gi", "Ti", "M", "G", "T"].iter().find_map(|unit| text.strip_suffix(unit)).ok_or_else(wrong)?;
    quantity(digits, 3).map(|()| text.to_owned()).ok_or_else(wrong)
}

/// Whether `text` is a decimal number above 0 with at most so many decimals. A long one is no amount of anything.
fn quantity(text: &str, decimals: usize) -> Option<()> {
    let (whole, part) = text.split_once('.').map_or((text, None), |(whole, part)| (whole, Some(part)));
    let digits = |t: &str, most: usize| !t.is_empty() && t.len() <= most && t.bytes().all(|b| b.is_ascii_digit());
    let formed = digits(whole, 9) && part.is_none_or(|part| digits(part, decimals));
    (formed && text.bytes().any(|b| (b'1'..=b'9').contains(&b))).then_some(())
}

/// A reference to an image: registry, name, tag, digest.
fn image(text: &str) -> Result<String, String> {
    let inside = |b: u8| b.is_ascii_alphanumeric() || b"._-/:@".contains(&b);
    let begins = text.bytes().next().is_some_and(|b| b.is_ascii_alphanumeric());
    if begins && text.len() <= 512 && text.bytes().all(inside) {
        return Ok(text.to_owned());
    }
    Err(format!("'{text}' is no image: write it as in registry.example/loadline:0.1.0"))
}
