//! The part of an input that is in memory: from the first byte that is not consumed to the last byte that was read.

use std::io::{self, Read};

const CHUNK: usize = 64 << 10;
/// Up to this size the buffer holds several frames, so that the rest of a frame is seldom moved.
const ROOMY: usize = 1 << 20;

pub(super) struct Window<R> {
    input: R,
    bytes: Vec<u8>,
    start: usize,
    end: usize,
    /// Bytes that were consumed.
    offset: u64,
}

/// The result of a search for the end of a line.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Line {
    /// A line of `length` bytes, and whether a line end follows.
    Complete { length: usize, is_ended: bool },
    /// A line that exceeds the limit.
    TooLong,
    /// The end of the input.
    None,
}

impl<R: Read> Window<R> {
    pub(super) fn new(input: R) -> Self {
        Self {
            input,
            bytes: Vec::new(),
            start: 0,
            end: 0,
            offset: 0,
        }
    }

    pub(super) fn input(&self) -> &R {
        &self.input
    }

    /// Returns the number of bytes that have been consumed.
    pub(super) fn offset(&self) -> u64 {
        self.offset
    }

    /// Returns the bytes that were read and not consumed.
    pub(super) fn pending(&self) -> &[u8] {
        &self.bytes[self.start..self.end]
    }

    pub(super) fn consume(&mut self, count: usize) {
        self.start += count;
        self.offset += count as u64;
    }

    /// Consumes `count` pending bytes and returns them in the buffer that they were read to, without a copy of them.
    pub(super) fn take(&mut self, count: usize) -> Vec<u8> {
        let rest = self.pending()[count..].to_vec();
        let (start, end) = (self.start, self.start + count);
        self.offset += count as u64;
        (self.start, self.end) = (0, rest.len());
        let mut taken = std::mem::replace(&mut self.bytes, rest);
        taken.truncate(end);
        taken.drain(..start);
        taken.shrink_to_fit();
        taken
    }

    /// Reads more bytes; returns `false` at the end of the input.
    pub(super) fn fill(&mut self) -> io::Result<bool> {
        self.make_room();
        loop {
            match self.input.read(&mut self.bytes[self.end..]) {
                Ok(count) => {
                    self.end += count;
                    return Ok(count > 0);
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }

    fn make_room(&mut self) {
        if self.has_room() {
            return;
        }
        if self.start > 0 {
            self.bytes.copy_within(self.start..self.end, 0);
            self.end -= self.start;
            self.start = 0;
        }
        let is_crowded = self.end > self.bytes.len() / 4 && self.bytes.len() < ROOMY;
        if is_crowded || !self.has_room() {
            self.bytes.resize((self.bytes.len() * 2).max(2 * CHUNK), 0);
        }
    }

    fn has_room(&self) -> bool {
        self.bytes.len() - self.end >= CHUNK
    }

    /// Reads until `count` bytes are pending; returns `false` if the input has fewer.
    pub(super) fn fill_to(&mut self, count: usize) -> io::Result<bool> {
        while self.pending().len() < count {
            if !self.fill()? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Finds the end of the line at the window, without consuming it.
    pub(super) fn find_line(&mut self, limit: usize) -> io::Result<Line> {
        let mut searched = 0;
        loop {
            let found = memchr::memchr(b'\n', &self.pending()[searched..]);
            let length = found.map_or(self.pending().len(), |at| searched + at);
            if length > limit {
                return Ok(Line::TooLong);
            }
            if found.is_some() {
                return Ok(Line::Complete {
                    length,
                    is_ended: true,
                });
            }
            searched = length;
            if !self.fill()? {
                let rest = Line::Complete {
                    length,
                    is_ended: false,
                };
                return Ok(if length == 0 { Line::None } else { rest });
            }
        }
    }

    /// Consumes the rest of a line without keeping it in memory.
    pub(super) fn skip_line(&mut self) -> io::Result<()> {
        loop {
            if let Some(at) = memchr::memchr(b'\n', self.pending()) {
                self.consume(at + 1);
                return Ok(());
            }
            self.consume(self.pending().len());
            if !self.fill()? {
                return Ok(());
            }
        }
    }

    /// Consumes `count` bytes without keeping them in memory; returns `false` if the input has fewer.
    pub(super) fn skip(&mut self, mut count: usize) -> io::Result<bool> {
        loop {
            let step = count.min(self.pending().len());
            self.consume(step);
            count -= step;
            if count == 0 {
                return Ok(true);
            }
            if !self.fill()? {
                return Ok(false);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An input that returns one byte at a time and is interrupted before each.
    struct Drip<'a>(&'a [u8], bool);

    impl Read for Drip<'_> {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            self.1 = !self.1;
            if self.1 {
                return Err(io::ErrorKind::Interrupted.into());
            }
            self.0.read(&mut buffer[..1])
        }
    }

    #[test]
    fn lines_are_found_in_an_input_read_byte_by_byte() {
        let mut window = Window::new(Drip(b"ab\n\nlast", false));
        for (length, is_ended) in [(2, true), (0, true), (4, false)] {
            assert_eq!(window.find_line(9).unwrap(), Line::Complete { length, is_ended });
            window.consume(length + usize::from(is_ended));
        }
        assert_eq!((window.find_line(9).unwrap(), window.offset()), (Line::None, 8));
    }

    #[test]
    fn lines_of_any_length_are_returned_complete_at_any_window_position() {
        let length = |line: usize| line * 37_717 % (5 * CHUNK);
        let lines =
            (0..60).flat_map(|line| [vec![b'0' + line as u8 % 10; length(line)], b"\n".to_vec()].concat());
        let text: Vec<u8> = lines.collect();
        let mut window = Window::new(text.as_slice());
        for line in 0..60 {
            let whole = Line::Complete {
                length: length(line),
                is_ended: true,
            };
            assert_eq!(window.find_line(usize::MAX).unwrap(), whole);
            assert!(
                window.pending()[..length(line)]
                    .iter()
                    .all(|&byte| byte == b'0' + line as u8 % 10)
            );
            window.consume(length(line) + 1);
        }
        assert!(window.bytes.len() <= 2 * ROOMY);
    }

    #[test]
    fn taken_bytes_are_consumed_and_the_rest_is_still_pending() {
        let text: Vec<u8> = (0..5 * CHUNK).map(|at| at as u8).collect();
        let mut window = Window::new(text.as_slice());
        window.fill_to(4 * CHUNK).unwrap();
        window.consume(3);
        assert_eq!(window.take(3 * CHUNK), text[3..][..3 * CHUNK]);
        assert_eq!(window.offset(), 3 + 3 * CHUNK as u64);
        window.fill_to(2 * CHUNK - 3).unwrap();
        assert_eq!(window.pending(), &text[3 + 3 * CHUNK..]);
        assert!(!window.fill().unwrap());
    }

    #[test]
    fn overlong_line_is_skipped_without_being_buffered() {
        let long = [vec![b'x'; 100 * CHUNK], b"\nnext".to_vec()].concat();
        let mut window = Window::new(long.as_slice());
        assert_eq!(window.find_line(CHUNK).unwrap(), Line::TooLong);
        window.skip_line().unwrap();
        window.fill_to(4).unwrap();
        assert_eq!(window.pending(), b"next");
        assert!(window.bytes.len() <= 4 * CHUNK);
    }
}
