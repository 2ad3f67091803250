//! Items each once, and items by what they have in common; both in order of first appearance.

pub fn distinct<T: PartialEq>(items: impl IntoIterator<Item = T>) -> Vec<T> {
    let mut out: Vec<T> = Vec::new();
    for item in items {
        if !out.contains(&item) {
            out.push(item);
        }
    }
    out
}

pub fn grouped<T, K: PartialEq>(items: impl IntoIterator<Item = T>, key: impl Fn(&T) -> K) -> Vec<(K, Vec<T>)> {
    let mut out: Vec<(K, Vec<T>)> = Vec::new();
    for item in items {
        let key = key(&item);
        match out.iter_mut().find(|(known, _)| *known == key) {
            Some((_, of)) => of.push(item),
            None => out.push((key, vec![item])),
        }
    }
    out
}
