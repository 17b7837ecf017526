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
//! | `cursor` | one line of text: the position of the oldest unfinished record |
//! | `*.corrupt` | bytes that could not be read, kept for inspection; the queue never reads them again |
//!
//! A record is `marker [u8; 4] | length u32 | crc32 u32 | signal u8 | items u32 | accepted u64 | payload`, all little
//! endian; `length` is the length of the payload, `accepted` is in nanoseconds since 1970-01-01 UTC. The checksum also
//! covers the number of the segment and the offset of the record, so that bytes in the wrong place are not mistaken for a
//! record.
//!
//! An incomplete record at the end of a segment may or may not have been acknowledged. In two cases it was not, and is
//! truncated without a loss: at the end of the log, because the process ended during the append, and in front of a
//! segment that begins with the same record, which was appended again after the append had failed. In front of any other
//! segment it is counted as lost: the machine failed before the record was on the disk.
//!
//! An operation that the disk rejects, or in which the thread panics, is retried until it succeeds. Until then the queue
//! has no room, its batches in memory stay there, and [`OnDisk::failure`](crate::OnDisk::failure) has the reason.
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
