//! Interned texts that occur repeatedly: names of groups, states and their tracks.

use hashbrown::DefaultHashBuilder;
use indexmap::IndexMap;

/// Interned texts, each with an optional display text.
#[derive(Debug, Default)]
pub(super) struct Labels(IndexMap<String, Option<String>, DefaultHashBuilder>);

impl Labels {
    /// Returns the number of a text.
    pub(super) fn number(&mut self, label: String) -> u32 {
        let entry = self.0.entry(label);
        let number = entry.index() as u32;
        entry.or_default();
        number
    }

    /// Sets the display text for the text with a number.
    pub(super) fn show(&mut self, number: u32, shown: String) {
        self.0[number as usize] = Some(shown);
    }

    pub(super) fn get(&self, number: u32) -> &str {
        let entry = self.0.get_index(number as usize);
        entry.map_or("", |(text, shown)| shown.as_ref().unwrap_or(text))
    }
}
