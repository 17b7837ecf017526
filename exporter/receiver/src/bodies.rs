//! Reading of request bodies: many at a time, however slow, with a limit on the bytes of all of them.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use http_body_util::BodyExt;
use hyper::body::{Body, Incoming};
use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore},
    time::timeout,
};

use super::refusal::Refusal;

/// How long a body may take from its first byte to its last.
const DEADLINE: Duration = Duration::from_secs(10);

/// How long the rest of a refused body is read. A connection that is closed while its client writes is reset, and the client
/// never reads why it was refused.
const LINGER: Duration = Duration::from_secs(2);

/// The budget for the bytes of all bodies in memory; a clone shares it.
#[derive(Clone, Debug)]
pub(super) struct Bodies {
    budget: Arc<Semaphore>,
}

/// A complete body.
pub(super) struct Collected {
    pub(super) bytes: Bytes,
    /// Its part of the budget, until it is answered.
    pub(super) permit: OwnedSemaphorePermit,
}

impl Bodies {
    /// A budget of `bytes`.
    pub(super) fn new(bytes: usize) -> Self {
        Self {
            budget: Arc::new(Semaphore::new(bytes.min(Semaphore::MAX_PERMITS))),
        }
    }

    /// Reads a body of at most `limit` bytes to its end. A body waits for nobody: it is refused where the budget is spent,
    /// so that bodies that are half read cannot block one another.
    pub(super) async fn collect<B>(&self, body: &mut B, limit: usize) -> Result<Collected, Refusal>
    where
        B: Body<Data = Bytes, Error: ToString> + Unpin,
    {
        timeout(DEADLINE, self.read(body, limit))
            .await
            .unwrap_or(Err(Refusal::TooSlow))
    }

    async fn read<B>(&self, body: &mut B, limit: usize) -> Result<Collected, Refusal>
    where
        B: Body<Data = Bytes, Error: ToString> + Unpin,
    {
        let mut bytes = Vec::new();
        // The budget counts the memory that is held, which is more than what has been read into it.
        let mut permit = self.permit(0)?;
        while let Some(frame) = body.frame().await {
            let frame = frame.map_err(|error| Refusal::Broken(error.to_string()))?;
            let Ok(data) = frame.into_data() else { continue };
            let length = bytes.len() + data.len();
            if length > limit {
                return Err(Refusal::TooLarge { allowed: limit });
            }
            if length > bytes.capacity() {
                let capacity = length.max(limit.min(2 * bytes.capacity()));
                permit.merge(self.permit(capacity - bytes.capacity())?);
                bytes.reserve_exact(capacity - bytes.len());
            }
            bytes.extend_from_slice(&data);
        }
        let surplus = bytes.capacity() - bytes.len();
        bytes.shrink_to_fit();
        drop(permit.split(surplus));
        Ok(Collected {
            bytes: bytes.into(),
            permit,
        })
    }

    fn permit(&self, bytes: usize) -> Result<OwnedSemaphorePermit, Refusal> {
        let bytes = u32::try_from(bytes).map_err(|_| Refusal::NoPlace)?;
        let permit = Arc::clone(&self.budget).try_acquire_many_owned(bytes);
        permit.map_err(|_| Refusal::NoPlace)
    }
}

/// Reads the rest of a refused body for a moment, and keeps nothing of it.
pub(super) fn discard(mut body: Incoming) {
    tokio::spawn(async move {
        let rest = async { while let Some(Ok(_)) = body.frame().await {} };
        let _ = timeout(LINGER, rest).await;
    });
}

#[cfg(test)]
mod tests {
    use http_body_util::Full;

    use super::*;

    #[tokio::test]
    async fn a_body_over_the_budget_is_refused_until_others_are_answered() {
        let bodies = Bodies::new(10);
        let collect =
            async |bytes: &'static [u8]| bodies.collect(&mut Full::new(Bytes::from_static(bytes)), 8).await;
        let first = collect(b"1234567").await.expect("there is room");
        assert_eq!(first.bytes, "1234567");
        assert_eq!(collect(b"1234").await.err(), Some(Refusal::NoPlace));
        assert!(collect(b"123").await.is_ok());
        drop(first);
        assert!(collect(b"1234").await.is_ok());
        assert_eq!(
            collect(b"123456789").await.err(),
            Some(Refusal::TooLarge { allowed: 8 })
        );
    }
}
