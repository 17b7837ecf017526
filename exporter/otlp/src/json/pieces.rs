//! JSON objects that are too large for memory, in pieces: each is an object of its own, with some elements of the lists that an
//! object of telemetry consists of (`torn`), and with what stands around them.
//!
//! Where it can be, a piece ends between two elements of the outermost list, so that nothing belongs to both. An element
//! that is too large itself is taken apart too; what stands behind its list is in its last piece only.

use super::torn::{LISTS, end_of_text};

/// Elements of this list are not taken apart: what their lists refer to stands behind them.
const WHOLE: &[u8] = b"data";

/// Takes objects apart.
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
    /// What stands around the next element; empty between objects.
    around: Vec<u8>,
}

/// A piece of an object, or a whole one.
#[derive(Debug, PartialEq, Eq)]
pub struct Piece {
    /// The text, an object.
    pub text: Vec<u8>,
    /// How many bytes it takes off the front of what was given.
    pub length: usize,
    /// What is to be added to a place in the text for its place in what was given.
    pub shift: i64,
}

/// What is open, and where it begins: a list behind its bracket.
#[derive(Clone, Copy, Debug)]
struct Open {
    begin: usize,
    kind: Kind,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Kind {
    Object,
    List,
    /// A list whose elements make sense by themselves, and whether they may be taken apart.
    Elements(bool),
}

impl Pieces {
    /// Whether a part of an object was taken.
    pub fn is_inside(&self) -> bool {
        !self.around.is_empty()
    }

    /// All that is left of a text, whole or not, with what stands around it.
    pub fn rest(&self, text: &[u8]) -> Piece {
        let skipped = self.separator_len(text);
        Piece {
            text: [&self.around, &text[skipped..]].concat(),
            length: text.len(),
            shift: skipped as i64 - self.around.len() as i64,
        }
    }

    /// Takes as much off the front of a text as is whole; none where that is nothing. `deep` says that elements of the outermost
    /// list are taken apart where none of them is whole.
    pub fn take(&mut self, text: &[u8], deep: bool) -> Option<Piece> {
        let skipped = self.separator_len(text);
        let before = self.around.len();
        let mut scan = Scan::new(deep);
        scan.read(&self.around, 0);
        scan.read(&text[skipped..], before);
        let (at, open) = match scan.end {
            Some(end) => (end, Vec::new()),
            None => scan.best.map(|best| (best.at, best.open))?,
        };
        let length = skipped + at - before;
        let mut piece = std::mem::take(&mut self.around);
        piece.extend_from_slice(&text[skipped..length]);
        self.around = around(&piece, &open);
        piece.extend(open.iter().rev().map(|open| match open.kind {
            Kind::Object => b'}',
            Kind::List | Kind::Elements(_) => b']',
        }));
        Some(Piece {
            text: piece,
            length,
            shift: skipped as i64 - before as i64,
        })
    }

    /// How much is to be left out behind an element: white space, and a comma if there is one.
    fn separator_len(&self, text: &[u8]) -> usize {
        let blank = |text: &[u8]| text.iter().take_while(|byte| byte.is_ascii_whitespace()).count();
        let comma = blank(text);
        match text.get(comma) {
            Some(b',') if self.is_inside() => comma + 1 + blank(&text[comma + 1..]),
            _ => comma,
        }
    }
}

/// What stands around what comes next: of each object that is open, its text up to its list.
fn around(text: &[u8], open: &[Open]) -> Vec<u8> {
    let (mut around, mut from) = (Vec::new(), 0);
    for (place, list) in open.iter().enumerate() {
        if matches!(list.kind, Kind::Elements(_)) {
            around.extend_from_slice(&text[from..list.begin]);
            from = open.get(place + 1).map_or(from, |element| element.begin);
        }
    }
    around
}

/// Where a text can end: behind an element, with what is open there.
struct Cut {
    at: usize,
    /// How many lists of elements are open.
    lists: usize,
    open: Vec<Open>,
}

/// The structure of a text as far as it goes.
struct Scan {
    deep: bool,
    open: Vec<Open>,
    lists: usize,
    /// What a list is that has the latest name.
    named: Kind,
    best: Option<Cut>,
    /// Where the object ends.
    end: Option<usize>,
}

impl Scan {
    fn new(deep: bool) -> Self {
        Self {
            deep,
            open: Vec::new(),
            lists: 0,
            named: Kind::List,
            best: None,
            end: None,
        }
    }

    /// Reads on in text that begins at a place.
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
                b'{' => self.begin(Kind::Object, begin + place),
                b'[' => self.begin(self.named, begin + place + 1),
                b'}' | b']' => self.close(begin + place + 1),
                _ => {}
            }
            place += 1;
        }
    }

    fn begin(&mut self, kind: Kind, begin: usize) {
        self.lists += usize::from(matches!(kind, Kind::Elements(_)));
        self.open.push(Open { begin, kind });
    }

    fn close(&mut self, at: usize) {
        let closed = self.open.pop().map(|open| open.kind);
        self.lists -= usize::from(matches!(closed, Some(Kind::Elements(_))));
        match self.open.last() {
            None => self.end = Some(at),
            Some(Open {
                kind: Kind::Elements(_),
                ..
            }) if closed == Some(Kind::Object) => self.note_cut(at),
            Some(_) => {}
        }
    }

    fn note_cut(&mut self, at: usize) {
        let outermost = self.open.iter().find_map(|open| match open.kind {
            Kind::Elements(may_be_divided) => Some(may_be_divided),
            Kind::Object | Kind::List => None,
        });
        let may_be_here = self.lists == 1 || self.deep && outermost == Some(true);
        if may_be_here && self.best.as_ref().is_none_or(|best| self.lists <= best.lists) {
            self.best = Some(Cut {
                at,
                lists: self.lists,
                open: self.open.clone(),
            });
        }
    }
}

