//! The disk queue: batches in files until their sink has delivered them, so that a kill or a restart loses none.
//!
//! [`DiskQueue`] is a queue in use: `queue.rs` has its two ends, `thread.rs` the thread that does its I/O, `inbox.rs` the work
//! of that thread, `room.rs` its bound, `lease.rs` the records that are being sent.
//!
//! ```text
//!   ingress ── append ──> inbox ──> thread ──> SegmentLog ──> thread ── Leased ──> worker of the sink
//!               <─ confirmation, ack ──┘            ^                                   │
//!                                                   └──── finish, give back <── Lease ──┘
//! ```
//!
//! [`SegmentLog`] is the format and its recovery: synchronous, without threads or a clock. A folder holds one queue:
//!
//! | file | content |
//! |---|---|
//! | `lock` | empty; locked by the process that uses the folder |
//! | `00000000000000000007.segment` | `PTQUEUE\n`, version (u32), CRC-32 of both (u32), then records |
//! | `cursor` | one line of text: where the oldest record that is not finished begins |
//! | `*.corrupt` | bytes that could not be read, kept for whoever wants to look at them; nothing reads them again |
//!
//! A record is `marker [u8; 4] | length u32 | crc32 u32 | signal u8 | items u32 | accepted u64 | payload`, all little endian;
//! `length` is that of the payload, `accepted` is in nanoseconds since 1970-01-01 UTC. The checksum also covers the number of the segment and
//! the offset of the record, so that bytes in the wrong place are not mistaken for a record.
//!
//! A record that is not complete at the end of a segment was acknowledged or not. It was not, and is cut off without a loss, at
//! the end of the log, where the process ended during the append, and in front of a segment that begins with the same record,
//! which was appended again after the append had failed. In front of another segment it is counted as lost: the machine failed
//! before the record was on the disk.
//!
//! An operation that the disk refuses, or in which the thread panics, is tried again until it succeeds. Until then the queue has
//! no room, its batches in memory stay there, and [`OnDisk::failure`](crate::OnDisk::failure) has the reason.
//!
//! A process appends only to segments that it created. The segments of its predecessor are read, and deleted when all of
//! their records are finished.

mod config;
mod cursor;
mod disk_budget;
mod error;
mod inbox;
mod lease;
mod log;
mod queue;
mod record;
mod segment;
mod thread;

pub use config::{DiskQueueConfig, SyncPolicy};
pub(crate) use disk_budget::DiskBudget;
pub use error::{DiskQueueError, Notice};
pub(crate) use inbox::Leased;
pub(crate) use lease::Lease;
pub use log::{Contents, SegmentLog, Stored};
pub use queue::DiskQueue;
pub(crate) use queue::DiskReceiver;
pub use record::{Position, Record};
