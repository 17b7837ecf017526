//! The scrapes of the endpoint: a program that is about to end waits for the one that gets its last points.

use std::time::Duration;

use pulsetrain_pipeline::clock::{self, Instant};
use tokio::sync::watch;

/// The scrapes that were answered completely.
#[derive(Debug)]
pub(super) struct Scrapes(watch::Sender<ScrapeStats>);

/// How many there were, when the last one was, and the intervals between the last ones, the newest first.
#[derive(Clone, Copy, Debug, Default)]
struct ScrapeStats {
    count: u64,
    last: Option<Instant>,
    intervals: [Option<Duration>; RECENT_INTERVALS],
    /// Whether a request was one of a scraper by its header: it comes again, however long that takes.
    has_scraper: bool,
}

/// Two scrapers of one page come at unequal intervals, and a busy machine answers two scrapes at once: the longest of the last
/// intervals counts.
const RECENT_INTERVALS: usize = 4;

/// A scraper is waited for at least as long as this, so that a short stall of the machine does not cost the last points.
const SHORTEST_WAIT: Duration = Duration::from_secs(5);

impl Default for Scrapes {
    fn default() -> Self {
        Self(watch::Sender::new(ScrapeStats::default()))
    }
}

impl Scrapes {
    /// Counts a scrape whose last byte was written.
    pub(super) fn count(&self) {
        let now = clock::now();
        self.0.send_modify(|answered| {
            answered.count += 1;
            answered.intervals.rotate_right(1);
            answered.intervals[0] = answered.last.map(|last| now.saturating_duration_since(last));
            answered.last = Some(now);
        });
    }

    /// Notes that a request has the header of a scraper.
    pub(super) fn note_scraper(&self) {
        self.0.send_modify(|answered| answered.has_scraper = true);
    }

    /// Waits for two more scrapes where a scraper comes again and again: the first may have begun before. Waits for three intervals
    /// between scrapes, for five seconds at least, and not longer than `limit`; for a scraper that is one by its header as long as
    /// `limit`, because a busy scraper gives up answers that are counted here, and one of long intervals may have come once.
    pub(super) async fn wait_for_next(&self, limit: Duration) {
        let mut scrapes = self.0.subscribe();
        let before = *scrapes.borrow();
        let longest = before.intervals.into_iter().flatten().max();
        let patience = match longest {
            _ if before.has_scraper => limit,
            Some(interval) => limit.min(SHORTEST_WAIT.max(interval * 3)),
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
    async fn only_a_scraper_that_comes_again_is_waited_for() {
        let scrapes = Scrapes::default();
        let long = Duration::from_secs(3600);
        scrapes.wait_for_next(long).await;
        scrapes.count();
        // One request is no scraper.
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
        // A scraper that is gone is not waited for longer than five seconds, nor than the limit.
        scrapes.wait_for_next(long).await;
        assert_eq!(begun.elapsed(), Duration::from_millis(5_800));
        scrapes.wait_for_next(Duration::from_millis(50)).await;
        assert_eq!(begun.elapsed(), Duration::from_millis(5_850));
    }

    #[tokio::test(start_paused = true)]
    async fn a_scraper_by_its_header_is_waited_for_after_one_scrape() {
        let scrapes = Scrapes::default();
        scrapes.note_scraper();
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
    async fn two_scrapers_of_unequal_distance_are_waited_for() {
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
