//! The retry delay of a receiver over gRPC: `google.rpc.RetryInfo`.

use std::time::Duration;

use pulsetrain_otlp::wire::{Reader, WireValue};

/// `google.rpc.RetryInfo`. Its presence means that the request may be retried, with or without a time.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct RetryInfo {
    pub(super) delay: Option<Duration>,
}

/// Finds `RetryInfo` in the bytes of a `google.rpc.Status`: `details = 3`, a list of `Any { type_url = 1,
/// value = 2 }`.
pub(super) fn retry_info(status: &[u8]) -> Option<RetryInfo> {
    messages(status, 3).find_map(|any| {
        let type_url = messages(any, 1).last()?;
        type_url
            .ends_with(b"/google.rpc.RetryInfo")
            .then(|| RetryInfo { delay: delay(any) })
    })
}

/// Decodes `RetryInfo { retry_delay = 1 }` in `Any.value`, a `Duration { seconds = 1, nanos = 2 }`.
fn delay(any: &[u8]) -> Option<Duration> {
    let duration = messages(messages(any, 2).last()?, 1).last()?;
    let seconds = number(duration, 1).unwrap_or(0);
    let nanos = number(duration, 2).unwrap_or(0);
    Some(Duration::new(
        u64::try_from(seconds).ok()?,
        u32::try_from(nanos).ok()?,
    ))
}

/// Iterates over the values of a length-delimited field, up to the first malformed byte.
fn messages(message: &[u8], number: u32) -> impl Iterator<Item = &[u8]> {
    Reader::new(message)
        .map_while(Result::ok)
        .filter_map(move |field| match field.value {
            WireValue::Bytes(bytes) if field.number == number => Some(bytes),
            _ => None,
        })
}

fn number(message: &[u8], number: u32) -> Option<i64> {
    let values = Reader::new(message)
        .map_while(Result::ok)
        .filter_map(|field| match field.value {
            WireValue::Varint(value) if field.number == number => Some(value.cast_signed()),
            _ => None,
        });
    values.last()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn field(number: u8, bytes: &[u8]) -> Vec<u8> {
        let length = u8::try_from(bytes.len()).unwrap();
        [&[number << 3 | 2, length], bytes].concat()
    }

    fn status(type_url: &str, value: &[u8]) -> Vec<u8> {
        let any = [field(1, type_url.as_bytes()), field(2, value)].concat();
        [vec![0x08, 8], field(2, b"slow down"), field(3, &any)].concat()
    }

    #[test]
    fn retry_info_is_found_among_the_details_of_a_status() {
        let duration = [0x08, 2, 0x10, 0x80, 0xca, 0xb5, 0xee, 0x01]; // 2 s and 500,000,000 ns
        let bytes = status("type.googleapis.com/google.rpc.RetryInfo", &field(1, &duration));
        let other = status("type.googleapis.com/google.rpc.DebugInfo", &field(1, b"x"));
        let both = [other.clone(), bytes].concat();
        assert_eq!(
            retry_info(&both),
            Some(RetryInfo {
                delay: Some(Duration::from_millis(2500))
            })
        );
        assert_eq!(retry_info(&other), None);
        assert_eq!(retry_info(b""), None);
    }

    #[test]
    fn retry_info_without_a_delay_allows_a_retry() {
        let bytes = status("type.googleapis.com/google.rpc.RetryInfo", b"");
        assert_eq!(retry_info(&bytes), Some(RetryInfo { delay: None }));
    }

    #[test]
    fn negative_retry_delay_is_ignored() {
        let minus_one = [0x08, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01];
        let bytes = status("type.googleapis.com/google.rpc.RetryInfo", &field(1, &minus_one));
        assert_eq!(retry_info(&bytes), Some(RetryInfo { delay: None }));
    }
}
