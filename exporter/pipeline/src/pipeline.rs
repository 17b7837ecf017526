//! The pipeline: built from sinks, started, observed through its ledger, drained within a deadline.
//!
//! Every sink has its own task (`sink_task`); tasks are added and removed while batches pass.

use std::{sync::Arc, time::Duration};

use tokio::runtime::Handle;

use crate::{
    BoxFuture, Ingress, Ledger, PipelineConfig, Problem, Requirement, Sink, SinkChanges, SinkCounts,
    SinkRoute, SinkTaskConfig, Stage, clock,
    disk::DiskQueue,
    ledger::Account,
    sink_task::SinkTask,
    stage::{StageSlot, StageTask},
};

/// The builder of a pipeline.
#[derive(Default)]
pub struct PipelineBuilder {
    config: PipelineConfig,
    sinks: Vec<(Box<dyn Sink>, Requirement, Option<SinkTaskConfig>)>,
    stages: Vec<Box<dyn Stage>>,
}

/// A running pipeline. If it is dropped without a drain, it stops at once and counts the remaining items as abandoned.
#[derive(Debug)]
pub struct Pipeline {
    config: PipelineConfig,
    ingress: Ingress,
    ledger: Ledger,
    tasks: Vec<SinkTask>,
    stage: Option<StageTask>,
}

/// The report of a sink that has ended.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SinkReport {
    /// The last counts; nothing is queued any more.
    pub counts: SinkCounts,
    /// The result of the last flush of the sink. The error names data that may be lost although it is counted as
    /// delivered.
    pub finished: Result<(), Problem>,
}

impl PipelineBuilder {
    /// Replaces the default configuration.
    #[must_use]
    pub fn config(self, config: impl Into<PipelineConfig>) -> Self {
        Self {
            config: config.into(),
            ..self
        }
    }

    /// Adds a required sink; the order is the order in the ledger.
    #[must_use]
    pub fn sink(self, sink: Box<dyn Sink>) -> Self {
        self.sink_as(sink, Requirement::Required)
    }

    /// Adds a sink; the order is the order in the ledger.
    #[must_use]
    pub fn sink_as(mut self, sink: Box<dyn Sink>, requirement: Requirement) -> Self {
        self.sinks.push((sink, requirement, None));
        self
    }

    /// Like [`sink_as`](Self::sink_as), with separate settings instead of those of [`PipelineConfig::task`].
    #[must_use]
    pub fn sink_with(mut self, sink: Box<dyn Sink>, requirement: Requirement, task: SinkTaskConfig) -> Self {
        self.sinks.push((sink, requirement, Some(task)));
        self
    }

    /// Adds a stage between the sources and the sinks, after the stages that were added before; it receives their output.
    #[must_use]
    pub fn stage(mut self, stage: Box<dyn Stage>) -> Self {
        self.stages.push(stage);
        self
    }

    /// Starts a worker for every sink.
    ///
    /// # Panics
    /// Panics if it is called outside a tokio runtime.
    pub fn start(self) -> (Pipeline, Ingress) {
        let Self {
            config,
            sinks,
            stages,
        } = self;
        let mut pipeline = Pipeline {
            config,
            ingress: Ingress::new(Handle::current()),
            ledger: Ledger::default(),
            tasks: Vec::new(),
            stage: None,
        };
        for (sink, requirement, task) in sinks {
            let config = task.unwrap_or_else(|| pipeline.config.task.clone());
            let task = SinkTask::start(sink, requirement, config, pipeline.config.finish_grace);
            pipeline.tasks.push(task);
        }
        pipeline.publish();
        let ingress = pipeline.begin(stages);
        (pipeline, ingress)
    }
}

impl Pipeline {
    /// Returns a builder without sinks, with the default configuration.
    pub fn builder() -> PipelineBuilder {
        PipelineBuilder::default()
    }

    /// Returns the ledger, which can be read at any time; a clone outlives the pipeline.
    pub fn ledger(&self) -> &Ledger {
        &self.ledger
    }

    /// Returns the handle that makes several changes of sinks atomic: a batch reaches either the sinks before all of the
    /// changes, or the sinks after all of them.
    pub fn changes(&self) -> SinkChanges {
        self.ingress.changes()
    }

    /// Adds a sink with the settings of [`PipelineConfig::task`]. The sink receives every batch from now on, and is the
    /// last in the ledger.
    ///
    /// # Panics
    /// Panics if it is called outside a tokio runtime.
    pub fn add_sink(&mut self, sink: Box<dyn Sink>, requirement: Requirement) {
        let config = self.config.task.clone();
        let task = SinkTask::start(sink, requirement, config, self.config.finish_grace);
        self.tasks.push(task);
        self.publish();
    }

