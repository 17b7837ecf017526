//! The rows of all tables as records, sorted by their start; among equal starts, the longest is first.

use std::{
    collections::{BTreeMap, HashMap, hash_map::Entry},
    hash::Hash,
    io,
};

use pulsetrain_otlp::write::{Buffer, span_field};
use pulsetrain_perfetto::AnnotationData;
use pulsetrain_pipeline::spill::{MemoryBudget, Sorter};
use xxhash_rust::xxh3::xxh3_64;

use super::{
    NsightConversion,
    database::{Cells, Column, NsightExport},
    names::{Owner, ThreadId},
    nvtx,
    tables::{AttributeColumn, SpanName, TABLES, Table, TrackKind},
};
use crate::from_perfetto::{
    spill_codec::{byte, bytes, number, put_bytes, put_number},
    values,
};

/// The columns before those of the name.
const FIXED: [&str; 7] = [
    "start",
    "end",
    "globalTid",
    "globalPid",
    "correlationId",
    "deviceId",
    "streamId",
];

/// The limit for rows of the trace, and for scopes. Real exports have some thousands.
const MAX_INTERNED: usize = 10_000;

/// The limit for NVTX alone, whose threads and domains are unbounded: the rows of GPUs are read later.
const MAX_NVTX_INTERNED: usize = MAX_INTERNED / 2;

/// The row that a span or a mark is on.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Track {
    /// A thread, whose spans nest.
    Thread(ThreadId),
    /// A row without nesting, by its name: a CUDA stream, or ranges that begin and end anywhere.
    Named(Owner, String),
}

/// The kind of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RowKind {
    Span,
    /// A span without an end.
    Unfinished,
    Mark,
}

/// One span or mark.
#[derive(Debug)]
pub(super) struct Record<'a> {
    pub(super) kind: RowKind,
    pub(super) track: usize,
    pub(super) scope: usize,
    pub(super) end: u64,
    pub(super) id: u64,
    /// The id of the span that launched this one, or 0.
    pub(super) launch: u64,
    pub(super) name: &'a str,
    /// Encoded attributes of a span, or of an event of a span.
    pub(super) attributes: &'a [u8],
}

/// The rows of an export.
pub(super) struct Rows<'a> {
    start: u64,
    file: &'a str,
    pub(super) sorter: Sorter,
    pub(super) tracks: Interned<Track>,
    pub(super) scopes: Interned<String>,
    /// The latest time of any row.
    pub(super) latest: u64,
    count: u64,
    labels: BTreeMap<&'static str, BTreeMap<i64, String>>,
    /// The only process that calls CUDA: the owner of GPU work without a process in the export.
    only_process: Option<ThreadId>,
}

/// Values in the order of their first use. The first one represents values beyond the limit.
#[derive(Debug)]
pub(super) struct Interned<T> {
    places: HashMap<T, usize>,
    pub(super) values: Vec<T>,
    beyond_limit: u64,
}

impl<T: Clone + Eq + Hash> Interned<T> {
    fn new(beyond_limit: T) -> Self {
        Self {
            places: HashMap::from([(beyond_limit.clone(), 0)]),
            values: vec![beyond_limit],
            beyond_limit: 0,
        }
    }

    pub(super) fn intern_of_nvtx(&mut self, value: T) -> usize {
        self.intern_with_limit(MAX_NVTX_INTERNED, value)
    }

    fn intern(&mut self, value: T) -> usize {
        self.intern_with_limit(MAX_INTERNED, value)
    }

    fn intern_with_limit(&mut self, most: usize, value: T) -> usize {
        let is_full = self.values.len() >= most;
        match self.places.entry(value) {
            Entry::Occupied(known) => *known.get(),
            Entry::Vacant(_) if is_full => {
                self.beyond_limit += 1;
                0
            }
            Entry::Vacant(new) => {
                self.values.push(new.key().clone());
                *new.insert(self.values.len() - 1)
            }
        }
    }
}

