//! Goes on without the standbys that are lost.

use super::cluster::{PgInstance, Postgres};
use super::connect::SessionRole;
use crate::facts::Facts;
use crate::remaining::Remaining;
use crate::target::{Nodes, RemainingNodes};
use crate::workload_tables::LoadedTables;

impl Nodes for Postgres {
    fn without_lost(&self) -> Option<RemainingNodes> {
        let answers = |i: &_| self.session(i, SessionRole::Inspect, |_| Ok(())).is_ok();
        let is_left: Vec<bool> = self.instances.iter().map(answers).collect();
        if is_left.iter().all(|left| *left) {
            return None;
        }
        let name = |(number, instance): (usize, &PgInstance)| {
            let node = self.instance_of.iter().position(|of| *of == number).unwrap_or(number) + 1;
            let what = if instance.standby { ", a standby" } else { "" };
            format!("node {node} ('{}'{what})", instance.endpoint.config.shown)
        };
        let numbered = self.instances.iter().enumerate();
        let lost: Vec<String> = numbered.filter(|(number, _)| !is_left[*number]).map(name).collect();
        let left = Remaining::of(&self.instances, &self.instance_of, &self.endpoints, &is_left);
        // A standby does not take the primary's place by itself, and what is measured at it is counted at both.
        let headless = left.instances.iter().any(|i| i.standby) && !is_left.first().is_some_and(|left| *left);
        if left.instances.is_empty() || headless {
            let why = if headless { "no standby takes the place of its primary" } else { "no node is left" };
            return Some(RemainingNodes { target: Err(why.to_owned()), lost });
        }
        let read_only_nodes = left.instances.iter().filter(|i| i.standby).map(|i| i.nodes).sum();
        let target = Postgres {
            facts: Facts { nodes: left.endpoints.len() as u32, read_only_nodes, ..self.facts.clone() },
            endpoints: left.endpoints,
            instance_of: left.instance_of,
            instances: left.instances,
            version: self.version,
            version_text: self.version_text.clone(),
            gaps: self.gaps.clone(),
            cloud: self.cloud,
            kind: self.kind,
            url: self.url.clone(),
            has_levels: self.has_levels,
            // A pair is of one node.
            pair: None,
            loaded: LoadedTables::default(),
            server: self.server.clone(),
        };
        Some(RemainingNodes { target: Ok(Box::new(target)), lost })
    }
}
