//! Finds variables that are not set: the YAML reader would take them as empty, as Docker Compose does.

use std::collections::HashMap;

use super::Spot;

/// The first `${NAME}` whose variable is not set, with its place.
pub(super) fn unset_variable<'a>(
    text: &'a str,
    variables: &HashMap<String, String>,
) -> Option<(Spot, &'a str)> {
    text.lines().zip(1..).find_map(|(line, number)| {
        let unset = |(_, name): &(usize, &str)| !variables.contains_key(*name);
        let (offset, name) = names(without_comment(line)).find(unset)?;
        let spot = Spot {
            line: number,
            column: line[..offset].chars().count() as u64 + 1,
        };
        Some((spot, name))
    })
}

/// The names in `${NAME}`, with their offsets; `$${` stands for itself, and what has a default is never unset.
fn names(line: &str) -> impl Iterator<Item = (usize, &str)> {
    line.match_indices("${").filter_map(|(offset, _)| {
        let dollars = line[..offset]
            .bytes()
            .rev()
            .take_while(|byte| *byte == b'$')
            .count();
        let (name, _) = line[offset + 2..].split_once('}')?;
        let is_name = name
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
        (dollars % 2 == 0 && is_name).then_some((offset, name))
    })
}

/// The line up to its comment: a `#` that begins a word outside quotes.
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
    fn only_a_variable_that_would_be_read_is_missed() {
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
                Some((Spot { line, column }, "NOT")),
                "{wrong}"
            );
        }
    }
}
