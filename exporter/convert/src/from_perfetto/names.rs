//! Names that contain attributes.

use pulsetrain_perfetto::AnnotationData;

/// Splits `rollout (step=3, role=actor)`, the notation of Tunix for attributes, into the name and the attributes.
pub(super) fn name_and_tags(name: &str) -> (&str, Vec<(String, AnnotationData)>) {
    let tags = name.strip_suffix(')').and_then(|name| name.split_once(" ("));
    let Some((short, tags)) = tags else {
        return (name, Vec::new());
    };
    let tag = |tag: &str| {
        let (key, value) = tag.split_once('=')?;
        let value = value
            .parse()
            .map_or_else(|_| AnnotationData::Text(value.to_owned()), AnnotationData::Int);
        Some((key.to_owned(), value))
    };
    match tags.split(", ").map(tag).collect() {
        Some(tags) => (short, tags),
        None => (name, Vec::new()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attributes_are_extracted_from_a_name_and_other_parentheses_are_kept() {
        let (name, tags) = name_and_tags("rollout (step=3, role=actor)");
        assert_eq!(name, "rollout");
        assert_eq!(
            tags,
            [
                ("step".to_owned(), AnnotationData::Int(3)),
                ("role".to_owned(), AnnotationData::Text("actor".to_owned()))
            ]
        );
        assert_eq!(name_and_tags("GET (retried)").0, "GET (retried)");
    }
}
