//! The time window of a search, bisected if one answer cannot hold every match.

use std::{collections::BTreeSet, time::Duration};

use pulsetrain_otlp::UnixNanos;

use super::error::BackendError;

/// A time range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimeWindow {
    /// The start.
    pub start: UnixNanos,
    /// The end, at or after the start.
    pub end: UnixNanos,
}

impl TimeWindow {
    /// Returns the length of the window.
    pub fn duration(&self) -> Duration {
        self.end.saturating_duration_since(self.start)
    }

    /// Returns two halves that share a border, or `None` if the window is shorter than two seconds.
    fn halves(&self) -> Option<[Self; 2]> {
        // Stores have a resolution of one second.
        let half = Duration::from_secs(self.duration().as_secs() / 2);
        let middle = self.start.saturating_add(half);
        (middle > self.start).then_some([
            Self {
                start: self.start,
                end: middle,
            },
            Self {
                start: middle,
                end: self.end,
            },
        ])
    }
}

/// One answer of a store to a search.
pub(super) struct Page<T> {
    pub(super) ids: Vec<String>,
    pub(super) content: T,
}

/// The traces that a search has found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TraceSearch {
    /// The ids of the traces.
    pub ids: BTreeSet<String>,
    /// Whether more traces match than `ids` has.
    pub has_more: bool,
    /// The number of `ids` that only the search of a longer window returned. Such a store indexes spans under a time
    /// other than their own (Tempo: late spans under their arrival), so bisecting the window cannot find every match.
    pub misplaced: usize,
}

/// Searches a window, and its halves wherever an answer is full, until every match or more than `most` traces are found.
/// Passes the answers to `take` until `most` traces are found, with the ids found before: a trace across the border of
/// two halves is in both answers.
///
/// `ids` also has the ids that a full answer listed and its halves did not return; no answer with them was passed to
/// `take`.
pub(super) async fn bisect_window<T>(
    window: TimeWindow,
    page: usize,
    most: usize,
    mut ask: impl AsyncFnMut(TimeWindow) -> Result<Page<T>, BackendError>,
    mut take: impl AsyncFnMut(Page<T>, &BTreeSet<String>) -> Result<(), BackendError>,
) -> Result<(TraceSearch, BTreeSet<String>), BackendError> {
    let (mut found, mut named, mut has_more) = (BTreeSet::new(), BTreeSet::new(), false);
    let mut windows = vec![window];
    while let Some(window) = windows.pop() {
        if found.len() > most {
            named.clear();
            break;
        }
        let answer = ask(window).await?;
        let is_full = answer.ids.len() >= page;
        match window.halves().filter(|_| is_full) {
            // The later half is searched first, so that the latest traces are found if the limit is reached.
            Some(halves) => {
                windows.extend(halves);
                named.extend(answer.ids);
            }
            None => {
                has_more |= is_full;
                let ids = answer.ids.clone();
                if found.len() < most {
                    take(answer, &found).await?;
                }
                found.extend(ids);
            }
        }
    }
    let misplaced: BTreeSet<String> = named.difference(&found).cloned().collect();
    found.extend(misplaced.iter().cloned());
    let search = TraceSearch {
        has_more: has_more || found.len() > most,
        misplaced: misplaced.len(),
        ids: found,
    };
    Ok((search, misplaced))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;
    const MINUTE: TimeWindow = TimeWindow {
        start: UnixNanos(0),
        end: UnixNanos(60 * SECOND),
    };

    /// Returns the result of a search that does not fail.
    fn result_of<T>(search: impl Future<Output = Result<T, BackendError>>) -> T {
        let runtime = tokio::runtime::Builder::new_current_thread().build();
        let search = runtime.expect("a runtime can be made").block_on(search);
        search.expect("nothing fails")
    }

    /// Searches traces that begin at these seconds; an answer holds at most two.
    fn found(seconds: &[u64], most: usize) -> (Vec<String>, bool, usize) {
        let mut asked = 0;
        let ask = async |window: TimeWindow| {
            asked += 1;
            let inside = seconds
                .iter()
                .enumerate()
                .filter(|(_, at)| (window.start..=window.end).contains(&UnixNanos(**at * SECOND)));
            let ids = inside.map(|(id, _)| id.to_string()).take(2).collect();
            Ok(Page { ids, content: () })
        };
        let (search, _) = result_of(bisect_window(MINUTE, 2, most, ask, async |_, _| Ok(())));
        (search.ids.into_iter().collect(), search.has_more, asked)
    }

    #[test]
    fn full_page_is_bisected_until_every_trace_is_found() {
        let (ids, has_more, asked) = found(&[1, 5, 20, 40, 43, 58], 100);
        assert_eq!(ids, ["0", "1", "2", "3", "4", "5"]);
        assert!(!has_more && asked > 3, "{asked}");
        assert_eq!(found(&[7], 100), (vec!["0".to_owned()], false, 1));
        assert_eq!(found(&[], 100), (vec![], false, 1));
    }

    #[test]
    fn trace_found_in_two_windows_is_returned_once() {
        let window = TimeWindow {
            start: UnixNanos(0),
            end: UnixNanos(4 * SECOND),
        };
        // The trace "across" has spans on both sides of every border.
        let ask = async |window: TimeWindow| {
            let alone = [0, 1, 2, 3].map(|second| second * SECOND);
            let mut ids: Vec<String> = vec!["across".to_owned()];
            ids.extend(
                alone
                    .iter()
                    .filter(|at| (window.start..window.end).contains(&UnixNanos(**at)))
                    .map(u64::to_string),
            );
            Ok(Page { ids, content: () })
        };
        let mut new = Vec::new();
        let take = async |page: Page<()>, found: &BTreeSet<String>| {
            new.extend(page.ids.into_iter().filter(|id| !found.contains(id)));
            Ok(())
        };
        let (search, _) = result_of(bisect_window(window, 4, 100, ask, take));
        new.sort();
        assert_eq!(new, search.ids.into_iter().collect::<Vec<_>>());
    }

    #[test]
    fn trace_id_found_only_in_a_full_page_is_kept_and_counted_as_misplaced() {
        // Every trace arrived in the last second, whatever the times of its spans.
        let ask = async |asked: TimeWindow| {
            let ids: &[&str] = if asked == MINUTE {
                &["a", "b"]
            } else if asked.end == MINUTE.end {
                &["b"]
            } else {
                &[]
            };
            let ids = ids.iter().copied().map(str::to_owned).collect();
            Ok(Page { ids, content: () })
        };
        let search = bisect_window(MINUTE, 2, 100, ask, async |_, _| Ok(()));
        let (search, misplaced) = result_of(search);
        assert_eq!(search.ids, BTreeSet::from(["a".to_owned(), "b".to_owned()]));
        assert_eq!((search.misplaced, search.has_more), (1, false));
        assert_eq!(misplaced, BTreeSet::from(["a".to_owned()]));
    }

    #[test]
    fn more_traces_with_equal_starts_than_a_page_holds_are_reported() {
        let (ids, has_more, _) = found(&[9, 9, 9, 9], 100);
        assert!(has_more && ids.len() == 2, "{ids:?}");
    }

    #[test]
    fn search_stops_after_the_limit_and_reports_whether_more_traces_match() {
        let (ids, has_more, _) = found(&[1, 5, 20, 40, 41, 58], 3);
        assert!(has_more && (4..=5).contains(&ids.len()), "{ids:?}");
        let (ids, has_more, _) = found(&[1, 5, 20, 40, 43, 58], 6);
        assert!(!has_more && ids.len() == 6, "{ids:?}");
    }
}