/// What a list with this name is.
fn kind_of(name: &[u8]) -> Kind {
    if LISTS.contains(&name) {
        Kind::Elements(name != WHOLE)
    } else {
        Kind::List
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    const TEXT: &str = r#"{"resourceSpans":[{"resource":{"a":["]}"]},"scopeSpans":[{"scope":{"name":"s"},"spans":[{"n":1,"events":[{"x":0}]},
 {"n":2} , {"n":3}]},{"spans":[{"n":4}],"schemaUrl":"u"}],"schemaUrl":"r"}, {"scopeSpans":[{"spans":[{"n":5}]}]}]}"#;

    /// All pieces of a text that comes so many bytes at a time, and what is left.
    fn pieces(text: &str, step: usize, deep: bool) -> (Vec<Value>, String) {
        let (mut pieces, mut found) = (Pieces::default(), Vec::new());
        let mut pending: Vec<u8> = Vec::new();
        for chunk in text.as_bytes().chunks(step) {
            pending.extend_from_slice(chunk);
            while let Some(piece) = pieces.take(&pending, deep) {
                found.push(serde_json::from_slice(&piece.text).expect("a piece is JSON"));
                pending.drain(..piece.length);
            }
        }
        (found, String::from_utf8(pending).expect("text stays text"))
    }

    fn numbers(pieces: &[Value]) -> Vec<u64> {
        let lists = |value: &Value, name: &str| value[name].as_array().cloned().unwrap_or_default();
        let resources = pieces.iter().flat_map(|piece| lists(piece, "resourceSpans"));
        let scopes = resources.flat_map(|resource| lists(&resource, "scopeSpans"));
        let spans = scopes.flat_map(|scope| lists(&scope, "spans"));
        spans.filter_map(|span| span["n"].as_u64()).collect()
    }

    #[test]
    fn pieces_hold_every_span_once_however_the_text_comes() {
        for step in 1..TEXT.len() {
            for deep in [false, true] {
                let (pieces, rest) = pieces(
                    &format!(
                        "{TEXT}
 {TEXT}"
                    ),
                    step,
                    deep,
                );
                assert_eq!(numbers(&pieces), [1, 2, 3, 4, 5, 1, 2, 3, 4, 5], "{step}");
                assert_eq!(rest, "");
            }
        }
    }

    #[test]
    fn a_piece_of_whole_elements_loses_nothing_around_them() {
        let (pieces, _) = pieces(TEXT, 1, false);
        let whole: Value = serde_json::from_str(TEXT).unwrap();
        assert_eq!(pieces.len(), 3);
        assert_eq!(pieces[0]["resourceSpans"][0], whole["resourceSpans"][0]);
        assert_eq!(pieces[1]["resourceSpans"][0], whole["resourceSpans"][1]);
    }

    #[test]
    fn an_element_that_is_taken_apart_keeps_what_stands_before_its_list() {
        let (pieces, _) = pieces(TEXT, 1, true);
        for piece in &pieces[..3] {
            let resource = &piece["resourceSpans"][0];
            assert_eq!(resource["resource"]["a"][0], "]}");
            assert_eq!(resource["scopeSpans"][0]["scope"]["name"], "s");
        }
    }

    #[test]
    fn a_place_in_a_piece_is_found_again_in_the_text() {
        let mut pieces = Pieces::default();
        let (first, second) = (r#"{"spans":[{"n":1}"#, r#" , {"n":2}]}"#);
        assert_eq!(pieces.take(first.as_bytes(), false).unwrap().shift, 0);
        let piece = pieces.take(second.as_bytes(), false).unwrap();
        let text = String::from_utf8(piece.text).unwrap();
        let at = text.find('2').unwrap() as i64 + piece.shift;
        assert_eq!(at, second.find('2').unwrap() as i64);
    }

    #[test]
    fn a_trace_of_jaeger_is_never_taken_apart() {
        let text = r#"{"data":[{"spans":[{"n":1},{"n":2}],"processes":{}},{"spans":[{"n":3}"#;
        let mut pieces = Pieces::default();
        let first = pieces.take(text.as_bytes(), true).unwrap();
        assert_eq!(
            first.text,
            br#"{"data":[{"spans":[{"n":1},{"n":2}],"processes":{}}]}"#
        );
        assert_eq!(pieces.take(&text.as_bytes()[first.length..], true), None);
    }

    #[test]
    fn text_that_is_no_json_is_left_alone() {
        for text in ["", "x", "]", "}}", "{\"a\":[{", "[[[", "\"abc"] {
            let taken = Pieces::default().take(text.as_bytes(), true);
            assert!(taken.is_none_or(|piece| piece.length <= text.len()), "{text}");
        }
    }
}
