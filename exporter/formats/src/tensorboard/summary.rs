//! Decodes the values of an event: `Summary.Value` messages (`tensorflow/core/framework/summary.proto`).

use pulsetrain_otlp::wire::{Reader, WireError, WireValue};

/// A value under a tag.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct TaggedValue<'a> {
    pub(super) tag: &'a [u8],
    pub(super) data: Data<'a>,
    /// The TensorBoard plugin that shows the value. Empty if the kind of the value implies it.
    pub(super) plugin: &'a [u8],
    /// The plugin's own data.
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

/// Returns tag and number of a summary with exactly one scalar, the most frequent case. Returns `None` if the summary needs the
/// general parser.
#[inline]
pub(super) fn lone_scalar(summary: &[u8]) -> Option<(&[u8], f32)> {
    const VALUE: u8 = tag::VALUE as u8;
    const TAG: u8 = tag::TAG as u8;
    const SIMPLE_VALUE: u8 = tag::SIMPLE_VALUE as u8;
    let [VALUE, value_len, value @ ..] = summary else {
        return None;
    };
    // A length of one byte.
    let is_complete = *value_len < 0x80 && usize::from(*value_len) == value.len();
    let [TAG, tag_len, rest @ ..] = value else {
        return None;
    };
    let (tag, rest) = rest.split_at_checked(usize::from(*tag_len))?;
    let [SIMPLE_VALUE, b0, b1, b2, b3] = rest else {
        return None;
    };
    is_complete.then(|| (tag, f32::from_le_bytes([*b0, *b1, *b2, *b3])))
}

/// Iterates over the values of a summary.
#[derive(Debug)]
pub(super) struct Values<'a>(Reader<'a>);

/// Creates an iterator over the values of a summary.
pub(super) fn values(summary: &[u8]) -> Values<'_> {
    Values(Reader::new(summary))
}

impl<'a> Iterator for Values<'a> {
    type Item = Result<TaggedValue<'a>, WireError>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        match self.next_bytes() {
            Ok(value) => value.map(parse),
            Err(error) => {
                // The next value cannot be found.
                self.0 = Reader::new(&[]);
                Some(Err(error))
            }
        }
    }
}

impl<'a> Values<'a> {
    #[inline]
    fn next_bytes(&mut self) -> Result<Option<&'a [u8]>, WireError> {
        while !self.0.is_at_end() {
            match self.0.tag()? {
                tag::VALUE => return self.0.delimited().map(Some),
                other => {
                    self.0.value(other)?;
                }
            }
        }
        Ok(None)
    }
}

/// Fields with their wire types: of `Summary`, and of its values those that nearly every one has.
mod tag {
    pub(super) const VALUE: u32 = 1 << 3 | 2;
    pub(super) const TAG: u32 = 1 << 3 | 2;
    pub(super) const SIMPLE_VALUE: u32 = 2 << 3 | 5;
}

#[inline]
fn parse(bytes: &[u8]) -> Result<TaggedValue<'_>, WireError> {
    let mut parsed = TaggedValue::default();
    let mut reader = Reader::new(bytes);
    while !reader.is_at_end() {
        match reader.tag()? {
            tag::TAG => parsed.tag = reader.delimited()?,
            tag::SIMPLE_VALUE => parsed.data = Data::Scalar(f32::from_bits(reader.fixed32()?)),
            other => {
                let value = reader.value(other)?;
                parsed.take(other >> 3, value)?;
            }
        }
    }
    Ok(parsed)
}

impl<'a> TaggedValue<'a> {
    /// Decodes a field that scalars lack.
    fn take(&mut self, number: u32, value: WireValue<'a>) -> Result<(), WireError> {
        match (number, value) {
            (5, WireValue::Bytes(histogram)) => self.data = Data::Histogram(histogram),
            (8, WireValue::Bytes(tensor)) => self.data = Data::Tensor(tensor),
            (4 | 6, _) => self.data = Data::Media,
            (9, WireValue::Bytes(metadata)) => (self.plugin, self.plugin_content) = plugin(metadata)?,
            _ => {}
        }
        Ok(())
    }
}

/// Name and content of the plugin in a `SummaryMetadata`.
fn plugin(metadata: &[u8]) -> Result<(&[u8], &[u8]), WireError> {
    let (mut name, mut content) = (&[][..], &[][..]);
    let mut reader = Reader::new(metadata);
    while !reader.is_at_end() {
        let field = reader.tag()?;
        let (1, WireValue::Bytes(data)) = (field >> 3, reader.value(field)?) else {
            continue;
        };
        let mut reader = Reader::new(data);
        while !reader.is_at_end() {
            let field = reader.tag()?;
            match (field >> 3, reader.value(field)?) {
                (1, WireValue::Bytes(bytes)) => name = bytes,
                (2, WireValue::Bytes(bytes)) => content = bytes,
                _ => {}
            }
        }
    }
    Ok((name, content))
}
