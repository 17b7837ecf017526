//! Records events and their values.

use pulsetrain_mapping::{RecordMeta, record_option};
use std::borrow::Cow;

use pulsetrain_otlp::{wire::WireError, write::AttributeValue};

use super::{
    EventFileParser,
    event::{Content, Event},
    histogram, hparams,
    summary::{self, Data, TaggedValue},
    tensor,
};
use crate::tags::Distribution;
use pulsetrain_record::{Recorder, SkipReason, SourcePosition};

/// The most numbers of a tensor that are parsed, enough for histograms with thousands of buckets.
const MAX_NUMBERS: usize = 1 << 16;

/// Plugins whose tensors are media or descriptions of displays.
const MEDIA_PLUGINS: [&[u8]; 8] = [
    b"images",
    b"audio",
    b"mesh",
    b"pr_curves",
    b"graph_run_metadata",
    b"graph_keras_model",
    b"custom_scalars",
    b"projector",
];

/// The rule for pictures and sounds.
const MEDIA: SkipReason = SkipReason::Ignored("media");
/// The rule for metadata of hyperparameters.
const HPARAMS_FORM: SkipReason = SkipReason::Ignored("hparams_form");

/// The error of a value.
#[derive(Debug, thiserror::Error)]
pub(super) enum ValueError {
    #[error(transparent)]
    Wire(#[from] WireError),
    #[error("the bounds of the histogram {tag:?} do not increase, or do not match the number of its counts")]
    Histogram { tag: String },
    #[error("the tensor {tag:?} of the plugin {plugin:?} holds no single number, text or histogram")]
    Tensor { tag: String, plugin: String },
}

impl EventFileParser {
    /// Records the values of an event. Returns the first error.
    #[inline]
    pub(super) fn event(
        &mut self,
        event: Event<'_>,
        position: SourcePosition,
        recorder: &mut Recorder<'_>,
    ) -> Result<(), ValueError> {
        self.time_unix_nanos = event.time_unix_nanos().unwrap_or(self.time_unix_nanos);
        let at = RecordMeta {
            time_unix_nanos: self.time_unix_nanos,
            step: Some(event.step),
            position,
        };
        let mut outcome = Ok(());
        match event.content {
            Content::Summary(summary) => {
                if let Some((tag, number)) = summary::lone_scalar(summary) {
                    let position = self.scalars.intern(tag);
                    self.scalars.record_at(position, at, number.into(), recorder);
                    return Ok(());
                }
                for value in summary::values(summary) {
                    let read = value
                        .map_err(ValueError::from)
                        .and_then(|value| self.value(value, at, recorder));
                    outcome = outcome.and(read);
                }
            }
            Content::NoTelemetry(rule) => recorder.skip_value(SkipReason::Ignored(rule)),
            Content::SessionStart => self.scalars.restart_from(event.step),
            Content::Version | Content::Nothing => {}
        }
        outcome
    }

    #[inline]
    fn value(
        &mut self,
        value: TaggedValue<'_>,
        at: RecordMeta,
        recorder: &mut Recorder<'_>,
    ) -> Result<(), ValueError> {
        match value.data {
            Data::Scalar(number) => {
                let position = self.scalars.intern(value.tag);
                self.scalars.record_at(position, at, number.into(), recorder);
            }
            Data::Histogram(bytes) => self.histogram(value.tag, at, &histogram::parse(bytes)?, recorder)?,
            Data::Tensor(bytes) if value.plugin != b"hparams" => self.tensor(value, bytes, at, recorder)?,
            Data::Media => recorder.skip_value(MEDIA),
            Data::Tensor(_) | Data::Nothing => hyperparameters(value, at, recorder)?,
        }
        Ok(())
    }

    /// Records a tensor as a number, histogram, text or media, as its plugin declares. Without a plugin its shape decides.
    fn tensor(
        &mut self,
        TaggedValue { tag, plugin, .. }: TaggedValue<'_>,
        bytes: &[u8],
        at: RecordMeta,
        recorder: &mut Recorder<'_>,
    ) -> Result<(), ValueError> {
        if MEDIA_PLUGINS.contains(&plugin) {
            recorder.skip_value(MEDIA);
            return Ok(());
        }
        let tensor = tensor::parse(bytes, MAX_NUMBERS)?;
        match (&tensor.numbers[..], tensor.string) {
            (numbers, None) if plugin == b"histograms" => {
                self.histogram(tag, at, &histogram::of_rows(numbers), recorder)?;
            }
            ([number], None) => {
                let position = self.scalars.intern(tag);
                self.scalars.record_at(position, at, *number, recorder);
            }
            ([], Some(first)) => {
                let position = self.scalars.intern(tag);
                let lines = lines(first, &tensor.further_strings);
                self.scalars.record_text_at(position, at, &lines, recorder);
            }
            _ => {
                return Err(ValueError::Tensor {
                    tag: text(tag).into_owned(),
                    plugin: text(plugin).into_owned(),
                });
            }
        }
        Ok(())
    }

    fn histogram(
        &mut self,
        tag: &[u8],
        at: RecordMeta,
        distribution: &Distribution,
        recorder: &mut Recorder<'_>,
    ) -> Result<(), ValueError> {
        let position = self.scalars.intern(tag);
        let is_recorded = self
            .scalars
            .record_distribution_at(position, at, distribution, recorder);
        is_recorded.then_some(()).ok_or_else(|| ValueError::Histogram {
            tag: text(tag).into_owned(),
        })
    }
}

/// Joins strings as lines of one text.
fn lines<'a>(first: &'a [u8], further: &[&[u8]]) -> Cow<'a, str> {
    let mut lines = text(first);
    for line in further {
        let lines = lines.to_mut();
        lines.push('\n');
        lines.push_str(&text(line));
    }
    lines
}

/// Records hyperparameters, which are in the plugin's data and not in the value.
fn hyperparameters(
    value: TaggedValue<'_>,
    at: RecordMeta,
    recorder: &mut Recorder<'_>,
) -> Result<(), ValueError> {
    let option =
        |name: &str, value: AttributeValue<'_>| record_option(name, value, at.time_unix_nanos, recorder);
    let is_session = value.plugin == b"hparams" && hparams::each(value.plugin_content, option)?;
    if !is_session {
        recorder.skip_value(HPARAMS_FORM);
    }
    Ok(())
}

/// Returns bytes as text. Invalid UTF-8 is replaced.
fn text(bytes: &[u8]) -> Cow<'_, str> {
    // Valid UTF-8, the usual case, needs no copy.
    str::from_utf8(bytes).map_or_else(|_| String::from_utf8_lossy(bytes), Cow::Borrowed)
}
