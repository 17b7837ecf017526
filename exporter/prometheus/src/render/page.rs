//! The page of one scrape, written in chunks as its reader consumes it.

use std::{
    borrow::Cow,
    collections::HashSet,
    hash::{BuildHasher, RandomState},
    sync::Arc,
};

use parking_lot::MutexGuard;

use pulsetrain_otlp::UnixNanos;

use super::{
    super::{
        PrometheusStore,
        escape::Escaping,
        extra::ReadyFamily,
        family_names, labels,
        store::{
            TARGET_INFO,
            family::{Family, FamilyKind, Head, Series},
            value::{Exemplar, Exemplars, SampleValue},
        },
    },
    protobuf::ProtobufFamily,
    text::TextFamily,
};

/// The maximum number of series in a chunk. It is written in a fraction of a millisecond, during which a
/// point may wait.
const PIECE_SERIES: usize = 256;

/// The size at which a chunk is complete. Each slow reader keeps one chunk in memory.
const PIECE_BYTES: usize = 64 << 10;

/// The encoding of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Format {
    Text,
    OpenMetrics,
    Protobuf,
}

/// A page in progress. It contains the series that existed at its start, each with its current value.
pub(crate) struct Page {
    format: Format,
    escaping: Escaping,
    /// Whether the labels of the store's series may need escaping.
    escapes_labels: bool,
    last_creation_number: u64,
    parts: std::vec::IntoIter<Part>,
    open: Option<Open>,
    /// The names of families and samples so far. Each belongs to one family.
    names: HashSet<String>,
    hasher: RandomState,
    ended: bool,
}

enum Part {
    Family(Arc<Family>),
    Ready(ReadyFamily),
}

/// The family in progress.
struct Open {
    family: Arc<Family>,
    next: usize,
    /// Hashes of the escaped labels so far, because two series may have the same escaped labels.
    escaped: HashSet<u64>,
    /// `None` until the first series. A family without series is not on the page.
    writer: Option<Writer>,
}

enum Writer {
    Text(TextFamily),
    Protobuf(ProtobufFamily),
}

impl Page {
    /// Starts a page of the current store, followed by `extra`.
    pub(crate) fn new(
        store: &PrometheusStore,
        extra: Vec<ReadyFamily>,
        format: Format,
        escaping: Escaping,
    ) -> Self {
        store.sweep();
        let keeps_utf8 = store.config().translation.keeps_utf8();
        let own = store.families().into_iter().map(Part::Family);
        let parts: Vec<Part> = target_info(store)
            .into_iter()
            .map(Part::Ready)
            .chain(own)
            .chain(extra.into_iter().map(Part::Ready))
            .collect();
        Self {
            format,
            escaping,
            escapes_labels: escaping == Escaping::Dots || (escaping != Escaping::AllowUtf8 && keeps_utf8),
            last_creation_number: store.limit().last_creation_number(),
            parts: parts.into_iter(),
            open: None,
            names: HashSet::new(),
            hasher: RandomState::new(),
            ended: false,
        }
    }

    /// Writes the next chunk, which may be empty. Returns `false` at the end of the page.
    pub(crate) fn push_piece(&mut self, out: &mut Vec<u8>) -> bool {
        if let Some(mut open) = self.open.take() {
            if self.push_series(&mut open, out) {
                self.open = Some(open);
            } else if let Some(writer) = open.writer {
                writer.finish(out);
            }
            return true;
        }
        match self.parts.next() {
            Some(Part::Family(family)) => {
                self.open = Some(Open {
                    family,
                    next: 0,
                    escaped: HashSet::new(),
                    writer: None,
                });
            }
            Some(Part::Ready(family)) => self.push_ready(&family, out),
            None => return self.push_end(out),
        }
        true
    }

