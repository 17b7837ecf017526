//! Messages by the kubelet's published definition, in which the numbers and types of the named fields are looked up
//! (`tests/corpus/kubelet/podresources.proto`).

use std::{collections::HashMap, path::Path, sync::LazyLock};

use prost::encoding::{WireType, encode_key, encode_varint};

/// The fields of all messages, by message and name.
static FIELDS: LazyLock<HashMap<(String, String), Field>> = LazyLock::new(read);

/// A field of the published definition.
struct Field {
    number: u32,
    kind: String,
    repeated: bool,
}

/// A message under construction.
#[derive(Clone)]
pub(crate) struct Message {
    name: &'static str,
    bytes: Vec<u8>,
}

impl Message {
    pub(crate) fn new(name: &'static str) -> Self {
        Self {
            name,
            bytes: Vec::new(),
        }
    }

    pub(crate) fn text(self, field: &str, text: &str) -> Self {
        self.delimited(field, "string", text.as_bytes())
    }

    pub(crate) fn part(self, field: &str, part: &Self) -> Self {
        self.delimited(field, part.name, &part.bytes)
    }

    pub(crate) fn parts<'a>(self, field: &str, parts: impl IntoIterator<Item = &'a Self>) -> Self {
        parts
            .into_iter()
            .fold(self, |message, part| message.part(field, part))
    }

    /// Adds integers; those of a repeated field are packed, as in proto3.
    pub(crate) fn numbers(mut self, field: &str, numbers: &[u64]) -> Self {
        let published = self.field(field);
        assert!(["int64", "uint64"].contains(&published.kind.as_str()));
        if published.repeated {
            let mut packed = Vec::new();
            numbers
                .iter()
                .for_each(|number| encode_varint(*number, &mut packed));
            self.put(published.number, &packed);
        } else {
            for number in numbers {
                encode_key(published.number, WireType::Varint, &mut self.bytes);
                encode_varint(*number, &mut self.bytes);
            }
        }
        self
    }

    pub(crate) fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }

    fn delimited(mut self, field: &str, kind: &str, bytes: &[u8]) -> Self {
        let published = self.field(field);
        assert_eq!(published.kind, kind, "{}.{field}", self.name);
        self.put(published.number, bytes);
        self
    }

    fn put(&mut self, number: u32, bytes: &[u8]) {
        encode_key(number, WireType::LengthDelimited, &mut self.bytes);
        encode_varint(bytes.len() as u64, &mut self.bytes);
        self.bytes.extend(bytes);
    }

    fn field(&self, field: &str) -> &'static Field {
        let found = FIELDS.get(&(self.name.to_owned(), field.to_owned()));
        found.unwrap_or_else(|| panic!("the kubelet has no {}.{field}", self.name))
    }
}

fn read() -> HashMap<(String, String), Field> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/corpus/kubelet/podresources.proto");
    let text = std::fs::read_to_string(&path).expect("the definition can be read");
    let (mut fields, mut message) = (HashMap::new(), String::new());
    for line in text.lines().map(str::trim).filter(|line| !line.starts_with("//")) {
        let words: Vec<&str> = line.trim_end_matches(';').split_whitespace().collect();
        match words.as_slice() {
            ["message", name, ..] => message = (*name).to_owned(),
            [how @ .., kind, name, "=", number] if how.len() < 2 && *kind != "option" => {
                let field = Field {
                    number: number.parse().expect("a field has a number"),
                    kind: (*kind).to_owned(),
                    repeated: how == ["repeated"],
                };
                fields.insert((message.clone(), (*name).to_owned()), field);
            }
            _ => {}
        }
    }
    fields
}
