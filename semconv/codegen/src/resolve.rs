//! Resolves references, also to groups, to the attributes that a signal carries.

use crate::grammar::{AttributeRef, RequirementLevel};
use crate::registry::Registry;

/// An attribute that a signal carries.
#[derive(Debug)]
pub(crate) struct ResolvedRef {
    pub(crate) key: String,
    pub(crate) level: RequirementLevel,
}

impl Registry {
    /// Returns the attributes of a list of references, groups expanded, sorted by key; the later of two references wins.
    pub(crate) fn resolve(&self, references: &[AttributeRef]) -> Vec<ResolvedRef> {
        let mut resolved = Vec::new();
        self.open(references, &mut Vec::new(), &mut resolved);
        resolved.reverse();
        resolved.sort_by(|a, b| a.key.cmp(&b.key));
        resolved.dedup_by(|a, b| a.key == b.key);
        resolved
    }

    fn open<'a>(
        &'a self,
        references: &'a [AttributeRef],
        path: &mut Vec<&'a str>,
        into: &mut Vec<ResolvedRef>,
    ) {
        for reference in references {
            if let Some(key) = &reference.attribute {
                let level = reference
                    .requirement_level
                    .clone()
                    .unwrap_or(RequirementLevel::Recommended);
                into.push(ResolvedRef {
                    key: key.value.clone(),
                    level,
                });
            }
            let group = reference
                .group
                .as_ref()
                .filter(|id| !path.contains(&id.value.as_str()));
            if let Some(group) = group.and_then(|id| self.group(&id.value)) {
                path.push(&group.id.value);
                self.open(&group.attributes, path, into);
                path.pop();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    #[test]
    fn attribute_groups_are_expanded_and_the_later_requirement_level_wins() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/clean");
        let registry = Registry::load(&folder).expect("the fixture is in the grammar");
        let span = &registry.spans[0].def;
        let resolved = registry.resolve(&span.attributes);
        let keys: Vec<&str> = resolved.iter().map(|reference| reference.key.as_str()).collect();
        assert_eq!(keys, ["train.component", "train.step"]);
        assert!(
            matches!(resolved[1].level, RequirementLevel::OptIn),
            "{resolved:?}"
        );
    }
}
