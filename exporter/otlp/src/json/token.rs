//! Reads tokens of JSON text in place, strictly by RFC 8259.

use super::{
    error::{JsonError, JsonErrorKind},
    escape, number,
};

/// A position in JSON text.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cursor<'t> {
    text: &'t [u8],
    at: usize,
}

/// A string as written in the text, without its quotes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Raw<'t> {
    /// The text between the quotes.
    pub(super) inside: &'t [u8],
    /// The offset of `inside` in the text.
    pub(super) offset: usize,
    /// The number of escapes in it.
    pub(super) escapes: usize,
}

impl<'t> Cursor<'t> {
    pub(super) fn new(text: &'t [u8]) -> Self {
        let bom = if text.starts_with(b"\xef\xbb\xbf") { 3 } else { 0 };
        Self { text, at: bom }
    }

    /// Returns the length of the input text.
    pub(super) fn text_len(&self) -> usize {
        self.text.len()
    }

    /// Returns the offset of the next byte in the text.
    #[inline]
    pub(super) fn offset(&self) -> usize {
        self.at
    }

    /// Returns the next byte that is not white space, without consuming it.
    #[inline]
    pub(super) fn peek(&mut self) -> Option<u8> {
        loop {
            match self.text.get(self.at) {
                Some(b' ' | b'\n' | b'\r' | b'\t') => self.at += 1,
                other => return other.copied(),
            }
        }
    }

    /// Consumes one byte of punctuation.
    #[inline]
    pub(super) fn expect(&mut self, byte: u8, what: &'static str) -> Result<(), JsonError> {
        if self.peek() != Some(byte) {
            return Err(self.missing(what));
        }
        self.at += 1;
        Ok(())
    }

    /// Returns an error that names the expected token.
    #[cold]
    pub(super) fn missing(&self, what: &'static str) -> JsonError {
        let kind = if self.at < self.text.len() {
            JsonErrorKind::Expected(what)
        } else {
            JsonErrorKind::Truncated(what)
        };
        JsonError::new(kind, self.at)
    }

