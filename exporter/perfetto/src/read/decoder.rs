//! From packets to items, whichever way the packets come: with the state that sequences and clocks have between them.

use std::collections::{HashMap, VecDeque};

use super::{
    Item, Packet, ReadError, ReadErrorKind,
    clock::Clocks,
    decode,
    packets::{self, NextPacket},
    sequence::Sequence,
};
use crate::{
    field::packet,
    wire::{Fields, Value},
};

/// What a reader has seen and left out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReadCounts {
    /// Packets, those inside compressed ones included.
    pub packets: u64,
    /// Packets of a kind that the reader does not know: scheduling, memory and whatever else Perfetto records.
    pub unknown: u64,
    /// Packets that rely on state which was lost, and are left out as Perfetto requires.
    pub without_state: u64,
}

/// Decodes a trace whose bytes come in pieces: of a file that is still being written.
///
/// ```
/// # use pulsetrain_perfetto::{TraceDecoder, TraceWriter, Process};
/// # let mut trace = TraceWriter::new(Vec::new());
/// # trace.process(&Process { pid: 1, name: "rank 0", ..Process::default() })?;
/// # let trace = trace.finish()?;
/// let (mut decoder, mut items) = (TraceDecoder::default(), 0);
/// let mut unread = Vec::new();
/// for piece in trace.chunks(7) {
///     unread.extend_from_slice(piece);
///     let done = decoder.decode(&unread, |item| items += u32::from(item.is_ok()))?;
///     unread.drain(..done);
/// }
/// assert_eq!((items, unread.len()), (2, 0));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Default)]
pub struct TraceDecoder {
    sequences: Vec<Sequence>,
    /// The places of sequences by their numbers.
    places: HashMap<u64, usize>,
    /// The sequence of the last packet: most often that of the next one too.
    last: Option<(u64, usize)>,
    clocks: Clocks,
    ready: VecDeque<Result<Item, ReadError>>,
    counts: ReadCounts,
}

impl TraceDecoder {
    /// What has been seen and left out so far.
    pub fn counts(&self) -> ReadCounts {
        self.counts
    }

    /// Hands on everything in the complete packets at the beginning of some bytes, and returns how many bytes they have: the
    /// next piece is to begin with the rest. Places in errors count from the first of these bytes.
    ///
    /// # Errors
    /// The bytes are no trace, or stop being one: nothing can be read from there on.
    pub fn decode(
        &mut self,
        bytes: &[u8],
        mut each: impl FnMut(Result<Item, ReadError>),
    ) -> Result<usize, ReadError> {
        let mut done = 0;
        loop {
            let cut = packets::cut(&bytes[done..]).map_err(|kind| ReadError {
                kind,
                offset: done as u64,
            })?;
            let NextPacket::Complete { packet, len } = cut else {
                return Ok(done);
            };
            self.packet(packet, done as u64);
            self.ready.drain(..).for_each(&mut each);
            done += len;
        }
    }

    /// What was decoded and not taken yet.
    pub(super) fn next_ready(&mut self) -> Option<Result<Item, ReadError>> {
        self.ready.pop_front()
    }

    /// Takes in one packet; what it holds is then ready.
    pub(super) fn packet(&mut self, bytes: &[u8], offset: u64) {
        if let Err(kind) = self.take(bytes, offset, false) {
            self.ready.push_back(Err(ReadError { kind, offset }));
        }
    }

    fn take(&mut self, bytes: &[u8], offset: u64, nested: bool) -> Result<(), ReadErrorKind> {
        self.counts.packets += 1;
        let packet = Packet::read(bytes)?;
        for (zstd, bundle) in [(false, packet.zlib), (true, packet.zstd)] {
            if let Some(bundle) = bundle.filter(|_| !nested) {
                return self.take_bundle(bundle, zstd, offset);
            }
        }
        let place = self.place(packet.sequence_id);
        let sequence = &mut self.sequences[place];
        sequence.begin(&packet)?;
        if packet.flags & packet::NEEDS_STATE != 0 && !sequence.is_valid() {
            self.counts.without_state += 1;
            return Ok(());
        }
        if let Some(snapshot) = packet.clocks {
            self.clocks.tie(packet.sequence_id, snapshot, sequence)?;
        }
        let known = decode::packet(&packet, sequence, &self.clocks, &mut self.ready)?;
        if !known && packet.clocks.is_none() && !packet.only_state() {
            self.counts.unknown += 1;
        }
        Ok(())
    }

    /// The place of a sequence, which begins with its first packet.
    fn place(&mut self, sequence_id: u64) -> usize {
        if let Some((last, place)) = self.last
            && last == sequence_id
        {
            return place;
        }
        let place = *self.places.entry(sequence_id).or_insert_with(|| {
            self.sequences.push(Sequence::default());
            self.sequences.len() - 1
        });
        self.last = Some((sequence_id, place));
        place
    }

    fn take_bundle(&mut self, bundle: &[u8], zstd: bool, offset: u64) -> Result<(), ReadErrorKind> {
        let inflated = packets::inflate(bundle, zstd)?;
        for field in Fields::new(&inflated) {
            if let (crate::field::trace::PACKET, Value::Bytes(bytes)) = field? {
                self.take(bytes, offset, true)?;
            }
        }
        Ok(())
    }
}
