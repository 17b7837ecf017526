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
    name: &'a str,
    labels: &'a str,
    /// The labels with the types of their values.
    typed: &'a str,
}

impl DistinctNames {
    pub(super) fn of(points: &Points, scopes: &Scopes) -> Self {
        let series = |number: u32| {
            let (SeriesKey { stream, name, typed }, series) = points.series_of(number);
            let (name, labels) = name.split_at(series.labels_at);
            NameParts {
                resource: points.metric(*stream).0.resource,
                stream: points.stream(*stream),
                name,
                labels,
                typed: typed.as_deref().unwrap_or(labels),
            }
        };
        let state = |number: u32| {
            let stream = points.state_tracks[number as usize];
            let NameKey { resource, name } = points.metric(stream).0;
            NameParts {
                resource: *resource,
                stream: points.stream(stream),
                name,
                labels: "",
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

/// Returns the names of all items whose usual names are equal in their process.
fn distinct<'a>(
    count: usize,
    parts: impl Fn(u32) -> NameParts<'a>,
    points: &Points,
    scopes: &Scopes,
) -> HashMap<u32, String> {
    let mut first = HashMap::with_capacity(count);
    let mut repeated = BTreeMap::<u32, Vec<u32>>::new();
    for number in 0..count as u32 {
        let NameParts {
            resource,
            name,
            labels,
            ..
        } = parts(number);
        match first.entry((resource, name, labels)) {
            Entry::Vacant(new) => {
                new.insert(number);
            }
            Entry::Occupied(known) => {
                let group = repeated.entry(*known.get()).or_insert_with(|| vec![*known.get()]);
                group.push(number);
            }
        }
    }
    let mut names = HashMap::new();
    for group in repeated.into_values() {
        let members: Vec<NameParts<'_>> = group.iter().map(|number| parts(*number)).collect();
        names.extend(group.into_iter().zip(distinct_names(&members, points, scopes)));
    }
    names
}

/// Returns distinct names for items with equal names: with the types of their labels, and with what differs if those are equal.
fn distinct_names(members: &[NameParts<'_>], points: &Points, scopes: &Scopes) -> Vec<String> {
    let mut by_labels = BTreeMap::<&str, Vec<usize>>::new();
    for (place, member) in members.iter().enumerate() {
        by_labels.entry(member.typed).or_default().push(place);
    }
    let mut names = vec![String::new(); members.len()];
    for places in by_labels.into_values() {
        let streams: Vec<&Stream> = places.iter().map(|place| members[*place].stream).collect();
        let mut uses = HashMap::<String, u32>::new();
        for (place, mut difference) in places.into_iter().zip(differences(&streams, points, scopes)) {
            let uses = uses.entry(difference.join(", ")).or_default();
            *uses += 1;
            if *uses > 1 {
                difference.push(uses.to_string());
            }
            let NameParts { name, typed, .. } = members[place];
            names[place] = if difference.is_empty() {
                format!("{name}{typed}")
            } else {
                format!("{name} ({}){typed}", difference.join(", "))
            };
        }
    }
    names
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