impl<'a> Rows<'a> {
    /// Creates an empty list. `start` is the origin of the times of the export.
    pub(super) fn new(start: u64, file: &'a str, room: MemoryBudget) -> Self {
        Self {
            start,
            file,
            sorter: Sorter::new(room),
            tracks: Interned::new(Track::Named(Owner::Unknown, "further rows".to_owned())),
            scopes: Interned::new("further scopes".to_owned()),
            latest: 0,
            count: 0,
            labels: BTreeMap::new(),
            only_process: None,
        }
    }

    /// Reads every table of spans.
    pub(super) fn read(
        &mut self,
        export: &NsightExport,
        conversion: &mut NsightConversion,
    ) -> io::Result<()> {
        nvtx::read(export, self, conversion)?;
        self.only_process = only_process(export, conversion);
        for table in &TABLES {
            self.read_table(table, export, conversion)?;
        }
        for (beyond, place) in [
            (
                self.tracks.beyond_limit,
                "on the row `further rows`: the export has too many threads and streams",
            ),
            (
                self.scopes.beyond_limit,
                "in the scope `further scopes`: the export has too many NVTX domains",
            ),
        ] {
            if beyond > 0 {
                conversion
                    .errors
                    .push(format!("{beyond} spans and marks are {place}"));
            }
        }
        Ok(())
    }

    fn read_table(
        &mut self,
        table: &Table,
        export: &NsightExport,
        conversion: &mut NsightConversion,
    ) -> io::Result<()> {
        for enumeration in table.enumerations() {
            let errors = &mut conversion.errors;
            self.labels
                .entry(enumeration)
                .or_insert_with(|| export.labels(enumeration, errors));
        }
        let columns = table.columns();
        let scope = self.scopes.intern(table.scope.to_owned());
        let (mut undated, mut lost, mut unfinished) = (0, 0, 0);
        let mut errors = Vec::new();
        export.each(table.name, &columns, &mut errors, |cells| {
            let Some(start) = cells.int(0) else {
                undated += 1;
                return Ok(());
            };
            let (track, process) = self.track(table.place, cells);
            lost += u64::from(table.place.is_of_gpu() && process.is_none());
            let correlation = cells.int(4).filter(|id| *id != 0);
            let launch = process
                .zip(correlation)
                .filter(|_| table.place != TrackKind::Thread)
                .map(|key| self.launch_id(key));
            let is_launch = table.place == TrackKind::Launch;
            let (name, attributes) = self.describe(table, cells);
            let end = cells.int(1).filter(|end| *end >= start);
            unfinished += u64::from(end.is_none());
            let record = Record {
                kind: match end {
                    Some(_) => RowKind::Span,
                    None => RowKind::Unfinished,
                },
                track: self.tracks.intern(track),
                scope,
                end: self.unix_nanos(end.unwrap_or(start)),
                id: launch.filter(|_| is_launch).unwrap_or_else(|| self.next_id()),
                launch: launch.filter(|_| !is_launch).unwrap_or_default(),
                name: &name,
                attributes: attributes.as_slice(),
            };
            self.push(self.unix_nanos(start), &record)
        })?;
        conversion.errors.append(&mut errors);
        conversion.unfinished += unfinished;
        conversion.without_process += lost;
        if undated > 0 {
            let name = table.name;
            conversion
                .errors
                .push(format!("{undated} rows of {name} have no start"));
        }
        Ok(())
    }

    /// Returns the row of a span and, for calls and GPU work, its process.
    fn track(&self, place: TrackKind, cells: Cells<'_>) -> (Track, Option<ThreadId>) {
        let thread = cells.int(2).map(ThreadId::from_serialized);
        let (device, stream) = (cells.int(5), cells.int(6));
        let name = match (place, device, stream) {
            (TrackKind::Thread | TrackKind::Launch, ..) => {
                let unknown = || Track::Named(Owner::Unknown, "unknown thread".to_owned());
                return (thread.map_or_else(unknown, Track::Thread), thread);
            }
            (TrackKind::Synchronization, Some(device), _) => format!("GPU {device} synchronization"),
            (_, Some(device), Some(stream)) => format!("GPU {device} stream {stream}"),
            (_, Some(device), None) => format!("GPU {device}"),
            (_, None, _) => "GPU".to_owned(),
        };
        let process = cells.int(3).map(ThreadId::from_serialized).or(self.only_process);
        let owner = match (process, device) {
            (Some(process), _) => Owner::Process(process.process()),
            (None, Some(device)) => Owner::Device(device),
            (None, None) => Owner::Unknown,
        };
        (Track::Named(owner, name), process)
    }

