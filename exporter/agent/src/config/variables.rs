//! Finds unset variables, which the YAML reader would replace by empty text, as Docker Compose does.

use std::collections::HashMap;

use super::Location;

/// Returns the first `${NAME}` whose variable is unset, with its place.
pub(super) fn unset_variable<'a>(
    text: &'a str,
    variables: &HashMap<String, String>,
) -> Option<(Location, &'a str)> {
    let is_unset = |(_, name): &(usize, &str)| is_name(name) && !variables.contains_key(*name);
    let (offset, name) = references(text).find(is_unset)?;
    Some((Location::of(text, offset), name))
}

/// Returns the content of each `${...}` outside of comments, with the offset of its dollar sign; `$${` is an escape.
pub(super) fn references(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let start_of = |line: &str| line.as_ptr() as usize - text.as_ptr() as usize;
    text.lines().flat_map(move |line| {
        let start = start_of(line);
        in_line(without_comment(line)).map(move |(offset, reference)| (start + offset, reference))
    })
}

/// Like [`references`], for one line.
fn in_line(line: &str) -> impl Iterator<Item = (usize, &str)> {
    line.match_indices("${").filter_map(|(offset, _)| {
        let dollars = line[..offset]
            .bytes()
            .rev()
            .take_while(|byte| *byte == b'$')
            .count();
        let (reference, _) = line[offset + 2..].split_once('}')?;
        (dollars % 2 == 0).then_some((offset, reference))
    })
}

/// Returns whether a reference has no default; a reference with a default is never unset.
fn is_name(reference: &str) -> bool {
    let is_of_name = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    reference.bytes().all(is_of_name)
}

/// Returns the line up to its comment: a `#` at the start of a word, outside quotes.
fn without_comment(line: &str) -> &str {
    let (mut quote, mut before) = (None, ' ');
    for (offset, character) in line.char_indices() {
        match quote {
            Some(open) if character == open => quote = None,
            None if character == '#' && before.is_whitespace() => return &line[..offset],
            None if matches!(character, '"' | '\'') && !before.is_alphanumeric() => quote = Some(character),
            _ => {}
        }
        before = character;
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unset_variable_is_reported_only_if_it_would_be_read() {
        let set = HashMap::from([("SET".to_owned(), String::new())]);
        for fine in [
            "a: ${SET}",
            "a: ${NOT:-x}",
            "# ${NOT}",
            "a: b # ${NOT}",
            "a: $${NOT}",
            "a: \"# \" # ${NOT}",
        ] {
            assert_eq!(unset_variable(fine, &set), None, "{fine}");
        }
        for (wrong, line, column) in [
            ("a: ${NOT}", 1, 4),
            ("a: 1\nb: \"it's # ${NOT}\"", 2, 12),
            ("a: $$${NOT}", 1, 6),
        ] {
            assert_eq!(
                unset_variable(wrong, &set),
                Some((
                    Location {
                        line,
                        column,
                        ..Location::default()
                    },
                    "NOT"
                )),
                "{wrong}"
            );
        }
    }
}
