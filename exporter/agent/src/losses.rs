//! Describes the drops of a sink in text: one line for each cause, with the signals that it concerns.

use pulsetrain_otlp::Signal;
use pulsetrain_pipeline::{Dropped, SinkCounts};

/// Returns one line for each cause of a loss, then one for each signal that the receiver does not support; each begins with
/// the name of the sink.
pub(crate) fn messages(counts: &SinkCounts) -> Vec<String> {
    let causes = lost_by_cause(counts).chain(unsupported_signals(counts));
    causes.map(|cause| format!("{} {cause}", counts.name)).collect()
}

/// Returns one line for each cause of a loss, without the name of the sink.
pub(crate) fn lost_by_cause(counts: &SinkCounts) -> impl Iterator<Item = String> {
    by_cause(counts).into_iter().map(|drops| lost(&drops))
}

/// Returns one line for each signal that the receiver does not support, which is not a loss, without the name of the
/// sink.
pub(crate) fn unsupported_signals(counts: &SinkCounts) -> impl Iterator<Item = String> {
    counts.unsupported().map(unsupported)
}

/// Returns a line about the items that stay in the disk queue, which are no loss, without the name of the sink.
pub(crate) fn left_on_disk(counts: &SinkCounts) -> Option<String> {
    let on_disk = counts.on_disk.as_ref().filter(|on_disk| on_disk.items > 0)?;
    Some(format!(
        "{} items stay on disk in {} and are sent at the next start",
        on_disk.items,
        on_disk.folder.display()
    ))
}

/// Groups the losses by reason and cause: signals that fail for different causes have a line each.
fn by_cause(counts: &SinkCounts) -> Vec<Vec<&Dropped>> {
    let mut groups: Vec<Vec<&Dropped>> = Vec::new();
    for loss in counts.losses() {
        let is_alike = |group: &&mut Vec<&Dropped>| {
            group
                .iter()
                .any(|other| other.reason == loss.reason && cause(other) == cause(loss))
        };
        match groups.iter_mut().find(is_alike) {
            Some(group) => group.push(loss),
            None => groups.push(vec![loss]),
        }
    }
    groups
}

/// Returns the message without the path of a signal, because otherwise the messages of one dead receiver would differ.
fn cause(drop: &Dropped) -> Option<String> {
    let path = |message: String, signal: Signal| message.replacen(&format!("/v1/{signal}"), "", 1);
    let message = drop.message.clone()?;
    Some(Signal::ALL.into_iter().fold(message, path))
}

fn lost(drops: &[&Dropped]) -> String {
    let items: u64 = drops.iter().map(|drop| drop.items).sum();
    let signals: Vec<&str> = drops.iter().map(|drop| drop.signal.as_str()).collect();
    let reason = drops[0].reason.as_str().replace('_', " ");
    format!(
        "lost {items} items of {} ({reason}){}",
        signals.join(", "),
        words(drops[0])
    )
}

fn unsupported(drop: &Dropped) -> String {
    format!(
        "does not support {}, {} items dropped{}",
        drop.signal,
        drop.items,
        words(drop)
    )
}

fn words(drop: &Dropped) -> String {
    drop.message
        .as_deref()
        .map_or(String::new(), |message| format!(": {message}"))
}
