//! The pipeline: what carries batches from sources to sinks, and counts every item on the way.
//!
//! A source puts a [`Batch`] through the [`Door`]; the door shows it to each [`Stage`] in turn and fans it out to the bounded
//! queue of every sink; one worker a sink takes batches from its queue, delivers them, and retries by one policy. The
//! [`Ledger`] counts, for each sink and at every moment: accepted = delivered + dropped (by reason) + queued.
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
//! let (pipeline, door) = Pipeline::builder().sink(Box::new(Counter)).start();
//! door.send(Batch::new(Signal::Metrics, 3, vec![0x0a, 0x00])).await?;
//! let reports = pipeline.drain(Duration::from_secs(5)).await;
//! assert_eq!(reports[0].counts.delivered, 3);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! # })?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod batch;
pub mod clock;
mod door;
mod drain;
mod error;
mod lane;
mod ledger;
mod panic;
mod pipeline;
mod queue;
mod receipt;
mod reservation;
mod retry;
mod run;
mod sink;
mod source;
pub mod spill;
mod stage;
mod stop;
mod successor;
mod worker;

pub use batch::Batch;
pub use door::Door;
pub use error::PipelineError;
pub use ledger::{DropReason, Dropped, Ledger, SinkCounts, Trouble};
pub use pipeline::{Pipeline, PipelineBuilder, PipelineConfig, SinkReport};
pub use queue::{QueueConfig, Requirement, SinkRoute};
pub use receipt::{Receipt, Settlement};
pub use reservation::{Reservation, ReserveError};
pub use retry::{GiveUp, RetryConfig};
pub use run::{SourceReport, run_sources};
pub use sink::{BoxFuture, Delivery, Sink};
pub use source::Source;
pub use stage::Stage;
pub use stop::{Stop, StopRaiser};
