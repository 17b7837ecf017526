//! Parses the name of a slice as Tunix writes it: `peft_train (step=3, role=actor, mini_batch=0)`, a name and typed tags.
//!
//! The tags are those of `_create_span_name` in `tunix/perf/experimental/trace_writer.py`. Unknown tags are kept as text.

/// The parsed name of a slice.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct SliceName {
    /// The name without the tags.
    pub(super) name: String,
    pub(super) step: Option<i64>,
    pub(super) mini_batch: Option<i64>,
    pub(super) micro_batch: Option<i64>,
    pub(super) pair_index: Option<i64>,
    pub(super) role: Option<String>,
    pub(super) group_id: Option<String>,
    /// The name of the work that waits in a queue.
    pub(super) queued: Option<String>,
    /// The unknown tags, as written.
    pub(super) others: String,
}

impl SliceName {
    /// Parses a name. Parentheses that contain anything but tags belong to the name.
    pub(super) fn parse(text: &str) -> Self {
        let tags = text.strip_suffix(')').and_then(|text| text.split_once(" ("));
        let Some((name, tags)) = tags.filter(|(_, tags)| is_tags(tags)) else {
            return Self {
                name: text.to_owned(),
                ..Self::default()
            };
        };
        let mut parsed = Self {
            name: name.to_owned(),
            ..Self::default()
        };
        for tag in split(tags) {
            parsed.set(tag);
        }
        parsed
    }

    fn set(&mut self, tag: &str) {
        let (key, value) = tag.split_once('=').unwrap_or((tag, ""));
        if value == "None" {
            return;
        }
        let field = match key {
            "step" => &mut self.step,
            "mini_batch" => &mut self.mini_batch,
            "micro_batch" => &mut self.micro_batch,
            "pair_index" => &mut self.pair_index,
            _ => return self.set_text(key, value, tag),
        };
        match value.parse() {
            Ok(number) => *field = Some(number),
            Err(_) => self.keep_unknown(tag),
        }
    }

    fn set_text(&mut self, key: &str, value: &str, tag: &str) {
        match key {
            "role" => self.role = Some(value.to_owned()),
            "group_id" => self.group_id = Some(value.to_owned()),
            "name" => self.queued = Some(value.to_owned()),
            _ => self.keep_unknown(tag),
        }
    }

    fn keep_unknown(&mut self, tag: &str) {
        if !self.others.is_empty() {
            self.others.push_str(", ");
        }
        self.others.push_str(tag);
    }
}

fn is_tags(tags: &str) -> bool {
    tags.split_once('=').is_some_and(|(key, _)| is_key(key))
}

fn is_key(key: &str) -> bool {
    !key.is_empty()
        && key
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

/// Splits the tags. A comma without a following key is part of a value: a group's id may be any text.
fn split(tags: &str) -> impl Iterator<Item = &str> {
    let mut rest = Some(tags);
    std::iter::from_fn(move || {
        let tags = rest?;
        let end = tags.match_indices(", ").find(|(at, _)| is_tags(&tags[at + 2..]));
        rest = end.map(|(at, _)| &tags[at + 2..]);
        Some(end.map_or(tags, |(at, _)| &tags[..at]))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_have_types_and_unknown_ones_are_kept() {
        let parsed = SliceName::parse(
            "peft_train (step=3, role=actor, mini_batch=0, micro_batch=1, shard=a, lr=1e-5)",
        );
        assert_eq!(parsed.name, "peft_train");
        assert_eq!(
            (parsed.step, parsed.mini_batch, parsed.micro_batch),
            (Some(3), Some(0), Some(1))
        );
        assert_eq!(parsed.role.as_deref(), Some("actor"));
        assert_eq!(parsed.others, "shard=a, lr=1e-5");
    }

    #[test]
    fn tag_values_may_contain_commas_and_none_is_missing() {
        let parsed = SliceName::parse("rollout (step=None, group_id=why, oh why, pair_index=2)");
        assert_eq!((parsed.step, parsed.pair_index), (None, Some(2)));
        assert_eq!(parsed.group_id.as_deref(), Some("why, oh why"));
        assert_eq!(parsed.others, "");
        let odd = SliceName::parse("rollout (step=seven)");
        assert_eq!((odd.step, odd.others.as_str()), (None, "step=seven"));
    }

    #[test]
    fn parentheses_without_tags_belong_to_the_name() {
        for name in ["GET (retried)", "rollout", "f (x)", "a (=1)", "é (step=1", ""] {
            let parsed = SliceName::parse(name);
            assert_eq!((parsed.name.as_str(), parsed.step), (name, None));
        }
        assert_eq!(
            SliceName::parse("queue (name=rollout)").queued.as_deref(),
            Some("rollout")
        );
    }
}
