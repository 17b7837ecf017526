//! Reads and decompresses request bodies concurrently, within one memory budget.

use std::{
    io::{self, Read},
    sync::Arc,
    time::Duration,
};

use bytes::Bytes;
use http_body_util::BodyExt;
use hyper::body::{Body, Incoming};
use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore},
    time::timeout,
};

use crate::{decompress::Coding, rejection::Rejection};

/// The time limit for reading a body.
const DEADLINE: Duration = Duration::from_secs(10);

/// The time for which the rest of a rejected body is read. If the connection were closed while the client writes, a reset would hide
/// the answer.
const LINGER: Duration = Duration::from_secs(2);

/// The memory budget of all bodies. Clones share it.
#[derive(Clone, Debug)]
pub(super) struct Bodies {
    budget: Arc<Semaphore>,
}

/// A complete body.
pub(super) struct Collected {
    pub(super) bytes: Bytes,
    /// Its share of the budget, held until the request is answered.
    pub(super) permit: OwnedSemaphorePermit,
}

impl Collected {
    /// Returns the body without the spare capacity, whose share is given back.
    fn new(mut bytes: Vec<u8>, mut permit: OwnedSemaphorePermit) -> Self {
        drop(permit.split(bytes.capacity() - bytes.len()));
        bytes.shrink_to_fit();
        Self {
            bytes: bytes.into(),
            permit,
        }
    }
}

impl Bodies {
    /// Creates a budget of `bytes`.
    pub(super) fn new(bytes: usize) -> Self {
        Self {
            budget: Arc::new(Semaphore::new(bytes.min(Semaphore::MAX_PERMITS))),
        }
    }

    /// Reads a body of at most `limit` bytes. If the budget is exhausted, the body is rejected and does not wait, so that partly
    /// read bodies cannot block each other.
    pub(super) async fn collect<B>(&self, body: &mut B, limit: usize) -> Result<Collected, Rejection>
    where
        B: Body<Data = Bytes, Error: ToString> + Unpin,
    {
        timeout(DEADLINE, self.read(body, limit))
            .await
            .unwrap_or(Err(Rejection::TooSlow))
    }

    async fn read<B>(&self, body: &mut B, limit: usize) -> Result<Collected, Rejection>
    where
        B: Body<Data = Bytes, Error: ToString> + Unpin,
    {
        let mut bytes = Vec::new();
        // The budget counts allocated memory, which exceeds the bytes that were read.
        let mut permit = self.permit(0)?;
        while let Some(frame) = body.frame().await {
            let frame = frame.map_err(|error| Rejection::Unreadable(error.to_string()))?;
            let Ok(data) = frame.into_data() else { continue };
            let length = bytes.len() + data.len();
            if length > limit {
                return Err(Rejection::TooLarge { allowed: limit });
            }
            if length > bytes.capacity() {
                // A client that announces a long body and sends little of it must not use up the budget.
                let announced = length.saturating_add(body.size_hint().lower() as usize);
                let capacity = length.max(limit.min((2 * bytes.capacity()).max(announced.min(4 * length))));
                permit.merge(self.permit(capacity - bytes.capacity())?);
                bytes.reserve_exact(capacity - bytes.len());
            }
            bytes.extend_from_slice(&data);
        }
        Ok(Collected::new(bytes, permit))
    }

    /// Decompresses a body to at most `limit` bytes. The result has a share of the budget of its own.
    pub(super) fn decompress(
        &self,
        coding: Coding,
        body: &[u8],
        limit: usize,
    ) -> Result<Collected, Rejection> {
        // A window counts up to the longest message, so that one fits into the budget of short ones.
        let _window = self.permit(coding.window_bytes(body).min(limit))?;
        let unreadable = |error: io::Error| Rejection::Unreadable(error.to_string());
        let mut decoder = coding.decoder(body).map_err(unreadable)?;
        let first = (4 * body.len()).min(limit);
        let mut permit = self.permit(first)?;
        let mut bytes = Vec::with_capacity(first);
        loop {
            let room = (bytes.capacity() - bytes.len()) as u64;
            let read = decoder.by_ref().take(room).read_to_end(&mut bytes);
            if read.map_err(unreadable)? < room as usize {
                break;
            }
            // One byte over the limit shows that the body is too long.
            let allowed = limit + 1;
            if bytes.len() == allowed {
                return Err(Rejection::TooLarge { allowed: limit });
            }
            let more = bytes.len().clamp(1, allowed - bytes.len());
            permit.merge(self.permit(more)?);
            bytes.reserve_exact(more);
        }
        Ok(Collected::new(bytes, permit))
    }

    /// Reserves a part of the budget.
    pub(super) fn permit(&self, bytes: usize) -> Result<OwnedSemaphorePermit, Rejection> {
        let bytes = u32::try_from(bytes).map_err(|_| Rejection::Busy)?;
        let permit = Arc::clone(&self.budget).try_acquire_many_owned(bytes);
        permit.map_err(|_| Rejection::Busy)
    }
}

