//! `io.prometheus.client.MetricFamily` (prometheus/client_model, `metrics.proto`); each message follows its length.

use std::collections::HashSet;

use super::{ExposedFamily, ExposedSample, is_legacy_label, is_legacy_name};

const TYPES: [&str; 5] = ["counter", "gauge", "summary", "untyped", "histogram"];

/// A field: its number, and a number or bytes.
enum Field<'a> {
    Number(u64, u64),
    Bytes(u64, &'a [u8]),
}

/// Parses a page; each metric is one sample.
pub(super) fn read(mut page: &[u8], utf8: bool) -> Result<Vec<ExposedFamily>, String> {
    let (mut families, mut names) = (Vec::new(), HashSet::new());
    while !page.is_empty() {
        let length = varint(&mut page)?;
        let message = split(&mut page, length)?;
        let family = family(message, utf8)?;
        if !names.insert(family.name.clone()) {
            return Err(format!("{}: the family is there twice", family.name));
        }
        families.push(family);
    }
    Ok(families)
}

fn family(message: &[u8], utf8: bool) -> Result<ExposedFamily, String> {
    let mut family = ExposedFamily {
        kind: TYPES[0].to_owned(),
        ..ExposedFamily::default()
    };
    let mut metrics = Vec::new();
    for field in fields(message)? {
        match field {
            Field::Bytes(1, name) => family.name = text(name)?,
            Field::Bytes(2, help) => drop(text(help)?),
            Field::Number(3, kind) => {
                let kind = usize::try_from(kind).ok().and_then(|kind| TYPES.get(kind));
                family.kind = (*kind.ok_or("an unknown type")?).to_owned();
            }
            Field::Bytes(4, metric) => metrics.push(metric),
            Field::Bytes(5, unit) => family.unit = text(unit)?,
            _ => return Err(format!("{}: an unknown field", family.name)),
        }
    }
    if family.name.is_empty() || (!utf8 && !is_legacy_name(&family.name)) {
        return Err(format!("the name {:?}", family.name));
    }
    let mut known = HashSet::new();
    for message in metrics {
        let sample = metric(message, &family, utf8).map_err(|error| format!("{}: {error}", family.name))?;
        let mut labels = sample.labels.clone();
        labels.sort();
        if !known.insert(labels) {
            return Err(format!("{}: {:?} is there twice", family.name, sample.labels));
        }
        family.samples.push(sample);
    }
    match family.samples.is_empty() {
        true => Err(format!("{}: no metric", family.name)),
        false => Ok(family),
    }
}

fn metric(message: &[u8], family: &ExposedFamily, utf8: bool) -> Result<ExposedSample, String> {
    let mut sample = ExposedSample {
        name: family.name.clone(),
        ..ExposedSample::default()
    };
    let mut has_value = false;
    for field in fields(message)? {
        match (field, family.kind.as_str()) {
            (Field::Bytes(1, label), _) => {
                let (name, value) = label_pair(label)?;
                let is_known = sample.labels.iter().any(|(other, _)| *other == name);
                if name.is_empty() || name == "__name__" || is_known || (!utf8 && !is_legacy_label(&name)) {
                    return Err(format!("the label {name:?}"));
                }
                sample.labels.push((name, value));
            }
            (Field::Bytes(2, value), "gauge") | (Field::Bytes(5, value), "untyped") => {
                sample.value = double_field(value, 1)?;
                has_value = true;
            }
            (Field::Bytes(3, value), "counter") => {
                sample.value = double_field(value, 1)?;
                if sample.value.is_nan() || sample.value < 0.0 {
                    return Err(format!("a count of {}", sample.value));
                }
                has_value = true;
            }
            (Field::Bytes(4, value), "summary") => {
                summary(value)?;
                has_value = true;
            }
            (Field::Bytes(7, value), "histogram") => {
                histogram(value)?;
                has_value = true;
            }
            _ => return Err(format!("a field that is not of a {}", family.kind)),
        }
    }
    has_value.then_some(sample).ok_or_else(|| "no value".to_owned())
}

fn label_pair(message: &[u8]) -> Result<(String, String), String> {
    let (mut name, mut value) = (String::new(), String::new());
    for field in fields(message)? {
        match field {
            Field::Bytes(1, bytes) => name = text(bytes)?,
            Field::Bytes(2, bytes) => value = text(bytes)?,
            _ => return Err("an unknown field of a label".to_owned()),
        }
    }
    Ok((name, value))
}

fn summary(message: &[u8]) -> Result<(), String> {
    for field in fields(message)? {
        if let Field::Bytes(3, quantile) = field {
            let quantile = double_field(quantile, 1)?;
            if !(0.0..=1.0).contains(&quantile) {
                return Err(format!("the quantile {quantile}"));
            }
        }
    }
    Ok(())
}

