//! Tracks the pool of samples between inference and training, and parses the lines of an inference that waits for room in it
//! (`_await_pool_capacity` of `torchspec/inference/inference_manager.py`).

use pulsetrain_mapping::{Field, FieldValue};
use std::collections::VecDeque;

use super::SECONDS;

/// The sizes of the pool at the last steps.
#[derive(Debug, Default)]
pub(super) struct Pool(VecDeque<f64>);

/// The number of steps over which a pool has to grow.
const STEPS: usize = 5;

impl Pool {
    /// Adds the size of a step.
    pub(super) fn observe(&mut self, size: Option<f64>) {
        self.0.extend(size);
        if self.0.len() > STEPS {
            self.0.pop_front();
        }
    }

    /// Returns whether the pool grew over the last steps and never shrank.
    pub(super) fn grows(&self) -> bool {
        self.0.len() == STEPS && self.0.iter().is_sorted() && self.0.front() < self.0.back()
    }
}

/// A line of an inference that waits, or has waited, for room.
pub(super) struct PoolLine<'a> {
    pub(super) fields: Vec<Field<'a>>,
    /// Whether the wait continues: a later line has its complete duration.
    pub(super) is_ongoing: bool,
}

impl<'a> PoolLine<'a> {
    /// Parses such a line, or returns `None`.
    pub(super) fn parse(message: &'a str) -> Option<Self> {
        let (fields, is_ongoing) = if message.starts_with("Sample pool full, pausing generation: ") {
            (sizes(message), false)
        } else if message.starts_with("Still waiting for pool capacity ") {
            (sizes(message), true)
        } else if let Some(over) = message.strip_prefix("Pool capacity available after ") {
            (waited(over), false)
        } else if let Some(limit) = message.strip_prefix("Flow control enabled: max_pool_size=") {
            (vec![(LIMIT.into(), FieldValue::parse(first_word(limit)))], false)
        } else {
            let (_, over) = message
                .strip_prefix("Pool wait aborted ")?
                .rsplit_once(" after ")?;
            (waited(over), false)
        };
        Some(Self { fields, is_ongoing })
    }
}

const LIMIT: &str = "pool_size limit";

/// Parses `1.5s, pool_size=60/64`: the duration of the wait and the size of the pool.
fn waited(over: &str) -> Vec<Field<'_>> {
    let (secs, rest) = over.split_once(',').unwrap_or((over, ""));
    let mut fields = vec![("available after".into(), FieldValue::measured(secs, SECONDS))];
    if rest.contains("pool_size=") {
        fields.extend(sizes(rest));
    }
    fields
}

/// Parses `pool_size=64/64`: the size of the pool and its limit.
fn sizes(message: &str) -> Vec<Field<'_>> {
    let sizes = message.rsplit_once("pool_size=").map(|(_, sizes)| sizes);
    let (size, limit) = sizes.and_then(|sizes| sizes.split_once('/')).unwrap_or_default();
    vec![
        ("pool_size".into(), FieldValue::parse(size)),
        (LIMIT.into(), FieldValue::parse(first_word(limit))),
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
            sizes.iter().for_each(|size| pool.observe(Some(*size)));
            assert_eq!(pool.grows(), grows, "{sizes:?}");
        }
    }
}
