//! Splits an input into packets.

use std::io::{self, BufReader, Chain, Cursor, Read};

use flate2::read::{MultiGzDecoder, ZlibDecoder};

use super::error::{ReadError, ReadErrorKind};
use crate::field::trace;

const GZIP: [u8; 2] = [0x1f, 0x8b];
const ZSTD: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];

/// The limit for the size of a packet and of an inflated bundle of packets. Those that Perfetto writes have up to half a
/// megabyte.
const LARGEST: u64 = 256 << 20;

/// A packet begins with the tag of the only field that a trace has.
const PACKET_TAG: u8 = (trace::PACKET << 3 | 2) as u8;

/// Splits an input into packets.
pub(super) struct Packets<R: Read> {
    input: Input<R>,
    offset: u64,
    ended: bool,
}

type RewoundInput<R> = Chain<Cursor<Vec<u8>>, R>;

enum Input<R: Read> {
    Unread(Option<R>),
    Plain(BufReader<RewoundInput<R>>),
    Gzip(Box<BufReader<MultiGzDecoder<RewoundInput<R>>>>),
    Zstd(BufReader<zstd::Decoder<'static, BufReader<RewoundInput<R>>>>),
}

impl<R: Read> Packets<R> {
    pub(super) fn new(input: R) -> Self {
        Self {
            input: Input::Unread(Some(input)),
            offset: 0,
            ended: false,
        }
    }

    /// Returns the next packet with its offset, or `None` at the end and after an error from which reading cannot continue.
    pub(super) fn next_packet(&mut self) -> Result<Option<(u64, Vec<u8>)>, ReadError> {
        if self.ended {
            return Ok(None);
        }
        let start = self.offset;
        let packet = self.cut();
        self.ended = !matches!(packet, Ok(Some(_)));
        packet
            .map(|packet| packet.map(|bytes| (start, bytes)))
            .map_err(|kind| ReadError { kind, offset: start })
    }

    fn cut(&mut self) -> Result<Option<Vec<u8>>, ReadErrorKind> {
        match self.byte()? {
            None => return Ok(None),
            Some(PACKET_TAG) => {}
            Some(_) => return Err(ReadErrorKind::NotATrace),
        }
        let length = self.length()?;
        if length > LARGEST {
            return Err(ReadErrorKind::TooLarge(length));
        }
        let mut bytes = Vec::new();
        let read = self.input.by_ref().take(length).read_to_end(&mut bytes);
        let read = read.map_err(read_error)? as u64;
        self.offset += read;
        if read < length {
            return Err(ReadErrorKind::TornTail);
        }
        Ok(Some(bytes))
    }

    fn length(&mut self) -> Result<u64, ReadErrorKind> {
        let mut length = 0u64;
        for shift in (0..35).step_by(7) {
            let byte = self.byte()?.ok_or(ReadErrorKind::TornTail)?;
            length |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Ok(length);
            }
        }
        Err(ReadErrorKind::NotATrace)
    }

    fn byte(&mut self) -> Result<Option<u8>, ReadErrorKind> {
        let mut byte = [0];
        let read = self.input.read_exact(&mut byte);
        match read {
            Ok(()) => {
                self.offset += 1;
                Ok(Some(byte[0]))
            }
            // Here the input ends at a packet boundary, which is the regular end unless the compressed stream was truncated.
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof && !self.input.is_torn() => Ok(None),
            Err(error) => Err(read_error(error)),
        }
    }
}

/// The packet at the beginning of some bytes.
pub(super) enum NextPacket<'a> {
    /// A packet, and the number of bytes up to its end, its tag and length included.
    Complete { packet: &'a [u8], len: usize },
    /// An incomplete packet.
    Partial,
}

/// Splits the first packet off some bytes.
pub(super) fn cut(bytes: &[u8]) -> Result<NextPacket<'_>, ReadErrorKind> {
    let Some((&tag, mut rest)) = bytes.split_first() else {
        return Ok(NextPacket::Partial);
    };
    if tag != PACKET_TAG {
        return Err(ReadErrorKind::NotATrace);
    }
    let mut length = 0u64;
    for shift in (0..35).step_by(7) {
        let Some((&byte, after)) = rest.split_first() else {
            return Ok(NextPacket::Partial);
        };
        rest = after;
        length |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return complete(bytes, rest, length);
        }
    }
    Err(ReadErrorKind::NotATrace)
}

fn complete<'a>(bytes: &'a [u8], rest: &'a [u8], length: u64) -> Result<NextPacket<'a>, ReadErrorKind> {
    if length > LARGEST {
        return Err(ReadErrorKind::TooLarge(length));
    }
    let packet = rest.get(..length as usize);
    Ok(packet.map_or(NextPacket::Partial, |packet| NextPacket::Complete {
        packet,
        len: bytes.len() - rest.len() + packet.len(),
    }))
}

fn read_error(error: io::Error) -> ReadErrorKind {
    match error.kind() {
        io::ErrorKind::UnexpectedEof => ReadErrorKind::TornTail,
        _ => ReadErrorKind::Read(error),
    }
}

impl<R: Read> Input<R> {
    fn open(mut input: R) -> io::Result<Self> {
        let mut head = Vec::with_capacity(ZSTD.len());
        input.by_ref().take(ZSTD.len() as u64).read_to_end(&mut head)?;
        let (gzip, zstd) = (head.starts_with(&GZIP), head.starts_with(&ZSTD));
        let complete = Cursor::new(head).chain(input);
        Ok(if gzip {
            Self::Gzip(Box::new(BufReader::new(MultiGzDecoder::new(complete))))
        } else if zstd {
            Self::Zstd(BufReader::new(zstd::Decoder::new(complete)?))
        } else {
            Self::Plain(BufReader::new(complete))
        })
    }

    /// Returns whether a compressed input was truncated: another read of it then fails.
    fn is_torn(&mut self) -> bool {
        !matches!(self, Self::Plain(_) | Self::Unread(_)) && self.read(&mut [0]).is_err()
    }
}

impl<R: Read> Read for Input<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Plain(input) => input.read(buffer),
            Self::Gzip(input) => input.read(buffer),
            Self::Zstd(input) => input.read(buffer),
            Self::Unread(input) => match input.take() {
                Some(input) => {
                    *self = Self::open(input)?;
                    self.read(buffer)
                }
                None => Ok(0),
            },
        }
    }
}

/// Inflates a bundle of packets.
pub(super) fn inflate(bundle: &[u8], zstd: bool) -> Result<Vec<u8>, ReadErrorKind> {
    let mut inflated = Vec::new();
    let read = if zstd {
        zstd::Decoder::new(bundle).and_then(|input| input.take(LARGEST + 1).read_to_end(&mut inflated))
    } else {
        ZlibDecoder::new(bundle)
            .take(LARGEST + 1)
            .read_to_end(&mut inflated)
    };
    match read {
        Ok(length) if length as u64 > LARGEST => Err(ReadErrorKind::TooLarge(length as u64)),
        Ok(_) => Ok(inflated),
        Err(error) => Err(ReadErrorKind::Inflate(error)),
    }
}

impl<R: Read> std::fmt::Debug for Packets<R> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Packets")
            .field("offset", &self.offset)
            .finish_non_exhaustive()
    }
}
