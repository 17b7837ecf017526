//! Decodes tensors of numbers and strings: `TensorProto` (`tensorflow/core/framework/tensor.proto`).

use pulsetrain_otlp::wire::{Reader, WireError, WireValue};

/// The contents of a tensor that can be telemetry.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Tensor<'a> {
    /// The numbers in order. A number that all elements share may occur only once.
    pub(super) numbers: Vec<f64>,
    /// The first string. Nearly all tensors of strings have only one.
    pub(super) string: Option<&'a [u8]>,
    /// The strings after the first.
    pub(super) further_strings: Vec<&'a [u8]>,
}

/// The numeric members of `DataType`, as encoded in `tensor_content`.
mod data_type {
    pub(super) const FLOAT: u64 = 1;
    pub(super) const DOUBLE: u64 = 2;
    pub(super) const INT32: u64 = 3;
    pub(super) const UINT8: u64 = 4;
    pub(super) const INT16: u64 = 5;
    pub(super) const INT8: u64 = 6;
    pub(super) const INT64: u64 = 9;
    pub(super) const BOOL: u64 = 10;
    pub(super) const BFLOAT16: u64 = 14;
    pub(super) const UINT32: u64 = 22;
    pub(super) const UINT64: u64 = 23;
}

/// Parses a tensor. Numbers after the first `most` are ignored.
pub(super) fn parse(bytes: &[u8], most: usize) -> Result<Tensor<'_>, WireError> {
    let mut tensor = Tensor::default();
    let (mut data_type, mut content) = (0, &[][..]);
    let mut reader = Reader::new(bytes);
    while !reader.is_at_end() {
        let field = reader.tag()?;
        match (field >> 3, reader.value(field)?) {
            (1, WireValue::Varint(number)) => data_type = number,
            (4, WireValue::Bytes(bytes)) => content = bytes,
            (5, value) => tensor.fixed32(value, most),
            (6, value) => tensor.fixed64(value, most),
            // int_val, int64_val, bool_val; and those that have no sign.
            (7 | 10 | 11, value) => tensor.varints(value, most, |bits| bits as i64 as f64)?,
            (16 | 17, value) => tensor.varints(value, most, |bits| bits as f64)?,
            (13, value) if data_type == data_type::BFLOAT16 => {
                tensor.varints(value, most, |bits| bfloat16(bits as u16))?;
            }
            (8, WireValue::Bytes(string)) if tensor.string.is_none() => tensor.string = Some(string),
            (8, WireValue::Bytes(string)) => tensor.further_strings.push(string),
            _ => {}
        }
    }
    tensor.content(data_type, content, most);
    Ok(tensor)
}

impl Tensor<'_> {
    fn fixed32(&mut self, value: WireValue<'_>, most: usize) {
        match value {
            WireValue::Fixed32(bits) => self.push(f64::from(f32::from_bits(bits)), most),
            WireValue::Bytes(packed) => {
                self.chunks(packed, most, |bytes: [u8; 4]| f32::from_le_bytes(bytes).into());
            }
            _ => {}
        }
    }

    fn fixed64(&mut self, value: WireValue<'_>, most: usize) {
        match value {
            WireValue::Fixed64(bits) => self.push(f64::from_bits(bits), most),
            WireValue::Bytes(packed) => self.chunks(packed, most, f64::from_le_bytes),
            _ => {}
        }
    }

    fn varints(
        &mut self,
        value: WireValue<'_>,
        most: usize,
        number: fn(u64) -> f64,
    ) -> Result<(), WireError> {
        match value {
            WireValue::Varint(bits) => self.push(number(bits), most),
            WireValue::Bytes(packed) => {
                let mut reader = Reader::new(packed);
                while !reader.is_at_end() {
                    self.push(number(reader.varint()?), most);
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// Decodes little-endian elements.
    fn content(&mut self, data_type: u64, content: &[u8], most: usize) {
        match data_type {
            data_type::FLOAT => self.chunks(content, most, |bytes: [u8; 4]| f32::from_le_bytes(bytes).into()),
            data_type::DOUBLE => self.chunks(content, most, f64::from_le_bytes),
            data_type::INT32 => self.chunks(content, most, |bytes: [u8; 4]| i32::from_le_bytes(bytes).into()),
            data_type::UINT32 => {
                self.chunks(content, most, |bytes: [u8; 4]| u32::from_le_bytes(bytes).into());
            }
            data_type::INT64 => self.chunks(content, most, |bytes: [u8; 8]| i64::from_le_bytes(bytes) as f64),
            data_type::UINT64 => {
                self.chunks(content, most, |bytes: [u8; 8]| u64::from_le_bytes(bytes) as f64);
            }
            data_type::INT16 => self.chunks(content, most, |bytes: [u8; 2]| i16::from_le_bytes(bytes).into()),
            data_type::BFLOAT16 => self.chunks(content, most, |bytes: [u8; 2]| {
                bfloat16(u16::from_le_bytes(bytes))
            }),
            data_type::UINT8 | data_type::BOOL => self.chunks(content, most, |[byte]: [u8; 1]| byte.into()),
            data_type::INT8 => self.chunks(content, most, |[byte]: [u8; 1]| (byte as i8).into()),
            _ => {}
        }
    }

    fn chunks<const LEN: usize>(&mut self, bytes: &[u8], most: usize, number: fn([u8; LEN]) -> f64) {
        let chunks = bytes
            .chunks_exact(LEN)
            .filter_map(|chunk| chunk.first_chunk::<LEN>());
        let room = most.saturating_sub(self.numbers.len());
        self.numbers.extend(chunks.take(room).map(|chunk| number(*chunk)));
    }

    fn push(&mut self, number: f64, most: usize) {
        if self.numbers.len() < most {
            self.numbers.push(number);
        }
    }
}

/// A bfloat16 is the upper half of a 32-bit float.
fn bfloat16(bits: u16) -> f64 {
    f32::from_bits(u32::from(bits) << 16).into()
}
