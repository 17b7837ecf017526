//! The `messages!` macro: generates a view and its descriptor from a table of fields.
//!
//! A row is `number name: kind`, as in the proto file; the kinds are those of `descriptor::FieldKind`, with `one M` and `many M`
//! for messages and `opt double` for an optional number.

/// Returns the tag of a field of a kind.
macro_rules! tag {
    ($number:literal, $kind:ident) => {
        ($number << 3) | $crate::view::message::kind!($kind).wire_type()
    };
}

/// Returns the `FieldKind` for the descriptor.
macro_rules! kind {
    (one) => {
        $crate::descriptor::FieldKind::Bytes
    };
    (many) => {
        $crate::descriptor::FieldKind::Bytes
    };
    (one $message:ident) => {
        $crate::descriptor::FieldKind::One(<$message<'static> as $crate::view::Message>::descriptor)
    };
    (many $message:ident) => {
        $crate::descriptor::FieldKind::Many(<$message<'static> as $crate::view::Message>::descriptor)
    };
    (bool) => {
        $crate::descriptor::FieldKind::Bool
    };
    (uint32) => {
        $crate::descriptor::FieldKind::Uint32
    };
    (int32) => {
        $crate::descriptor::FieldKind::Int32
    };
    (sint32) => {
        $crate::descriptor::FieldKind::Sint32
    };
    (fixed32) => {
        $crate::descriptor::FieldKind::Fixed32
    };
    (fixed64) => {
        $crate::descriptor::FieldKind::Fixed64
    };
    (double) => {
        $crate::descriptor::FieldKind::Double
    };
    (some_double) => {
        $crate::descriptor::FieldKind::Double
    };
    (some_sfixed64) => {
        $crate::descriptor::FieldKind::Sfixed64
    };
    (string) => {
        $crate::descriptor::FieldKind::String
    };
    (id) => {
        $crate::descriptor::FieldKind::Id
    };
    (strings) => {
        $crate::descriptor::FieldKind::Strings
    };
    (packed_fixed64) => {
        $crate::descriptor::FieldKind::PackedFixed64
    };
    (packed_uint64) => {
        $crate::descriptor::FieldKind::PackedUint64
    };
    (packed_double) => {
        $crate::descriptor::FieldKind::PackedDouble
    };
}

/// Returns whether the values of a field are attributes.
macro_rules! is_attribute {
    (many KeyValue) => {
        true
    };
    ($kind:ident $($message:ident)?) => {
        false
    };
}

/// Returns whether a field of a kind is sent even if it has its default value.
macro_rules! explicit {
    (one) => {
        true
    };
    (some_double) => {
        true
    };
    (some_sfixed64) => {
        true
    };
    ($kind:ident) => {
        false
    };
}

/// Returns the type of a view's field.
macro_rules! field_type {
    (one $message:ident) => { Option<$message<'a>> };
    (many $message:ident) => { $crate::view::Repeated<'a, $message<'a>> };
    (bool) => { bool };
    (uint32) => { u32 };
    (int32) => { i32 };
    (sint32) => { i32 };
    (fixed32) => { u32 };
    (fixed64) => { u64 };
    (double) => { f64 };
    (some_double) => { Option<f64> };
    (some_sfixed64) => { Option<i64> };
    (string) => { $crate::view::Text<'a> };
    (id) => { &'a [u8] };
    (strings) => { $crate::view::Texts<'a> };
    (packed_fixed64) => { $crate::view::Packed<'a, $crate::view::fields::Fixed> };
    (packed_uint64) => { $crate::view::Packed<'a, u64> };
    (packed_double) => { $crate::view::Packed<'a, f64> };
}

/// Reads one occurrence of a field into a field of the view.
macro_rules! read_field {
    ($place:expr, $reader:ident, $tag:ident, $start:ident, one $message:ident) => {{
        let bytes = $reader.delimited()?;
        $place = Some(<$message<'a> as $crate::view::Message<'a>>::decode(bytes)?);
    }};
    ($place:expr, $reader:ident, $tag:ident, $start:ident, many $message:ident) => {{
        $reader.delimited()?;
        $place.push(&$reader, $tag, $start);
    }};
    ($place:expr, $reader:ident, $tag:ident, $start:ident, bool) => {
        $place = $reader.varint()? != 0
    };
    ($place:expr, $reader:ident, $tag:ident, $start:ident, uint32) => {
        $place = $reader.varint()? as u32
    };
    ($place:expr, $reader:ident, $tag:ident, $start:ident, int32) => {
        $place = $reader.varint()? as i32
    };
    ($place:expr, $reader:ident, $tag:ident, $start:ident, sint32) => {{
        let zigzag = $reader.varint()? as u32;
        $place = (zigzag >> 1) as i32 ^ -((zigzag & 1) as i32);
    }};
    ($place:expr, $reader:ident, $tag:ident, $start:ident, fixed32) => {
        $place = $reader.fixed32()?
    };
    ($place:expr, $reader:ident, $tag:ident, $start:ident, fixed64) => {
        $place = $reader.fixed64()?
    };
    ($place:expr, $reader:ident, $tag:ident, $start:ident, double) => {
        $place = f64::from_bits($reader.fixed64()?)
    };
    ($place:expr, $reader:ident, $tag:ident, $start:ident, some_double) => {
        $place = Some(f64::from_bits($reader.fixed64()?))
    };
    ($place:expr, $reader:ident, $tag:ident, $start:ident, some_sfixed64) => {
        $place = Some($reader.fixed64()? as i64)
    };
    ($place:expr, $reader:ident, $tag:ident, $start:ident, string) => {
        $place = $crate::view::Text($reader.delimited()?)
    };
    ($place:expr, $reader:ident, $tag:ident, $start:ident, id) => {
        $place = $reader.delimited()?
    };
    ($place:expr, $reader:ident, $tag:ident, $start:ident, $list:ident) => {{
        $reader.delimited()?;
        $place.push(&$reader, $tag, $start);
    }};
}

/// Generates a view and its descriptor from each table.
macro_rules! messages {
    ($($(#[$doc:meta])* $role:ident $name:ident { $($number:literal $field:ident: $kind:ident $($message:ident)?),* $(,)? })*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default)]
        pub struct $name<'a> {
            $(
                #[doc = concat!("Field ", stringify!($number), ".")]
                pub $field: $crate::view::message::field_type!($kind $($message)?),
            )*
            pub(crate) lifetime: std::marker::PhantomData<&'a ()>,
        }

        impl<'a> $crate::view::Message<'a> for $name<'a> {
            fn descriptor() -> &'static $crate::descriptor::MessageDescriptor {
                const FIELDS: &[$crate::descriptor::FieldDescriptor] = &[$($crate::descriptor::FieldDescriptor {
                    number: $number,
                    json_name: $crate::view::message::json_name!($field),
                    json_key: $crate::view::message::json_key!($crate::view::message::json_name!($field)),
                    kind: $crate::view::message::kind!($kind $($message)?),
                    is_attribute: $crate::view::message::is_attribute!($kind $($message)?),
                    explicit: $crate::view::message::explicit!($kind),
                }),*];
                static TABLE: $crate::descriptor::MessageDescriptor = $crate::descriptor::MessageDescriptor::new(
                    stringify!($name),
                    $crate::descriptor::Role::$role,
                    FIELDS,
                );
                &TABLE
            }

            #[inline]
            #[allow(unused_variables, unused_assignments, reason = "only lists need to know where a field starts")]
            fn decode(bytes: &'a [u8]) -> Result<Self, $crate::wire::WireError> {
                let mut view = Self::default();
                let mut reader = $crate::wire::Reader::new(bytes);
                if reader.is_at_end() {
                    return Ok(view);
                }
                let mut start = reader.position();
                let mut tag = reader.tag()?;
                loop {
                    // Writers keep one order, so each field is tried after the previous one: the branches are well predicted.
                    // Fields in another order take another pass.
                    let pass = reader.position();
                    $(while tag == const { $crate::view::message::tag!($number, $kind) } {
                        $crate::view::message::read_field!(view.$field, reader, tag, start, $kind $($message)?);
                        $crate::view::message::next_tag!(view, reader, tag, start);
                    })*
                    $crate::view::message::unpacked!(view, reader, tag, start, $($number $field $kind,)*);
                    if reader.position() == pass {
                        reader.value(tag)?;
                        $crate::view::message::next_tag!(view, reader, tag, start);
                    }
                }
            }
        }
    )*};
}

/// Reads the next tag, or returns the view at the end of the message.
macro_rules! next_tag {
    ($view:ident, $reader:ident, $tag:ident, $start:ident) => {
        if $reader.is_at_end() {
            return Ok($view);
        }
        $start = $reader.position();
        $tag = $reader.tag()?;
    };
}

/// Reads a packed field that was written unpacked.
macro_rules! unpacked {
    ($view:ident, $reader:ident, $tag:ident, $start:ident,) => {};
    ($view:ident, $reader:ident, $tag:ident, $start:ident, $number:literal $field:ident packed_fixed64, $($rest:tt)*) => {
        $crate::view::message::unpacked!(@one $view, $reader, $tag, $start, $number $field 1);
        $crate::view::message::unpacked!($view, $reader, $tag, $start, $($rest)*);
    };
    ($view:ident, $reader:ident, $tag:ident, $start:ident, $number:literal $field:ident packed_double, $($rest:tt)*) => {
        $crate::view::message::unpacked!(@one $view, $reader, $tag, $start, $number $field 1);
        $crate::view::message::unpacked!($view, $reader, $tag, $start, $($rest)*);
    };
    ($view:ident, $reader:ident, $tag:ident, $start:ident, $number:literal $field:ident packed_uint64, $($rest:tt)*) => {
        $crate::view::message::unpacked!(@one $view, $reader, $tag, $start, $number $field 0);
        $crate::view::message::unpacked!($view, $reader, $tag, $start, $($rest)*);
    };
    (@one $view:ident, $reader:ident, $tag:ident, $start:ident, $number:literal $field:ident $wire_type:literal) => {
        while $tag == const { ($number << 3) | $wire_type } {
            $reader.value($tag)?;
            $view.$field.push(&$reader, $tag, $start);
            $crate::view::message::next_tag!($view, $reader, $tag, $start);
        }
    };
    ($view:ident, $reader:ident, $tag:ident, $start:ident, $number:literal $field:ident $kind:ident, $($rest:tt)*) => {
        $crate::view::message::unpacked!($view, $reader, $tag, $start, $($rest)*);
    };
}

/// Returns a field's name in lowerCamelCase, as a constant.
macro_rules! json_name {
    ($field:ident) => {{
        const NAME: [u8; $crate::descriptor::camel_len(stringify!($field))] =
            $crate::descriptor::camel(stringify!($field));
        match std::str::from_utf8(&NAME) {
            Ok(name) => name,
            Err(_) => panic!("a field's name is ASCII"),
        }
    }};
}

/// Returns a field's name with a leading comma, quotes and a colon, as a constant.
macro_rules! json_key {
    ($name:expr) => {{
        const NAME: &str = $name;
        const KEY: [u8; NAME.len() + 4] = $crate::descriptor::json_key(NAME);
        match std::str::from_utf8(&KEY) {
            Ok(key) => key,
            Err(_) => panic!("a field's name is ASCII"),
        }
    }};
}

pub(crate) use {
    explicit, field_type, is_attribute, json_key, json_name, kind, messages, next_tag, read_field, tag,
    unpacked,
};
