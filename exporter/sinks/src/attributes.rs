//! A sink with attribute rules: attributes are dropped, hashed or renamed before a batch is sent.

use std::{borrow::Cow, sync::Arc};

use pulsetrain_otlp::{Signal, Signals, attributes::AttributeRules};
use pulsetrain_pipeline::{Batch, BoxFuture, Delivery, Problem, Sink};
use ring::digest::{SHA256, digest};

/// Applies attribute rules to each batch, then delivers it to another sink.
pub struct AttributesSink {
    sink: Box<dyn Sink>,
    rules: Arc<AttributeRules>,
}

impl AttributesSink {
    /// Returns `sink` with the rules applied to its batches.
    pub fn new(sink: Box<dyn Sink>, rules: Arc<AttributeRules>) -> Self {
        Self { sink, rules }
    }

    async fn deliver_changed(&mut self, batch: &Batch) -> Delivery {
        let batch = match self.rules.apply(batch.signal(), batch.bytes()) {
            Ok(None) => Cow::Borrowed(batch),
            Ok(Some(bytes)) => Cow::Owned(batch.with_contents(batch.items(), bytes)),
            Err(error) => {
                let what = format!("not sent: the batch is not OTLP protobuf: {error}");
                return Delivery::Refused(Problem::new(what));
            }
        };
        self.sink.deliver(&batch).await
    }
}

/// Returns the SHA-256 of bytes in hexadecimal, as the Collector's attributes processor writes it. The hash
/// has no salt, so a reader can confirm a guessed value.
pub fn sha256_hex(bytes: &[u8]) -> String {
    let digest = digest(&SHA256, bytes);
    digest.as_ref().iter().map(|byte| format!("{byte:02x}")).collect()
}

impl Sink for AttributesSink {
    fn name(&self) -> &str {
        self.sink.name()
    }

    fn signals(&self) -> Signals {
        self.sink.signals()
    }

    fn fork(&self) -> Option<Box<dyn Sink>> {
        let sink = self.sink.fork()?;
        Some(Box::new(Self::new(sink, Arc::clone(&self.rules))))
    }

    fn max_request_bytes(&self, signal: Signal) -> usize {
        self.sink.max_request_bytes(signal)
    }

    fn deliver<'a>(&'a mut self, batch: &'a Batch) -> BoxFuture<'a, Delivery> {
        Box::pin(self.deliver_changed(batch))
    }

    fn finish(&mut self) -> BoxFuture<'_, Result<(), Problem>> {
        self.sink.finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hash_equals_the_output_of_sha256sum() {
        // printf alice | sha256sum
        let expected = "2bd806c97f0e00af1a1fc3328fa763a9269723c8db8fac4f93af71db186d6e90";
        assert_eq!(sha256_hex(b"alice"), expected);
    }
}
