//! The time that a question is about, and the halving of it where one answer cannot hold all.

use std::{collections::BTreeSet, time::Duration};

use super::error::BackendError;

/// A stretch of Unix time, in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimeWindow {
    /// Its begin.
    pub start: u64,
    /// Its end, at or after the begin.
    pub end: u64,
}

/// Stores know time by the second.
const SHORTEST: u64 = 1_000_000_000;

impl TimeWindow {
    /// How long it is.
    pub fn duration(&self) -> Duration {
        Duration::from_nanos(self.end.saturating_sub(self.start))
    }

    /// Two halves that share a border; none where there is no second between.
    fn halves(&self) -> Option<[Self; 2]> {
        let length = self.end.saturating_sub(self.start);
        let middle = self.start + length / 2 / SHORTEST * SHORTEST;
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

/// What one answer to a question holds.
pub(super) struct Page<T> {
    pub(super) ids: Vec<String>,
    pub(super) content: T,
}

/// Asks about a window, and about its halves wherever an answer is full, until all is found or `most` traces are. Hands on
/// each answer that is used with the ids that were found before: a trace across the border of two halves is in the answers to
/// both. Gives the ids that were found and whether there are more.
pub(super) async fn ask_in_halves<T>(
    window: TimeWindow,
    page: usize,
    most: usize,
    mut ask: impl AsyncFnMut(TimeWindow) -> Result<Page<T>, BackendError>,
    mut take: impl AsyncFnMut(Page<T>, &BTreeSet<String>) -> Result<(), BackendError>,
) -> Result<(BTreeSet<String>, bool), BackendError> {
    let (mut found, mut has_more) = (BTreeSet::new(), false);
    let mut windows = vec![window];
    while let Some(window) = windows.pop() {
        if found.len() >= most {
            return Ok((found, true));
        }
        let answer = ask(window).await?;
        let is_full = answer.ids.len() >= page;
        match window.halves().filter(|_| is_full) {
            // The later half is asked first where not all can be had.
            Some(halves) => windows.extend(halves),
            None => {
                has_more |= is_full;
                let ids = answer.ids.clone();
                take(answer, &found).await?;
                found.extend(ids);
            }
        }
    }
    has_more |= found.len() > most;
    Ok((found, has_more))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Finds traces that begin at these seconds, of which an answer holds two.
    fn found(seconds: &[u64], most: usize) -> (Vec<String>, bool, usize) {
        let window = TimeWindow {
            start: 0,
            end: 60 * SHORTEST,
        };
        let mut asked = 0;
        let ask = async |window: TimeWindow| {
            asked += 1;
            let inside = seconds
                .iter()
                .enumerate()
                .filter(|(_, at)| (window.start..=window.end).contains(&(**at * SHORTEST)));
            let ids = inside.map(|(id, _)| id.to_string()).take(2).collect();
            Ok(Page { ids, content: () })
        };
        let runtime = tokio::runtime::Builder::new_current_thread()
            .build()
            .expect("a runtime can be made");
        let (ids, has_more) = runtime
            .block_on(ask_in_halves(window, 2, most, ask, async |_, _| Ok(())))
            .expect("nothing fails");
        (ids.into_iter().collect(), has_more, asked)
    }

    #[test]
    fn a_full_answer_is_asked_for_in_halves_until_all_is_found() {
        let (ids, has_more, asked) = found(&[1, 5, 20, 40, 43, 58], 100);
        assert_eq!(ids, ["0", "1", "2", "3", "4", "5"]);
        assert!(!has_more && asked > 3, "{asked}");
        assert_eq!(found(&[7], 100), (vec!["0".to_owned()], false, 1));
        assert_eq!(found(&[], 100), (vec![], false, 1));
    }

    #[test]
    fn what_is_in_two_answers_is_known_when_it_comes_again() {
        let window = TimeWindow {
            start: 0,
            end: 4 * SHORTEST,
        };
        // The trace "across" has spans on both sides of every border.
        let ask = async |window: TimeWindow| {
            let alone = [0, 1, 2, 3].map(|second| second * SHORTEST);
            let mut ids: Vec<String> = vec!["across".to_owned()];
            ids.extend(
                alone
                    .iter()
                    .filter(|at| (window.start..window.end).contains(*at))
                    .map(u64::to_string),
            );
            Ok(Page { ids, content: () })
        };
        let mut new = Vec::new();
        let take = async |page: Page<()>, found: &BTreeSet<String>| {
            new.extend(page.ids.into_iter().filter(|id| !found.contains(id)));
            Ok(())
        };
        let runtime = tokio::runtime::Builder::new_current_thread()
            .build()
            .expect("a runtime can be made");
        let found = runtime.block_on(ask_in_halves(window, 4, 100, ask, take));
        let (ids, _) = found.expect("nothing fails");
        new.sort();
        assert_eq!(new, ids.into_iter().collect::<Vec<_>>());
    }

    #[test]
    fn what_cannot_be_told_apart_is_said_to_be_more() {
        let (ids, has_more, _) = found(&[9, 9, 9, 9], 100);
        assert!(has_more && ids.len() == 2, "{ids:?}");
    }

    #[test]
    fn asking_ends_where_there_is_enough() {
        let (ids, has_more, _) = found(&[1, 5, 20, 40, 41, 58], 3);
        assert!(has_more && (3..=5).contains(&ids.len()), "{ids:?}");
    }
}
