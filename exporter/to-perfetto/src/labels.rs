//! Interned texts that occur repeatedly: names of groups, states and their tracks.

use std::collections::{HashMap, HashSet};

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

    /// Replaces the last word of each display text that occurs several times by the text itself.
    pub(super) fn distinguish(&mut self) {
        let mut uses = HashMap::<&str, u32>::new();
        for shown in self.0.values().flatten() {
            *uses.entry(shown.as_str()).or_default() += 1;
        }
        let repeated = uses.into_iter().filter(|(_, uses)| *uses > 1);
        let repeated: HashSet<String> = repeated.map(|(shown, _)| shown.to_owned()).collect();
        for (text, shown) in &mut self.0 {
            if let Some(shown) = shown
                && repeated.contains(shown.as_str())
            {
                let name = shown.rsplit_once(' ').map_or("", |(name, _)| name);
                *shown = format!("{name} {text}");
            }
        }
    }

    pub(super) fn get(&self, number: u32) -> &str {
        let entry = self.0.get_index(number as usize);
        entry.map_or("", |(text, shown)| shown.as_ref().unwrap_or(text))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_display_texts_get_the_complete_text() {
        let mut labels = Labels::default();
        for (text, shown) in [
            ("4bf9a", "GET / 4bf9"),
            ("4bf9b", "GET / 4bf9"),
            ("5bf9a", "GET / 5bf9"),
        ] {
            let number = labels.number(text.to_owned());
            labels.show(number, shown.to_owned());
        }
        labels.distinguish();
        let shown = [0, 1, 2].map(|number| labels.get(number));
        assert_eq!(shown, ["GET / 4bf9a", "GET / 4bf9b", "GET / 5bf9"]);
    }
}
