//! Makes texts of the numbers that JSON does not have: `NaN`, `Infinity` and `-Infinity`, as Python writes them.

use std::io::{self, Read};

/// The numbers that JSON does not have.
const WORDS: [&[u8]; 3] = [b"NaN", b"Infinity", b"-Infinity"];

/// The length of the longest of them.
const LONGEST: usize = 9;

/// The size of the blocks that are read.
const BLOCK: usize = 64 << 10;

/// An input in which these numbers are texts.
pub(super) struct QuotedNumbers<R> {
    input: R,
    block: Vec<u8>,
    /// The text so far, and the number of its bytes that were read.
    text: Vec<u8>,
    taken: usize,
    /// The letters of a word that may continue in the next block.
    word: Vec<u8>,
    place: Place,
}

/// The place of the next byte.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    Outside,
    InString,
    Escaped,
}

impl<R: Read> QuotedNumbers<R> {
    pub(super) fn new(input: R) -> Self {
        Self {
            input,
            block: vec![0; BLOCK],
            text: Vec::new(),
            taken: 0,
            word: Vec::new(),
            place: Place::Outside,
        }
    }

    /// Replaces the text with that of the next block. At the end of the input, the text is empty.
    fn fill(&mut self) -> io::Result<()> {
        self.text.clear();
        self.taken = 0;
        while self.text.is_empty() {
            let count = match self.input.read(&mut self.block) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                read => read?,
            };
            if count == 0 {
                self.end_word();
                return Ok(());
            }
            let block = std::mem::take(&mut self.block);
            block[..count].iter().for_each(|byte| self.add(*byte));
            self.block = block;
        }
        Ok(())
    }

    fn add(&mut self, byte: u8) {
        if self.place == Place::Outside {
            let continues = byte.is_ascii_alphabetic() && !self.word.is_empty() && self.word.len() < LONGEST;
            if continues {
                self.word.push(byte);
                return;
            }
            self.end_word();
            if matches!(byte, b'N' | b'I' | b'-') {
                self.word.push(byte);
                return;
            }
        }
        self.text.push(byte);
        self.place = match (self.place, byte) {
            (Place::Outside, b'"') | (Place::Escaped, _) => Place::InString,
            (Place::InString, b'\\') => Place::Escaped,
            (Place::InString, b'"') => Place::Outside,
            (place, _) => place,
        };
    }

    /// Adds the word to the text, in quotes if it is one of the numbers.
    fn end_word(&mut self) {
        let is_number = WORDS.contains(&self.word.as_slice());
        if is_number {
            self.text.push(b'"');
        }
        self.text.append(&mut self.word);
        if is_number {
            self.text.push(b'"');
        }
    }
}

impl<R: Read> Read for QuotedNumbers<R> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        if self.taken == self.text.len() {
            self.fill()?;
        }
        let count = (&self.text[self.taken..]).read(bytes)?;
        self.taken += count;
        Ok(count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An input that returns one byte at a time.
    struct Bytewise<'a>(&'a [u8]);

    impl Read for Bytewise<'_> {
        fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
            let count = bytes.len().min(1);
            self.0.read(&mut bytes[..count])
        }
    }

    #[test]
    fn numbers_that_json_lacks_become_texts_outside_of_strings() {
        for (text, expected) in [
            (r#"{"a": NaN}"#, r#"{"a": "NaN"}"#),
            (
                "[NaN,Infinity,-Infinity, -1, 1e-5]",
                r#"["NaN","Infinity","-Infinity", -1, 1e-5]"#,
            ),
            (
                r#"["NaN", "\" NaN", "\\", NaN]"#,
                r#"["NaN", "\" NaN", "\\", "NaN"]"#,
            ),
            ("NaNNaN Infinityy NaN", r#"NaNNaN Infinityy "NaN""#),
            ("InfinityInfinity", "InfinityInfinity"),
            ("-NaN -", "-NaN -"),
            ("null true", "null true"),
            ("", ""),
        ] {
            let mut quoted = String::new();
            let read = QuotedNumbers::new(text.as_bytes()).read_to_string(&mut quoted);
            read.expect("memory can be read");
            assert_eq!(quoted, expected, "{text}");
            quoted.clear();
            let read = QuotedNumbers::new(Bytewise(text.as_bytes())).read_to_string(&mut quoted);
            read.expect("memory can be read");
            assert_eq!(quoted, expected, "{text}");
        }
    }
}
