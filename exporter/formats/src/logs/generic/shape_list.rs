//! Counts the lines that a format leaves, by their shapes.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use pulsetrain_otlp::UnixNanos;

use super::shape::{Shape, ShapeNumber};
use crate::logs::{prefix::Prefix, timestamp::DateOrder};

/// The most shapes that are counted apart.
const MOST_SHAPES: usize = 1024;

/// The most examples of a number.
const MOST_EXAMPLES: usize = 3;

/// The longest line that gets a pattern.
const MOST_BYTES: usize = 2048;

/// The lines that a format leaves, by their shapes. Clones share them.
#[derive(Clone, Debug, Default)]
pub struct LeftLineShapes(Arc<Mutex<ShapeList>>);

/// The shapes of lines.
#[derive(Debug, Default)]
pub(super) struct ShapeList {
    shapes: HashMap<String, LineShape>,
    /// The lines of shapes that are not counted apart.
    pub(super) others: u64,
    pub(super) lines: u64,
}

/// The lines of a shape.
#[derive(Clone, Debug)]
pub(super) struct LineShape {
    /// The place of its first line among the left lines.
    pub(super) first: u64,
    pub(super) lines: u64,
    /// The first line, or its beginning.
    pub(super) line: String,
    /// The number of groups in its pattern; 0 if it gets none.
    pub(super) groups: usize,
    pub(super) has_value: bool,
    pub(super) has_prefix: bool,
    /// The numbers of the first line, and the examples of each.
    pub(super) numbers: Vec<(ShapeNumber, Vec<String>)>,
}

impl LeftLineShapes {
    /// Adds a line.
    pub(super) fn add(&self, text: &str, near: UnixNanos) {
        if text.trim().is_empty() {
            return;
        }
        let len = Prefix::parse(text, near, &DateOrder::default()).len;
        let line = text[len..].trim_start_matches([' ', '\t', ':', '|']);
        let line = if len == 0 { text } else { line };
        self.list().add(Shape::parse(line, len > 0), line);
    }

    pub(super) fn list(&self) -> MutexGuard<'_, ShapeList> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ShapeList {
    fn add(&mut self, shape: Shape<'_>, line: &str) {
        let text = shape.text();
        if !self.shapes.contains_key(&text) && self.shapes.len() >= MOST_SHAPES {
            // The most frequent shapes are kept.
            self.others += self
                .shapes
                .values()
                .filter(|shape| shape.lines == 1)
                .map(|shape| shape.lines)
                .sum::<u64>();
            self.shapes.retain(|_, shape| shape.lines > 1);
            if self.shapes.len() >= MOST_SHAPES {
                self.others += 1;
                self.lines += 1;
                return;
            }
        }
        let first = self.lines;
        self.lines += 1;
        let known = self.shapes.entry(text).or_insert_with(|| LineShape {
            first,
            lines: 0,
            line: line[..line.floor_char_boundary(MOST_BYTES)].to_owned(),
            groups: shape.groups,
            has_value: shape.has_value() && line.len() <= MOST_BYTES,
            has_prefix: shape.has_prefix(),
            numbers: Vec::new(),
        });
        known.lines += 1;
        known.add(shape);
    }

    /// Returns the shapes, the most frequent one first.
    pub(super) fn by_frequency(&self) -> Vec<(&str, &LineShape)> {
        let mut shapes: Vec<_> = self
            .shapes
            .iter()
            .map(|(text, shape)| (text.as_str(), shape))
            .collect();
        shapes.sort_by_key(|(_, shape)| (std::cmp::Reverse(shape.lines), shape.first));
        shapes
    }
}

impl LineShape {
    fn add(&mut self, shape: Shape<'_>) {
        // Objects of one shape can have different keys.
        for number in shape.numbers {
            let has_room = self.numbers.len() < MOST_NAMES;
            let known = self
                .numbers
                .iter_mut()
                .find(|(known, _)| known.name == number.name);
            match known {
                Some((_, examples)) if examples.len() < MOST_EXAMPLES && !examples.contains(&number.text) => {
                    examples.push(number.text);
                }
                Some(_) => {}
                None if has_room => {
                    let examples = vec![number.text.clone()];
                    self.numbers.push((number, examples));
                }
                None => {}
            }
        }
    }
}

/// The most names of the numbers of a shape.
const MOST_NAMES: usize = 64;
