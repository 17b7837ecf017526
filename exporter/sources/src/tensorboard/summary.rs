//! The values of an event: `Summary.Value` messages (`tensorflow/core/framework/summary.proto`).

use pulsetrain_otlp::wire::{Field, Reader, Value, WireError};

/// A value under a tag.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct TaggedValue<'a> {
    pub(super) tag: &'a [u8],
    pub(super) data: Data<'a>,
    /// The plugin of TensorBoard that shows the value; empty where the value's kind says it.
    pub(super) plugin: &'a [u8],
    /// What the plugin keeps beside the value.
    pub(super) plugin_content: &'a [u8],
}

/// The value itself.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) enum Data<'a> {
    #[default]
    Nothing,
    Scalar(f32),
    /// A `HistogramProto`.
    Histogram(&'a [u8]),
    /// A `TensorProto`.
    Tensor(&'a [u8]),
    /// An image or sound.
    Media,
}

/// The values of a summary, one after the other.
#[derive(Debug)]
pub(super) struct Values<'a>(Reader<'a>);

/// Begins to read the values of a summary.
pub(super) fn values(summary: &[u8]) -> Values<'_> {
    Values(Reader::new(summary))
}

impl<'a> Iterator for Values<'a> {
    type Item = Result<TaggedValue<'a>, WireError>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        loop {
            match self.0.next()? {
                Ok(Field {
                    number: 1,
                    value: Value::Bytes(value),
                }) => return Some(parse(value)),
                Ok(_) => {}
                Err(error) => return Some(Err(error)),
            }
        }
    }
}

#[inline]
fn parse(bytes: &[u8]) -> Result<TaggedValue<'_>, WireError> {
    let mut parsed = TaggedValue::default();
    for field in Reader::new(bytes) {
        match field? {
            Field {
                number: 1,
                value: Value::Bytes(tag),
            } => parsed.tag = tag,
            Field {
                number: 2,
                value: Value::Fixed32(bits),
            } => parsed.data = Data::Scalar(f32::from_bits(bits)),
            Field {
                number: 5,
                value: Value::Bytes(histogram),
            } => parsed.data = Data::Histogram(histogram),
            Field {
                number: 8,
                value: Value::Bytes(tensor),
            } => parsed.data = Data::Tensor(tensor),
            Field { number: 4 | 6, .. } => parsed.data = Data::Media,
            Field {
                number: 9,
                value: Value::Bytes(metadata),
            } => {
                (parsed.plugin, parsed.plugin_content) = plugin(metadata)?;
            }
            _ => {}
        }
    }
    Ok(parsed)
}

/// Name and content of the plugin in a `SummaryMetadata`.
fn plugin(metadata: &[u8]) -> Result<(&[u8], &[u8]), WireError> {
    let (mut name, mut content) = (&[][..], &[][..]);
    for field in Reader::new(metadata) {
        if let Field {
            number: 1,
            value: Value::Bytes(data),
        } = field?
        {
            for field in Reader::new(data) {
                match field? {
                    Field {
                        number: 1,
                        value: Value::Bytes(bytes),
                    } => name = bytes,
                    Field {
                        number: 2,
                        value: Value::Bytes(bytes),
                    } => content = bytes,
                    _ => {}
                }
            }
        }
    }
    Ok((name, content))
}
