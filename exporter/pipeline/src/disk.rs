//! The disk queue: batches in files until their sink has delivered them, so that a kill or a restart loses none.
//!
//! [`DiskQueue`] is a queue in use: `queue.rs` has the handle and the receiver, `thread.rs` the I/O thread, `inbox.rs`
//! the work of that thread, `disk_budget.rs` the size limit, `lease.rs` the records that are being sent.
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
//! | `cursor` | one line of text: the oldest unfinished record, and how many records the segments hold |
//! | `*.corrupt` | bytes that could not be read, kept for inspection; the queue never reads them again |
//!
//! A record is `marker [u8; 4] | length u32 | crc32 u32 | signal u8 | items u32 | accepted u64 | totals [u64; 4] | payload`,
//! all little endian. `length` is the length of the payload, `accepted` is in nanoseconds since 1970-01-01 UTC. `totals`
//! number the record: the records, spans, points and log records that the queue stored before it. The checksum also covers
//! the number of the segment and the offset of the record, so that bytes in the wrong place are not mistaken for a record.
//! Version 1 has another marker and no totals; it is only read.
//!
//! # Losses
//!
//! A start reads all segments. The totals of each record are those of the record before it plus its own items; where they
//! are more, the difference is lost, whatever happened to the files. The ends of the log are in the cursor, whose line is
//! `2 segment offset start end lost crc32`: the position and the totals of the oldest unfinished record, the totals after the
//! newest one, and the part of the difference that an earlier start counted as lost. It is written within 100 ms of a
//! change, at the end of the process, and before a segment is deleted. So each loss is counted once and exactly, by signal,
//! and a copy of a segment is not a loss.
//!
//! Not known are the records after the `end` of the cursor, if the end of the log is damaged too: those of the last 100 ms
//! before a kill. After a failure of the machine, the disk may also have an older cursor than the records that were
//! acknowledged. Without a readable cursor, everything is sent again, and damage at both ends of the log is not known. An
//! incomplete record at the end of a segment is truncated. It was not acknowledged: its process ended while it wrote the
//! record, or the append failed and was repeated in the next segment, with the same totals.
//!
//! Damage between records of version 1 counts as at least one item, unless a record of version 2 or the cursor follows.
//!
//! # Failures
//!
//! An operation that the disk rejects, or in which the thread panics, is retried until it succeeds. Until then the queue
//! has no room, its batches in memory stay there, and [`OnDisk::failure`](crate::OnDisk::failure) has the reason.
//!
//! A process appends only to segments that it created. The segments of its predecessor are read, and deleted when all of
//! their records are finished.

mod config;
mod counts;
mod cursor;
mod disk_budget;
mod error;
mod file;
mod inbox;
mod lease;
mod log;
mod queue;
mod record;
mod segment;
mod thread;

pub use config::{DiskQueueConfig, SyncPolicy};
pub use counts::RecordCounts;
pub(crate) use disk_budget::DiskBudget;
pub use error::{DiskQueueError, Notice};
pub(crate) use inbox::Leased;
pub(crate) use lease::Lease;
pub use log::{Contents, SegmentLog, Stored};
pub use queue::DiskQueue;
pub(crate) use queue::DiskReceiver;
pub use record::{Position, Record};
