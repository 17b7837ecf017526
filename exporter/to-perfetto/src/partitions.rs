//! Spans beyond the memory budget, in a temporary file, partitioned by their traces: a trace is in one partition, and each
//! partition fits into memory. A larger partition is partitioned again. A single trace that exceeds the budget stays in the
//! file (`external`).

use std::io;

use pulsetrain_pipeline::spill::{Extent, ExtentReader, MemoryBudget, SpillFile};

use super::{
    PerfettoConfig, PerfettoError, external,
    flows::{self, Link},
    records,
    spans::Spans,
    walk::ItemContext,
};

/// The base-2 logarithm of the number of partitions.
const BITS: u32 = 6;
/// The limit for repeated partitioning: a partition that is still too large has hardly more than one trace.
const MAX_DIVISIONS: u32 = 4;
/// The size in bytes of one read, and of the buffer of a partition before it is written.
const CHUNK: usize = 256 << 10;

/// The kinds of records in the file.
const SPAN: u8 = 0;
const LINK: u8 = 1;
const LOG_RECORD: u8 = 2;
/// The size of the head of a record: its kind, its trace and three numbers. A link uses two of the numbers for its own fields.
const HEAD: usize = 1 + 8 + 3 * 8;

/// Spans by partition.
#[derive(Debug)]
pub(super) struct Partitions {
    file: SpillFile,
    parts: Vec<Vec<Extent>>,
    traces: Vec<Traces>,
    /// The number of times that these spans were partitioned before.
    divisions: u32,
}

/// The traces in a partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Traces {
    None,
    One(u64),
    Several,
}

/// A partition, whose spans are in `Spans` if they fit.
pub(super) enum Part<'a> {
    /// The links to the spans in memory.
    Held(Vec<Link>),
    /// The spans and the links are still in the file.
    External(external::PartSpans<'a>),
}

/// A record in the temporary file of a partition.
pub(super) enum Stored<'a> {
    /// A link to a span of the partition.
    Link(Link),
    /// A span, and the offset of its message in the file.
    Span {
        around: ItemContext,
        place: u64,
        bytes: &'a [u8],
    },
    /// A log record of a span of the partition, and its offset in the file.
    LogRecord { place: u64, bytes: &'a [u8] },
}

/// Moves the spans to `spilled` if they take more than three quarters of the memory budget.
pub(super) fn spill_beyond_budget(
    spans: &mut Spans,
    spilled: &mut Option<Partitions>,
    config: &PerfettoConfig,
) -> Result<(), PerfettoError> {
    if spans.held_bytes() <= config.memory_bytes / 4 * 3 {
        return Ok(());
    }
    let partitions = match spilled {
        Some(partitions) => partitions,
        none => none.insert(Partitions::new(&config.room())?),
    };
    partitions.write(spans)?;
    spans.clear();
    Ok(())
}

impl Partitions {
    fn new(room: &MemoryBudget) -> io::Result<Self> {
        Self::divided(room, 0)
    }

    fn divided(room: &MemoryBudget, divisions: u32) -> io::Result<Self> {
        Ok(Self {
            file: room.spill()?,
            parts: vec![Vec::new(); 1 << BITS],
            traces: vec![Traces::None; 1 << BITS],
            divisions,
        })
    }

    /// Returns the size of the file in bytes.
    pub(super) fn bytes(&self) -> u64 {
        self.file.len()
    }

    /// Returns the partition of a trace, and records the trace there.
    fn part(&mut self, trace: u64) -> usize {
        let part = (trace >> (64 - BITS * (self.divisions + 1))) as usize % self.parts.len();
        self.traces[part] = match self.traces[part] {
            Traces::None => Traces::One(trace),
            Traces::One(known) if known == trace => return part,
            _ => Traces::Several,
        };
        part
    }

    /// Writes the spans and their log records, and the links of the spans.
    pub(super) fn write(&mut self, spans: &Spans) -> Result<(), PerfettoError> {
        let mut sorted: Vec<Vec<u8>> = vec![Vec::new(); self.parts.len()];
        for span in 0..spans.records.len() as u32 {
            let record = &spans.records[span as usize];
            let bytes = spans.bytes(span);
            let trace = spans.ids[span as usize].trace;
            let part = self.part(trace);
            let numbers = [record.resource.into(), record.scope.into(), bytes.len() as u64];
            let kind = if record.is_log_record() { LOG_RECORD } else { SPAN };
            head(kind, trace, numbers, &mut sorted[part]);
            sorted[part].extend_from_slice(bytes);
            self.append_when_full(part, &mut sorted[part])?;
            for link in flows::links_of(spans, span)? {
                let part = self.part(link.trace);
                head(LINK, link.trace, [link.target, link.flow, 0], &mut sorted[part]);
            }
        }
        self.append_all(&sorted)
    }

    fn append_when_full(&mut self, part: usize, bytes: &mut Vec<u8>) -> io::Result<()> {
        if bytes.len() >= CHUNK {
            self.append(part, bytes)?;
            bytes.clear();
        }
        Ok(())
    }

    fn append_all(&mut self, sorted: &[Vec<u8>]) -> Result<(), PerfettoError> {
        for (part, bytes) in sorted.iter().enumerate() {
            self.append(part, bytes)?;
        }
        Ok(())
    }

