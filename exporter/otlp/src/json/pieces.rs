//! Splits JSON objects that are too large for memory into pieces: each is an object of its own, with some elements of the
//! lists of telemetry (`truncated`), inside a copy of the enclosing objects.
//!
//! If possible, a piece ends between two elements of the outermost list, so that no element is split. An element that is too
//! large is split as well; the members after its list are in its last piece only.

use std::ops::Range;

use super::truncated::{LISTS, end_of_text};
use crate::limits::MAX_DEPTH;

/// Elements of this list are not split: their lists refer to members that follow.
const WHOLE: &[u8] = b"data";

/// Splits objects into pieces.
///
/// ```
/// # use pulsetrain_otlp::json::Pieces;
/// let mut pieces = Pieces::default();
/// let first = pieces.take(br#"{"resourceSpans":[{"a":1},{"b":"#, false).unwrap();
/// assert_eq!(first.text, br#"{"resourceSpans":[{"a":1}]}"#);
/// assert_eq!(first.length, 25);
/// let rest = pieces.take(br#",{"b":2}],"c":3} next"#, false).unwrap();
/// assert_eq!(rest.text, br#"{"resourceSpans":[{"b":2}],"c":3}"#);
/// ```
#[derive(Debug, Default)]
pub struct Pieces {
    /// The text that encloses the next element; empty between objects.
    around: Vec<u8>,
}

/// A piece of an object, or a complete object.
#[derive(Debug, PartialEq, Eq)]
pub struct Piece {
    /// The text, an object.
    pub text: Vec<u8>,
    /// The number of bytes of the input that the piece consumes.
    pub length: usize,
    /// The difference between an offset in the input and the same offset in `text`.
    pub shift: i64,
}

/// An open object or list, and its offset; for a list, the offset after its bracket.
#[derive(Clone, Copy, Debug)]
struct Open {
    begin: usize,
    kind: PieceKind,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum PieceKind {
    Object,
    List,
    /// A list of telemetry elements that are useful without the later ones, and whether such an element may be split.
    Elements(bool),
}

impl Pieces {
    /// Returns whether a part of an object was taken.
    pub fn is_inside(&self) -> bool {
        !self.around.is_empty()
    }

    /// Returns the rest of a text, complete or not, with its enclosing objects.
    pub fn rest(&self, text: &[u8]) -> Piece {
        let skipped = self.separator_len(text);
        Piece {
            text: [&self.around, &text[skipped..]].concat(),
            length: text.len(),
            shift: skipped as i64 - self.around.len() as i64,
        }
    }

    /// Returns the complete elements at the front of a text, or `None` if there are none. With `deep`, an incomplete element
    /// of the outermost list is split.
    pub fn take(&mut self, text: &[u8], deep: bool) -> Option<Piece> {
        let skipped = self.separator_len(text);
        let before = self.around.len();
        let mut scan = Scan::new(deep, before);
        scan.read(&self.around, 0);
        scan.read(&text[skipped..], before);
        let SplitPoint { at, open, closed, .. } = match scan.end {
            Some(at) => SplitPoint {
                at,
                ..SplitPoint::default()
            },
            None => scan.best?,
        };
        let length = (skipped + at).checked_sub(before).filter(|length| *length > 0)?;
        let mut piece = std::mem::take(&mut self.around);
        piece.extend_from_slice(&text[skipped..length]);
        self.around = around(&piece, &open, &closed);
        piece.extend(open.iter().rev().map(|open| match open.kind {
            PieceKind::Object => b'}',
            PieceKind::List | PieceKind::Elements(_) => b']',
        }));
        Some(Piece {
            text: piece,
            length,
            shift: skipped as i64 - before as i64,
        })
    }

