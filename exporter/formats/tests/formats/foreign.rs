//! Every format on every sample, its own and those of all other systems.

use pulsetrain_formats::{FORMATS, LogFormat, ParserFactory, detect};

use crate::imported::{all_samples, head, json, read, read_in_chunks, recognised, sample};

/// Formats that are not text: separate tests cover truncated files.
const BINARY: [&str; 4] = ["tensorboard", "wandb", "tunix-trace", "tunix-trace-v2"];

#[test]
fn no_sample_is_claimed_by_two_formats() {
    for name in all_samples() {
        let bytes = sample(&name);
        let head = head(&bytes);
        let claims: Vec<_> = FORMATS
            .iter()
            .filter(|format| !format.is_fallback() && (format.detect)(head).is_some())
            .map(|format| format.name)
            .collect();
        assert!(claims.len() < 2, "{name} is claimed by {claims:?}");
    }
}

/// A file of wandb contains the output of the program, whose lines are those of its log.
const HOLDS_OUTPUT: (&str, &str) = ("torchspec/perf.wandb", "torchspec");

#[test]
fn no_format_parses_records_from_a_foreign_sample() {
    for name in all_samples() {
        let bytes = sample(&name);
        let head = head(&bytes);
        for format in FORMATS {
            // A mapping can read anything, so detection never chooses it. The two versions of a Tunix trace differ only in
            // their clocks.
            let is_other_tunix_version =
                name.contains("perfetto_trace_") && format.name.starts_with("tunix-trace");
            let holds_output = (name.as_str(), format.name) == HOLDS_OUTPUT;
            let reads_any = format.takes_mapping() || format.is_fallback() || is_mapped(format);
            if is_other_tunix_version || holds_output || reads_any || (format.detect)(head).is_some() {
                continue;
            }
            let (batches, counts, _) = read(format, &bytes);
            // Messages are lines of any program.
            let messages = json(&batches).matches(r#""eventName":"run.message""#).count();
            let items: u32 = batches.iter().map(|batch| batch.items).sum();
            let items = items as usize - messages;
            assert_eq!((items, counts.records), (0, 0), "{} on {name}", format.name);
        }
    }
}

#[test]
fn chunk_size_does_not_change_the_output_of_any_sample() {
    for (name, bytes, format) in recognised().filter(|(_, bytes, _)| bytes.len() < 100_000) {
        let read = |size| json(&read_in_chunks(format, &bytes, 0, size).0);
        assert_eq!(read(61), read(bytes.len()), "{name}");
    }
}

#[test]
fn truncated_samples_do_not_panic() {
    for name in all_samples() {
        let bytes = sample(&name);
        if str::from_utf8(&bytes).is_err() {
            continue;
        }
        let own = detect(&name, head(&bytes)).map(|(format, _)| format.name);
        // Mapping files share one parser, so each reads its own samples.
        let reads = |format: &&LogFormat| {
            let is_own = own.as_ref().is_ok_and(|own| *own == format.name);
            !BINARY.contains(&format.name) && (is_own || !is_mapped(format))
        };
        let formats: Vec<_> = FORMATS.iter().filter(reads).collect();
        for end in (0..bytes.len().min(20_000)).step_by(997) {
            for format in &formats {
                read(format, &bytes[..end]);
                read(format, &bytes[end..bytes.len().min(end + 5_000)]);
            }
        }
    }
}

/// Returns whether the format is read by the mapping of a trainer alone.
fn is_mapped(format: &LogFormat) -> bool {
    matches!(format.parser, ParserFactory::Embedded { .. })
}