    /// Writes some series of the family in progress. Returns `false` after its last one.
    fn push_series(&mut self, open: &mut Open, out: &mut Vec<u8>) -> bool {
        let family = Arc::clone(&open.family);
        let table = family.lock();
        let places = table.places(open.next, PIECE_SERIES);
        let (begin, end) = (out.len(), open.next + places.len());
        let last_creation_number = self.last_creation_number;
        let shown =
            |series: &&Series| series.creation_number <= last_creation_number && !series.target.has_ended();
        for place in places {
            if out.len() - begin >= PIECE_BYTES {
                break;
            }
            open.next += 1;
            let Some(series) = place.as_ref().filter(shown) else {
                continue;
            };
            if open.writer.is_none() {
                open.writer = self.writer(&family.head, out);
            }
            let Some(writer) = &mut open.writer else {
                return false;
            };
            let labels = if self.escapes_labels {
                self.escaped(&series.labels)
            } else {
                Cow::Borrowed(&*series.labels)
            };
            if self.escapes_labels && !open.escaped.insert(self.hasher.hash_one(&labels)) {
                continue;
            }
            let exemplars = series.exemplars.as_deref().map_or(&[][..], Exemplars::as_slice);
            writer.push_series(&labels, &series.value, exemplars, series.start_unix_nanos, out);
        }
        let goes_on = open.next < end || places.len() == PIECE_SERIES;
        // Without a fair unlock, this thread would take the lock again before a waiting point wakes up.
        MutexGuard::unlock_fair(table);
        goes_on
    }

    fn push_ready(&mut self, family: &ReadyFamily, out: &mut Vec<u8>) {
        let Some(mut writer) = self.writer(&family.head, out) else {
            return;
        };
        let mut known = HashSet::new();
        for (labels, value) in &family.series {
            let labels = if self.escaping == Escaping::AllowUtf8 {
                Cow::Borrowed(labels.as_str())
            } else {
                self.escaped(labels)
            };
            if !known.insert(self.hasher.hash_one(&labels)) {
                continue;
            }
            writer.push_series(&labels, value, &[], UnixNanos::UNKNOWN, out);
        }
        writer.finish(out);
    }

    /// Starts a family. Returns `None` if one of its names is already on the page.
    fn writer(&mut self, head: &Head, out: &mut Vec<u8>) -> Option<Writer> {
        let name = self.escaping.name(&head.name);
        let names = family_names::exposed(&name, head.kind);
        if names.iter().any(|name| self.names.contains(name)) {
            return None;
        }
        self.names.extend(names);
        if self.format == Format::Protobuf {
            return Some(Writer::Protobuf(ProtobufFamily::new(head, &name)));
        }
        let family = TextFamily::new(head, &name, self.format == Format::OpenMetrics);
        family.push_head(head, out);
        Some(Writer::Text(family))
    }

    /// Returns labels with escaped names. Labels with the same escaped name share one label with both values.
    fn escaped<'a>(&self, text: &'a str) -> Cow<'a, str> {
        let mut labels: Vec<(String, Cow<'_, str>)> = Vec::new();
        for (name, value) in labels::read(text) {
            let name = self.escaping.label(&name);
            match labels.iter_mut().find(|(other, _)| *other == name) {
                Some((_, values)) => values.to_mut().extend([";", value]),
                None => labels.push((name, Cow::Borrowed(value))),
            }
        }
        let mut escaped = String::with_capacity(text.len());
        for (name, value) in &labels {
            let separator = if escaped.is_empty() { "" } else { "," };
            escaped.extend([separator, name, "=\"", value, "\""]);
        }
        Cow::Owned(escaped)
    }

    fn push_end(&mut self, out: &mut Vec<u8>) -> bool {
        if self.format == Format::OpenMetrics && !self.ended {
            out.extend_from_slice(b"# EOF\n");
        }
        self.ended = true;
        false
    }
}

impl Writer {
    #[inline]
    fn push_series(
        &mut self,
        labels: &str,
        value: &SampleValue,
        exemplars: &[Exemplar],
        start_nanos: UnixNanos,
        out: &mut Vec<u8>,
    ) {
        match self {
            Self::Text(family) => family.push_series(labels, value, exemplars, out),
            Self::Protobuf(family) => family.push_series(labels, value, exemplars, start_nanos),
        }
    }

    fn finish(self, out: &mut Vec<u8>) {
        if let Self::Protobuf(family) = self {
            family.finish(out);
        }
    }
}

/// Returns the family that describes the targets, if there are any.
fn target_info(store: &PrometheusStore) -> Option<ReadyFamily> {
    let infos = store.targets().infos();
    if infos.is_empty() {
        return None;
    }
    Some(ReadyFamily {
        head: Head {
            name: TARGET_INFO.to_owned(),
            help: "Target metadata".to_owned(),
            unit: String::new(),
            kind: FamilyKind::Info,
        },
        series: infos
            .iter()
            .map(|target| (target.info.to_string(), SampleValue::Number(1.0)))
            .collect(),
    })
}
