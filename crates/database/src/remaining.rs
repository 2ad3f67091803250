//! What is left of the nodes of a target.

/// The instances that are left, the number of the one behind each of their nodes, and the endpoints of these nodes.
pub(crate) struct Remaining<I, E> {
    pub(crate) instances: Vec<I>,
    pub(crate) instance_of: Vec<usize>,
    pub(crate) endpoints: Vec<E>,
}

impl<I: Clone, E: Clone> Remaining<I, E> {
    /// Keeps the instances for which `is_left`, with their nodes, in their order.
    pub(crate) fn of(instances: &[I], instance_of: &[usize], endpoints: &[E], is_left: &[bool]) -> Remaining<I, E> {
        let is_left = |instance: usize| is_left.get(instance).copied().unwrap_or(false);
        // Its number among those left is that of those before it.
        let number = |instance: usize| (0..instance).filter(|before| is_left(*before)).count();
        let nodes = instance_of.iter().zip(endpoints).filter(|(instance, _)| is_left(**instance));
        let (instance_of, endpoints) = nodes.map(|(instance, e)| (number(*instance), e.clone())).unzip();
        let kept = instances.iter().enumerate().filter(|(number, _)| is_left(*number));
        Remaining { instances: kept.map(|(_, i)| i.clone()).collect(), instance_of, endpoints }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nodes_keep_their_instances() {
        // Two nodes lead to the second of three instances.
        let left = |is_left| {
            let left = Remaining::of(&['a', 'b', 'c'], &[0, 1, 1, 2], &[0, 1, 2, 3], is_left);
            (left.instances, left.instance_of, left.endpoints)
        };
        assert_eq!(left(&[false, true, true]), (vec!['b', 'c'], vec![0, 0, 1], vec![1, 2, 3]));
        assert_eq!(left(&[true, false, true]), (vec!['a', 'c'], vec![0, 1], vec![0, 3]));
        assert_eq!(left(&[false; 3]), (vec![], vec![], vec![]));
    }
}
