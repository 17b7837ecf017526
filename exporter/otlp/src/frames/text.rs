//! Finds the ends of objects in OTLP/JSON text without parsing the values.

use crate::lookup;

/// The byte order mark, which some programs put in front of UTF-8.
pub(super) const BOM: &[u8] = b"\xef\xbb\xbf";

/// Finds the end of an object in text that arrives in pieces.
#[derive(Debug, Default)]
pub(super) struct ObjectEnd {
    depth: u64,
    is_in_string: bool,
    is_escaped: bool,
}

impl ObjectEnd {
    /// Returns the index after the end of the object, or `None` if the object continues past this piece.
    pub(super) fn find(&mut self, piece: &[u8]) -> Option<usize> {
        piece
            .iter()
            .position(|&byte| self.ends_with(byte))
            .map(|index| index + 1)
    }

    fn ends_with(&mut self, byte: u8) -> bool {
        if self.is_in_string {
            let was_escaped = std::mem::replace(&mut self.is_escaped, false);
            match byte {
                _ if was_escaped => {}
                b'\\' => self.is_escaped = true,
                b'"' => self.is_in_string = false,
                _ => {}
            }
            return false;
        }
        match byte {
            b'"' => self.is_in_string = true,
            b'{' | b'[' => self.depth += 1,
            b'}' | b']' => {
                self.depth = self.depth.saturating_sub(1);
                return self.depth == 0;
            }
            _ => {}
        }
        false
    }
}

/// Returns the length of leading white space, a byte order mark included.
pub(super) fn blank_len(text: &[u8]) -> usize {
    let bom = if text.starts_with(BOM) { BOM.len() } else { 0 };
    let blank = text[bom..]
        .iter()
        .take_while(|byte| byte.is_ascii_whitespace())
        .count();
    bom + blank
}

/// Returns whether text begins with an object whose first name is that of a signal, as a line of OTLP/JSON does.
pub(super) fn begins_otlp(text: &[u8]) -> bool {
    text.trim_ascii_start()
        .strip_prefix(b"{")
        .and_then(|text| text.trim_ascii_start().strip_prefix(b"\""))
        .and_then(|text| text.split(|byte| *byte == b'"').next())
        .is_some_and(|name| lookup::signal_named(name).is_some())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn object_end_ignores_braces_inside_strings() {
        let text = br#"{"a":[{"}":"\"}\\"}],"b":{}} {"#;
        assert_eq!(ObjectEnd::default().find(text), Some(text.len() - 2));
        let mut pieces = ObjectEnd::default();
        let ends: Vec<_> = text.chunks(1).map(|piece| pieces.find(piece)).collect();
        assert_eq!(ends.iter().position(Option::is_some), Some(text.len() - 3));
    }

    #[test]
    fn truncated_object_has_no_end() {
        assert_eq!(ObjectEnd::default().find(br#"{"a":[{"b":"}}}}"#), None);
    }

    #[test]
    fn otlp_json_line_is_recognized_by_its_signal_key() {
        assert!(begins_otlp(b"  { \"resourceLogs\": ["));
        assert!(begins_otlp(b"{\"resource_logs\":["));
        assert!(!begins_otlp(b"{\"resource\": {}}"));
    }
}
