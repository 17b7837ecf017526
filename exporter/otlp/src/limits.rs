//! Limits on the size and content of input from outside.
//!
//! The same limits apply to protobuf ([`check`]), to OTLP/JSON ([`crate::json::decode`]) and to files
//! ([`crate::frames::FrameReader`]). Each reader checks them while it reads, so that rejected input costs no more than the
//! bytes read so far.

pub use crate::check::check;

use crate::wire::WireError;

/// The upper bound of all depth limits, which keeps recursive readers within a thread's stack.
pub const MAX_DEPTH: usize = 200;

/// The limits for one message from outside.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of one message as it arrives, in either encoding. Default 64 MiB, as the OTLP specification recommends.
    pub bytes: usize,
    /// Bytes of one message after decompression. Default 64 MiB.
    pub inflated_bytes: usize,
    /// Spans, points and log records in one message. Default 1,000,000: the smallest real ones (some 60 bytes) fill 64 MiB.
    pub items: usize,
    /// Nesting depth of messages, the outermost included. Default 100, as in protobuf; at most [`MAX_DEPTH`].
    pub depth: usize,
    /// Attributes of one span, resource or map value. Default 10,000; an SDK's own limit is 128.
    pub attributes: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            bytes: 64 << 20,
            inflated_bytes: 64 << 20,
            items: 1_000_000,
            depth: 100,
            attributes: 10_000,
        }
    }
}

/// The counts of a message's content.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Spans, points and log records.
    pub items: u64,
    /// Attributes, those of resources, scopes, events and map values included.
    pub attributes: u64,
    /// Messages of any kind, the outermost included.
    pub messages: u64,
}

/// One of the [`Limits`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Limit {
    /// [`Limits::bytes`].
    Bytes,
    /// [`Limits::inflated_bytes`].
    InflatedBytes,
    /// [`Limits::items`].
    Items,
    /// [`Limits::depth`].
    Depth,
    /// [`Limits::attributes`].
    Attributes,
}

/// A limit that was exceeded, and its value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("more than {allowed} {limit}")]
pub struct Exceeded {
    /// Which limit.
    pub limit: Limit,
    /// Its value.
    pub allowed: usize,
}

/// The reason why [`check`] rejects some bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LimitError {
    /// They are not valid protobuf.
    #[error(transparent)]
    Wire(#[from] WireError),
    /// They exceed a limit.
    #[error("{exceeded} at byte {offset}")]
    Exceeded {
        /// The limit.
        exceeded: Exceeded,
        /// The offset of the first element beyond the limit.
        offset: usize,
    },
}

impl std::fmt::Display for Limit {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Bytes => "bytes",
            Self::InflatedBytes => "bytes after decompression",
            Self::Items => "spans, points or log records",
            Self::Depth => "messages inside each other",
            Self::Attributes => "attributes side by side",
        })
    }
}

impl Limits {
    /// Returns an error if `count` exceeds a limit.
    #[inline]
    pub(crate) fn admit(&self, limit: Limit, count: u64) -> Result<(), Exceeded> {
        let allowed = self.value(limit);
        if count <= allowed as u64 {
            return Ok(());
        }
        Err(Exceeded { limit, allowed })
    }

    #[inline]
    fn value(&self, limit: Limit) -> usize {
        match limit {
            Limit::Bytes => self.bytes,
            Limit::InflatedBytes => self.inflated_bytes,
            Limit::Items => self.items,
            Limit::Depth => self.depth.min(MAX_DEPTH),
            Limit::Attributes => self.attributes,
        }
    }
}

impl Counts {
    /// Counts one more message, and returns an error if it exceeds a limit.
    #[inline]
    pub(crate) fn enter(
        &mut self,
        role: crate::descriptor::Role,
        depth: usize,
        limits: &Limits,
    ) -> Result<(), Exceeded> {
        use crate::descriptor::Role;
        limits.admit(Limit::Depth, depth as u64)?;
        self.messages += 1;
        match role {
            Role::Part => Ok(()),
            Role::Attribute => {
                self.attributes += 1;
                Ok(())
            }
            Role::Item => {
                self.items += 1;
                limits.admit(Limit::Items, self.items)
            }
        }
    }
}
