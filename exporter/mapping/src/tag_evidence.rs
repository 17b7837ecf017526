//! Evidence for the trainer that wrote a file, from its tags.

use std::collections::BTreeSet;

use crate::{
    Trainer,
    dictionary::is_common,
    trainer::{trainer_of_signature, trainers_with_tags},
};

/// The number of common tags that identify a trainer together.
const COMMON_TAGS: usize = 3;

/// The tags of a file that are signatures of trainers. A tag that programs of several trainers write identifies none alone.
#[derive(Debug, Default)]
pub struct TagEvidence {
    /// The common tags, with the names of their trainers.
    common: BTreeSet<(&'static str, String)>,
}

impl TagEvidence {
    /// Observes a tag, and returns the trainer that the tags so far identify.
    pub fn observe(&mut self, tag: &str) -> Option<&'static Trainer> {
        let found = trainer_of_signature(tag)?;
        if !is_common(tag) {
            return Some(found);
        }
        self.common.insert((found.name(), tag.to_owned()));
        trainers_with_tags().find(|trainer| {
            let tags = self.common.iter().filter(|(name, _)| *name == trainer.name());
            tags.count() >= COMMON_TAGS
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn identified(tags: &[&str]) -> Option<&'static str> {
        let mut evidence = TagEvidence::default();
        let found = tags.iter().find_map(|tag| evidence.observe(tag));
        found.map(Trainer::name)
    }

    #[test]
    fn one_common_tag_identifies_no_trainer() {
        assert_eq!(identified(&["train/loss", "train/tokens_per_second"]), None);
        assert_eq!(identified(&["train/norm"; 5]), None);
        assert_eq!(identified(&["learning/loss", "loss"]), None);
        assert_eq!(
            identified(&["train/norm", "train/duration_ms", "train/tokens_per_second"]),
            Some("surogate")
        );
        assert_eq!(identified(&["train/simulated_acc_len"]), Some("torchspec"));
    }
}
