//! Reads OTLP/JSON objects that exceed the memory limit in pieces.

use std::io::Read;

use super::{Form, FrameReader, Next};
use crate::{
    frames::error::{FrameError, FrameErrorKind},
    json::{JsonError, Piece},
};

/// The size of text that is decoded at once; a larger object is split into pieces.
const PIECE: usize = 16 << 20;

impl<R: Read> FrameReader<R> {
    /// Returns the size limit for text that is read as one object.
    pub(super) fn max_text(&self) -> usize {
        let allowed = self.max_bytes().allowed;
        if self.pieces.is_some() {
            allowed.min(PIECE)
        } else {
            allowed
        }
    }

    /// Returns whether there is an object at the window that may be read in pieces.
    pub(super) fn can_be_read_in_pieces(&self) -> bool {
        self.pieces.is_some() && self.window.pending().first() == Some(&b'{')
    }

    /// Reads the next piece of the object at the window. It ends after an element of the outermost list; if no such element
    /// ends within the limit for a message, the piece ends inside an element.
    pub(super) fn next_piece(&mut self) -> Next {
        let most = self.max_bytes();
        for (bytes, deep) in [(self.max_text(), false), (most.allowed, true)] {
            let is_filled = match self.fill_to(bytes) {
                Ok(is_filled) => is_filled,
                Err(error) => return self.torn_text(error),
            };
            let text = self.window.pending();
            let text = &text[..text.len().min(bytes)];
            let pieces = self.pieces.as_mut();
            let piece = pieces.and_then(|pieces| pieces.take(text, deep || !is_filled));
            if let Some(piece) = piece {
                return self.decode_piece(&piece);
            }
            if !is_filled {
                let error = self.last_error(FrameErrorKind::TornTail);
                return self.torn_text(error);
            }
        }
        Err(self.last_error(FrameErrorKind::TooLarge(most)))
    }

    /// Decodes a piece into a frame and consumes its text.
    fn decode_piece(&mut self, piece: &Piece) -> Next {
        let found = self.decode_json(&piece.text);
        let found = found.map_err(|kind| self.piece_error(kind, piece));
        self.consume_text(piece.length);
        let (found, unknown_fields) = found?;
        self.unknown_fields += unknown_fields;
        Ok(found)
    }

    /// Returns the error of a piece with its offset in the input.
    fn piece_error(&self, kind: FrameErrorKind, piece: &Piece) -> FrameError {
        let FrameErrorKind::Json(error) = kind else {
            return self.error(kind);
        };
        let at = (error.offset as i64 + piece.shift).max(0) as usize;
        let before = self.window.pending().get(..at).unwrap_or_default();
        let lines = memchr::memchr_iter(b'\n', before).count() as u64;
        FrameError {
            kind: FrameErrorKind::Json(JsonError {
                offset: self.window.offset() as usize + at,
                ..error
            }),
            offset: self.window.offset() + at as u64,
            line: matches!(self.form, Form::Lines | Form::Documents).then_some(self.line + lines),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::Limits;

    const SPAN: &str = r#"{"name":"a","startTimeUnixNano":"1"}"#;

    /// A document of `resources` resources with `spans` spans each, over several lines or in one.
    fn document(resources: usize, spans: usize, end_of_line: &str) -> String {
        let spans = vec![SPAN; spans].join(&format!(",{end_of_line}"));
        let resource = format!("{{\"scopeSpans\":[{{\"spans\":[{spans}]}}],\"schemaUrl\":\"u\"}}");
        let all = vec![resource; resources].join(&format!(" ,{end_of_line}"));
        format!("{{{end_of_line}\"resourceSpans\":[{all}]}}\n")
    }

    /// Returns the number of spans of each frame, and the errors.
    fn read(text: &[u8], bytes: usize) -> (Vec<u64>, Vec<String>) {
        let limits = Limits {
            bytes,
            ..Limits::default()
        };
        let (mut spans, mut faults) = (Vec::new(), Vec::new());
        for frame in FrameReader::new(text, limits).in_pieces() {
            match frame {
                Ok(frame) => spans.push(frame.counts.items),
                Err(error) => faults.push(error.to_string()),
            }
        }
        (spans, faults)
    }

    #[test]
    fn oversized_json_object_is_read_in_pieces_and_so_is_the_next_object() {
        for end_of_line in ["", "\n"] {
            for (resources, spans) in [(40, 3), (1, 120), (3, 40)] {
                let text = document(resources, spans, end_of_line) + &document(1, 1, end_of_line);
                let original_names = text
                    .replace("resourceSpans", "resource_spans")
                    .replace("scopeSpans", "scope_spans");
                for text in [text, original_names] {
                    let (found, faults) = read(text.as_bytes(), 600);
                    assert_eq!(faults, [""; 0]);
                    assert_eq!(found.iter().sum::<u64>(), 121, "{found:?}");
                    assert!(found.len() > 8, "{found:?}");
                }
            }
        }
    }

    #[test]
    fn truncated_oversized_object_yields_complete_spans_and_the_offset_of_the_cut() {
        for (resources, spans) in [(12, 1), (1, 12)] {
            let text = document(resources, spans, "");
            let ends: Vec<usize> = text.match_indices(SPAN).map(|(at, _)| at + SPAN.len()).collect();
            for cut in 1..text.len() - 1 {
                let (found, faults) = read(&text.as_bytes()[..cut], 300);
                let whole = ends.iter().filter(|end| **end <= cut).count();
                assert_eq!(found.iter().sum::<u64>(), whole as u64, "{cut}: {faults:?}");
                let [fault] = &faults[..] else {
                    panic!("one fault, {cut}: {faults:?}");
                };
                let until = fault.split_once("before byte ").map(|(_, rest)| {
                    let digits = rest.split(' ').next().unwrap_or_default();
                    digits.parse::<usize>().expect("a place is a number")
                });
                let last = ends.iter().rfind(|end| **end <= cut).copied();
                assert_eq!(until.is_some(), last.is_some(), "{cut}: {fault}");
                assert!(
                    until.is_none_or(|until| last <= Some(until) && until <= cut),
                    "{cut}: {fault}"
                );
            }
        }
    }

    #[test]
    fn error_in_a_piece_has_its_input_offset_and_hides_no_other_piece() {
        let text = document(20, 2, "\n").replacen("\"1\"", "[1]", 15);
        let (found, faults) = read(text.as_bytes(), 300);
        assert!(found.iter().sum::<u64>() >= 20, "{found:?}");
        assert!(faults.len() > 3, "{faults:?}");
        for fault in faults {
            let at: usize = fault.rsplit(' ').next().unwrap().parse().unwrap();
            assert!(text[at..].starts_with("[1]"), "{fault}");
            let line = text[..at].lines().count();
            assert!(fault.contains(&format!("line {line}:")), "{fault}");
        }
    }

    #[test]
    fn single_oversized_span_is_reported_and_ends_the_input() {
        let name = format!("\"{}\"", "a".repeat(1_000));
        let (found, faults) = read(document(1, 1, "").replace("\"a\"", &name).as_bytes(), 300);
        assert!(found.is_empty() && faults.len() == 1, "{faults:?}");
        assert!(faults[0].contains("300"), "{faults:?}");
    }
}
