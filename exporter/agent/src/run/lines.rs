//! Merges the lines of several streams into one text without splitting a line.

use pulsetrain_launcher::Chunk;

/// The limit on the length of a line in bytes; a longer line is not a log line, and is skipped.
const MAX_LINE_BYTES: usize = 1 << 20;

/// The incomplete lines, one for each stream.
#[derive(Debug, Default)]
pub(super) struct Lines {
    partial: Vec<PartialLine>,
    /// The number of bytes that were skipped.
    pub(super) left_out: u64,
}

#[derive(Clone, Debug, Default)]
struct PartialLine {
    bytes: Vec<u8>,
    /// Whether the line has lost a part, so that it is skipped up to its end.
    is_broken: bool,
}

impl Lines {
    /// Appends to `text` the lines that the chunk completes.
    pub(super) fn push(&mut self, chunk: &Chunk, text: &mut Vec<u8>) {
        if self.partial.len() <= chunk.stream {
            self.partial.resize_with(chunk.stream + 1, PartialLine::default);
        }
        let partial = &mut self.partial[chunk.stream];
        if chunk.missed > 0 {
            self.left_out += std::mem::take(&mut partial.bytes).len() as u64;
            partial.is_broken = true;
        }
        let mut bytes = chunk.bytes.as_slice();
        if partial.is_broken {
            let end = memchr::memchr(b'\n', bytes).map_or(bytes.len(), |end| end + 1);
            partial.is_broken = !bytes[..end].ends_with(b"\n");
            self.left_out += end as u64;
            bytes = &bytes[end..];
        }
        let complete = memchr::memrchr(b'\n', bytes).map_or(0, |end| end + 1);
        if complete > 0 {
            text.append(&mut partial.bytes);
            text.extend_from_slice(&bytes[..complete]);
        }
        partial.bytes.extend_from_slice(&bytes[complete..]);
        if partial.bytes.len() > MAX_LINE_BYTES {
            self.left_out += std::mem::take(&mut partial.bytes).len() as u64;
            partial.is_broken = true;
        }
    }

    /// Appends the remaining lines when the streams have ended.
    pub(super) fn finish(&mut self, text: &mut Vec<u8>) {
        for partial in self
            .partial
            .iter_mut()
            .filter(|partial| !partial.bytes.is_empty())
        {
            text.append(&mut partial.bytes);
            text.push(b'\n');
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(chunks: &[(usize, &str, u64)]) -> (String, u64) {
        let (mut lines, mut text) = (Lines::default(), Vec::new());
        for (stream, bytes, missed) in chunks {
            let chunk = Chunk {
                stream: *stream,
                bytes: bytes.as_bytes().to_vec(),
                missed: *missed,
            };
            lines.push(&chunk, &mut text);
        }
        lines.finish(&mut text);
        (String::from_utf8(text).unwrap(), lines.left_out)
    }

    #[test]
    fn lines_of_two_streams_are_not_interleaved() {
        let chunks = [
            (0, "a", 0),
            (1, "x\ny", 0),
            (0, "b\nc", 0),
            (1, "z\n", 0),
            (0, "d", 0),
        ];
        assert_eq!(text(&chunks), ("x\nab\nyz\ncd\n".to_owned(), 0));
    }

    #[test]
    fn line_with_lost_bytes_is_dropped_entirely() {
        let chunks = [(0, "one\ntw", 0), (0, "xx", 5), (0, "yy\nthree\n", 0)];
        assert_eq!(text(&chunks), ("one\nthree\n".to_owned(), 7));
    }

    #[test]
    fn line_above_the_length_limit_is_dropped() {
        let long = "x".repeat(MAX_LINE_BYTES + 1);
        let chunks = [(0, long.as_str(), 0), (0, "rest\nnext\n", 0)];
        assert_eq!(text(&chunks), ("next\n".to_owned(), long.len() as u64 + 5));
    }
}