    /// Returns the length of the white space and the comma after an element.
    fn separator_len(&self, text: &[u8]) -> usize {
        let blank = |text: &[u8]| text.iter().take_while(|byte| byte.is_ascii_whitespace()).count();
        let comma = blank(text);
        match text.get(comma) {
            Some(b',') if self.is_inside() => comma + 1 + blank(&text[comma + 1..]),
            _ => comma,
        }
    }
}

/// Returns the text that encloses the next element: for each open object the text up to its list, without earlier lists.
fn around(text: &[u8], open: &[Open], closed: &[Range<usize>]) -> Vec<u8> {
    let (mut around, mut from) = (Vec::new(), 0);
    for (place, list) in open.iter().enumerate() {
        if !matches!(list.kind, PieceKind::Elements(_)) {
            continue;
        }
        for taken in closed {
            if (from..list.begin).contains(&taken.start) {
                around.extend_from_slice(&text[from..taken.start]);
                from = taken.end;
            }
        }
        around.extend_from_slice(&text[from..list.begin]);
        from = open.get(place + 1).map_or(from, |element| element.begin);
    }
    around
}

/// A position to split a text, after an element.
#[derive(Default)]
struct SplitPoint {
    at: usize,
    /// The number of open lists of elements.
    lists: usize,
    /// The open objects and lists at that position.
    open: Vec<Open>,
    /// The content of closed lists of elements within the open objects.
    closed: Vec<Range<usize>>,
}

/// The structure of a text up to the position that was read.
struct Scan {
    deep: bool,
    /// A cut up to this offset would make an empty piece.
    after: usize,
    open: Vec<Open>,
    /// The number of open objects and lists below the depth limit, which are not recorded; the reader later rejects such text.
    buried: u64,
    lists: usize,
    closed: Vec<Range<usize>>,
    /// The kind of a list with the latest name.
    named: PieceKind,
    best: Option<SplitPoint>,
    /// The offset after the end of the object.
    end: Option<usize>,
}

impl Scan {
    fn new(deep: bool, after: usize) -> Self {
        Self {
            deep,
            after,
            open: Vec::new(),
            buried: 0,
            lists: 0,
            closed: Vec::new(),
            named: PieceKind::List,
            best: None,
            end: None,
        }
    }

    /// Continues the scan with text that begins at an offset.
    fn read(&mut self, text: &[u8], begin: usize) {
        let mut place = 0;
        while place < text.len() && self.end.is_none() {
            match text[place] {
                b'"' => match end_of_text(text, place) {
                    Some(end) => {
                        self.named = kind_of(&text[place + 1..end]);
                        place = end;
                    }
                    None => return,
                },
                b'{' => self.begin(PieceKind::Object, begin + place),
                b'[' => self.begin(self.named, begin + place + 1),
                b'}' | b']' => self.close(begin + place + 1),
                _ => {}
            }
            place += 1;
        }
    }

    fn begin(&mut self, kind: PieceKind, begin: usize) {
        if self.open.len() > MAX_DEPTH {
            self.buried += 1;
            return;
        }
        self.lists += usize::from(matches!(kind, PieceKind::Elements(_)));
        self.open.push(Open { begin, kind });
    }

    fn close(&mut self, at: usize) {
        if self.buried > 0 {
            self.buried -= 1;
            return;
        }
        let closed = self.open.pop();
        if let Some(Open { begin, .. }) = closed {
            while self.closed.pop_if(|before| before.start >= begin).is_some() {}
        }
        if let Some(Open {
            begin,
            kind: PieceKind::Elements(_),
        }) = closed
        {
            self.lists -= 1;
            self.closed.push(begin..at - 1);
        }
        let closed = closed.map(|open| open.kind);
        match self.open.last() {
            None => self.end = Some(at),
            Some(Open {
                kind: PieceKind::Elements(_),
                ..
            }) if closed == Some(PieceKind::Object) => self.mark_cut(at),
            Some(_) => {}
        }
    }

    fn mark_cut(&mut self, at: usize) {
        let outermost = self.open.iter().find_map(|open| match open.kind {
            PieceKind::Elements(may_be_divided) => Some(may_be_divided),
            PieceKind::Object | PieceKind::List => None,
        });
        let may_be_here = self.lists == 1 || self.deep && outermost == Some(true);
        if at > self.after && may_be_here && self.best.as_ref().is_none_or(|best| self.lists <= best.lists) {
            self.best = Some(SplitPoint {
                at,
                lists: self.lists,
                open: self.open.clone(),
                closed: self.closed.clone(),
            });
        }
    }
}

/// Returns the kind of a list with this name.
fn kind_of(name: &[u8]) -> PieceKind {
    if LISTS.contains(&name) {
        PieceKind::Elements(name != WHOLE)
    } else {
        PieceKind::List
    }
}

#[cfg(test)]
mod tests;
