//! Counts scrapes, so that a program can wait at its end for the scrape of its last points.

use std::time::Duration;

use pulsetrain_pipeline::clock::{self, Instant};
use tokio::sync::watch;

/// The completed scrapes.
#[derive(Debug)]
pub(super) struct Scrapes(watch::Sender<ScrapeStats>);

/// The number of scrapes, the time of the last one, and the latest intervals, newest first.
#[derive(Clone, Copy, Debug, Default)]
struct ScrapeStats {
    count: u64,
    last: Option<Instant>,
    intervals: [Option<Duration>; RECENT_INTERVALS],
    /// Whether a request had the header of a scraper, which returns after any interval.
    has_scraper: bool,
}

/// The number of intervals kept. Two scrapers produce unequal intervals, and a busy machine answers two
/// scrapes at once, so the longest of them counts.
const RECENT_INTERVALS: usize = 4;

/// The minimum time to wait for a scraper, so that a short stall of the machine does not lose the last
/// points.
const MIN_WAIT: Duration = Duration::from_secs(5);

impl Default for Scrapes {
    fn default() -> Self {
        Self(watch::Sender::new(ScrapeStats::default()))
    }
}

impl Scrapes {
    /// Counts a completed scrape.
    pub(super) fn count(&self) {
        let now = clock::now();
        self.0.send_modify(|answered| {
            answered.count += 1;
            answered.intervals.rotate_right(1);
            answered.intervals[0] = answered.last.map(|last| now.saturating_duration_since(last));
            answered.last = Some(now);
        });
    }

    /// Records that a request has the header of a scraper.
    pub(super) fn observe_scraper(&self) {
        self.0.send_modify(|answered| answered.has_scraper = true);
    }

    /// Waits for two more scrapes of a periodic scraper, because the first may have started before. Waits for
    /// three scrape intervals, at least five seconds and at most `limit`. For a scraper with the header it
    /// waits up to `limit`, because a busy scraper discards responses, and one with long intervals may have
    /// scraped once.
    pub(super) async fn wait_for_next(&self, limit: Duration) {
        let mut scrapes = self.0.subscribe();
        let before = *scrapes.borrow();
        let longest = before.intervals.into_iter().flatten().max();
        let patience = match longest {
            _ if before.has_scraper => limit,
            Some(interval) => limit.min(MIN_WAIT.max(interval * 3)),
            None => return,
        };
        let next = scrapes.wait_for(|answered| answered.count >= before.count + 2);
        let _ = tokio::time::timeout(patience, next).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn final_wait_applies_only_to_a_periodic_scraper() {
        let scrapes = Scrapes::default();
        let long = Duration::from_secs(3600);
        scrapes.wait_for_next(long).await;
        scrapes.count();
        // A single request does not indicate a scraper.
        scrapes.wait_for_next(long).await;
        tokio::time::advance(Duration::from_secs(1)).await;
        scrapes.count();
        let (begun, answered) = (clock::now(), async {
            for _ in 0..2 {
                tokio::time::sleep(Duration::from_millis(400)).await;
                scrapes.count();
            }
        });
        tokio::join!(scrapes.wait_for_next(long), answered);
        assert_eq!(begun.elapsed(), Duration::from_millis(800));
        // A scraper that stopped delays the end by at most five seconds or the limit.
        scrapes.wait_for_next(long).await;
        assert_eq!(begun.elapsed(), Duration::from_millis(5_800));
        scrapes.wait_for_next(Duration::from_millis(50)).await;
        assert_eq!(begun.elapsed(), Duration::from_millis(5_850));
    }

    #[tokio::test(start_paused = true)]
    async fn scraper_identified_by_its_header_is_awaited_after_one_scrape() {
        let scrapes = Scrapes::default();
        scrapes.observe_scraper();
        scrapes.count();
        let (begun, answered) = (clock::now(), async {
            for _ in 0..2 {
                tokio::time::sleep(Duration::from_secs(15)).await;
                scrapes.count();
            }
        });
        tokio::join!(scrapes.wait_for_next(Duration::from_secs(3600)), answered);
        assert_eq!(begun.elapsed(), Duration::from_secs(30));
        scrapes.wait_for_next(Duration::from_secs(20)).await;
        assert_eq!(begun.elapsed(), Duration::from_secs(50));
    }

    #[tokio::test(start_paused = true)]
    async fn two_scrapers_with_unequal_intervals_are_both_awaited() {
        let scrapes = Scrapes::default();
        for interval in [14, 1, 14, 1].map(Duration::from_secs) {
            scrapes.count();
            tokio::time::advance(interval).await;
        }
        scrapes.count();
        let begun = clock::now();
        scrapes.wait_for_next(Duration::from_secs(3600)).await;
        assert_eq!(begun.elapsed(), Duration::from_secs(42));
    }
}
