//! Bytes that are not ids: standard base64 when written, either alphabet with or without padding when read.

use base64::{
    Engine as _,
    alphabet::{STANDARD, URL_SAFE},
    engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig},
};

const LENIENT: GeneralPurposeConfig = GeneralPurposeConfig::new()
    .with_decode_padding_mode(DecodePaddingMode::Indifferent)
    .with_decode_allow_trailing_bits(true);
static WITH_PLUS: GeneralPurpose = GeneralPurpose::new(&STANDARD, LENIENT);
static WITH_MINUS: GeneralPurpose = GeneralPurpose::new(&URL_SAFE, LENIENT);

/// Appends the base64 text of `bytes`.
pub(super) fn encode(bytes: &[u8], out: &mut Vec<u8>) {
    let start = out.len();
    out.resize(start + bytes.len().div_ceil(3) * 4, b'=');
    WITH_PLUS
        .encode_slice(bytes, &mut out[start..])
        .expect("invariant: four characters were reserved for every three bytes begun");
}

/// Appends the bytes of base64 text; returns `false` if the text is not base64.
pub(super) fn decode(text: &[u8], out: &mut Vec<u8>) -> bool {
    let engine = if text.iter().any(|byte| matches!(byte, b'-' | b'_')) {
        &WITH_MINUS
    } else {
        &WITH_PLUS
    };
    engine.decode_vec(text, out).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_base64_alphabets_are_decoded_with_and_without_padding() {
        for text in ["+/8=", "-_8=", "+/8", "-_8"] {
            let mut bytes = Vec::new();
            assert!(decode(text.as_bytes(), &mut bytes), "{text}");
            assert_eq!(bytes, [0xfb, 0xff], "{text}");
        }
        for text in ["a", "a*bc", "ab=c", "=", "ab cd"] {
            assert!(!decode(text.as_bytes(), &mut Vec::new()), "{text}");
        }
    }

    #[test]
    fn base64_of_every_length_round_trips_and_is_appended_to_the_output() {
        for length in 0..9u8 {
            let bytes: Vec<u8> = (0..length).map(|index| index.wrapping_mul(91)).collect();
            let mut text = b"\"".to_vec();
            encode(&bytes, &mut text);
            let mut again = Vec::new();
            assert!(decode(&text[1..], &mut again));
            assert_eq!(again, bytes);
        }
    }
}
