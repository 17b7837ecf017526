//! Learns the largest request that a receiver accepts.
//!
//! A request that the receiver finds too large is an upper bound, an accepted one a lower bound; the limit is bisected between them. A
//! receiver that limits its rate, or a proxy that resets long requests, does not name the size as the reason: after
//! [`EQUAL_FAILURES`] failures of a merged request that is larger than any accepted one, half its size is tried. If that is
//! accepted, larger requests are tried at once, because an outage has the same look. Every [`PATIENCE`] requests a limit that was learned grows by a quarter.

/// The lower limit in bytes, whatever a receiver answers.
const MIN_BYTES: usize = 4 << 10;

/// The lower limit in bytes after failures that do not name the size.
const MIN_SUSPECTED_BYTES: usize = 16 << 10;

/// The number of consecutive failures of a merged request after which half its size is tried.
const EQUAL_FAILURES: u32 = 2;

/// Like [`EQUAL_FAILURES`], for a size that the receiver has accepted before: it is most probably unavailable.
const EQUAL_FAILURES_OF_ACCEPTED: u32 = 8;

/// The number of requests near the limit after which a larger one is tried.
const PATIENCE: u32 = 64;

/// The maximum size of a request of one signal, and the evidence for it.
#[derive(Clone, Debug)]
pub(super) struct RequestLimit {
    /// The limit of the sink.
    max: usize,
    limit: usize,
    /// The size of the largest request that the receiver accepted.
    accepted: usize,
    /// The size of the smallest request that it found too large.
    too_large: Option<usize>,
    /// The consecutive failures that do not name the size.
    failures: u32,
    /// Whether the limit is the half of a request that failed without a reason.
    is_suspected: bool,
    /// The accepted requests near the limit since it changed.
    near: u32,
}

impl RequestLimit {
    /// Returns the limit of the sink.
    pub(super) fn new(max: usize) -> Self {
        Self {
            max,
            limit: max,
            accepted: 0,
            too_large: None,
            failures: 0,
            is_suspected: false,
            near: 0,
        }
    }

    /// Returns the maximum size of a batch, above which it is split. A suspicion splits none, because the parts are not merged again.
    pub(super) fn split_bytes(&self) -> usize {
        if self.is_suspected { self.max } else { self.limit }
    }

    /// Returns the maximum size of a merged request.
    pub(super) fn merged_bytes(&self) -> usize {
        self.limit
    }

    /// Returns whether the limit is being searched, one request at a time.
    pub(super) fn is_searching(&self) -> bool {
        self.is_suspected
            || self
                .too_large
                .is_some_and(|too_large| self.gap(too_large) > self.accepted / 4)
    }

    /// Records a request that the receiver found too large.
    pub(super) fn record_too_large(&mut self, bytes: usize) {
        if self.accepted >= bytes {
            // The limit of the receiver has changed.
            self.accepted = 0;
            self.too_large = None;
        }
        self.too_large = Some(self.too_large.unwrap_or(bytes).min(bytes));
        self.is_suspected = false;
        self.failures = 0;
        self.narrow();
    }

    /// Records the failure of a merged request whose answer does not name the size.
    pub(super) fn record_failure(&mut self, bytes: usize) {
        self.failures += 1;
        let was_accepted = bytes <= self.accepted;
        if self.is_searching() && self.accepted > 0 && !was_accepted {
            return self.record_too_large(bytes);
        }
        let patience = if was_accepted {
            EQUAL_FAILURES_OF_ACCEPTED
        } else {
            EQUAL_FAILURES
        };
        if self.failures < patience || bytes <= MIN_SUSPECTED_BYTES {
            return;
        }
        if was_accepted {
            self.accepted = 0;
            self.too_large = None;
        }
        self.failures = 0;
        self.is_suspected = true;
        self.limit = (bytes / 2)
            .max(MIN_SUSPECTED_BYTES)
            .max(self.accepted)
            .min(self.limit);
    }

    /// Records an accepted request.
    pub(super) fn record_accepted(&mut self, bytes: usize) {
        self.failures = 0;
        self.accepted = self.accepted.max(bytes);
        let is_near = bytes >= self.limit / 4 * 3;
        if self.is_suspected {
            self.limit = self.limit.saturating_mul(2).min(self.max);
            let is_known = self.too_large.is_some_and(|too_large| too_large <= self.limit);
            self.is_suspected = self.limit < self.max && !is_known;
            if is_known {
                self.narrow();
            }
        } else if is_near && self.is_searching() {
            self.narrow();
        } else if is_near && self.limit < self.max {
            self.near += 1;
            if self.near >= PATIENCE {
                self.near = 0;
                self.too_large = None;
                self.limit = self.limit.saturating_add(self.limit / 4).min(self.max);
            }
        }
    }

