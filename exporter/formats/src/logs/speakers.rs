//! Gives each process that writes into a log its rank, so that two of them never share a series.
//!
//! A tag with a rank is that rank. Of names with a number, such as `worker-3`, each has its number, or the next free one if another
//! name has it, as `master-0` and `worker-0` do. Processes without a number, such as Ray's, are numbered by their appearance within their group.
//! A log with one name has no ranks: the name shows only where it was written.

use std::collections::{BTreeSet, HashMap};

use pulsetrain_otlp::write::Severity;
use pulsetrain_record::{LoggedTime, Rank};

use super::{envelope::Unwrapped, prefix::Prefix, tag::Speaker};

/// The most names of processes in a log.
const MAX_NAMES: usize = 4096;

/// The origin of a line, by its prefixes and envelopes.
#[derive(Clone, Debug, Default)]
pub(super) struct Voice {
    /// The innermost time.
    pub(super) time: Option<LoggedTime>,
    /// The level of the logger.
    pub(super) level: Option<Severity>,
    rank: Option<Rank>,
    name: Option<ProcessName>,
}

/// The name of a process.
#[derive(Clone, Debug, PartialEq, Eq)]
struct ProcessName {
    /// The processes of another group can have the same rank.
    group: String,
    name: String,
    number: Option<i64>,
}

impl Voice {
    /// Adds an envelope inside of those before it.
    pub(super) fn add_envelope(&mut self, inner: &Unwrapped<'_>) {
        self.time = inner.time.or(self.time);
        self.level = inner.level.or(self.level);
        self.rank = inner.rank.or(self.rank);
        if let Some((name, number)) = &inner.name {
            self.name = Some(ProcessName {
                group: HOSTS.to_owned(),
                name: name.clone(),
                number: *number,
            });
        }
    }

    /// Adds the prefix of the message.
    pub(super) fn add_prefix(&mut self, prefix: &Prefix<'_>) {
        self.time = prefix.time.or(self.time);
        self.level = prefix.level.or(self.level);
        [prefix.outer, prefix.speaker]
            .into_iter()
            .flatten()
            .for_each(|speaker| self.add_speaker(speaker));
    }

    pub(super) fn add_speaker(&mut self, speaker: Speaker<'_>) {
        match speaker {
            Speaker::Ranked(rank) => self.rank = Some(rank),
            Speaker::Numbered(name, number) => {
                self.name = Some(ProcessName {
                    group: HOSTS.to_owned(),
                    name: name.to_owned(),
                    number: Some(number),
                });
            }
            Speaker::Named(group, name) => {
                self.name = Some(ProcessName {
                    group: group.to_owned(),
                    name: name.to_owned(),
                    number: None,
                });
            }
        }
    }

    /// Sets the rank unless a tag has it.
    pub(super) fn or_rank(&mut self, rank: Option<Rank>) {
        self.rank = self.rank.or(rank);
    }

    /// Returns whether the level is that of a warning or an error.
    pub(super) fn is_severe(&self) -> bool {
        matches!(self.level, Some(Severity::Warn | Severity::Error))
    }

    pub(super) fn has_rank(&self) -> bool {
        self.rank.is_some()
    }
}

/// The group of the names of hosts, pods and containers.
const HOSTS: &str = "";

/// The processes of a log.
#[derive(Debug, Default)]
pub(super) struct Speakers {
    /// The number of each name; `None` for the first one of its group, which has the rank of the run.
    numbers: HashMap<(String, String), Option<i64>>,
    /// The numbers of groups that were seen at the beginning of the log.
    is_plural: BTreeSet<String>,
    /// The first name of each group.
    first: HashMap<String, String>,
    used: BTreeSet<i64>,
}

impl Speakers {
    /// Records a line of the beginning of a log, before its lines are read.
    pub(super) fn observe(&mut self, voice: &Voice) {
        let Some(name) = voice.name.as_ref().filter(|_| voice.rank.is_none()) else {
            return;
        };
        if self.first.len() >= MAX_NAMES {
            return;
        }
        let first = self
            .first
            .entry(name.group.clone())
            .or_insert_with(|| name.name.clone());
        if *first != name.name {
            self.is_plural.insert(name.group.clone());
        }
    }

