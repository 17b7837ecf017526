//! Lines of one template, as miners of logs call it: all of them but their numbers is the same. What such lines say is found out
//! of the first; of those that follow, only the numbers are read.

mod drawing;

pub(super) use self::drawing::{Drawing, How, Sketch};
use super::number_text;

/// So many templates of a log are remembered, and none that are longer; the oldest goes first.
const TEMPLATES: usize = 16;
const LONGEST: usize = 4096;

/// So many more lines may have templates of their own than come again, before no more are remembered.
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

/// Where a number stands.
#[derive(Debug)]
struct Slot {
    /// Where what stands before it ends in `between`.
    end: usize,
    /// Whether it has as many spaces before it as make it as wide as others.
    is_padded: bool,
    /// Whether the line is of another template where the number is no count.
    is_count: bool,
}

impl<M> Default for Templates<M> {
    fn default() -> Self {
        Self {
            known: Vec::new(),
            newest: None,
            last: 0,
            oldest: 0,
            patience: PATIENCE,
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
            let template = &mut self.known[place];
            template.sketch.make_fields();
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
        let others = (0..self.known.len()).filter(|place| *place != expected);
        let place = std::iter::once(expected)
            .chain(others)
            .find(|place| self.known[*place].read(line.as_bytes()).is_some())?;
        self.patience = PATIENCE.min(self.patience + 1);
        self.follow(place);
        Some(place)
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
        if self.patience == 0 || line.len() > LONGEST {
            return Some(self.newest.insert(sketch));
        }
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
        for number in sketch.numbers() {
            let before = &line[done..number.range.start];
            let trimmed = before.trim_end_matches(' ');
            // One space is a sign, more of them fill up.
            let is_padded = before.len() - trimmed.len() > 1;
            between.extend_from_slice(if is_padded { trimmed } else { before }.as_bytes());
            slots.push(Slot {
                end: between.len(),
                is_padded,
                is_count: number.is_count,
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

    /// Reads the numbers of a line; nothing where it is of another template.
    #[inline]
    fn read(&mut self, line: &[u8]) -> Option<()> {
        let (mut rest, mut start) = (line, 0);
        for (slot, value) in self.slots.iter().zip(self.sketch.values_mut()) {
            rest = behind(rest, &self.between[start..slot.end])?;
            if slot.is_padded {
                rest = behind(rest, b" ")?;
                while let [b' ', more @ ..] = rest {
                    rest = more;
                }
            }
            let number = number_text::printed_prefix(rest)?;
            if slot.is_count && !number.is_count {
                return None;
            }
            *value = number.value;
            (rest, start) = (&rest[number.len..], slot.end);
        }
        behind(rest, &self.between[start..])?.is_empty().then_some(())
    }
}

/// What stands behind `sign`, if a text begins with it. Most signs are so short that the call of a comparison would take longer.
#[inline]
fn behind<'l>(text: &'l [u8], sign: &[u8]) -> Option<&'l [u8]> {
    let (begin, rest) = text.split_at_checked(sign.len())?;
    let is_same = match sign.len() {
        8..=16 => {
            begin.first_chunk::<8>() == sign.first_chunk() && begin.last_chunk::<8>() == sign.last_chunk()
        }
        4..8 => {
            begin.first_chunk::<4>() == sign.first_chunk() && begin.last_chunk::<4>() == sign.last_chunk()
        }
        0..4 => begin.iter().zip(sign).all(|(one, other)| one == other),
        _ => begin == sign,
    };
    is_same.then_some(rest)
}

#[cfg(test)]
mod tests;