    /// Sets the limit between the bounds.
    fn narrow(&mut self) {
        let Some(too_large) = self.too_large else { return };
        let gap = self.gap(too_large);
        let next = if gap > self.accepted / 4 {
            self.accepted + gap / 2
        } else {
            self.accepted
        };
        self.near = 0;
        self.limit = next.max(MIN_BYTES).min(self.max);
    }

    fn gap(&self, too_large: usize) -> usize {
        too_large.saturating_sub(self.accepted)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: usize = 1 << 20;

    /// Sends full requests to a receiver that accepts up to `bytes`, and returns the number of too large ones.
    fn rejected(limit: &mut RequestLimit, bytes: usize, requests: usize) -> usize {
        let mut rejected = 0;
        for _ in 0..requests {
            let request = limit.merged_bytes().min(MIB);
            if request > bytes {
                rejected += 1;
                limit.record_too_large(request);
            } else {
                limit.record_accepted(request);
            }
        }
        rejected
    }

    #[test]
    fn limit_is_bisected_to_three_quarters_of_that_of_the_receiver_and_grows_slowly() {
        for bytes in [20_000, 100_000, 200_000, 500_000, 1_000_000] {
            let mut limit = RequestLimit::new(64 * MIB);
            let searched = rejected(&mut limit, bytes, 20);
            assert!(searched <= 8, "{searched} for {bytes}");
            assert!(
                (bytes / 4 * 3..=bytes).contains(&limit.merged_bytes()),
                "{} of {bytes}",
                limit.merged_bytes()
            );
            assert!(!limit.is_searching());
            let later = rejected(&mut limit, bytes, 1000);
            assert!(later <= 16, "{later} of 1000 for {bytes}");
        }
    }

    #[test]
    fn receiver_that_accepts_more_again_gets_larger_requests() {
        let mut limit = RequestLimit::new(64 * MIB);
        rejected(&mut limit, 100_000, 20);
        rejected(&mut limit, usize::MAX, 1000);
        assert!(limit.merged_bytes() > MIB, "{}", limit.merged_bytes());
    }

    #[test]
    fn two_failures_without_a_reason_halve_the_merged_requests_and_an_accepted_one_doubles_them() {
        let mut limit = RequestLimit::new(64 * MIB);
        limit.record_failure(MIB);
        assert_eq!(limit.merged_bytes(), 64 * MIB);
        limit.record_failure(MIB);
        assert_eq!((limit.merged_bytes(), limit.split_bytes()), (MIB / 2, 64 * MIB));
        assert!(limit.is_searching());
        for _ in 0..40 {
            limit.record_failure(limit.merged_bytes());
        }
        // Nothing was ever accepted.
        assert_eq!(limit.merged_bytes(), MIN_SUSPECTED_BYTES);
        // It was an outage.
        while limit.is_searching() {
            limit.record_accepted(limit.merged_bytes().min(MIB));
        }
        assert_eq!(limit.merged_bytes(), 64 * MIB);
    }

    #[test]
    fn size_that_was_accepted_is_halved_only_after_many_failures() {
        let mut limit = RequestLimit::new(64 * MIB);
        limit.record_accepted(MIB);
        for _ in 1..EQUAL_FAILURES_OF_ACCEPTED {
            limit.record_failure(MIB);
            assert!(!limit.is_searching());
        }
        limit.record_failure(MIB);
        assert_eq!(limit.merged_bytes(), MIB / 2);
    }

    #[test]
    fn larger_request_that_fails_after_a_smaller_one_was_accepted_is_too_large() {
        let mut limit = RequestLimit::new(64 * MIB);
        for bytes in [MIB, MIB, MIB / 2, MIB / 2] {
            limit.record_failure(bytes);
        }
        limit.record_accepted(MIB / 4);
        limit.record_failure(MIB / 2);
        assert_eq!(limit.merged_bytes(), MIB / 8 * 3);
        limit.record_accepted(MIB / 8 * 3);
        assert_eq!(limit.merged_bytes(), MIB / 16 * 7);
        limit.record_accepted(MIB / 16 * 7);
        assert!(!limit.is_searching());
    }
}
