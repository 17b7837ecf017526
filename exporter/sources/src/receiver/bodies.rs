//! Reading of request bodies: many at a time, however slow, with a limit on the bytes of all of them.

use std::{sync::Arc, time::Duration};

use bytes::{Bytes, BytesMut};
use http_body_util::BodyExt;
use hyper::body::Body;
use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore},
    time::timeout,
};

use super::refusal::Refusal;

/// How long a body may take from its first byte to its last.
const DEADLINE: Duration = Duration::from_secs(10);

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
    pub(super) async fn collect<B>(&self, body: B, limit: usize) -> Result<Collected, Refusal>
    where
        B: Body<Data = Bytes, Error: ToString> + Unpin,
    {
        timeout(DEADLINE, self.read(body, limit))
            .await
            .unwrap_or(Err(Refusal::TooSlow))
    }

    async fn read<B>(&self, mut body: B, limit: usize) -> Result<Collected, Refusal>
    where
        B: Body<Data = Bytes, Error: ToString> + Unpin,
    {
        let mut bytes = BytesMut::new();
        let mut permit = self.permit(0)?;
        while let Some(frame) = body.frame().await {
            let frame = frame.map_err(|error| Refusal::Broken(error.to_string()))?;
            let Ok(data) = frame.into_data() else { continue };
            if bytes.len() + data.len() > limit {
                return Err(Refusal::TooLarge { allowed: limit });
            }
            permit.merge(self.permit(data.len())?);
            bytes.extend_from_slice(&data);
        }
        Ok(Collected {
            bytes: bytes.freeze(),
            permit,
        })
    }

    fn permit(&self, bytes: usize) -> Result<OwnedSemaphorePermit, Refusal> {
        let bytes = u32::try_from(bytes).map_err(|_| Refusal::NoPlace)?;
        let permit = Arc::clone(&self.budget).try_acquire_many_owned(bytes);
        permit.map_err(|_| Refusal::NoPlace)
    }
}

#[cfg(test)]
mod tests {
    use http_body_util::Full;

    use super::*;

    #[tokio::test]
    async fn a_body_over_the_budget_is_refused_until_others_are_answered() {
        let bodies = Bodies::new(10);
        let collect =
            async |bytes: &'static [u8]| bodies.collect(Full::new(Bytes::from_static(bytes)), 8).await;
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
