//! The batches that earlier runs left in queues that no process uses: sent in the background, by sinks of their own.

use std::time::Duration;

use pulsetrain_pipeline::{
    Pipeline, Requirement, Sink, SinkReport, SinkTaskConfig,
    disk::{DiskQueue, DiskQueueError},
};
use tokio::{task::JoinHandle, time::timeout};

use super::{ReceiverQueues, filled, listed};
use crate::{
    agent::open_disk_queue,
    log::{self, Subject},
};

/// The maximum number of queues of a receiver that one run sends from at the same time, in addition to its own.
const MAX_QUEUES: usize = 16;

/// The queues of the receivers of a run.
#[derive(Default)]
pub(in crate::run) struct Leftovers(Vec<Receiver>);

struct Receiver {
    queues: ReceiverQueues,
    sink: Box<dyn Sink>,
    task_config: SinkTaskConfig,
}

/// The pipeline that sends the leftovers, or `None` if there are none.
pub(in crate::run) struct LeftoversTask(JoinHandle<Option<Pipeline>>);

impl Leftovers {
    /// Adds a receiver. Forks of its sink send the batches in its queues.
    pub(in crate::run) fn add(
        &mut self,
        queues: &ReceiverQueues,
        sink: &dyn Sink,
        task_config: &SinkTaskConfig,
    ) {
        self.0.extend(sink.fork().map(|sink| Receiver {
            queues: queues.clone(),
            sink,
            task_config: task_config.clone(),
        }));
    }

    /// Starts to send.
    ///
    /// # Panics
    /// Panics if it is called outside a tokio runtime.
    pub(in crate::run) fn start(self) -> LeftoversTask {
        LeftoversTask(tokio::spawn(async move {
            let mut builder = None;
            for receiver in self.0 {
                for disk in receiver.queues.open_left().await {
                    let Some(sink) = receiver.sink.fork() else {
                        break;
                    };
                    let task_config = SinkTaskConfig {
                        disk: Some(disk),
                        ..receiver.task_config.clone()
                    };
                    let with_others = builder.unwrap_or_else(Pipeline::builder);
                    builder = Some(with_others.sink_with(sink, Requirement::BestEffort, task_config));
                }
            }
            // Nothing is sent but the contents of the queues.
            builder.map(|builder| builder.start().0)
        }))
    }
}

impl LeftoversTask {
    /// Sends until the time is over; the rest stays on disk.
    pub(in crate::run) async fn drain(self, within: Duration) -> Vec<SinkReport> {
        match timeout(within, self.0).await {
            Ok(Ok(Some(pipeline))) => pipeline.drain(within).await,
            _ => Vec::new(),
        }
    }
}

impl ReceiverQueues {
    /// Opens the queues that have batches and that no process uses.
    async fn open_left(&self) -> Vec<DiskQueue> {
        let mut left = Vec::new();
        for folder in listed(&self.folder, filled).await {
            match open_disk_queue(&self.sink, self.config(folder)).await {
                Ok(queue) => left.push(queue),
                Err(DiskQueueError::InUse { .. }) => {}
                Err(error) => log::warn(
                    Subject::Sink(&self.sink),
                    format_args!("continues without batches of an earlier run: {error}"),
                ),
            }
            if left.len() == MAX_QUEUES {
                break;
            }
        }
        left
    }
}
