//! Adds resources and scopes to items, and combines them into messages of a size that every receiver accepts. Items wait until
//! there are enough of them for a message, or too many in total.

use std::collections::BTreeMap;

use pulsetrain_otlp::{Signal, write::Buffer};
use pulsetrain_perfetto::{AnnotationData, TrackKind};
use pulsetrain_pipeline::spill::MemoryBudget;
use pulsetrain_semconv::attribute;

use super::{metric_metadata::MetricMetadata, tracks::Tracks, values};

/// A message is complete when its items have this many bytes.
pub(crate) const MESSAGE_BYTES: usize = 1 << 20;

/// The resource and the scope of an item.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum BatchKey {
    /// The track of the process, and the number of the scope or its name.
    Process(u64, Result<u64, String>),
    /// The pid of a process without further fields.
    Pid(i32),
}

/// Items that wait for others with the same `batch_key`.
pub(super) struct ResourceBatches<'a, D> {
    waiting: BTreeMap<(Signal, BatchKey), Buffer>,
    bytes: usize,
    max_bytes: usize,
    messages: u64,
    deliver: &'a mut D,
}

/// The tracks and metadata for the resources and scopes of batches.
#[derive(Clone, Copy, Debug)]
pub(super) struct BatchContext<'a> {
    pub(super) tracks: &'a Tracks,
    pub(super) metadata: &'a MetricMetadata,
}

impl<'a, E, D: FnMut(Signal, Vec<u8>) -> Result<(), E>> ResourceBatches<'a, D> {
    pub(super) fn new(room: &MemoryBudget, deliver: &'a mut D) -> Self {
        Self {
            waiting: BTreeMap::new(),
            bytes: 0,
            max_bytes: room.bytes / 8,
            messages: 0,
            deliver,
        }
    }

    /// Adds an item, which is field 2 of its scope.
    pub(super) fn push(
        &mut self,
        signal: Signal,
        batch_key: BatchKey,
        item: &[u8],
        known: BatchContext<'_>,
    ) -> Result<(), E> {
        let key = (signal, batch_key);
        let buffer = match self.waiting.get_mut(&key) {
            Some(buffer) => buffer,
            None => self.waiting.entry(key.clone()).or_default(),
        };
        let before = buffer.len();
        buffer.delimited(2, item);
        let is_full = buffer.len() >= MESSAGE_BYTES;
        self.bytes += buffer.len() - before;
        if is_full && let Some(items) = self.waiting.remove(&key) {
            self.send(signal, &key.1, &items, known)?;
        }
        if self.bytes > self.max_bytes {
            self.send_all(known)?;
        }
        Ok(())
    }

    /// Sends all waiting items.
    pub(super) fn send_all(&mut self, known: BatchContext<'_>) -> Result<(), E> {
        for ((signal, batch_key), items) in std::mem::take(&mut self.waiting) {
            self.send(signal, &batch_key, &items, known)?;
        }
        Ok(())
    }

    fn send(
        &mut self,
        signal: Signal,
        batch_key: &BatchKey,
        items: &Buffer,
        known: BatchContext<'_>,
    ) -> Result<(), E> {
        self.bytes -= items.len();
        self.messages += 1;
        (self.deliver)(signal, batch_key.around(known).wrap(items))
    }

    /// Returns the number of messages sent.
    pub(super) fn messages(&self) -> u64 {
        self.messages
    }
}

/// The resource and scope of items as encoded messages, with their schema URLs.
#[derive(Debug, Default)]
pub(crate) struct ResourceScope {
    pub(crate) resource: Buffer,
    pub(crate) resource_schema_url: String,
    pub(crate) scope: Buffer,
    pub(crate) schema_url: String,
}

impl ResourceScope {
    /// Returns a message with these items, which are field 2 of their scope.
    pub(crate) fn wrap(&self, items: &Buffer) -> Vec<u8> {
        let mut scope = Buffer::default();
        scope.delimited(1, self.scope.as_slice());
        scope.append(items.as_slice());
        scope.text(3, &self.schema_url);
        let mut resource = Buffer::default();
        resource.delimited(1, self.resource.as_slice());
        resource.delimited(2, scope.as_slice());
        resource.text(3, &self.resource_schema_url);
        let mut message = Buffer::default();
        message.delimited(1, resource.as_slice());
        message.into_vec()
    }
}

impl BatchKey {
    /// Returns the original resource and scope of items, or those derived from the viewer representation.
    fn around(&self, known: BatchContext<'_>) -> ResourceScope {
        let mut around = ResourceScope::default();
        match self {
            Self::Pid(pid) => pid_attribute(*pid, &mut around.resource),
            Self::Process(process, scope) => {
                let number = scope.as_ref().copied().unwrap_or_default();
                if let Some(around) = known.metadata.around(*process, number) {
                    return around;
                }
                match known.metadata.shown(*process) {
                    Some(shown) => values::attributes(1, shown, &mut around.resource),
                    None => around.resource = resource(*process, known.tracks),
                }
                if let Err(name) = scope {
                    around.scope.text(1, name);
                }
            }
        }
        around
    }
}

/// Encodes a process as a resource.
fn resource(process: u64, tracks: &Tracks) -> Buffer {
    let mut out = Buffer::default();
    let name = match tracks.name(process) {
        "" => "perfetto",
        name => name,
    };
    let text = AnnotationData::Text(name.to_owned());
    values::attribute(1, attribute::SERVICE_NAME.name, &text, &mut out);
    if let Some(TrackKind::Process { pid, .. }) = tracks.get(process).map(|track| &track.kind) {
        pid_attribute(*pid, &mut out);
    }
    out
}

fn pid_attribute(pid: i32, out: &mut Buffer) {
    let pid = AnnotationData::Int(i64::from(pid));
    values::attribute(1, attribute::PROCESS_PID.name, &pid, out);
}
