//! Converts flows to span links. A flow is an arrow from each of its slices to the next in time; the later span gets a link to
//! the earlier one.

use std::io;

use pulsetrain_pipeline::spill::{MemoryBudget, Sorter};

use super::{
    span_assembly::{SpanAssembly, SpanKey},
    spans::{self, Ids},
    spill_codec::{self, put_bytes, put_number},
};

/// The slices of all flows, sorted by flow and time.
#[derive(Debug)]
pub(super) struct Flows(Sorter);

/// A slice that is part of a flow.
struct FlowSlice {
    flow: u64,
    key: SpanKey,
    ids: Ids,
}

impl Flows {
    pub(super) fn new(room: MemoryBudget) -> Self {
        Self(Sorter::new(room))
    }

    /// Records that a slice is part of a flow at a time, and whether the flow ends there.
    pub(super) fn push(
        &mut self,
        flow: u64,
        time: u64,
        is_last: bool,
        (key, ids): (SpanKey, &Ids),
    ) -> io::Result<()> {
        self.0.push((flow, time), |out| {
            out.push(u8::from(is_last));
            put_number(key.number(), out);
            put_bytes(&ids.trace, out);
            put_bytes(&ids.span, out);
        })
    }

    /// Adds the links to the pieces of spans. Returns the number of bytes that were written to a temporary file.
    pub(super) fn link(self, pieces: &mut SpanAssembly) -> io::Result<u64> {
        let mut sorted = self.0.sorted()?;
        let mut before: Option<FlowSlice> = None;
        while let Some((flow, _)) = sorted.next_key() {
            let Some((is_last, flow_slice)) = flow_slice(flow, sorted.next_record()?.unwrap_or_default())
            else {
                continue;
            };
            let from = before.filter(|before| before.flow == flow && before.key != flow_slice.key);
            if let Some(from) = from {
                pieces.link(flow_slice.key, &spans::link_to(&from.ids))?;
            }
            before = (!is_last).then_some(flow_slice);
        }
        Ok(sorted.spilled_bytes())
    }
}

fn flow_slice(flow: u64, mut record: &[u8]) -> Option<(bool, FlowSlice)> {
    let from = &mut record;
    let is_last = spill_codec::byte(from)? != 0;
    let key = SpanKey::of_number(spill_codec::number(from)?);
    let ids = Ids {
        trace: spill_codec::bytes(from)?.to_vec(),
        span: spill_codec::bytes(from)?.to_vec(),
    };
    Some((is_last, FlowSlice { flow, key, ids }))
}
