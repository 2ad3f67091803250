//! What `loadline agents kubernetes` prints, held against the types of Kubernetes' OpenAPI description (crate k8s-openapi).

use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::networking::v1::NetworkPolicy;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::common::{ok, run};

const BASIC: [&str; 8] =
    ["agents", "kubernetes", "--count", "16", "--image", "r.example/loadline:1", "--hub", "nats://10.1.2.3"];

/// `value` as a `T`, if nothing of it is lost on the way: a field that `T` does not know, or a missing one that it needs,
/// makes the two differ.
fn typed<T: DeserializeOwned + Serialize>(value: &Value) -> Result<T, String> {
    let typed: T = serde_json::from_value(value.clone()).map_err(|e| e.to_string())?;
    let again = serde_json::to_value(&typed).map_err(|e| e.to_string())?;
    if again == *value { Ok(typed) } else { Err(format!("Kubernetes understands\n{again}\nof\n{value}")) }
}

/// [`BASIC`], in which flags that `more` gives again (pairs of flag and value) are replaced.
fn arguments<'a>(more: &[&'a str]) -> Vec<&'a str> {
    let again = |flag: &str| more.iter().any(|m| m.split('=').next() == Some(flag));
    let basic = BASIC[..2].iter().chain(BASIC[2..].chunks(2).filter(|pair| !again(pair[0])).flatten());
    basic.chain(more).copied().collect()
}

/// The two manifests in the YAML that is printed with these arguments.
fn manifests(more: &[&str]) -> (Value, Value) {
    let text = ok(&arguments(more)).out;
    let documents = serde_yaml_ng::Deserializer::from_str(&text);
    let all: Vec<Value> = documents.map(|d| serde::Deserialize::deserialize(d).expect(&text)).collect();
    <[Value; 2]>::try_from(all).expect("two manifests").into()
}

#[test]
fn manifests_are_what_kubernetes_knows() {
    for more in [
        &[][..],
        &["--secret", "hub-access", "--target-port", "5432,3306", "--cpu", "500m", "--memory", "0.5Gi"],
        &["--hub", "tls://hub.example:4443", "--namespace", "load", "--name", "a"],
        &["--hub", "nats://[fd00::1]:4222"],
        // Texts that YAML would take for something else.
        &["--name", "1e3", "--namespace", "0", "--secret", "true", "--image", "null"],
    ] {
        let (job, policy) = manifests(more);
        let job = typed::<Job>(&job).unwrap();
        let policy = typed::<NetworkPolicy>(&policy).unwrap();
        // The policy is of the Job's pods, in its namespace.
        let template = job.spec.unwrap().template;
        let selected = policy.spec.unwrap().pod_selector.unwrap().match_labels.unwrap();
        let labels = template.metadata.unwrap().labels.unwrap();
        assert!(selected.iter().all(|(k, v)| labels.get(k) == Some(v)), "{selected:?} of {labels:?}");
        assert_eq!(policy.metadata.namespace, job.metadata.namespace);
    }
}

/// The comparison itself: what is misspelt, of another type or missing is seen.
#[test]
fn what_kubernetes_does_not_know_is_seen() {
    let (job, _) = manifests(&[]);
    assert!(typed::<Job>(&job).is_ok());
    for (path, value) in [
        ("/spec/paralelism", Value::from(16)),
        ("/spec/parallelism", Value::from("16")),
        ("/spec/template/spec/containers/0/securityContext/readOnlyRootFileSystem", Value::from(true)),
        ("/spec/template/spec/containers/0/resources/limit", Value::from("1")),
    ] {
        let mut spoilt = job.clone();
        let (parent, key) = path.rsplit_once('/').unwrap();
        spoilt.pointer_mut(parent).unwrap()[key] = value;
        assert!(typed::<Job>(&spoilt).is_err(), "{path}");
    }
    let mut nameless = job.clone();
    nameless.pointer_mut("/spec/template/spec/containers/0").unwrap().as_object_mut().unwrap().remove("name");
    assert!(typed::<Job>(&nameless).is_err());
}