    /// Returns the rank of a line, or `None` for that of the run.
    pub(super) fn rank(&mut self, voice: &Voice) -> Option<Rank> {
        match (&voice.rank, &voice.name) {
            // Each host numbers its own processes.
            (Some(Rank::OfHost(local)), Some(host)) if host.group == HOSTS => {
                let name = ProcessName {
                    group: LOCAL.to_owned(),
                    name: format!("{}/{local}", host.name),
                    number: Some(*local),
                };
                self.is_plural.insert(LOCAL.to_owned());
                let number = self.number(&name)?;
                Some(if number == *local {
                    Rank::OfHost(number)
                } else {
                    Rank::OfJob(number)
                })
            }
            (Some(rank), _) => Some(*rank),
            (None, Some(name)) => self.number(name).map(Rank::OfJob),
            (None, None) => None,
        }
    }

    fn number(&mut self, name: &ProcessName) -> Option<i64> {
        let key = (name.group.clone(), name.name.clone());
        if let Some(number) = self.numbers.get(&key) {
            return *number;
        }
        if self.numbers.len() >= MAX_NAMES {
            return None;
        }
        let is_first = self
            .first
            .get(&name.group)
            .is_none_or(|first| *first == name.name);
        self.first
            .entry(name.group.clone())
            .or_insert_with(|| name.name.clone());
        if !is_first {
            self.is_plural.insert(name.group.clone());
        }
        let is_alone = is_first && !self.is_plural.contains(&name.group);
        if is_alone {
            // Its number is not known yet to be a rank.
            return None;
        }
        let number = match name.number {
            None if is_first => None,
            Some(number) if !self.used.contains(&number) => Some(number),
            _ => (1..).find(|number| !self.used.contains(number)),
        };
        self.used.insert(number.unwrap_or(0));
        self.numbers.insert(key, number);
        number
    }
}

/// The group of the ranks on hosts.
const LOCAL: &str = "\u{1f}";

#[cfg(test)]
mod tests {
    use super::*;

    fn voice(speakers: &[Speaker<'_>]) -> Voice {
        let mut voice = Voice::default();
        speakers.iter().for_each(|speaker| voice.add_speaker(*speaker));
        voice
    }

    fn ranks(lines: &[&[Speaker<'_>]]) -> Vec<Option<Rank>> {
        let mut speakers = Speakers::default();
        lines.iter().for_each(|line| speakers.observe(&voice(line)));
        lines.iter().map(|line| speakers.rank(&voice(line))).collect()
    }

    #[test]
    fn numbers_of_names_are_ranks_unless_another_name_has_them() {
        use Speaker::Numbered;
        let of = |number| Some(Rank::OfJob(number));
        assert_eq!(
            ranks(&[
                &[Numbered("worker-2", 2)],
                &[Numbered("worker-0", 0)],
                &[Numbered("worker-2", 2)]
            ]),
            [of(2), of(0), of(2)]
        );
        assert_eq!(
            ranks(&[
                &[Numbered("master-0", 0)],
                &[Numbered("worker-0", 0)],
                &[Numbered("worker-1", 1)]
            ]),
            [of(0), of(1), of(2)]
        );
        assert_eq!(
            ranks(&[&[Numbered("trainer-1", 1)], &[Numbered("trainer-1", 1)]]),
            [None, None]
        );
    }

    #[test]
    fn processes_without_a_number_are_numbered_within_their_group() {
        use Speaker::Named;
        let of = |number| Some(Rank::OfJob(number));
        assert_eq!(
            ranks(&[
                &[Named("Trainer", "7")],
                &[Named("Rollout", "9")],
                &[Named("Trainer", "8")],
                &[Named("Trainer", "7")]
            ]),
            [None, None, of(1), None]
        );
    }

    #[test]
    fn ranks_on_several_hosts_do_not_collide() {
        use Speaker::{Numbered, Ranked};
        let local = |number| Ranked(Rank::OfHost(number));
        let found = ranks(&[
            &[Numbered("node-0", 0), local(0)],
            &[Numbered("node-0", 0), local(1)],
            &[Numbered("node-1", 1), local(0)],
            &[Numbered("node-1", 1), local(1)],
        ]);
        let of_host = |number| Some(Rank::OfHost(number));
        let of_job = |number| Some(Rank::OfJob(number));
        assert_eq!(found, [of_host(0), of_host(1), of_job(2), of_job(3)]);
    }

    #[test]
    fn a_lone_name_gets_its_number_once_another_one_appears() {
        let mut speakers = Speakers::default();
        let first = speakers.rank(&voice(&[Speaker::Numbered("worker-2", 2)]));
        let second = speakers.rank(&voice(&[Speaker::Numbered("worker-0", 0)]));
        let again = speakers.rank(&voice(&[Speaker::Numbered("worker-2", 2)]));
        assert_eq!(
            (first, second, again),
            (None, Some(Rank::OfJob(0)), Some(Rank::OfJob(2)))
        );
    }
}
