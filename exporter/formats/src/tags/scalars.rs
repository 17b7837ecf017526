//! Records the scalars of a file, and the signals derived from several of them.

use std::ops::{Deref, DerefMut};

use pulsetrain_mapping::{FieldTable, RecordMeta, ScalarMapper, TagIndex, Trainer};
use pulsetrain_record::Recorder;
use pulsetrain_semconv::Metric;

use super::{
    distribution::Distribution,
    torchspec::{self, StepReading},
};

/// The scalars of one file: a [`ScalarMapper`], and the bottleneck of TorchSpec's steps.
#[derive(Debug, Default)]
pub(crate) struct Scalars {
    mapper: ScalarMapper,
    bottleneck: StepReading,
    /// Whether the scalars of a step are unordered, so that [`Self::end_of_step`] marks their end.
    is_unordered: bool,
}

impl Scalars {
    /// Creates the scalars of a writer that adds tags of its own.
    pub(crate) fn of_writer(own: &'static FieldTable) -> Self {
        Self::new(ScalarMapper::of_writer(own))
    }

    /// Creates the scalars of a known trainer.
    pub(crate) fn of_trainer(trainer: &'static Trainer) -> Self {
        Self::new(ScalarMapper::of_trainer(trainer))
    }

    /// Creates the scalars of a writer that logs those of a step together, unordered.
    pub(crate) fn unordered() -> Self {
        Self {
            is_unordered: true,
            ..Self::default()
        }
    }

    fn new(mapper: ScalarMapper) -> Self {
        Self {
            mapper,
            ..Self::default()
        }
    }

    /// Ends a step of a writer of unordered scalars.
    pub(crate) fn end_of_step(&self, meta: RecordMeta, recorder: &mut Recorder<'_>) {
        if self.is_torchspec() {
            self.bottleneck.record(meta.time_unix_nanos, recorder);
        }
    }

    fn is_torchspec(&self) -> bool {
        let trainer = self.mapper.trainer();
        trainer.is_some_and(|trainer| trainer.name() == torchspec::NAME)
    }

    /// Records a scalar by its tag.
    pub(crate) fn record(&mut self, tag: &str, meta: RecordMeta, value: f64, recorder: &mut Recorder<'_>) {
        let point = self.mapper.record(tag, meta, value, recorder);
        self.observe(point, meta, recorder);
    }

    /// Records a scalar by the index of its tag.
    pub(crate) fn record_at(
        &mut self,
        index: TagIndex,
        meta: RecordMeta,
        value: f64,
        recorder: &mut Recorder<'_>,
    ) {
        let point = self.mapper.record_at(index, meta, value, recorder);
        self.observe(point, meta, recorder);
    }

    fn observe(
        &mut self,
        point: Option<(&'static Metric, f64)>,
        meta: RecordMeta,
        recorder: &mut Recorder<'_>,
    ) {
        let Some((metric, value)) = point.filter(|_| self.is_torchspec()) else {
            return;
        };
        let is_last = self.bottleneck.observe(metric, value, meta.step);
        if is_last && !self.is_unordered {
            self.bottleneck.record(meta.time_unix_nanos, recorder);
        }
    }

    /// Records a histogram by the index of its tag. Returns whether the histogram is valid.
    pub(crate) fn record_distribution_at(
        &mut self,
        index: TagIndex,
        meta: RecordMeta,
        distribution: &Distribution,
        recorder: &mut Recorder<'_>,
    ) -> bool {
        let Some(parts) = distribution.parts() else {
            return false;
        };
        let distribution = (parts, &distribution.bounds[..]);
        self.mapper
            .record_distribution_at(index, meta, distribution, recorder);
        true
    }
}

impl Deref for Scalars {
    type Target = ScalarMapper;

    fn deref(&self) -> &ScalarMapper {
        &self.mapper
    }
}

impl DerefMut for Scalars {
    fn deref_mut(&mut self) -> &mut ScalarMapper {
        &mut self.mapper
    }
}