    fn append(&mut self, part: usize, bytes: &[u8]) -> io::Result<()> {
        if !bytes.is_empty() {
            let start = self.file.len();
            self.file.append(bytes)?;
            self.parts[part].push(Extent {
                start,
                end: self.file.len(),
            });
        }
        Ok(())
    }

    /// Calls `take` with each partition in turn, whose spans are in `spans` if they fit.
    pub(super) fn each(
        mut self,
        room: &MemoryBudget,
        spans: &mut Spans,
        config: &PerfettoConfig,
        take: &mut impl FnMut(&mut Spans, Part<'_>) -> Result<(), PerfettoError>,
    ) -> Result<(), PerfettoError> {
        self.file.flush()?;
        let file = self.file;
        for (extents, traces) in self.parts.into_iter().zip(self.traces) {
            let bytes: u64 = extents.iter().map(|extent| extent.end - extent.start).sum();
            let is_large = bytes > room.bytes as u64;
            let can_be_divided = traces == Traces::Several && self.divisions < MAX_DIVISIONS;
            if is_large && can_be_divided {
                let divided = Self::divide(&file, &extents, room, self.divisions + 1)?;
                divided.each(room, spans, config, take)?;
                continue;
            }
            let part = if is_large {
                let (file, extents) = (&file, &extents);
                Part::External(external::PartSpans { file, extents })
            } else {
                Part::Held(load(&file, &extents, spans, config)?)
            };
            take(spans, part)?;
            spans.clear();
        }
        Ok(())
    }

    fn divide(
        file: &SpillFile,
        extents: &[Extent],
        room: &MemoryBudget,
        divisions: u32,
    ) -> Result<Self, PerfettoError> {
        let mut divided = Self::divided(room, divisions)?;
        let mut sorted: Vec<Vec<u8>> = vec![Vec::new(); divided.parts.len()];
        for extent in extents {
            let mut reader = ExtentReader::new(*extent, CHUNK);
            while !reader.is_at_end() {
                let (kind, trace, numbers) = read_head(file, &mut reader)?;
                let part = divided.part(trace);
                head(kind, trace, numbers, &mut sorted[part]);
                reader.take(file, numbers[2] as usize, &mut sorted[part])?;
                divided.append_when_full(part, &mut sorted[part])?;
            }
        }
        divided.append_all(&sorted)?;
        Ok(divided)
    }
}

/// Reads a partition into memory, and returns the links to its spans.
fn load(
    file: &SpillFile,
    extents: &[Extent],
    spans: &mut Spans,
    config: &PerfettoConfig,
) -> Result<Vec<Link>, PerfettoError> {
    let (mut all, mut links) = (Vec::new(), Vec::new());
    scan(file, extents, |stored| {
        match stored {
            Stored::Link(link) => links.push(link),
            Stored::Span { around, bytes, .. } => {
                spans.add_span(bytes, all.len(), around, config)?;
                all.extend_from_slice(bytes);
            }
            Stored::LogRecord { bytes, .. } => {
                let place = (all.len(), all.len() + bytes.len());
                spans.add_record(&records::decode(bytes)?, place, config);
                all.extend_from_slice(bytes);
            }
        }
        Ok(())
    })?;
    spans.keep(all.into());
    Ok(links)
}

/// Calls `take` with all records of a partition.
pub(super) fn scan(
    file: &SpillFile,
    extents: &[Extent],
    mut take: impl FnMut(Stored<'_>) -> Result<(), PerfettoError>,
) -> Result<(), PerfettoError> {
    let mut message = Vec::new();
    for extent in extents {
        let mut reader = ExtentReader::new(*extent, CHUNK);
        while !reader.is_at_end() {
            let (kind, trace, [first, second, length]) = read_head(file, &mut reader)?;
            if kind == LINK {
                take(Stored::Link(Link {
                    trace,
                    target: first,
                    flow: second,
                }))?;
                continue;
            }
            let place = reader.place();
            message.clear();
            reader.take(file, length as usize, &mut message)?;
            if kind == LOG_RECORD {
                let bytes = &message;
                take(Stored::LogRecord { place, bytes })?;
                continue;
            }
            take(Stored::Span {
                around: ItemContext {
                    resource: first as u32,
                    scope: second as u32,
                },
                place,
                bytes: &message,
            })?;
        }
    }
    Ok(())
}

fn read_head(file: &SpillFile, reader: &mut ExtentReader) -> io::Result<(u8, u64, [u64; 3])> {
    let bytes: [u8; HEAD] = reader.array(file)?;
    let number = |place: usize| {
        let bytes: [u8; 8] = bytes[1 + 8 * place..][..8].try_into().unwrap_or_default();
        u64::from_le_bytes(bytes)
    };
    Ok((bytes[0], number(0), [number(1), number(2), number(3)]))
}

fn head(kind: u8, trace: u64, numbers: [u64; 3], out: &mut Vec<u8>) {
    out.push(kind);
    out.extend_from_slice(&trace.to_le_bytes());
    for number in numbers {
        out.extend_from_slice(&number.to_le_bytes());
    }
}