    /// Reads the name of the next member and its colon; returns `None` at the end of the object.
    #[inline(always)]
    pub(super) fn next_name(&mut self, first: &mut bool) -> Result<Option<Raw<'t>>, JsonError> {
        if !self.next_part(b'}', first, "a comma or the end of the object")? {
            return Ok(None);
        }
        let name = self.string("a field's name")?;
        self.expect(b':', "a colon")?;
        Ok(Some(name))
    }

    /// Consumes the separator, name and colon of a member if they are next and written without white space; the first member
    /// has no comma.
    #[inline(always)]
    pub(super) fn take_key(&mut self, key: &str, is_first: bool) -> bool {
        let key = &key.as_bytes()[usize::from(is_first)..];
        let rest = self.text.get(self.at..).unwrap_or_default();
        let stands_here = rest.first() == key.first() && begins_with(rest, key);
        if stands_here {
            self.at += key.len();
        }
        stands_here
    }

    /// Returns whether the list has another element; consumes the comma before it, or the end of the list.
    #[inline]
    pub(super) fn next_element(&mut self, first: &mut bool) -> Result<bool, JsonError> {
        self.next_part(b']', first, "a comma or the end of the list")
    }

    #[inline]
    fn next_part(&mut self, end: u8, first: &mut bool, what: &'static str) -> Result<bool, JsonError> {
        let byte = self.peek();
        if byte == Some(end) {
            self.at += 1;
            return Ok(false);
        }
        if std::mem::replace(first, false) {
            return Ok(true);
        }
        if byte != Some(b',') {
            return Err(self.missing(what));
        }
        self.at += 1;
        Ok(true)
    }

    /// Reads a string.
    #[inline(always)]
    pub(super) fn string(&mut self, what: &'static str) -> Result<Raw<'t>, JsonError> {
        self.expect(b'"', what)?;
        let offset = self.at;
        let rest = self.text.get(offset..).unwrap_or_default();
        let (inside, behind) = rest.split_at(escape::plain_len(rest));
        if behind.first() == Some(&b'"') {
            self.at += inside.len() + 1;
            return Ok(Raw {
                inside,
                offset,
                escapes: 0,
            });
        }
        self.escaped_string()
    }

    /// Reads the rest of a string that contains escapes or is malformed.
    #[cold]
    fn escaped_string(&mut self) -> Result<Raw<'t>, JsonError> {
        let offset = self.at;
        let mut escapes = 0;
        loop {
            self.at += escape::plain_len(self.text.get(self.at..).unwrap_or_default());
            match self.text.get(self.at) {
                Some(b'"') => break,
                Some(b'\\') => {
                    escapes += 1;
                    self.at = (self.at + 2).min(self.text.len());
                }
                Some(_) => return Err(JsonError::new(JsonErrorKind::ControlCharacter, self.at)),
                None => return Err(self.missing("the end of a string")),
            }
        }
        let inside = &self.text[offset..self.at];
        self.at += 1;
        Ok(Raw {
            inside,
            offset,
            escapes,
        })
    }

    /// Reads a string of `N` bytes if one is next and `read` accepts it.
    #[inline(always)]
    pub(super) fn take_string<const N: usize, T>(
        &mut self,
        read: impl FnOnce(&[u8; N]) -> Option<T>,
    ) -> Option<T> {
        let (b'"', rest) = self.text.get(self.at..)?.split_first()? else {
            return None;
        };
        let (inside, rest) = rest.split_first_chunk::<N>()?;
        if rest.first() != Some(&b'"') {
            return None;
        }
        let value = read(inside)?;
        self.at += N + 2;
        Some(value)
    }

    /// Returns `N` bytes of the text at an offset, or `None` past its end.
    #[inline]
    pub(super) fn chunk<const N: usize>(&self, offset: usize) -> Option<&'t [u8; N]> {
        self.text.get(offset..)?.first_chunk()
    }

    /// Reads a number.
    #[inline]
    pub(super) fn number(&mut self, what: &'static str) -> Result<&'t [u8], JsonError> {
        self.peek();
        let rest = &self.text[self.at..];
        let (number, _) = rest.split_at(number::len(rest));
        if number.is_empty() {
            return Err(self.missing(what));
        }
        self.at += number.len();
        Ok(number)
    }

    /// Reads an integer of up to 19 digits, plain or in a string, if one is next and `fits` accepts it: the usual notation of
    /// integers, in one pass.
    #[inline]
    pub(super) fn take_plain_integer(&mut self, fits: impl FnOnce(u64) -> Option<u64>) -> Option<u64> {
        let is_quoted = self.peek() == Some(b'"');
        let digits = &self.text[self.at + usize::from(is_quoted)..];
        let (mut value, mut length) = (0, 0);
        while length < 16
            && let Some(eight) = digits.get(length..).and_then(number::eight_digits)
        {
            value = value * 100_000_000 + eight;
            length += 8;
        }
        while let Some(digit @ b'0'..=b'9') = digits.get(length) {
            if length == 19 {
                return None;
            }
            value = value * 10 + u64::from(digit - b'0');
            length += 1;
        }
        let is_plain = match digits.get(length) {
            Some(b'"') => is_quoted,
            Some(b'.' | b'e' | b'E') => false,
            _ => !is_quoted,
        };
        if length == 0 || (length > 1 && digits[0] == b'0') || !is_plain {
            return None;
        }
        let value = fits(value)?;
        self.at += length + 2 * usize::from(is_quoted);
        Some(value)
    }

    /// Consumes `word` if it is next.
    #[inline]
    pub(super) fn take_word(&mut self, word: &[u8]) -> bool {
        self.peek();
        let stands_here = self.text[self.at..].starts_with(word);
        if stands_here {
            self.at += word.len();
        }
        stands_here
    }

    /// Skips a value of any type, whose objects and lists are nested no deeper than `depth`.
    pub(super) fn skip_value(&mut self, depth: usize) -> Result<(), JsonError> {
        match self.peek() {
            Some(b'{') if depth > 0 => {
                self.at += 1;
                let mut first = true;
                while self.next_name(&mut first)?.is_some() {
                    self.skip_value(depth - 1)?;
                }
                Ok(())
            }
            Some(b'[') if depth > 0 => {
                self.at += 1;
                let mut first = true;
                while self.next_element(&mut first)? {
                    self.skip_value(depth - 1)?;
                }
                Ok(())
            }
            Some(b'{' | b'[') => Err(self.missing("a value that is nested less deep")),
            Some(b'"') => self.string("a string").map(drop),
            _ => self.skip_word_or_number(),
        }
    }

    fn skip_word_or_number(&mut self) -> Result<(), JsonError> {
        let words: [&[u8]; 3] = [b"true", b"false", b"null"];
        if words.into_iter().any(|word| self.take_word(word)) {
            return Ok(());
        }
        self.number("a value").map(drop)
    }
}

/// Returns whether text begins with a key: the first and the last bytes of the key, which overlap or meet, are compared at
/// once.
#[inline(always)]
fn begins_with(text: &[u8], key: &[u8]) -> bool {
    let Some(start) = text.get(..key.len()) else {
        return false;
    };
    match key.len() {
        4..8 => edges::<4>(start) == edges::<4>(key),
        8..16 => edges::<8>(start) == edges::<8>(key),
        16..=32 => edges::<16>(start) == edges::<16>(key),
        _ => start == key,
    }
}

#[inline(always)]
fn edges<const N: usize>(text: &[u8]) -> Option<(&[u8; N], &[u8; N])> {
    text.first_chunk().zip(text.last_chunk())
}

impl Raw<'_> {
    /// Appends the decoded content of the string.
    ///
    /// # Errors
    ///
    /// A backslash that begins no valid escape, with its offset in the text.
    pub(super) fn unescape(&self, out: &mut Vec<u8>) -> Result<(), JsonError> {
        escape::unescape(self.inside, out)
            .map_err(|index| JsonError::new(JsonErrorKind::BadEscape, self.offset + index))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prefix_comparison_detects_any_single_different_byte() {
        for length in 1..40_u8 {
            let key: Vec<u8> = (0..length).collect();
            let text = [&key[..], b"suffix"].concat();
            assert!(begins_with(&text, &key) && begins_with(&key, &key), "{length}");
            assert!(!begins_with(&key[1..], &key));
            for place in 0..key.len() {
                let mut other = text.clone();
                other[place] ^= 1;
                assert!(!begins_with(&other, &key), "{place} of {length}");
            }
        }
    }
}
