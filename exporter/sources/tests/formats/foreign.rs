//! Every format on every sample, its own and those of all other systems.

use pulsetrain_sources::logs;

use crate::imported::{all_samples, read, sample};

#[test]
fn no_sample_is_claimed_by_two_formats() {
    for name in all_samples() {
        let bytes = sample(&name);
        let head = &bytes[..bytes.len().min(64 << 10)];
        let claims: Vec<_> = logs::FORMATS
            .iter()
            .filter(|format| (format.recognise)(head).is_some())
            .map(|format| format.name)
            .collect();
        assert!(claims.len() < 2, "{name} is claimed by {claims:?}");
    }
}

#[test]
fn no_format_reads_a_record_in_a_sample_that_is_not_its_own() {
    for name in all_samples() {
        let bytes = sample(&name);
        let head = &bytes[..bytes.len().min(64 << 10)];
        for format in logs::FORMATS {
            if (format.recognise)(head).is_some() {
                continue;
            }
            let (batches, counts, _) = read(format, &bytes);
            let points: u32 = batches.iter().map(|batch| batch.items).sum();
            assert_eq!((points, counts.records), (0, 0), "{} on {name}", format.name);
        }
    }
}

#[test]
fn torn_samples_are_no_panic() {
    for name in all_samples() {
        let bytes = sample(&name);
        for end in (0..bytes.len().min(20_000)).step_by(997) {
            logs::parse_with_every_format(&bytes[..end]);
            logs::parse_with_every_format(&bytes[end..bytes.len().min(end + 5_000)]);
        }
    }
}
