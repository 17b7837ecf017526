//! The copy of a stream on its way to the exporter: frames in a pipe, which the writer never waits for.
//!
//! A frame is the number of its bytes (`u32`), the number of bytes of the stream that were dropped before them (`u64`),
//! and the bytes, in the order of the machine. A frame that fits partly is completed before the next one, so that the
//! reader stays in step.

use std::{
    io::{self, Read, Write},
    ops::Range,
};

const HEADER_BYTES: usize = 12;

/// The buffer of a reader.
const READ_BYTES: usize = 64 << 10;

/// Writes frames without waiting, to a destination that is non-blocking.
pub(crate) struct FrameWriter<W> {
    /// `None` after the reader has closed its end.
    to: Option<W>,
    /// The rest of a frame that fitted partly.
    rest: Vec<u8>,
    dropped: u64,
}

impl<W: Write> FrameWriter<W> {
    pub(crate) fn new(to: Option<W>) -> Self {
        Self {
            to,
            rest: Vec::new(),
            dropped: 0,
        }
    }

    /// Writes a frame of these bytes, or drops and counts them if the pipe is full.
    pub(crate) fn offer(&mut self, bytes: &[u8]) {
        if !self.rest.is_empty() {
            let rest = std::mem::take(&mut self.rest);
            let written = self.write(&rest);
            self.rest = rest;
            self.rest.drain(..written);
        }
        if !self.rest.is_empty() || self.to.is_none() {
            self.dropped += bytes.len() as u64;
            return;
        }
        let mut frame = Vec::with_capacity(HEADER_BYTES + bytes.len());
        let len = u32::try_from(bytes.len()).expect("invariant: a read is below 4 GiB");
        frame.extend_from_slice(&len.to_ne_bytes());
        frame.extend_from_slice(&self.dropped.to_ne_bytes());
        frame.extend_from_slice(bytes);
        match self.write(&frame) {
            0 => self.dropped += bytes.len() as u64,
            written => {
                self.dropped = 0;
                frame.drain(..written);
                self.rest = frame;
            }
        }
    }

    /// Writes as many of these bytes as there is room for, and returns their number.
    fn write(&mut self, bytes: &[u8]) -> usize {
        let mut written = 0;
        while let Some(to) = &mut self.to
            && written < bytes.len()
        {
            match to.write(&bytes[written..]) {
                Ok(len @ 1..) => written += len,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Ok(_) | Err(_) => self.to = None,
            }
        }
        written
    }

    /// Reports the last dropped bytes, if there is room.
    pub(crate) fn finish(mut self) {
        if self.dropped > 0 {
            self.offer(&[]);
        }
    }
}

/// Reads frames. Consecutive frames without a gap between them are returned as one.
pub(crate) struct FrameReader<R> {
    from: R,
    buffer: Vec<u8>,
    unread: Range<usize>,
}

/// Bytes of the stream, and the number of bytes that were dropped before them.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Frame {
    pub(crate) dropped: u64,
    pub(crate) bytes: Vec<u8>,
}

impl<R: Read> FrameReader<R> {
    pub(crate) fn new(from: R) -> Self {
        Self {
            from,
            buffer: vec![0; READ_BYTES],
            unread: 0..0,
        }
    }

    /// Waits for the next frame; returns `None` at the end of the stream.
    pub(crate) fn next(&mut self) -> Option<Frame> {
        let (mut len, dropped) = self.header()?;
        let mut bytes = Vec::with_capacity(len.min(READ_BYTES));
        loop {
            while len > 0 {
                let part = self.read_at_most(len)?;
                bytes.extend_from_slice(part);
                len -= part.len();
            }
            match self.next_without_waiting(bytes.len()) {
                Some(following) => len = following,
                None => return Some(Frame { dropped, bytes }),
            }
        }
    }

