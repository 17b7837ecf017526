//! The room of a vector, for elements that borrow from something else: what is read of one line after the other needs it only
//! once.

/// A vector without elements that has the room of another.
pub(crate) fn emptied<T, U>(mut all: Vec<T>) -> Vec<U> {
    all.clear();
    // The standard library collects into the same room where both kinds of elements are equally large.
    all.into_iter()
        .map(|_| unreachable!("invariant: nothing is in it"))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_room_is_that_of_the_vector() {
        let all: Vec<&str> = Vec::with_capacity(40);
        let text = "gone".to_owned();
        let mut all: Vec<&str> = emptied(all);
        all.push(&text);
        let all: Vec<&'static str> = emptied(all);
        assert_eq!((all.len(), all.capacity()), (0, 40));
    }
}
