//! Decodes hyperparameters of TensorBoard's plugin: `HParamsPluginData` (`tensorboard/plugins/hparams/plugin_data.proto`).

use pulsetrain_otlp::{
    wire::{Field, Reader, WireError, WireValue as Wire},
    write::AttributeValue,
};

/// `HParamsPluginData.session_start_info`.
const SESSION_START: u32 = 3;

/// Calls `option` for every hyperparameter of a session start. Returns `false` if the message has no session start.
pub(super) fn each(
    plugin_content: &[u8],
    mut option: impl FnMut(&str, AttributeValue<'_>),
) -> Result<bool, WireError> {
    let mut has_session = false;
    for field in Reader::new(plugin_content) {
        let Field { number, value } = field?;
        if let (SESSION_START, Wire::Bytes(session)) = (number, value) {
            has_session = true;
            for field in Reader::new(session) {
                let Field { number, value } = field?;
                if let (1, Wire::Bytes(entry)) = (number, value) {
                    entry_of(entry, &mut option)?;
                }
            }
        }
    }
    Ok(has_session)
}

/// An entry of `map<string, google.protobuf.Value>`.
fn entry_of(entry: &[u8], option: &mut impl FnMut(&str, AttributeValue<'_>)) -> Result<(), WireError> {
    let (mut key, mut value) = (&[][..], &[][..]);
    for field in Reader::new(entry) {
        let field = field?;
        match (field.number, field.value) {
            (1, Wire::Bytes(bytes)) => key = bytes,
            (2, Wire::Bytes(bytes)) => value = bytes,
            _ => {}
        }
    }
    let key = String::from_utf8_lossy(key);
    for field in Reader::new(value) {
        let Field { number, value } = field?;
        match (number, value) {
            (2, Wire::Fixed64(bits)) => option(&key, AttributeValue::Double(f64::from_bits(bits))),
            (3, Wire::Bytes(text)) => option(&key, AttributeValue::Text(&String::from_utf8_lossy(text))),
            (4, Wire::Varint(bit)) => option(&key, AttributeValue::Bool(bit != 0)),
            // A null, or a list or map, which no writer of hyperparameters makes.
            _ => option(&key, AttributeValue::Text("")),
        }
    }
    Ok(())
}