    fn header(&mut self) -> Option<(usize, u64)> {
        let mut header = [0; HEADER_BYTES];
        let mut filled = 0;
        while filled < HEADER_BYTES {
            let part = self.read_at_most(HEADER_BYTES - filled)?;
            header[filled..filled + part.len()].copy_from_slice(part);
            filled += part.len();
        }
        Some(parse(&header))
    }

    /// Returns the length of a frame without a gap whose header has been read already, if the frames so far are short.
    fn next_without_waiting(&mut self, so_far: usize) -> Option<usize> {
        let header = self.buffer[self.unread.clone()].first_chunk::<HEADER_BYTES>()?;
        let (len, dropped) = parse(header);
        if dropped > 0 || so_far >= READ_BYTES {
            return None;
        }
        self.unread.start += HEADER_BYTES;
        Some(len)
    }

    fn read_at_most(&mut self, len: usize) -> Option<&[u8]> {
        while self.unread.is_empty() {
            match self.from.read(&mut self.buffer) {
                Ok(0) => return None,
                Ok(read) => self.unread = 0..read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => return None,
            }
        }
        let start = self.unread.start;
        let end = self.unread.end.min(start + len);
        self.unread.start = end;
        Some(&self.buffer[start..end])
    }
}

fn parse(header: &[u8; HEADER_BYTES]) -> (usize, u64) {
    let [a, b, c, d, dropped @ ..] = *header;
    (
        u32::from_ne_bytes([a, b, c, d]) as usize,
        u64::from_ne_bytes(dropped),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A pipe with room for a number of bytes.
    #[derive(Default)]
    struct Pipe {
        bytes: Vec<u8>,
        room: usize,
    }

    impl Write for &mut Pipe {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let len = bytes.len().min(self.room);
            if len == 0 {
                return Err(io::ErrorKind::WouldBlock.into());
            }
            self.room -= len;
            self.bytes.extend_from_slice(&bytes[..len]);
            Ok(len)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn frames(bytes: &[u8]) -> Vec<Frame> {
        let mut reader = FrameReader::new(bytes);
        std::iter::from_fn(|| reader.next()).collect()
    }

    fn frame(dropped: u64, bytes: &[u8]) -> Frame {
        Frame {
            dropped,
            bytes: bytes.to_vec(),
        }
    }

    /// Writes the bytes, each with so much room.
    fn written(offers: &[(&[u8], usize)]) -> Vec<Frame> {
        let mut pipe = Pipe::default();
        let (mut rest, mut dropped) = (Vec::new(), 0);
        for (bytes, room) in offers {
            pipe.room = *room;
            let mut writer = FrameWriter {
                to: Some(&mut pipe),
                rest,
                dropped,
            };
            writer.offer(bytes);
            (rest, dropped) = (writer.rest, writer.dropped);
        }
        frames(&pipe.bytes)
    }

    #[test]
    fn frames_without_a_gap_are_read_as_one() {
        assert_eq!(written(&[(b"one", 99), (b"two", 99)]), [frame(0, b"onetwo")]);
    }

    #[test]
    fn frame_that_fits_partly_is_completed_before_the_next_one() {
        let all = written(&[(b"one", 14), (b"two", 99)]);
        assert_eq!(all, [frame(0, b"onetwo")]);
        let all = written(&[(b"one", 5), (b"two", 4), (b"three", 0), (b"four", 99)]);
        assert_eq!(all, [frame(0, b"one"), frame(8, b"four")]);
    }

    #[test]
    fn dropped_bytes_are_counted_in_the_next_frame() {
        let all = written(&[(b"one", 99), (b"two", 0), (b"three", 0), (b"four", 99)]);
        assert_eq!(all, [frame(0, b"one"), frame(8, b"four")]);
    }

    #[test]
    fn last_dropped_bytes_are_reported_at_the_end() {
        let mut pipe = Pipe {
            room: 99,
            ..Pipe::default()
        };
        let writer = FrameWriter {
            to: Some(&mut pipe),
            rest: Vec::new(),
            dropped: 7,
        };
        writer.finish();
        assert_eq!(frames(&pipe.bytes), [frame(7, b"")]);
    }
}
