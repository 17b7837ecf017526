//! Texts that come again and again, each once: names of groups, states and their tracks.

use hashbrown::HashMap;

/// Texts, each once.
#[derive(Debug, Default)]
pub(super) struct Labels {
    index: HashMap<String, u32>,
    all: Vec<String>,
}

impl Labels {
    /// The number of a text.
    pub(super) fn number(&mut self, label: String) -> u32 {
        let next = self.all.len() as u32;
        *self.index.entry(label).or_insert_with_key(|label| {
            self.all.push(label.clone());
            next
        })
    }

    /// Shows a text in another way, which stays under its number.
    pub(super) fn show(&mut self, number: u32, shown: String) {
        self.all[number as usize] = shown;
    }

    pub(super) fn get(&self, number: u32) -> &str {
        &self.all[number as usize]
    }
}
