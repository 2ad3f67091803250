//! The servers behind the nodes of a target.

use crate::error::TargetError;
use crate::work::Work;

/// Server instances, the number of the one behind each node, and where the jobs of each node connect.
pub(crate) struct Servers<I, E> {
    pub(crate) instances: Vec<I>,
    pub(crate) instance_of: Vec<usize>,
    pub(crate) endpoints: Vec<E>,
}

impl<I: Clone, E: Clone> Servers<I, E> {
    /// The instances for which `is_left`, with their nodes, in their order.
    pub(crate) fn left(&self, is_left: &[bool]) -> Servers<I, E> {
        let is_left = |instance: usize| is_left.get(instance).copied().unwrap_or(false);
        // Its number among those left is that of those before it.
        let number = |instance: usize| (0..instance).filter(|before| is_left(*before)).count();
        let nodes = self.instance_of.iter().zip(&self.endpoints).filter(|(instance, _)| is_left(**instance));
        let (instance_of, endpoints) = nodes.map(|(instance, e)| (number(*instance), e.clone())).unzip();
        let kept = self.instances.iter().enumerate().filter(|(number, _)| is_left(*number));
        Servers { instances: kept.map(|(_, i)| i.clone()).collect(), instance_of, endpoints }
    }

    /// Where `job` connects, and the instance there ([`Work::node`]).
    pub(crate) fn of_job(&self, work: &Work, job: u32) -> Result<(&E, &I), TargetError> {
        let node = work.node(job, self.endpoints.len());
        let instance = self.instance_of.get(node).and_then(|instance| self.instances.get(*instance));
        self.endpoints.get(node).zip(instance).ok_or_else(|| TargetError::Usage("the target has no node".into()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nodes_keep_their_instances() {
        // Two nodes lead to the second of three instances.
        let left = |is_left| {
            let all =
                Servers { instances: vec!['a', 'b', 'c'], instance_of: vec![0, 1, 1, 2], endpoints: vec![0, 1, 2, 3] };
            let left = all.left(is_left);
            (left.instances, left.instance_of, left.endpoints)
        };
        assert_eq!(left(&[false, true, true]), (vec!['b', 'c'], vec![0, 0, 1], vec![1, 2, 3]));
        assert_eq!(left(&[true, false, true]), (vec!['a', 'c'], vec![0, 1], vec![0, 3]));
        assert_eq!(left(&[false; 3]), (vec![], vec![], vec![]));
    }
}
