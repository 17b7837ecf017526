//! Distinct names: equal names of several counters or rows of states in a process get what differs, such as the scope.

use std::collections::{BTreeMap, HashMap, HashSet, hash_map::Entry};

use super::{
    points::{NameKey, Points},
    scopes::Scopes,
    series::{SeriesKey, Stream},
};

/// The names of the counters and rows of states that do not have their usual name.
#[derive(Debug, Default)]
pub(super) struct DistinctNames {
    series: HashMap<u32, String>,
    states: HashMap<u32, String>,
}

/// The parts of a usual name.
#[derive(Clone, Copy)]
struct NameParts<'a> {
    resource: u32,
    stream: &'a Stream,
    /// The usual name, with its labels.
    usual: &'a str,
    /// The length of the name without the labels.
    labels_at: usize,
    /// The labels with the types of their values.
    typed: &'a str,
}

impl DistinctNames {
    pub(super) fn new(points: &Points, scopes: &Scopes) -> Self {
        let series = |number: u32| {
            let (SeriesKey { stream, name, typed }, series) = points.series_of(number);
            NameParts {
                resource: points.metric(*stream).0.resource,
                stream: points.stream(*stream),
                usual: name,
                labels_at: series.labels_at,
                typed: typed.as_deref().unwrap_or(&name[series.labels_at..]),
            }
        };
        let state = |number: u32| {
            let stream = points.state_tracks[number as usize];
            let NameKey { resource, name } = points.metric(stream).0;
            NameParts {
                resource: *resource,
                stream: points.stream(stream),
                usual: name,
                labels_at: name.len(),
                typed: "",
            }
        };
        Self {
            series: distinct(points.series.len(), series, points, scopes),
            states: distinct(points.state_tracks.len(), state, points, scopes),
        }
    }

    /// Returns the name of a counter whose usual name is `usual`.
    pub(super) fn series<'a>(&'a self, number: u32, usual: &'a str) -> &'a str {
        self.series.get(&number).map_or(usual, String::as_str)
    }

    /// Returns the name of a row of states whose usual name is `usual`.
    pub(super) fn state<'a>(&'a self, number: u32, usual: &'a str) -> &'a str {
        self.states.get(&number).map_or(usual, String::as_str)
    }
}

/// Returns the names of all items whose usual names are equal in their process. No other item of the process has such a name.
fn distinct<'a>(
    count: usize,
    parts: impl Fn(u32) -> NameParts<'a>,
    points: &Points,
    scopes: &Scopes,
) -> HashMap<u32, String> {
    let mut first = HashMap::with_capacity(count);
    let mut repeated = BTreeMap::<u32, Vec<u32>>::new();
    for number in 0..count as u32 {
        let NameParts { resource, usual, .. } = parts(number);
        match first.entry((resource, usual)) {
            Entry::Vacant(new) => {
                new.insert(number);
            }
            Entry::Occupied(known) => {
                let group = repeated.entry(*known.get()).or_insert_with(|| vec![*known.get()]);
                group.push(number);
            }
        }
    }
    let (mut names, mut given) = (HashMap::new(), HashSet::new());
    for group in repeated.values() {
        let members: Vec<NameParts<'_>> = group.iter().map(|number| parts(*number)).collect();
        let new = distinct_names(&members, points, scopes, |resource, name| {
            let usual = first.get(&(resource, name));
            usual.is_none_or(|number| repeated.contains_key(number))
                && given.insert((resource, name.to_owned()))
        });
        names.extend(group.iter().copied().zip(new));
    }
    names
}

/// Returns distinct names for items with equal names: with the types of their labels, and with what differs if those are equal.
/// A name that `take` refuses gets a number.
fn distinct_names(
    members: &[NameParts<'_>],
    points: &Points,
    scopes: &Scopes,
    mut take: impl FnMut(u32, &str) -> bool,
) -> Vec<String> {
    let mut by_labels = BTreeMap::<&str, Vec<usize>>::new();
    for (place, member) in members.iter().enumerate() {
        by_labels.entry(member.typed).or_default().push(place);
    }
    let mut names = vec![String::new(); members.len()];
    for places in by_labels.into_values() {
        let streams: Vec<&Stream> = places.iter().map(|place| members[*place].stream).collect();
        let mut uses = HashMap::<String, u32>::new();
        for (place, difference) in places.into_iter().zip(differences(&streams, points, scopes)) {
            let member = &members[place];
            let difference = difference.join(", ");
            let uses = uses.entry(difference.clone()).or_default();
            names[place] = loop {
                *uses += 1;
                let name = member.name_with(&difference, *uses);
                if take(member.resource, &name) {
                    break name;
                }
            };
        }
    }
    names
}

impl NameParts<'_> {
    /// Returns the name with a difference, and with a number other than 1.
    fn name_with(&self, difference: &str, number: u32) -> String {
        let (name, typed) = (&self.usual[..self.labels_at], self.typed);
        match (difference, number) {
            ("", 1) => format!("{name}{typed}"),
            ("", _) => format!("{name} ({number}){typed}"),
            (_, 1) => format!("{name} ({difference}){typed}"),
            _ => format!("{name} ({difference}, {number}){typed}"),
        }
    }
}

/// Returns for each stream the first properties that distinguish them: the name and the version of the scope, the kind and the
/// unit.
fn differences(streams: &[&Stream], points: &Points, scopes: &Scopes) -> Vec<Vec<String>> {
    let properties: [&dyn Fn(&Stream) -> String; 4] = [
        &|stream| scopes.name(stream.scope).to_owned(),
        &|stream| scopes.version(stream.scope),
        &|stream| format!("{}{}", if stream.is_delta { "delta " } else { "" }, stream.kind),
        &|stream| points.unit(stream),
    ];
    let (mut found, mut distinct) = (vec![Vec::new(); streams.len()], 1);
    for property in properties {
        let values: Vec<String> = streams.iter().map(|stream| property(stream)).collect();
        let together = found.iter().zip(&values).collect::<HashSet<_>>().len();
        if together > distinct {
            distinct = together;
            for (found, value) in found.iter_mut().zip(values) {
                found.extend(Some(value).filter(|value| !value.is_empty()));
            }
        }
    }
    found
}