    /// Returns the name and the encoded attributes of a span.
    fn describe(&self, table: &Table, cells: Cells<'_>) -> (String, Buffer) {
        let mut place = FIXED.len();
        let mut next = |count: usize| {
            place += count;
            place - count
        };
        let label = |value: i64, table: &str| {
            let known = self.labels.get(table).and_then(|labels| labels.get(&value));
            known.cloned().unwrap_or_else(|| value.to_string())
        };
        let name = match table.title {
            SpanName::Texts(columns, otherwise) => {
                let first = next(columns.len());
                let mut texts = (first..first + columns.len()).filter_map(|place| cells.text(place));
                let text = texts.next().unwrap_or(otherwise.into());
                without_version(&text).to_owned()
            }
            SpanName::Label(prefix, _, enumeration) => match cells.int(next(1)) {
                Some(value) => format!("{prefix} {}", label(value, enumeration))
                    .trim()
                    .to_owned(),
                None => prefix.to_owned(),
            },
            SpanName::Number(prefix, _) => match cells.int(next(1)) {
                Some(value) => format!("{prefix} {value}"),
                None => prefix.to_owned(),
            },
        };
        let mut out = Buffer::default();
        for shown in table.attributes {
            let first = next(shown.columns().len());
            let int = cells.int(first);
            let value = match shown {
                AttributeColumn::Int(..) => int.map(AnnotationData::Int),
                AttributeColumn::NotZero(..) => int.filter(|value| *value != 0).map(AnnotationData::Int),
                AttributeColumn::Text(..) => {
                    let text = cells.text(first).filter(|text| **text != *name);
                    text.map(|text| AnnotationData::Text(text.into_owned()))
                }
                AttributeColumn::Label(_, _, table) => {
                    int.map(|value| AnnotationData::Text(label(value, table)))
                }
                AttributeColumn::Three(..) => {
                    let three = [0, 1, 2].map(|offset| cells.int(first + offset));
                    let three: Option<Vec<_>> = three
                        .map(|value| value.map(AnnotationData::Int))
                        .into_iter()
                        .collect();
                    three.map(AnnotationData::List)
                }
            };
            if let Some(value) = value {
                values::attribute(span_field::ATTRIBUTES, shown.key(), &value, &mut out);
            }
        }
        (name, out)
    }

    /// Returns the id of the call with a correlation id in its process.
    fn launch_id(&self, (process, correlation): (ThreadId, i64)) -> u64 {
        let process = process.process().number();
        xxh3_64(format!("{}\0launch\0{process}\0{correlation}", self.file).as_bytes()).max(1)
    }

    /// Returns an id for the next span: the same for the same position in the same file.
    pub(super) fn next_id(&mut self) -> u64 {
        self.count += 1;
        xxh3_64(format!("{}\0span\0{}", self.file, self.count).as_bytes()).max(1)
    }

    /// Returns a time of the export on the wall clock.
    pub(super) fn unix_nanos(&self, nanos: i64) -> u64 {
        self.start.saturating_add_signed(nanos)
    }

    pub(super) fn push(&mut self, start: u64, record: &Record<'_>) -> io::Result<()> {
        self.latest = self.latest.max(start).max(record.end);
        let order = match record.kind {
            RowKind::Unfinished => 0,
            RowKind::Span => u64::MAX - 1 - record.end.saturating_sub(start).min(u64::MAX - 2),
            // A mark at the start of a span is within the span.
            RowKind::Mark => u64::MAX,
        };
        self.sorter.push((start, order), |out| record.put(out))
    }
}

