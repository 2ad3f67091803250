//! The servers behind the nodes of a target.

use crate::error::TargetError;
use crate::role::JobLimit;
use crate::work::Work;

/// Server instances, the number of the one behind each node, and where the jobs of each node connect.
#[derive(Clone)]
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

    /// The most jobs, by the `limit` of each instance and its place: it is that of all jobs or, if they are `spread` evenly over the
    /// nodes, of those at its own.
    pub(crate) fn job_limit(
        &self,
        spread: bool,
        limit: impl Fn(&I) -> Result<(JobLimit, String), TargetError>,
    ) -> Result<JobLimit, TargetError> {
        let (mut limits, all) = (Vec::new(), self.instance_of.len() as u32);
        for (number, instance) in self.instances.iter().enumerate() {
            let (mut limit, place) = limit(instance)?;
            let own = self.instance_of.iter().filter(|of| **of == number).count() as u32;
            if spread && all > own {
                limit.jobs = limit.jobs.map(|jobs| jobs.saturating_mul(all) / own.max(1));
                limit.because = format!("{} at {place}", limit.because);
            }
            limits.push(limit);
        }
        let tightest = limits.into_iter().min_by_key(|limit| limit.jobs.unwrap_or(u32::MAX));
        tightest.ok_or_else(|| TargetError::Usage("the target has no node".into()))
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
