//! The pool of samples between inference and training, and the lines that tell that generation waits for room in it
//! (`_await_pool_capacity` of `torchspec/inference/inference_manager.py`).

use pulsetrain_mapping::{Field, FieldValue};
use std::collections::VecDeque;

use super::seconds;

/// How full the pool was at the last steps.
#[derive(Debug, Default)]
pub(super) struct Pool(VecDeque<f64>);

/// Over how many steps a pool has to grow.
const STEPS: usize = 5;

impl Pool {
    /// The size that a bar shows.
    pub(super) fn is_of(&mut self, size: Option<f64>) {
        self.0.extend(size);
        if self.0.len() > STEPS {
            self.0.pop_front();
        }
    }

    /// Whether it grew over the last steps and never shrank.
    pub(super) fn grows(&self) -> bool {
        self.0.len() == STEPS && self.0.iter().is_sorted() && self.0.front() < self.0.back()
    }
}

/// A line of generation that waits, or has waited, for room.
pub(super) struct Waited<'a> {
    pub(super) fields: Vec<Field<'a>>,
    /// The time that the line says is part of the time that a later one says.
    pub(super) is_not_over: bool,
}

impl<'a> Waited<'a> {
    /// The line, if it is one of these.
    pub(super) fn parse(message: &'a str) -> Option<Self> {
        let (fields, is_not_over) = if message.starts_with("Sample pool full, pausing generation: ") {
            (sizes(message), false)
        } else if message.starts_with("Still waiting for pool capacity ") {
            (sizes(message), true)
        } else if let Some(over) = message.strip_prefix("Pool capacity available after ") {
            (waited(over), false)
        } else if let Some(limit) = message.strip_prefix("Flow control enabled: max_pool_size=") {
            (vec![(LIMIT.into(), FieldValue::of(first_word(limit)))], false)
        } else {
            let (_, over) = message
                .strip_prefix("Pool wait aborted ")?
                .rsplit_once(" after ")?;
            (waited(over), false)
        };
        Some(Self { fields, is_not_over })
    }
}

const LIMIT: &str = "pool_size limit";

/// `1.5s, pool_size=60/64`: how long it took, and what there is now.
fn waited(over: &str) -> Vec<Field<'_>> {
    let (secs, rest) = over.split_once(',').unwrap_or((over, ""));
    let mut fields = vec![("available after".into(), seconds(secs))];
    if rest.contains("pool_size=") {
        fields.extend(sizes(rest));
    }
    fields
}

/// `pool_size=64/64`: how many are in the pool, and how many may be.
fn sizes(message: &str) -> Vec<Field<'_>> {
    let sizes = message.rsplit_once("pool_size=").map(|(_, sizes)| sizes);
    let (size, limit) = sizes.and_then(|sizes| sizes.split_once('/')).unwrap_or_default();
    vec![
        ("pool_size".into(), FieldValue::of(size)),
        (LIMIT.into(), FieldValue::of(first_word(limit))),
    ]
}

fn first_word(text: &str) -> &str {
    text.split(' ').next().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pool_grows_when_it_never_shrinks_over_five_steps() {
        for (sizes, grows) in [
            (&[8.0, 8.0, 16.0, 16.0, 24.0][..], true),
            (&[8.0, 16.0, 24.0, 32.0], false),
            (&[8.0, 16.0, 8.0, 24.0, 32.0], false),
            (&[8.0, 8.0, 8.0, 8.0, 8.0], false),
            (&[64.0, 0.0, 8.0, 16.0, 24.0, 32.0], true),
        ] {
            let mut pool = Pool::default();
            sizes.iter().for_each(|size| pool.is_of(Some(*size)));
            assert_eq!(pool.grows(), grows, "{sizes:?}");
        }
    }
}