/// Checks buckets and, as Prometheus does (`Histogram.Validate`), that the count of a native histogram matches its buckets.
fn histogram(message: &[u8]) -> Result<(), String> {
    let (mut count, mut zero, mut sum) = (0, 0, 0.0);
    let (mut buckets, mut spans, mut deltas) =
        (Vec::new(), [Vec::new(), Vec::new()], [Vec::new(), Vec::new()]);
    let mut is_native = false;
    for field in fields(message)? {
        match field {
            Field::Number(1, value) => count = value,
            Field::Number(2, bits) => sum = f64::from_bits(bits),
            Field::Bytes(3, bucket) => buckets.push(bucket_of(bucket)?),
            Field::Number(5, _) => is_native = true,
            Field::Number(7, value) => zero = value,
            Field::Bytes(9, span) => spans[0].push(span_length(span)?),
            Field::Bytes(12, span) => spans[1].push(span_length(span)?),
            Field::Bytes(10, packed) => deltas[0].extend(zigzags(packed)?),
            Field::Bytes(13, packed) => deltas[1].extend(zigzags(packed)?),
            _ => {}
        }
    }
    let rises =
        (buckets.windows(2)).all(|pair: &[(f64, u64)]| pair[0].0 < pair[1].0 && pair[0].1 <= pair[1].1);
    if !rises
        || buckets
            .iter()
            .any(|(bound, up_to)| bound.is_nan() || *up_to > count)
    {
        return Err(format!("the buckets {buckets:?} of {count}"));
    }
    if !is_native {
        return Ok(());
    }
    let mut observed = u128::from(zero);
    for (spans, deltas) in spans.iter().zip(&deltas) {
        if spans.iter().sum::<u64>() != deltas.len() as u64 {
            return Err(format!("spans of {spans:?} for {} buckets", deltas.len()));
        }
        let mut bucket = 0_i64;
        for delta in deltas {
            bucket = bucket.checked_add(*delta).ok_or("a bucket that overflows")?;
            observed += u128::try_from(bucket).map_err(|_| "a negative bucket")?;
        }
    }
    match observed == u128::from(count) || (sum.is_nan() && observed <= u128::from(count)) {
        true => Ok(()),
        false => Err(format!(
            "{observed} observations in buckets, and a count of {count}"
        )),
    }
}

fn bucket_of(message: &[u8]) -> Result<(f64, u64), String> {
    let (mut bound, mut up_to) = (0.0, 0);
    for field in fields(message)? {
        match field {
            Field::Number(1, value) => up_to = value,
            Field::Number(2, bits) => bound = f64::from_bits(bits),
            _ => {}
        }
    }
    Ok((bound, up_to))
}

fn span_length(message: &[u8]) -> Result<u64, String> {
    let mut length = 0;
    for field in fields(message)? {
        if let Field::Number(2, value) = field {
            length = value;
        }
    }
    Ok(length)
}

fn zigzags(mut packed: &[u8]) -> Result<Vec<i64>, String> {
    let mut numbers = Vec::new();
    while !packed.is_empty() {
        let number = varint(&mut packed)?;
        numbers.push((number >> 1).cast_signed() ^ -((number & 1).cast_signed()));
    }
    Ok(numbers)
}

fn double_field(message: &[u8], number: u64) -> Result<f64, String> {
    let mut found = 0.0;
    for field in fields(message)? {
        if let Field::Number(of, bits) = field
            && of == number
        {
            found = f64::from_bits(bits);
        }
    }
    Ok(found)
}

fn fields(mut message: &[u8]) -> Result<Vec<Field<'_>>, String> {
    let mut fields = Vec::new();
    while !message.is_empty() {
        let key = varint(&mut message)?;
        fields.push(match key & 7 {
            0 => Field::Number(key >> 3, varint(&mut message)?),
            1 => {
                let bytes = split(&mut message, 8)?;
                let bytes = bytes.try_into().map_err(|_| "eight bytes")?;
                Field::Number(key >> 3, u64::from_le_bytes(bytes))
            }
            2 => {
                let length = varint(&mut message)?;
                Field::Bytes(key >> 3, split(&mut message, length)?)
            }
            other => return Err(format!("the wire type {other}")),
        });
    }
    Ok(fields)
}

fn varint(bytes: &mut &[u8]) -> Result<u64, String> {
    let mut number = 0_u64;
    for shift in (0..64).step_by(7) {
        let (byte, rest) = bytes.split_first().ok_or("a number that is cut off")?;
        *bytes = rest;
        number |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Ok(number);
        }
    }
    Err("a number that is too long".to_owned())
}

fn split<'a>(bytes: &mut &'a [u8], length: u64) -> Result<&'a [u8], String> {
    let length = usize::try_from(length).map_err(|error| error.to_string())?;
    let (head, rest) = bytes
        .split_at_checked(length)
        .ok_or("a message that is cut off")?;
    *bytes = rest;
    Ok(head)
}

fn text(bytes: &[u8]) -> Result<String, String> {
    String::from_utf8(bytes.to_vec()).map_err(|error| error.to_string())
}
