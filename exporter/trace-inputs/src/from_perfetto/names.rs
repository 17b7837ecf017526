//! Names that contain attributes.

use std::borrow::Cow;

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

/// Splits the name of a counter such as `gpu.power {device.id=0}` into the name and the labels. Returns `None` if it has no
/// labels, or another text in braces.
pub(super) fn name_and_labels(name: &str) -> Option<(&str, Vec<(&str, &str)>)> {
    let (name, mut rest) = name.strip_suffix('}')?.split_once(" {")?;
    let mut labels = Vec::new();
    while !rest.is_empty() {
        let (first, next) = split_outside_quotes(rest, ", ").unwrap_or((rest, ""));
        labels.push(split_outside_quotes(first, "=")?);
        rest = next;
    }
    (!labels.is_empty()).then_some((name, labels))
}

/// Splits a text at the first separator that is not in quotes; at the first one if a quote is not closed.
fn split_outside_quotes<'a>(text: &'a str, separator: &str) -> Option<(&'a str, &'a str)> {
    let (mut is_quoted, mut is_escaped, mut found) = (false, false, None);
    for (place, character) in text.char_indices() {
        match character {
            _ if is_escaped => is_escaped = false,
            '\\' if is_quoted => is_escaped = true,
            '"' => is_quoted = !is_quoted,
            _ if found.is_none() && !is_quoted && text[place..].starts_with(separator) => {
                found = Some((&text[..place], &text[place + separator.len()..]));
            }
            _ => {}
        }
    }
    if is_quoted {
        text.split_once(separator)
    } else {
        found
    }
}

/// Returns the content of a JSON string, and any other text unchanged.
pub(super) fn unquoted(text: &str) -> Cow<'_, str> {
    let content = text
        .starts_with('"')
        .then(|| serde_json::from_str::<String>(text).ok());
    content.flatten().map_or(Cow::Borrowed(text), Cow::Owned)
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

    #[test]
    fn labels_are_extracted_from_a_name_and_other_braces_are_kept() {
        assert_eq!(
            name_and_labels("free {gpu=0, use=a=b}"),
            Some(("free", vec![("gpu", "0"), ("use", "a=b")]))
        );
        for name in ["free {GPU 0}", "free {gpu=0, all}", "free {}", "free", "{a=1}"] {
            assert_eq!(name_and_labels(name), None, "{name}");
        }
    }

    #[test]
    fn separators_in_quotes_are_part_of_the_text() {
        let split = |text| split_outside_quotes(text, ", ");
        assert_eq!(split(r#"m="get, put", k=1"#), Some((r#"m="get, put""#, "k=1")));
        assert_eq!(split(r#"m="5\", put""#), None);
        assert_eq!(split(r#"disk=5", k=1"#), Some((r#"disk=5""#, "k=1")));
        assert_eq!(unquoted(r#""get, \"put\"""#), r#"get, "put""#);
        assert_eq!(unquoted(r#""a" b"#), r#""a" b"#);
    }
}
