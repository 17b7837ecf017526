//! The pipeline: carries batches from sources to sinks, and counts every item on the way.
//!
//! A source sends a [`Batch`] to the [`Ingress`]. The ingress passes it through each [`Stage`] in turn and fans it out to the bounded
//! queue of every sink. One worker per sink reads batches from its queue, sends them, and retries by one policy. The [`Ledger`]
//! counts, for each sink and at every moment: accepted = delivered + dropped (by reason) + queued + on disk.
//!
//! ```
//! # use pulsetrain_otlp::Signal;
//! # use pulsetrain_pipeline::{Batch, BoxFuture, Delivery, Pipeline, Sink};
//! # use std::time::Duration;
//! struct Counter;
//!
//! impl Sink for Counter {
//!     fn name(&self) -> &str {
//!         "counter"
//!     }
//!
//!     fn deliver<'a>(&'a mut self, _batch: &'a Batch) -> BoxFuture<'a, Delivery> {
//!         Box::pin(async { Delivery::Delivered })
//!     }
//! }
//!
//! # tokio::runtime::Builder::new_current_thread().enable_time().build()?.block_on(async {
//! let (pipeline, ingress) = Pipeline::builder().sink(Box::new(Counter)).start();
//! ingress.send(Batch::new(Signal::Metrics, 3, vec![0x0a, 0x00])).await?;
//! let reports = pipeline.drain(Duration::from_secs(5)).await;
//! assert_eq!(reports[0].counts.delivered, 3);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! # })?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # From the queue to the receiver
//!
//! Each sink has its own [`SinkTaskConfig`].
//!
//! ```text
//!  queue (memory, or the disk queue)       staging: a FIFO for each signal        requests in flight
//!  ──────────────────────────────────> traces   b b b b ──┐ merged up to      ┌──> handle 1 ──┐
//!    read ahead: concurrency x          metrics  b b      ─┼─ max_bytes ──────┼──> handle 2   ├──> receiver
//!    merge.max_bytes                    logs     b         ─┘ split above the  └──> handle N ──┘
//!                                          ^                 limit of requests        │
//!                                          │   retry, or divided and sent again       │
//!                                          └──────────────────────────────────────────┤
//!                                                  ledger, ack, room in the queue <────┘ each batch on its own
//! ```
//!
//! - **Order.** A sink without forks ([`Sink::fork`] returns `None`) gets one batch at a time, in the order of the queue.
//!   With forks each signal has its own FIFO, and metrics have at most one request in flight, so that the points of a
//!   series arrive in order.
//! - **Merging comes before parallel requests.** The first request of a signal starts at once, with the queued batches.
//!   While it is in flight, batches gather; another request starts only when it is full.
//! - **A rejected request** that carries several batches is divided in two and sent again, down to the batch at fault:
//!   log2(n) + 1 rounds, and no other batch is lost. The items that a partial success rejects are counted once; the
//!   receiver does not identify their batches.
//! - **A refusal that does not blame the contents** ([`Delivery::Denied`], [`Delivery::Unsupported`]) divides no request. The
//!   batches wait, and probes carry one batch each. If the receiver accepts a request that was started after the refusal,
//!   the refused one is sent again, and is then divided like a rejected one. If the receiver accepts other signals only, it is
//!   dropped. With [`GiveUp::AfterOutage`] no batch waits.
//! - **A batch over [`Sink::max_request_bytes`]** is split before it is sent ([`pulsetrain_otlp::split`]), and a request
//!   that the receiver finds too large is divided, down to one item. Each part is settled separately; the ack and the
//!   room in the queue wait for the last part. The size that the receiver accepted limits later requests of the signal,
//!   and grows by a quarter every 64 requests. After two failures of a merged request half its size is tried.
//! - **A receiver that limits its rate**, which accepts a request after a wait and fails the next one, gets its requests at
//!   the interval of the accepted ones.
//!
//! # The state of a sink
//!
//! ```text
//!                 a request fails                       the wait is over
//!   ┌─────────┐ ───────────────────> ┌─────────┐ ──────────────────────────> ┌─────────┐
//!   │ working │                      │ waiting │                             │ probing │
//!   └─────────┘                      └─────────┘ <────────────────────────── └─────────┘
//!   N requests        ^              nothing starts     it fails: longer wait   one request    │
//!   in flight         └───────────────────────────────────────────────────────────────────────┘
//!                        any answer, also of a request that was in flight before
//! ```
//!
//! | event | working | waiting, probing |
//! |---|---|---|
//! | several requests fail together | one wait, that of the first, or the longest that the receiver asked for | the wait does not grow |
//! | [`GiveUp::Never`] | | batches wait; a full queue pushes back |
//! | [`GiveUp::WhenFull`] | | the oldest batch is dropped when it is too old and the queue has no room; a replayable batch is kept |
//! | [`GiveUp::AfterOutage`] | | after that time batches are dropped at once, except for one probe in each wait |
//! | the drain begins | queued batches are sent until the deadline | the wait ends at once and the backoff restarts, unless the receiver asked for the wait |
//! | the next attempt would be after the deadline | | the remaining batches are left at once |
//! | the deadline | requests in flight are cancelled; the remaining batches are left | the same |
//! | the sink panics | its batch is dropped; several are divided | the same |
//!
//! A batch that is left goes to the sink that replaces this one in a reload, stays in the disk queue, or is dropped and
//! counted.

mod ack;
mod batch;
pub mod clock;
mod config;
pub mod disk;
mod drain;
mod error;
mod ingress;
mod ledger;
mod memory_use;
mod panic;
mod pipeline;
mod printable;
pub mod private_files;
mod problem;
mod queue;
mod reservation;
mod retry;
mod run;
mod sink;
mod sink_task;
mod source;
mod source_id;
pub mod spill;
mod stage;

mod successor;
mod throttled_log;
mod worker;

pub use ack::{Ack, AckOutcome};
pub use batch::Batch;
pub use config::{MergeConfig, PipelineConfig, SinkTaskConfig};
pub use error::PipelineError;
pub use ingress::{Ingress, SinkChanges};
pub use ledger::{DropReason, Dropped, Failure, Ledger, OnDisk, SinkCounts};
pub use memory_use::MemoryUse;
pub use pipeline::{Pipeline, PipelineBuilder, SinkReport};
pub use printable::{is_printable, printable};
pub use problem::Problem;
pub use queue::{QueueConfig, Requirement, SinkRoute};
pub use reservation::{NotHeld, Reservation, ReserveError};
pub use retry::{GiveUp, RetryConfig};
pub use run::{SourceReport, run_sources};
pub use sink::{BoxFuture, Delivery, Sink};
pub use source::Source;
pub use source_id::{SourceId, SourceSet};
pub use stage::Stage;
pub use throttled_log::ThrottledLog;
pub use tokio_util::sync::CancellationToken;
