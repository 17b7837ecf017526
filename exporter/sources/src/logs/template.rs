//! Lines of one template, as miners of logs call it: all of them but their numbers is the same. What such lines say is found out
//! of the first; of those that follow, only the numbers are read.

mod drawing;
mod sketch;

pub(super) use self::{
    drawing::Drawing,
    sketch::{Drawn, Found, How, Sketch},
};
use super::number_text::Form;
use crate::cut;

/// So many templates of a log are remembered, and none that are longer; the oldest goes first.
const TEMPLATES: usize = 16;
const LONGEST: usize = 4096;

/// So many more lines may have templates of their own than come again, before only one of so many is remembered.
const PATIENCE: u8 = 64;

/// The templates of one log.
#[derive(Debug)]
pub(super) struct Templates<M> {
    known: Vec<Template<M>>,
    /// What the last line says, if its template is not remembered.
    newest: Option<Sketch<M>>,
    /// The place of the template of the last line.
    last: usize,
    /// The place of the template that goes next.
    oldest: usize,
    patience: u8,
    /// The lines whose templates were not remembered, since the last one that was.
    passed: u8,
}

/// All of a line but its numbers, and what it says.
#[derive(Debug)]
struct Template<M> {
    /// What stands before each number and behind the last one.
    between: Box<[u8]>,
    slots: Box<[Slot]>,
    sketch: Sketch<M>,
    /// The place of the template that followed this one the last time.
    next: usize,
}

/// How far a line is of a template.
#[derive(Clone, Copy, Debug, Default)]
struct Stop {
    /// The numbers up to there.
    slots: usize,
    /// The bytes of the line up to there.
    at: usize,
}

/// Where a number stands.
#[derive(Debug, PartialEq)]
struct Slot {
    /// What stands before it.
    before: Sign,
    /// Where that begins and ends in `between`.
    start: usize,
    end: usize,
    /// Whether it has as many spaces before it as make it as wide as others.
    is_padded: bool,
    /// The line is of another template where the number is written otherwise.
    form: Form,
}

impl<M> Default for Templates<M> {
    fn default() -> Self {
        Self {
            known: Vec::new(),
            newest: None,
            last: 0,
            oldest: 0,
            patience: PATIENCE,
            passed: 0,
        }
    }
}

impl<M: std::fmt::Debug + PartialEq> Templates<M> {
    /// What a line says; `draw` finds it out of a line whose template is new, and answers with nothing where it is no line of
    /// its kind. It does so by what stands between the numbers alone.
    #[inline]
    pub(super) fn read(
        &mut self,
        line: &str,
        draw: impl Fn(&str) -> Option<Sketch<M>>,
    ) -> Option<&Sketch<M>> {
        if let Some(place) = self.find(line) {
            let template = &self.known[place];
            debug_assert_eq!(Some(&template.sketch), draw(line).as_ref(), "{line}");
            return Some(&template.sketch);
        }
        let sketch = draw(line)?;
        self.keep(line, sketch)
    }

    /// The place of the template of a line, whose numbers are then read.
    #[inline]
    fn find(&mut self, line: &str) -> Option<usize> {
        let expected = self.known.get(self.last)?.next;
        let place = match self.known[expected].read(line.as_bytes(), Stop::default()) {
            Ok(()) => expected,
            Err(stop) => self.find_other(line, expected, stop)?,
        };
        self.patience = PATIENCE.min(self.patience + 1);
        self.follow(place);
        Some(place)
    }

    /// The same where the template that was expected is another from a number on.
    fn find_other(&mut self, line: &str, expected: usize, stop: Stop) -> Option<usize> {
        let (mut furthest, mut stop) = (expected, stop);
        for place in (0..self.known.len()).filter(|place| *place != expected) {
            let begin = self.shared(furthest, place, stop);
            match self.known[place].read(line.as_bytes(), begin) {
                Ok(()) => return Some(place),
                Err(other) if other.slots > stop.slots => (furthest, stop) = (place, other),
                Err(_) => {}
            }
        }
        None
    }

    /// Where a template begins to be compared whose line another was compared with: what both have is not read again.
    fn shared(&mut self, other: usize, place: usize, stop: Stop) -> Stop {
        let Some(last) = stop.slots.checked_sub(1) else {
            return stop;
        };
        let Ok([other, template]) = self.known.get_disjoint_mut([other, place]) else {
            return Stop::default();
        };
        let end = other.slots[last].end;
        let is_shared = template.slots.get(..stop.slots) == other.slots.get(..stop.slots)
            && template.between.get(..end) == other.between.get(..end);
        if !is_shared {
            return Stop::default();
        }
        let values = &other.sketch.values[..stop.slots];
        template.sketch.values[..stop.slots].copy_from_slice(values);
        stop
    }

