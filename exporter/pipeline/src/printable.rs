//! Text of logs, file names and servers, for a terminal.

use std::borrow::Cow;

/// Replaces characters that control a terminal by spaces, one for one: control characters (C0 with line breaks, C1), separators of
/// lines, and marks that change the direction of text ([UAX #9](https://www.unicode.org/reports/tr9/)), with which a text can look
/// like another one.
pub fn printable(text: &str) -> Cow<'_, str> {
    if text.chars().all(is_printable) {
        return Cow::Borrowed(text);
    }
    let replace = |character| if is_printable(character) { character } else { ' ' };
    Cow::Owned(text.chars().map(replace).collect())
}

/// Returns whether a character only draws a glyph or a space.
pub fn is_printable(character: char) -> bool {
    let is_format = matches!(
        character,
        '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}'
    );
    !character.is_control() && !is_format
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn characters_that_control_a_terminal_become_spaces() {
        let hostile = "a\x1b[2Jb\u{9b}c\u{202e}d\u{2028}e\u{2066}f\ng \u{5d0}é";
        assert_eq!(printable(hostile), "a [2Jb c d e f g \u{5d0}é");
        assert!(matches!(printable("loss 2.5"), Cow::Borrowed(_)));
    }
}