/// Reads and discards the rest of a rejected body, for a limited time.
pub(super) fn discard(mut body: Incoming) {
    tokio::spawn(async move {
        let rest = async { while let Some(Ok(_)) = body.frame().await {} };
        let _ = timeout(LINGER, rest).await;
    });
}

#[cfg(test)]
mod tests {
    use std::{
        convert::Infallible,
        io::Write,
        pin::Pin,
        task::{Context, Poll},
    };

    use http_body_util::Full;
    use hyper::body::{Frame, SizeHint};

    use super::*;

    /// A body that announces more bytes than the frames that have arrived.
    struct Announced {
        left: u64,
        frames: &'static [&'static [u8]],
    }

    impl Body for Announced {
        type Data = Bytes;
        type Error = Infallible;

        fn poll_frame(
            mut self: Pin<&mut Self>,
            _: &mut Context<'_>,
        ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
            let Some((frame, rest)) = self.frames.split_first() else {
                return match self.left {
                    0 => Poll::Ready(None),
                    _ => Poll::Pending,
                };
            };
            (self.left, self.frames) = (self.left - frame.len() as u64, rest);
            Poll::Ready(Some(Ok(Frame::data(Bytes::from_static(frame)))))
        }

        fn size_hint(&self) -> SizeHint {
            SizeHint::with_exact(self.left)
        }
    }

    #[tokio::test]
    async fn announced_length_is_allocated_once_but_at_most_four_times_what_has_arrived() {
        let bodies = Bodies::new(40);
        let frames: &[&[u8]] = &[b"1234567890123456789012345", b"67890"];
        let complete = bodies.collect(&mut Announced { left: 30, frames }, 100).await;
        assert_eq!(complete.ok().map(|body| body.bytes.len()), Some(30));
        let frames: &[&[u8]] = &[b"12345"];
        let mut partial = Announced { left: 100, frames };
        let mut reading = std::pin::pin!(bodies.read(&mut partial, 100));
        assert!(is_pending(reading.as_mut()).await);
        assert_eq!(bodies.budget.available_permits(), 40 - 4 * 5);
    }

    async fn is_pending<T>(mut future: Pin<&mut impl Future<Output = T>>) -> bool {
        std::future::poll_fn(|context| Poll::Ready(future.as_mut().poll(context).is_pending())).await
    }

    fn gzip(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    }

    #[test]
    fn only_a_decompressed_body_over_the_limit_is_rejected() {
        let bodies = Bodies::new(10_000);
        for (coding, body) in [
            (Coding::Gzip, gzip(&[0; 1000])),
            (Coding::Zstd, zstd::encode_all(&[0; 1000][..], 1).unwrap()),
        ] {
            let decompress = |body: &[u8], limit| {
                let collected = bodies.decompress(coding, body, limit);
                collected.map(|collected| collected.bytes)
            };
            assert_eq!(decompress(&body, 1000).as_deref(), Ok(&[0; 1000][..]));
            assert_eq!(decompress(&body, 999), Err(Rejection::TooLarge { allowed: 999 }));
            let truncated = decompress(&body[..body.len() / 2], 1000);
            assert!(
                matches!(truncated, Err(Rejection::Unreadable(_))),
                "{truncated:?}"
            );
        }
        assert_eq!(bodies.budget.available_permits(), 10_000);
    }

    #[test]
    fn decompressed_bytes_have_a_share_of_the_budget() {
        let bodies = Bodies::new(2_500);
        let body = gzip(&[0; 1000]);
        let first = bodies
            .decompress(Coding::Gzip, &body, 4000)
            .expect("there is room");
        assert_eq!(bodies.budget.available_permits(), 1_500);
        let second = bodies.decompress(Coding::Gzip, &gzip(&[0; 2000]), 4000);
        assert_eq!(second.err(), Some(Rejection::Busy));
        drop(first);
        assert_eq!(bodies.budget.available_permits(), 2_500);
    }

    #[test]
    fn zstd_with_a_window_beyond_that_of_exporters_is_rejected() {
        let mut encoder = zstd::Encoder::new(Vec::new(), 1).unwrap();
        encoder.window_log(27).unwrap();
        encoder.write_all(&[0; 1000]).unwrap();
        let body = encoder.finish().unwrap();
        let rejected = Bodies::new(10_000).decompress(Coding::Zstd, &body, 4000);
        assert!(matches!(rejected.err(), Some(Rejection::Unreadable(_))));
    }

    #[tokio::test]
    async fn body_over_the_budget_is_rejected_until_earlier_bodies_are_released() {
        let bodies = Bodies::new(10);
        let collect =
            async |bytes: &'static [u8]| bodies.collect(&mut Full::new(Bytes::from_static(bytes)), 8).await;
        let first = collect(b"1234567").await.expect("there is room");
        assert_eq!(first.bytes, "1234567");
        assert_eq!(collect(b"1234").await.err(), Some(Rejection::Busy));
        assert!(collect(b"123").await.is_ok());
        drop(first);
        assert!(collect(b"1234").await.is_ok());
        assert_eq!(
            collect(b"123456789").await.err(),
            Some(Rejection::TooLarge { allowed: 8 })
        );
    }
}
