//! Decodes hyperparameters of TensorBoard's plugin: `HParamsPluginData` (`tensorboard/plugins/hparams/plugin_data.proto`).

use pulsetrain_otlp::{
    wire::{Field, Reader, Value as Wire, WireError},
    write::Value,
};

/// `HParamsPluginData.session_start_info`.
const SESSION_START: u32 = 3;

/// Calls `option` for every hyperparameter of a session start. Returns `false` if the message has no session start.
pub(super) fn each(
    plugin_content: &[u8],
    mut option: impl FnMut(&str, Value<'_>),
) -> Result<bool, WireError> {
    let mut has_session = false;
    for field in Reader::new(plugin_content) {
        if let Field {
            number: SESSION_START,
            value: Wire::Bytes(session),
        } = field?
        {
            has_session = true;
            for field in Reader::new(session) {
                if let Field {
                    number: 1,
                    value: Wire::Bytes(entry),
                } = field?
                {
                    entry_of(entry, &mut option)?;
                }
            }
        }
    }
    Ok(has_session)
}

/// An entry of `map<string, google.protobuf.Value>`.
fn entry_of(entry: &[u8], option: &mut impl FnMut(&str, Value<'_>)) -> Result<(), WireError> {
    let (mut key, mut value) = (&[][..], &[][..]);
    for field in Reader::new(entry) {
        match field? {
            Field {
                number: 1,
                value: Wire::Bytes(bytes),
            } => key = bytes,
            Field {
                number: 2,
                value: Wire::Bytes(bytes),
            } => value = bytes,
            _ => {}
        }
    }
    let key = String::from_utf8_lossy(key);
    for field in Reader::new(value) {
        match field? {
            Field {
                number: 2,
                value: Wire::Fixed64(bits),
            } => option(&key, Value::Double(f64::from_bits(bits))),
            Field {
                number: 3,
                value: Wire::Bytes(text),
            } => option(&key, Value::Text(&String::from_utf8_lossy(text))),
            Field {
                number: 4,
                value: Wire::Varint(bit),
            } => option(&key, Value::Bool(bit != 0)),
            // A null, or a list or map, which no writer of hyperparameters makes.
            _ => option(&key, Value::Text("")),
        }
    }
    Ok(())
}