#[test]
fn a_job_is_indexed_bounded_and_confined() {
    let (job, policy) = manifests(&["--secret", "hub-access", "--target-port", "5432", "--target-port", "3306"]);
    let spec = typed::<Job>(&job).unwrap().spec.unwrap();
    assert_eq!(spec.completion_mode.as_deref(), Some("Indexed"));
    assert_eq!((spec.parallelism, spec.completions, spec.backoff_limit), (Some(16), Some(16), Some(16)));
    assert!(spec.ttl_seconds_after_finished.is_some_and(|s| s > 0));
    let pod = spec.template.spec.unwrap();
    assert_eq!((pod.automount_service_account_token, pod.restart_policy.as_deref()), (Some(false), Some("Never")));
    let of_pod = pod.security_context.unwrap();
    assert_eq!(of_pod.run_as_non_root, Some(true));
    assert!(of_pod.run_as_user.is_some_and(|user| user > 0));
    assert_eq!(of_pod.seccomp_profile.unwrap().type_, "RuntimeDefault");
    let [agent] = <[_; 1]>::try_from(pod.containers).unwrap();
    let confined = agent.security_context.unwrap();
    assert_eq!((confined.read_only_root_filesystem, confined.allow_privilege_escalation), (Some(true), Some(false)));
    assert_eq!(confined.capabilities.unwrap().drop.unwrap(), ["ALL"]);
    let resources = agent.resources.unwrap();
    assert!(resources.requests.is_some() && resources.requests == resources.limits);
    // Each agent's name holds its own index, and what is secret is a reference.
    assert!(agent.args.unwrap().contains(&"loadline-agent-$(LOADLINE_AGENT_INDEX)".to_owned()));
    let env = agent.env.unwrap();
    assert!(env.iter().all(|e| e.value.is_none() && e.value_from.is_some()), "{env:?}");
    let of = |name: &str| env.iter().find(|e| e.name == name).unwrap().value_from.clone().unwrap();
    assert!(of("LOADLINE_AGENT_INDEX").field_ref.unwrap().field_path.contains("job-completion-index"));
    let hub = of("LOADLINE_HUB").secret_key_ref.unwrap();
    assert_eq!((hub.name.as_str(), hub.key.as_str(), hub.optional), ("hub-access", "hub", Some(false)));
    for (name, key) in [("LOADLINE_HUB_NKEY", "nkey"), ("LOADLINE_HUB_CREDS", "creds"), ("LOADLINE_HUB_CA", "ca")] {
        let of_secret = of(name).secret_key_ref.unwrap();
        assert_eq!(
            (of_secret.name.as_str(), of_secret.key.as_str(), of_secret.optional),
            ("hub-access", key, Some(true))
        );
    }
    // Out to the hub, the database and DNS only; nobody in.
    let policy = typed::<NetworkPolicy>(&policy).unwrap().spec.unwrap();
    assert_eq!(policy.policy_types.unwrap(), ["Ingress", "Egress"]);
    assert_eq!(policy.ingress, None);
    let egress = policy.egress.unwrap();
    let ports = |n: usize| -> Vec<Value> {
        let ports = egress[n].ports.clone().unwrap();
        ports.into_iter().map(|p| serde_json::to_value(p.port.unwrap()).unwrap()).collect()
    };
    assert_eq!(egress[0].to.as_ref().unwrap()[0].ip_block.as_ref().unwrap().cidr, "10.1.2.3/32");
    assert_eq!(
        [ports(0), ports(1), ports(2)],
        [vec![4222], vec![5432, 3306], vec![53, 53]]
            .map(|p: Vec<u16>| { p.into_iter().map(Value::from).collect::<Vec<_>>() })
    );
    assert_eq!(egress.len(), 3);
}

#[test]
fn what_cannot_be_is_refused_by_name() {
    for (flag, value, said) in [
        ("--count", "0", "0"),
        ("--count", "10001", "10001"),
        ("--count", "x", "x"),
        ("--image", "a b", "a b"),
        ("--image", "-a", "-a"),
        ("--image", "a\nkind: Secret", "image"),
        ("--name", "Agent", "Agent"),
        ("--name", "a.b", "a.b"),
        ("--name", "", "--name"),
        ("--namespace", "x_y", "x_y"),
        ("--secret", "s/t", "s/t"),
        ("--cpu", "0", "0"),
        ("--cpu", "2 cores", "2 cores"),
        ("--cpu", "1.0005", "1.0005"),
        ("--memory", "1", "512Mi"),
        ("--memory", "0Gi", "0Gi"),
        ("--target-port", "0", "0"),
        ("--target-port", "65536", "65536"),
        ("--hub", "http://h", "nats://host:4222"),
        ("--hub", "nats://h:0", "65535"),
        // The 16 agents' names would be too long.
        ("--name", "a12345678901234567890123456789012345678901234567890123456789012", "63"),
        // A secret that would stand in the manifest.
        ("--hub", "nats://s3cret@h", "--secret"),
        ("--hub", "nats://user:s3cret@h", "--secret"),
    ] {
        let joined = format!("{flag}={value}");
        let ran = run(&arguments(&[&joined]));
        assert_eq!(ran.code, 2, "{joined}: {}", ran.said());
        assert!(
            ran.err.contains(said) && ran.out.is_empty() && !ran.said().contains("s3cret"),
            "{joined}: {}",
            ran.said()
        );
    }
}
