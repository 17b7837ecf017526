//! Assembles JSON objects that are printed over several lines, and the objects of a list: `[{"step": 1}, {"step": 2}]`.

/// The most bytes of an object.
const MAX_BYTES: usize = 16 << 20;

/// A line of a document.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum DocumentLine {
    /// A line of text.
    Text,
    /// A line of a document, with the objects that end in it.
    Part(Vec<String>),
    /// A line that does not continue the document before it.
    Broken,
}

/// The part of a document before the next line.
#[derive(Debug, Default)]
pub(super) struct Document {
    /// The text of the object that has begun.
    object: String,
    /// The brackets that are open in it.
    open: Vec<char>,
    /// The delimiter of the text that is open in it.
    quote: Option<char>,
    /// Whether the document is a list.
    in_list: bool,
}

impl Document {
    /// Adds a line.
    pub(super) fn line(&mut self, line: &str) -> DocumentLine {
        let is_open = !self.open.is_empty() || self.in_list;
        let text = line.trim();
        if !is_open && !begins(text) {
            return DocumentLine::Text;
        }
        let continues = text.is_empty() || text.starts_with(can_begin) && self.can_continue(text);
        let objects = continues.then(|| self.add(text)).flatten();
        match objects {
            Some(objects) => DocumentLine::Part(objects),
            None => {
                *self = Self::default();
                DocumentLine::Broken
            }
        }
    }

    /// Adds the characters of a line. Returns `None` if it is no JSON.
    fn add(&mut self, text: &str) -> Option<Vec<String>> {
        let mut objects = Vec::new();
        let mut is_escaped = false;
        for letter in text.chars() {
            if self.open.is_empty() {
                match letter {
                    '{' => {}
                    '[' if !self.in_list => {
                        self.in_list = true;
                        continue;
                    }
                    ']' if self.in_list => {
                        self.in_list = false;
                        continue;
                    }
                    letter if self.in_list && (letter == ',' || letter.is_whitespace()) => continue,
                    _ => return None,
                }
            }
            // White space between values is of the layout.
            if self.quote.is_none() && letter.is_whitespace() {
                continue;
            }
            self.object.push(letter);
            match (self.quote, letter) {
                (Some(_), _) if is_escaped => is_escaped = false,
                (Some(_), '\\') => is_escaped = true,
                (Some(quote), letter) if letter == quote => self.quote = None,
                (Some(_), _) => {}
                (None, '"' | '\'') => self.quote = Some(letter),
                (None, '{' | '[') => self.open.push(letter),
                (None, '}' | ']') => drop(self.open.pop()),
                (None, _) => {}
            }
            if self.open.is_empty() {
                objects.push(std::mem::take(&mut self.object));
            }
        }
        // The text of a value ends on its line.
        let is_valid = self.quote.is_none() && self.object.len() <= MAX_BYTES;
        is_valid.then_some(objects)
    }

    /// Returns whether a line can be the next part: in an object, a key follows a comma. Another record follows one that was cut.
    fn can_continue(&self, text: &str) -> bool {
        let is_key = self.open.last() == Some(&'{') && self.object.ends_with(['{', ',']);
        !is_key || text.starts_with(['"', '\'', '}'])
    }
}

/// Returns whether a line begins a document: a list of objects, or an object without its end.
fn begins(text: &str) -> bool {
    match text.strip_prefix('[') {
        Some(list) => list.is_empty() || list.trim_start().starts_with('{'),
        None => text.starts_with('{') && text.ends_with(['{', '[', ',']) && is_unbalanced(text),
    }
}

fn is_unbalanced(text: &str) -> bool {
    let count = |brackets: [u8; 2]| text.bytes().filter(|byte| brackets.contains(byte)).count();
    count([b'{', b'[']) > count([b'}', b']'])
}

/// Returns whether a line of JSON can begin with a character.
fn can_begin(letter: char) -> bool {
    matches!(letter, '{' | '}' | '[' | ']' | '"' | '\'' | ',' | '-' | '0'..='9') || "tfnNITF".contains(letter)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn objects(lines: &[&str]) -> Vec<String> {
        let mut document = Document::default();
        let parts = lines.iter().flat_map(|line| match document.line(line) {
            DocumentLine::Part(objects) => objects,
            DocumentLine::Text => vec!["text".to_owned()],
            DocumentLine::Broken => vec!["broken".to_owned()],
        });
        parts.collect()
    }

    #[test]
    fn objects_over_several_lines_and_of_lists_are_assembled() {
        assert_eq!(
            objects(&["{", "  \"a}\": 1,", "  \"b\": [2]", "}", "x"]),
            ["{\"a}\":1,\"b\":[2]}", "text"]
        );
        assert_eq!(objects(&["[{\"a\": 1}, {\"a\": 2}]"]), ["{\"a\":1}", "{\"a\":2}"]);
        assert_eq!(
            objects(&["[", "{\"a\": 1},", "{", "\"a\": 2}", "]", "x"]),
            ["{\"a\":1}", "{\"a\":2}", "text"]
        );
    }

    #[test]
    fn other_lines_are_text_or_break_the_document() {
        assert_eq!(
            objects(&["{\"a\": 1}", "[rank0] x", "[50, 0.1]", "{}"]),
            ["text"; 4]
        );
        assert_eq!(objects(&["{", "step 5", "x"]), ["broken", "text"]);
        // Another record or line follows one that was cut.
        assert_eq!(objects(&["{\"a\": 1,", "{\"a\": 2}"]), ["broken"]);
        assert_eq!(objects(&["{\"a\": 1,", "INFO step 5", "x"]), ["broken", "text"]);
        assert_eq!(objects(&["{\"a\": 1,", "\"b: 2", "x"]), ["broken", "text"]);
    }
}
