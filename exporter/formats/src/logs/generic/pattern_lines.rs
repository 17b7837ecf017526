//! Reads the lines that a format leaves by the patterns of a mapping that extends it.

use std::sync::Arc;

use pulsetrain_mapping::{Field, Mapping};
use pulsetrain_record::Recorder;

use super::{
    key_use::KeyUse, labelled::labelled, objects::PrintedLine, section::Section, shape_list::LeftLineShapes,
    text::TextLines,
};
use crate::logs::{
    LeftLineReaders,
    lines::{LeftLines, Line},
};

/// Returns the readers of the lines that the patterns of a mapping select.
pub(in crate::logs) fn pattern_lines(own: &Arc<Mapping>) -> LeftLineReaders {
    let own = Arc::clone(own);
    LeftLineReaders(Box::new(move || Box::new(PatternLines::new(&own))))
}

/// Returns the same readers, which also count the lines that no pattern selects.
pub(in crate::logs) fn counted_lines(own: Option<&Arc<Mapping>>, lines: &LeftLineShapes) -> LeftLineReaders {
    let (own, lines) = (own.cloned(), lines.clone());
    LeftLineReaders(Box::new(move || {
        let own = own.as_ref().filter(|own| !own.lines().is_empty());
        Box::new(CountedLines {
            patterns: own.map(PatternLines::new),
            lines: lines.clone(),
        })
    }))
}

/// Reads each line that a pattern selects as a record.
struct PatternLines(TextLines);

impl PatternLines {
    fn new(own: &Arc<Mapping>) -> Self {
        let mut lines = TextLines::new(own);
        // The format itself reads the steps of the run unless the mapping names them.
        lines.records.counts_steps = !own.steps().is_empty();
        Self(lines)
    }

    /// Returns the fields of a line: the groups of the pattern, and those in the text of the group `record`.
    fn fields<'a>(&mut self, text: &'a str) -> Option<Vec<Field<'a>>> {
        let lines = &mut self.0;
        let (mut fields, body) = lines.records.match_line(text)?;
        let mut printed = PrintedLine::parse(body);
        let texts = printed.texts.iter();
        let numbers: Vec<_> = texts.flat_map(|text| labelled(text, lines.mark)).collect();
        lines.add_labelled(&numbers, Section::Training, &mut fields);
        fields.append(&mut printed.fields);
        lines.records.look_up(&fields);
        (!fields.is_empty()).then_some(fields)
    }
}

impl LeftLines for PatternLines {
    fn line(&mut self, line: &Line<'_>, recorder: &mut Recorder<'_>) -> bool {
        let fields = self.fields(line.text);
        if let Some(fields) = &fields {
            self.0.records.record(fields, line, recorder);
        }
        fields.is_some()
    }

    fn key_uses(&mut self) -> Vec<KeyUse> {
        self.0.records.key_uses()
    }
}

/// Counts the lines that no pattern selects.
struct CountedLines {
    patterns: Option<PatternLines>,
    lines: LeftLineShapes,
}

impl LeftLines for CountedLines {
    fn line(&mut self, line: &Line<'_>, recorder: &mut Recorder<'_>) -> bool {
        let is_read = match &mut self.patterns {
            Some(patterns) => patterns.line(line, recorder),
            None => false,
        };
        if !is_read {
            self.lines.add(line.text, line.near_unix_nanos());
        }
        is_read
    }
}
