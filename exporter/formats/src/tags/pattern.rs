//! Patterns of tags: literal text with `{}` where a part varies.

/// The parts of `tag` that stand where `pattern` has `{}`, or nothing if the tag is of another form. A part is not empty
/// and as short as it can be; only the last one reaches to the end.
pub(super) fn parts<'t>(pattern: &str, tag: &'t str) -> Option<Vec<&'t str>> {
    let mut literals = pattern.split("{}");
    let mut rest = tag.strip_prefix(literals.next()?)?;
    let mut parts = Vec::new();
    for literal in literals {
        let len = if literal.is_empty() {
            rest.len()
        } else {
            rest.find(literal)?
        };
        let (part, after) = rest.split_at(len);
        if part.is_empty() {
            return None;
        }
        parts.push(part);
        rest = &after[literal.len()..];
    }
    rest.is_empty().then_some(parts)
}

/// Whether `tag` is of the form of `pattern`.
pub(crate) fn matches(pattern: &str, tag: &str) -> bool {
    parts(pattern, tag).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_stand_where_the_pattern_leaves_them_open() {
        assert_eq!(parts("train/loss", "train/loss"), Some(vec![]));
        assert_eq!(
            parts("data/{}/tokens", "data/fineweb/tokens"),
            Some(vec!["fineweb"])
        );
        assert_eq!(
            parts("rewards/{}/{}", "rewards/eval/a/b"),
            Some(vec!["eval", "a/b"])
        );
        assert_eq!(
            parts("{}/text_summary", "emb_dim/text_summary"),
            Some(vec!["emb_dim"])
        );
    }

    #[test]
    fn a_tag_of_another_form_has_no_parts() {
        for (pattern, tag) in [
            ("train/loss", "train/loss2"),
            ("train/ploss_{}", "train/ploss_"),
            ("data/{}/tokens", "data//tokens"),
            ("data/{}/tokens", "data/a/tokens/b"),
        ] {
            assert_eq!(parts(pattern, tag), None, "{pattern} {tag}");
        }
    }
}
