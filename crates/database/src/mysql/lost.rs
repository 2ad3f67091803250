//! Goes on without the nodes that are lost.

use std::time::{Duration, Instant};

use super::instance::{MysqlInstance, MysqlNodes};
use super::member;
use super::server::Mysql;
use crate::facts::Facts;
use crate::target::{Nodes, RemainingNodes};
use crate::workload_tables::LoadedTables;

/// Longest that the other nodes of a cluster may take to exclude a lost one: Galera waits for it for 5 s (`evs.suspect_timeout`), up to
/// 15 s if they disagree (`evs.inactive_timeout`).
const EXCLUDING: Duration = Duration::from_secs(20);

/// Answer of a server that is asked whether it is of use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Answer {
    None,
    /// It answers, but has lost its cluster, or the cluster is changing.
    NotReady,
    /// It is of use, in a cluster of so many nodes.
    Ready(u32),
}

impl Answer {
    fn ask(instance: &MysqlInstance) -> Answer {
        match instance.admin(member::size) {
            Err(_) => Answer::None,
            Ok(size) => size.map_or(Answer::NotReady, Answer::Ready),
        }
    }

    fn size(self) -> Option<u32> {
        if let Answer::Ready(size) = self { Some(size) } else { None }
    }
}

/// Whether no more is to be expected: some nodes are ready, and their cluster of `before` nodes is without the others; or none is,
/// and half of them do not answer.
fn is_settled(answers: &[Answer], before: u32) -> bool {
    let sizes: Vec<u32> = answers.iter().filter_map(|a| a.size()).collect();
    let (others, silent) = (answers.len() - sizes.len(), answers.iter().filter(|a| **a == Answer::None).count());
    (!sizes.is_empty() || 2 * silent >= before as usize)
        && sizes.iter().all(|size| others == 0 || size + others as u32 <= before)
}

fn ready(nodes: &MysqlNodes, answers: &[Answer]) -> MysqlNodes {
    let is_ready: Vec<bool> = answers.iter().map(|answer| answer.size().is_some()).collect();
    let mut left = nodes.left(&is_ready);
    for (instance, size) in left.instances.iter_mut().zip(answers.iter().filter_map(|answer| answer.size())) {
        instance.member.iter_mut().for_each(|member| member.size = size);
    }
    left
}

impl Nodes for Mysql {
    fn without_lost(&self) -> Option<RemainingNodes> {
        let before = self.cluster_size();
        let deadline = Instant::now() + EXCLUDING;
        let answers = loop {
            let answers: Vec<Answer> = self.instances().iter().map(Answer::ask).collect();
            let none = answers.iter().all(|a| *a == Answer::None);
            if none || is_settled(&answers, before) || Instant::now() >= deadline {
                break answers;
            }
            std::thread::sleep(Duration::from_millis(100));
        };
        let nodes = ready(&self.nodes, &answers);
        if nodes.instances.len() == self.instances().len() {
            return None;
        }
        let of = |is: fn(&Answer) -> bool| -> Vec<String> {
            let them = self.instances().iter().zip(&answers).filter(|(_, answer)| is(answer));
            them.map(|(instance, _)| instance.endpoint.config.place()).collect()
        };
        let lost = of(|answer| answer.size().is_none());
        if nodes.instances.is_empty() {
            let (gone, there) = (of(|a| *a == Answer::None), of(|a| *a == Answer::NotReady));
            return Some(match &there[..] {
                [] => RemainingNodes { target: Err("no node is left".to_owned()), lost },
                there => RemainingNodes {
                    target: Err(format!("{} cannot go on without a majority of the cluster", there.join(" and "))),
                    // All are, if each is by itself.
                    lost: if gone.is_empty() { lost } else { gone },
                },
            });
        }
        let target = Mysql {
            facts: Facts { nodes: nodes.endpoints.len() as u32, ..self.facts.clone() },
            nodes,
            url: self.url.clone(),
            via: std::sync::Mutex::default(),
            loaded: LoadedTables::default(),
            server: self.server.clone(),
        };
        Some(RemainingNodes { target: Ok(Box::new(target)), lost })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_loss_is_settled_once_the_cluster_is_smaller() {
        let (lost, three, two) = (Answer::None, Answer::Ready(3), Answer::Ready(2));
        assert!(is_settled(&[three, three, three], 3));
        assert!(!is_settled(&[three, lost, three], 3), "it has not noticed yet");
        assert!(is_settled(&[two, lost, two], 3));
        assert!(!is_settled(&[two, lost, three], 3), "one of them has not");
        assert!(!is_settled(&[Answer::NotReady, lost, two], 3));
        assert!(is_settled(&[two, two, Answer::NotReady], 3), "it was cut off");
        assert!(!is_settled(&[three, three, Answer::NotReady], 3), "they have not noticed yet");
        assert!(!is_settled(&[Answer::NotReady, Answer::NotReady, lost], 3), "they may have a majority soon");
        assert!(is_settled(&[Answer::NotReady, lost, lost], 3), "it will have none");
        // Some of the cluster's nodes are not of the target.
        assert!(is_settled(&[Answer::Ready(4), lost], 5) && !is_settled(&[Answer::Ready(5), lost], 5));
    }
}