    /// Adds the queue of a sink of this name, which [`open_sink`](Self::open_sink) hands over later. The queue is the
    /// last in the ledger. A sink of the same name is removed in the same step, so that every batch reaches one of the
    /// two. The removed sink has the time `within` to deliver its queued batches; the rest moves to the new queue, and
    /// the report of the removed sink is returned. An expected queue with the same route and settings stays, with all of
    /// its batches.
    ///
    /// # Panics
    /// Panics if it is called outside a tokio runtime.
    pub fn expect_sink(
        &mut self,
        name: &str,
        route: SinkRoute,
        config: SinkTaskConfig,
        within: Duration,
    ) -> Option<BoxFuture<'static, SinkReport>> {
        let is_expected = |task: &SinkTask| task.name() == name && task.is_expecting(&route, &config);
        if self.tasks.iter().any(is_expected) {
            return None;
        }
        let replaced = self.remove_lane(name);
        let account = Account::new(name);
        // The ledger is updated before items leave the account of the replaced sink, so that no reader sees its sums
        // decrease.
        let accounts = self.tasks.iter().map(SinkTask::account);
        self.ledger.keep(accounts.chain([Arc::clone(&account)]));
        let task = SinkTask::expect(account, route, config, self.config.finish_grace);
        if let Some(replaced) = &replaced {
            replaced.replace_by(&task);
        }
        self.tasks.push(task);
        self.publish();
        replaced.map(|task| leave(task, within))
    }

    /// Returns the disk queue of the sink of this name, if it has one. A sink that replaces it continues with the same
    /// queue.
    pub fn disk_queue(&self, name: &str) -> Option<DiskQueue> {
        let task = self.tasks.iter().find(|task| task.name() == name)?;
        task.disk().cloned()
    }

    /// Hands over a sink that is expected under its name.
    ///
    /// # Errors
    /// Returns the sink if no sink of its name is expected.
    pub fn open_sink(&mut self, sink: Box<dyn Sink>) -> Result<(), Box<dyn Sink>> {
        let expected = |task: &&mut SinkTask| task.name() == sink.name() && task.is_unopened();
        match self.tasks.iter_mut().find(expected) {
            Some(task) => {
                task.open(sink);
                Ok(())
            }
            None => Err(sink),
        }
    }

    /// Removes the sink of this name: it receives no more batches, and has the time `within` to deliver the queued ones.
    /// Other sinks are not affected, and acks do not count its losses as cut off. Returns `None` if there is no such
    /// sink; removes the first one if there are several.
    pub fn remove_sink(&mut self, name: &str, within: Duration) -> Option<BoxFuture<'static, SinkReport>> {
        let task = self.remove_lane(name)?;
        self.publish();
        Some(leave(task, within))
    }

    /// Closes the ingress, lets the sinks deliver the queued batches until the time is over, drops the rest and counts
    /// it.
    ///
    /// Ends at the latest after `within` plus the grace for finishing, or as soon as nothing is queued and every sink has
    /// finished. A batch whose next attempt would come too late is dropped at once.
    pub async fn drain(mut self, within: Duration) -> Vec<SinkReport> {
        let deadline = clock::later(clock::now(), within);
        if let Some(stage) = self.stage.take() {
            stage.end(&self.ingress, deadline).await;
        }
        self.ingress.close();
        self.tasks.iter_mut().for_each(|task| task.close(deadline));
        let mut reports = Vec::new();
        for task in std::mem::take(&mut self.tasks) {
            reports.push(task.end().await);
        }
        reports
    }

    /// Starts the stages, if there are any, and returns the ingress that leads through them. The pipeline's own ingress
    /// bypasses them.
    fn begin(&mut self, stages: Vec<Box<dyn Stage>>) -> Ingress {
        if stages.is_empty() {
            return self.ingress.clone();
        }
        let slot = StageSlot::new(stages);
        let ingress = self.ingress.with_stage(slot.clone());
        self.stage = Some(StageTask::start(slot, self.ingress.clone()));
        ingress
    }

    fn remove_lane(&mut self, name: &str) -> Option<SinkTask> {
        let place = self.tasks.iter().position(|task| task.name() == name)?;
        Some(self.tasks.remove(place))
    }

    /// Updates the tasks that ingress and ledger use.
    fn publish(&self) {
        self.ledger.keep(self.tasks.iter().map(SinkTask::account));
        self.ingress.set_queues(self.tasks.iter().map(SinkTask::queue));
    }
}

/// Drains a task while the others run.
fn leave(mut task: SinkTask, within: Duration) -> BoxFuture<'static, SinkReport> {
    task.leave(clock::later(clock::now(), within));
    Box::pin(task.end())
}

impl Drop for Pipeline {
    fn drop(&mut self) {
        self.ingress.close();
        if let Some(stage) = &self.stage {
            stage.abandon(&self.ingress);
        }
    }
}
