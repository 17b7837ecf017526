//! Finds unset variables, `${NAME}` and `$NAME`, which the YAML reader would replace by empty text, as Docker Compose does.

use std::{collections::HashMap, env, ffi::OsString};

use super::Location;

/// Returns the environment variables whose names and values are UTF-8.
pub(crate) fn environment() -> HashMap<String, String> {
    let text =
        |(name, value): (OsString, OsString)| Some((name.into_string().ok()?, value.into_string().ok()?));
    env::vars_os().filter_map(text).collect()
}

/// Returns the first `${NAME}` or `$NAME` whose variable is unset, with its place.
pub(super) fn unset_variable<'a>(
    text: &'a str,
    variables: &HashMap<String, String>,
) -> Option<(Location, &'a str)> {
    let is_unset = |(_, name): &(usize, &str)| is_name(name) && !variables.contains_key(*name);
    let braced = references(text).find(is_unset);
    let bare = bare_references(text).find(is_unset);
    let (offset, name) = braced.into_iter().chain(bare).min()?;
    Some((Location::from_offset(text, offset), name))
}

/// Returns the name of each `$NAME` outside of comments and of `${...}`, with the offset of its dollar sign.
fn bare_references(text: &str) -> impl Iterator<Item = (usize, &str)> {
    in_lines(text, |line| {
        line.match_indices('$').filter_map(move |(offset, _)| {
            let rest = &line[offset + 1..];
            let len = rest
                .bytes()
                .take_while(|byte| byte.is_ascii_alphanumeric() || *byte == b'_')
                .count();
            let is_name = rest.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_');
            let is_inside = line[..offset]
                .rfind("${")
                .is_some_and(|open| !line[open..offset].contains('}'));
            (is_name && !is_inside && !is_escaped(line, offset)).then_some((offset, &rest[..len]))
        })
    })
}

/// Returns the content of each `${...}` outside of comments, with the offset of its dollar sign; `$${` is an escape.
pub(super) fn references(text: &str) -> impl Iterator<Item = (usize, &str)> {
    in_lines(text, |line| {
        line.match_indices("${").filter_map(move |(offset, _)| {
            let (reference, _) = line[offset + 2..].split_once('}')?;
            (!is_escaped(line, offset)).then_some((offset, reference))
        })
    })
}

/// Returns what `find` returns for each line without its comment, with offsets in the text.
fn in_lines<'a, I: Iterator<Item = (usize, &'a str)>>(
    text: &'a str,
    find: impl Fn(&'a str) -> I,
) -> impl Iterator<Item = (usize, &'a str)> {
    text.lines().flat_map(move |line| {
        let start = line.as_ptr() as usize - text.as_ptr() as usize;
        find(without_comment(line)).map(move |(offset, found)| (start + offset, found))
    })
}

/// Returns whether the dollar sign at `offset` is the second of `$$`.
fn is_escaped(line: &str, offset: usize) -> bool {
    let dollars = line[..offset].bytes().rev().take_while(|byte| *byte == b'$');
    dollars.count() % 2 == 1
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
            "a: $$NOT $SET $) $5 ${SET:-$NOT}",
            "a: \"# \" # ${NOT}",
        ] {
            assert_eq!(unset_variable(fine, &set), None, "{fine}");
        }
        for (wrong, line, column) in [
            ("a: ${NOT}", 1, 4),
            ("a: $NOT.yaml", 1, 4),
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