impl<'a> Record<'a> {
    fn put(&self, out: &mut Vec<u8>) {
        out.push(self.kind as u8);
        for value in [
            self.track as u64,
            self.scope as u64,
            self.end,
            self.id,
            self.launch,
        ] {
            put_number(value, out);
        }
        put_bytes(self.name.as_bytes(), out);
        out.extend_from_slice(self.attributes);
    }

    /// Reads a record of the sorter.
    pub(super) fn read(mut record: &'a [u8]) -> Option<Self> {
        let from = &mut record;
        Some(Self {
            kind: match byte(from)? {
                0 => RowKind::Span,
                1 => RowKind::Unfinished,
                _ => RowKind::Mark,
            },
            track: number(from)? as usize,
            scope: number(from)? as usize,
            end: number(from)?,
            id: number(from)?,
            launch: number(from)?,
            name: std::str::from_utf8(bytes(from)?).ok()?,
            attributes: from,
        })
    }
}

impl TrackKind {
    fn is_of_gpu(self) -> bool {
        matches!(self, Self::Stream | Self::Synchronization)
    }
}

impl AttributeColumn {
    fn key(&self) -> &'static str {
        match self {
            Self::Int(key, _)
            | Self::NotZero(key, _)
            | Self::Text(key, _)
            | Self::Label(key, ..)
            | Self::Three(key, _) => key,
        }
    }

    fn columns(&self) -> Vec<Column> {
        match self {
            Self::Int(_, column) | Self::NotZero(_, column) | Self::Label(_, column, _) => {
                vec![Column::Plain(column)]
            }
            Self::Text(_, column) => vec![Column::Text(column)],
            Self::Three(_, columns) => columns.map(Column::Plain).to_vec(),
        }
    }
}

impl Table {
    /// Returns the columns of a query: those of every table, those of the name, and those of the attributes.
    fn columns(&self) -> Vec<Column> {
        let title = match self.title {
            SpanName::Texts(columns, _) => columns.iter().map(|column| Column::Text(column)).collect(),
            SpanName::Label(_, column, _) | SpanName::Number(_, column) => vec![Column::Plain(column)],
        };
        let attributes = self.attributes.iter().flat_map(AttributeColumn::columns);
        FIXED
            .map(Column::Plain)
            .into_iter()
            .chain(title)
            .chain(attributes)
            .collect()
    }

    /// Returns the enum tables with the labels of the table.
    fn enumerations(&self) -> Vec<&'static str> {
        let title = match self.title {
            SpanName::Label(_, _, table) => Some(table),
            _ => None,
        };
        let shown = self.attributes.iter().filter_map(|shown| match shown {
            AttributeColumn::Label(_, _, table) => Some(*table),
            _ => None,
        });
        title.into_iter().chain(shown).collect()
    }
}

/// Returns the name of a function of the CUDA runtime without the version that the export appends: `cudaLaunchKernel_v7000`.
fn without_version(name: &str) -> &str {
    match name.rsplit_once("_v") {
        Some((function, version))
            if function.starts_with("cuda") && version.bytes().all(|byte| byte.is_ascii_digit()) =>
        {
            function
        }
        _ => name,
    }
}

/// Returns the process of all CUDA calls if there is only one.
fn only_process(export: &NsightExport, conversion: &mut NsightConversion) -> Option<ThreadId> {
    let (mut only, mut is_one) = (None, true);
    let columns = [Column::Plain("globalTid")];
    let table = "CUPTI_ACTIVITY_KIND_RUNTIME";
    if export.has("CUPTI_ACTIVITY_KIND_KERNEL", "globalPid") {
        return None;
    }
    let read: io::Result<()> = export.each(table, &columns, &mut conversion.errors, |cells| {
        let thread = cells.int(0).map(ThreadId::from_serialized);
        if let Some(thread) = thread {
            is_one &= only.is_none_or(|only: ThreadId| only.process() == thread.process());
            only = Some(thread);
        }
        Ok(())
    });
    debug_assert!(read.is_ok(), "nothing in the closure fails");
    only.filter(|_| is_one)
}
