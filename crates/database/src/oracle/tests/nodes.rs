//! Clusters: jobs go to the nodes in turn.

use super::*;

/// Peers of a cluster: the host's name ends in the number of the instance that it leads to; `any` leads to
/// another one each time.
fn cluster_connector() -> &'static super::session::Connector {
    let calls = std::sync::atomic::AtomicU32::new(0);
    Box::leak(Box::new(move |address: &address::OraAddress, _: &crate::secret::Secret, _: &str| {
        let n = calls.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let instance = address.host.strip_prefix("rac").map_or_else(|| n.to_string(), str::to_owned);
        let server = FakeServer::new(move |sql, _| {
            Ok(if sql.contains("'INSTANCE') FROM") { vec![row(&[&instance])] } else { vec![row(&["1"])] })
        });
        Ok(Box::new(server) as Box<dyn super::session::OraSession>)
    }))
}

#[test]
fn jobs_run_on_the_nodes_in_turn_and_nowhere_else() {
    let with = |urls: [&str; 2]| {
        let [url, node] = urls.map(|host| format!("oracle://ann:secret@{host}/x"));
        let request = OpenRequest { url, nodes: vec![node], ..request() };
        cluster::Oracle::open(&request, cluster_connector())
    };
    let target = with(["rac1", "rac2"]).unwrap();
    assert_eq!(target.facts().nodes, 2);
    for job in 0..4 {
        target.client_session(&work(), job).unwrap();
    }
    let findings = target.doctor().unwrap();
    assert!(findings.iter().any(|f| f.subject.ends_with("(node 1)")));
    assert!(findings.iter().any(|f| f.subject.ends_with("(node 2)")));
    let error = with(["rac1", "rac1"]).err().unwrap().to_string();
    assert!(error.contains("same instance, number 1") && !error.contains("secret"), "{error}");
    // A service on several instances: detected when the nodes are opened, or by the jobs.
    let target = with(["any", "any"]);
    let found = match target {
        Err(e) => e.to_string(),
        Ok(target) => (0..4).find_map(|job| target.client_session(&work(), job).err()).unwrap().to_string(),
    };
    assert!(found.contains("only one instance has"), "{found}");
}

#[test]
fn nodes_must_be_one_database() {
    let n = std::sync::atomic::AtomicU32::new(0);
    let server = FakeServer::new(move |sql, _| {
        let i = n.fetch_add(u32::from(sql.contains("CON_NAME")), std::sync::atomic::Ordering::Relaxed);
        Ok(vec![row(&[&format!("db{i}")])])
    });
    let request = OpenRequest { nodes: vec!["oracle://ann:secret@db2/x".into()], ..request() };
    let error = cluster::Oracle::open(&request, server.connector()).err().unwrap().to_string();
    assert!(error.contains("db0") && error.contains("db1") && !error.contains("secret"), "{error}");
}