    /// The template at `place` follows that of the line before.
    fn follow(&mut self, place: usize) {
        if let Some(last) = self.known.get_mut(self.last) {
            last.next = place;
        }
        self.last = place;
    }

    fn keep(&mut self, line: &str, sketch: Sketch<M>) -> Option<&Sketch<M>> {
        self.patience = self.patience.saturating_sub(1);
        if (self.patience == 0 && self.passed < PATIENCE) || line.len() > LONGEST {
            self.passed = self.passed.saturating_add(1);
            return Some(self.newest.insert(sketch));
        }
        self.passed = 0;
        let template = Template::of(line, sketch);
        let place = if self.known.len() < TEMPLATES {
            self.known.push(template);
            self.known.len() - 1
        } else {
            let place = self.oldest;
            self.oldest = (place + 1) % TEMPLATES;
            self.known[place] = template;
            place
        };
        self.follow(place);
        self.known.get(place).map(|template| &template.sketch)
    }
}

impl<M> Template<M> {
    fn of(line: &str, sketch: Sketch<M>) -> Self {
        let (mut between, mut slots, mut done) = (Vec::with_capacity(line.len()), Vec::new(), 0);
        for number in &sketch.numbers {
            let before = &line[done..number.range.start];
            let trimmed = before.trim_end_matches(' ');
            // One space is a sign, more of them fill up.
            let is_padded = before.len() - trimmed.len() > 1;
            let before = if is_padded { trimmed } else { before }.as_bytes();
            let start = between.len();
            between.extend_from_slice(before);
            slots.push(Slot {
                before: Sign::of(before),
                start,
                end: between.len(),
                is_padded,
                form: number.form,
            });
            done = number.range.end;
        }
        between.extend_from_slice(&line.as_bytes()[done..]);
        Self {
            between: between.into(),
            slots: slots.into(),
            sketch,
            next: 0,
        }
    }

    /// Reads the numbers of a line from somewhere on; or says how far it is of this template.
    #[inline]
    fn read(&mut self, line: &[u8], begin: Stop) -> Result<(), Stop> {
        let mut stop = begin;
        let values = self.sketch.values[begin.slots..].iter_mut();
        for (slot, value) in self.slots[begin.slots..].iter().zip(values) {
            let rest = line.get(stop.at..).ok_or(stop)?;
            let len;
            (*value, len) = slot.read(rest, &self.between).ok_or(stop)?;
            stop.at += len;
            stop.slots += 1;
        }
        let end = self.slots.last().map_or(0, |slot| slot.end);
        if cut::same_bytes(&line[stop.at..], &self.between[end..]) {
            Ok(())
        } else {
            Err(stop)
        }
    }
}

impl Slot {
    /// The number behind what stands before it, and how many bytes both take.
    #[inline(always)]
    fn read(&self, text: &[u8], between: &[u8]) -> Option<(f64, usize)> {
        let sign = self.start..self.end;
        let mut at = sign.len();
        let is_before = self.before.is_before(text, at);
        if !is_before.unwrap_or_else(|| text.starts_with(&between[sign])) {
            return None;
        }
        if self.is_padded {
            let spaces = text[at..].iter().take_while(|byte| **byte == b' ').count();
            at += (spaces > 0).then_some(spaces)?;
        }
        let (number, len) = self.form.prefix(text.get(at..)?)?;
        Some((number, at + len))
    }
}

/// The first and the last bytes of what stands before a number: nearly all signs have no more, and are compared as words.
#[derive(Debug, PartialEq)]
struct Sign {
    first: u128,
    /// Which of the first are of the sign.
    mask: u128,
    /// Those at its end, where it is longer than the first.
    last: u128,
}

impl Sign {
    const BYTES: usize = size_of::<u128>();

    fn of(sign: &[u8]) -> Self {
        let (mut first, mut mask) = ([0; Self::BYTES], [0; Self::BYTES]);
        for (place, byte) in sign.iter().take(Self::BYTES).enumerate() {
            (first[place], mask[place]) = (*byte, 0xff);
        }
        Self {
            first: u128::from_le_bytes(first),
            mask: u128::from_le_bytes(mask),
            last: sign.last_chunk().map_or(0, |last| u128::from_le_bytes(*last)),
        }
    }

    /// Whether it is what a text begins with; nothing where more than words are to be compared.
    #[inline(always)]
    fn is_before(&self, text: &[u8], len: usize) -> Option<bool> {
        let words = |text: &[u8]| text.first_chunk().map(|first| u128::from_le_bytes(*first));
        if (words(text)? ^ self.first) & self.mask != 0 {
            return Some(false);
        }
        match len.checked_sub(Self::BYTES) {
            None | Some(0) => Some(true),
            Some(rest) if rest <= Self::BYTES => Some(words(text.get(rest..)?)? == self.last),
            Some(_) => None,
        }
    }
}

#[cfg(test)]
mod tests;
