//! Decodes text in UTF-16, as Windows shells write it, to UTF-8. Other bytes pass unchanged.

use std::io::{self, Read};

/// The byte order marks of UTF-16.
const LITTLE_ENDIAN: [u8; 2] = [0xff, 0xfe];
const BIG_ENDIAN: [u8; 2] = [0xfe, 0xff];

/// The bytes after the mark that are searched for a zero: ASCII has one in each pair.
const SEARCHED: usize = 64;

/// Reads UTF-8 from an input in any of the encodings.
pub(super) struct Utf8Reader<R> {
    input: R,
    encoding: Encoding,
    /// Decoded bytes that were not read yet.
    decoded: Vec<u8>,
    read: usize,
    /// Undecoded bytes: half a unit or half of a pair of surrogates.
    rest: Vec<u8>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Encoding {
    Unknown,
    Utf8,
    Utf16(ByteOrder),
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum ByteOrder {
    Little,
    Big,
}

impl ByteOrder {
    fn unit(self, pair: [u8; 2]) -> u16 {
        match self {
            Self::Little => u16::from_le_bytes(pair),
            Self::Big => u16::from_be_bytes(pair),
        }
    }
}

impl<R: Read> Utf8Reader<R> {
    pub(super) fn new(input: R) -> Self {
        Self {
            input,
            encoding: Encoding::Unknown,
            decoded: Vec::new(),
            read: 0,
            rest: Vec::new(),
        }
    }

    /// Reads the first bytes and detects the encoding.
    fn detect(&mut self) -> io::Result<()> {
        let mut head = vec![0; SEARCHED];
        let mut len = self.input.read(&mut head)?;
        while (1..4).contains(&len) {
            match self.input.read(&mut head[len..])? {
                0 => break,
                more => len += more,
            }
        }
        head.truncate(len);
        let has_zero = head.get(2..).is_some_and(|text| text.contains(&0));
        let mark = head.first_chunk::<2>().filter(|_| has_zero);
        self.encoding = match mark {
            Some(&LITTLE_ENDIAN) => Encoding::Utf16(ByteOrder::Little),
            Some(&BIG_ENDIAN) => Encoding::Utf16(ByteOrder::Big),
            _ => Encoding::Utf8,
        };
        match self.encoding {
            Encoding::Utf16(order) => self.decode(&head[2..], order, false),
            _ => self.decoded = head,
        }
        Ok(())
    }

    fn decode(&mut self, bytes: &[u8], order: ByteOrder, is_last: bool) {
        self.rest.extend_from_slice(bytes);
        let (pairs, _) = self.rest.as_chunks::<2>();
        let mut units: Vec<u16> = pairs.iter().map(|pair| order.unit(*pair)).collect();
        if !is_last && units.last().is_some_and(|last| (0xd800..0xdc00).contains(last)) {
            units.pop();
        }
        self.rest.drain(..units.len() * 2);
        self.decoded.clear();
        self.read = 0;
        self.decoded
            .extend_from_slice(String::from_utf16_lossy(&units).as_bytes());
    }
}

impl<R: Read> Read for Utf8Reader<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.encoding == Encoding::Unknown {
            self.detect()?;
        }
        while self.read == self.decoded.len() {
            let Encoding::Utf16(order) = self.encoding else {
                return self.input.read(buffer);
            };
            let mut bytes = vec![0; buffer.len().max(SEARCHED)];
            let len = self.input.read(&mut bytes)?;
            self.decode(&bytes[..len], order, len == 0);
            if len == 0 && self.decoded.is_empty() {
                return Ok(0);
            }
        }
        let unread = &self.decoded[self.read..];
        let len = unread.len().min(buffer.len());
        buffer[..len].copy_from_slice(&unread[..len]);
        self.read += len;
        Ok(len)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Yields a few bytes at a time.
    struct Slow<'a>(&'a [u8]);

    impl Read for Slow<'_> {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            let len = self.0.len().min(buffer.len()).min(3);
            buffer[..len].copy_from_slice(&self.0[..len]);
            self.0 = &self.0[len..];
            Ok(len)
        }
    }

    fn read(bytes: &[u8]) -> Vec<u8> {
        let mut text = Vec::new();
        Utf8Reader::new(Slow(bytes)).read_to_end(&mut text).unwrap();
        text
    }

    #[test]
    fn utf_16_of_both_byte_orders_is_decoded() {
        let text = "step 1 loss 2.5 \u{1f600} größe\r\n".repeat(20);
        let units = || std::iter::once(0xfeff).chain(text.encode_utf16());
        let little: Vec<u8> = units().flat_map(u16::to_le_bytes).collect();
        let big: Vec<u8> = units().flat_map(u16::to_be_bytes).collect();
        assert_eq!(read(&little), text.as_bytes());
        assert_eq!(read(&big), text.as_bytes());
    }

    #[test]
    fn other_bytes_pass_unchanged() {
        for bytes in [
            &b""[..],
            b"s",
            b"step 1 loss 2.5",
            b"\xff\xfe",
            b"\xff\xfe\xfd\xfc no zero",
            b"\xef\xbb\xbfstep",
        ] {
            assert_eq!(read(bytes), bytes);
        }
    }
}
