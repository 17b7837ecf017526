//! Responses: the body within a size limit, and the times in the headers.

use std::{
    io::Read,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use bytes::Bytes;
use flate2::read::MultiGzDecoder;
use http::{
    HeaderMap, HeaderName,
    header::{CONTENT_ENCODING, DATE, RETRY_AFTER},
};
use http_body_util::{BodyExt, LengthLimitError, Limited};

use super::{RequestError, ResponseBody};

/// Reads a body of at most `limit` bytes, compressed and decompressed.
pub(super) async fn read(
    headers: &HeaderMap,
    body: ResponseBody,
    limit: usize,
) -> Result<Bytes, RequestError> {
    let body = match Limited::new(body, limit).collect().await {
        Ok(body) => body.to_bytes(),
        Err(error) if error.is::<LengthLimitError>() => return Err(RequestError::TooLarge { limit }),
        Err(error) => return Err(request_error(error)),
    };
    match headers.get(CONTENT_ENCODING) {
        Some(coding) if coding == "gzip" => inflated(&body, limit),
        _ => Ok(body),
    }
}

fn request_error(error: Box<dyn std::error::Error + Send + Sync>) -> RequestError {
    match error.downcast() {
        Ok(error) => *error,
        Err(error) => RequestError::Truncated(error),
    }
}

fn inflated(body: &[u8], limit: usize) -> Result<Bytes, RequestError> {
    let mut bytes = Vec::new();
    MultiGzDecoder::new(body)
        // One byte over the limit shows that the body is too long.
        .take(limit as u64 + 1)
        .read_to_end(&mut bytes)
        .map_err(RequestError::Corrupt)?;
    match bytes.len() > limit {
        true => Err(RequestError::TooLarge { limit }),
        false => Ok(bytes.into()),
    }
}

/// Returns the delay in `Retry-After`: seconds, or an HTTP date, which is compared with the `Date` of the same response, so that
/// the clocks of the two hosts need not agree. A date in the past is no delay.
pub fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let value = headers.get(RETRY_AFTER)?.to_str().ok()?.trim();
    if let Ok(seconds) = value.parse() {
        return Some(Duration::from_secs(seconds));
    }
    let until = time(headers, RETRY_AFTER)?;
    Some(until.duration_since(time(headers, DATE)?).unwrap_or_default())
}

/// Returns the host's time of a response, since 1970.
pub fn date(headers: &HeaderMap) -> Option<Duration> {
    time(headers, DATE)?.duration_since(UNIX_EPOCH).ok()
}

fn time(headers: &HeaderMap, name: HeaderName) -> Option<SystemTime> {
    let value = headers.get(name)?.to_str().ok()?;
    httpdate::parse_http_date(value.trim()).ok()
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    #[test]
    fn retry_after_is_seconds_or_a_date() {
        let read = |value| {
            let mut headers = HeaderMap::new();
            headers.insert(DATE, HeaderValue::from_static("Sun, 06 Nov 1994 08:49:37 GMT"));
            headers.insert(RETRY_AFTER, HeaderValue::from_static(value));
            retry_after(&headers)
        };
        assert_eq!(read("120"), Some(Duration::from_secs(120)));
        assert_eq!(read(" 0 "), Some(Duration::ZERO));
        assert_eq!(
            read("Sun, 06 Nov 1994 08:50:07 GMT"),
            Some(Duration::from_secs(30))
        );
        assert_eq!(read("Sun, 06 Nov 1994 08:00:00 GMT"), Some(Duration::ZERO));
        assert_eq!(read("soon"), None);
        assert_eq!(read("-1"), None);
    }

    #[test]
    fn only_a_decompressed_response_over_the_limit_is_rejected() {
        use std::io::Write;
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        encoder.write_all(&[0; 1000]).unwrap();
        let body = encoder.finish().unwrap();
        assert_eq!(inflated(&body, 1000).unwrap().len(), 1000);
        let error = inflated(&body, 999).unwrap_err();
        assert_eq!(error.to_string(), "the answer is longer than 999 bytes");
        assert!(matches!(inflated(b"no gzip", 999), Err(RequestError::Corrupt(_))));
    }
}
