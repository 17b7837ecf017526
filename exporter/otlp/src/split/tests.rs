use super::*;

fn field(number: u32, value: &[u8]) -> Vec<u8> {
    let mut level = Level {
        number: 0,
        head: Vec::new(),
        body: Vec::new(),
        is_open: false,
    };
    level.push(number, value);
    level.body
}

/// A field that no version of OTLP has.
fn unknown(text: &str) -> Vec<u8> {
    field(99, text.as_bytes())
}

/// A message with one resource and scope, each with an unknown field, and these items.
fn message(items: &[Vec<u8>]) -> Vec<u8> {
    let items: Vec<u8> = items.iter().flat_map(|item| field(2, item)).collect();
    let scope = [field(1, b"scope"), items, unknown("of the scope")].concat();
    let resource = [
        field(1, b"resource"),
        field(2, &scope),
        unknown("of the resource"),
    ]
    .concat();
    [unknown("of the message"), field(1, &resource)].concat()
}

fn contains(bytes: &[u8], text: &str) -> bool {
    bytes.windows(text.len()).any(|window| window == text.as_bytes())
}

#[test]
fn every_part_repeats_resource_scope_and_unknown_fields() {
    let items: Vec<Vec<u8>> = (0..10).map(|n| vec![0x08, n]).collect();
    for signal in [Signal::Traces, Signal::Logs] {
        let whole = message(&items);
        let parts = split(signal, &whole, whole.len()).unwrap();
        assert!(parts.is_empty(), "it fits: {}", parts.len());
        let limit = whole.len() - 10;
        let parts = split(signal, &whole, limit).unwrap();
        assert!(parts.len() > 1);
        for part in &parts {
            assert!(part.bytes.len() <= limit, "{}", part.bytes.len());
            let repeated = [
                "resource",
                "scope",
                "of the message",
                "of the resource",
                "of the scope",
            ];
            assert!(repeated.iter().all(|text| contains(&part.bytes, text)));
        }
        assert_eq!(parts.iter().map(|part| part.items).sum::<u32>(), 10);
        let (first, rest) = items.split_at(parts[0].items as usize);
        let again = split(signal, &message(first), 1).unwrap();
        assert_eq!((again.len(), rest.is_empty()), (first.len(), false));
    }
}

#[test]
fn points_of_a_split_metric_keep_its_name_and_temporality() {
    let points: Vec<u8> = (0..20)
        .flat_map(|n| field(1, &[0x19, n, 0, 0, 0, 0, 0, 0, 0]))
        .collect();
    let sum = [points, vec![0x10, 2, 0x18, 1]].concat();
    let metric = [
        field(1, b"train.tokens"),
        field(7, &sum),
        unknown("of the metric"),
    ]
    .concat();
    let whole = message(&[metric]);
    let parts = split(Signal::Metrics, &whole, 200).unwrap();
    assert!(parts.len() > 1);
    for part in &parts {
        assert!(part.bytes.len() <= 200 && contains(&part.bytes, "train.tokens"));
        assert!(contains(&part.bytes, "of the metric"));
        assert!(part.bytes.windows(4).any(|window| window == [0x10, 2, 0x18, 1]));
    }
    assert_eq!(parts.iter().map(|part| part.items).sum::<u32>(), 20);
}

#[test]
fn metric_with_two_data_types_is_not_split() {
    let points: Vec<u8> = (0..4).flat_map(|_| field(1, &[0x08, 1])).collect();
    let odd = [field(5, &points), field(7, &points)].concat();
    let whole = message(&[odd.clone(), odd]);
    let parts = split(Signal::Metrics, &whole, 1).unwrap();
    assert_eq!(parts.iter().map(|part| part.items).collect::<Vec<_>>(), [8, 8]);
}

#[test]
fn message_of_one_item_cannot_be_split() {
    let whole = message(&[vec![0x08, 1]]);
    assert_eq!(split(Signal::Traces, &whole, 1), Ok(Vec::new()));
    assert_eq!(split(Signal::Traces, &[], 1), Ok(Vec::new()));
}

#[test]
fn message_whose_resource_exceeds_the_limit_is_not_split() {
    let resource = [field(1, &vec![b'r'; 10_000]), field(2, &message(&[]))].concat();
    let scope: Vec<u8> = (0..100).flat_map(|_| field(2, &[0x08, 1])).collect();
    let whole = field(1, &[resource, field(2, &scope)].concat());
    assert_eq!(split(Signal::Traces, &whole, 5000), Ok(Vec::new()));
}

#[test]
fn splitting_a_truncated_message_is_an_error() {
    let whole = message(&[vec![0x08, 1], vec![0x08, 2]]);
    let cut = &whole[..whole.len() - 3];
    assert!(split(Signal::Traces, cut, 1).is_err());
}
