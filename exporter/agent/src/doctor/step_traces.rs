//! Compares the trace of a step, in which all ranks record their spans, with the limit of Tempo.

use pulsetrain_record::launcher::WORLD_SIZES;

use super::{environment::place, finding::Findings, variables::Variables};

/// The default of Tempo's `max_bytes_per_trace`. Tempo accepts the spans above it, and drops them.
const MAX_BYTES_PER_TRACE: u64 = 5_000_000;

/// The spans of a step of one rank: the step, and its forward, backward and optimizer phases.
const SPANS: u64 = 4;

/// The size of such a span in OTLP.
const BYTES_PER_SPAN: u64 = 142;

/// The size of the resource of a rank in OTLP.
const BYTES_PER_RANK: u64 = 250;

const RAISE: &str = "if the traces go to Tempo, set overrides.defaults.global.max_bytes_per_trace above this size: Tempo answers that it accepted the \
                     spans above it, and drops them";

/// Checks the number of ranks that the launcher has set.
pub(super) fn check(variables: Variables<'_>, findings: &mut Findings) {
    let size = |name: &&'static str| Some((*name, variables.get(name)?.trim().parse::<u64>().ok()?));
    let Some((name, ranks)) = WORLD_SIZES.iter().find_map(size) else {
        return;
    };
    let bytes = ranks.saturating_mul(SPANS * BYTES_PER_SPAN + BYTES_PER_RANK);
    if bytes > MAX_BYTES_PER_TRACE {
        let what = format!(
            "the trace of a step of {ranks} ranks has about {} MB: {SPANS} spans of {BYTES_PER_SPAN} bytes and a resource of \
             {BYTES_PER_RANK} bytes a rank; Tempo keeps {} MB by default",
            bytes / 1_000_000,
            MAX_BYTES_PER_TRACE / 1_000_000
        );
        findings.warn(place(&[name]), what, RAISE);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn step_of_many_ranks_is_compared_with_the_limit_of_tempo() {
        let found = |ranks: &str| {
            let mut findings = Findings::default();
            let variables = |name: &str| (name == "WORLD_SIZE").then(|| ranks.to_owned());
            check(Variables(&variables), &mut findings);
            findings.all().len()
        };
        assert_eq!((found("1024"), found("16384"), found("many")), (0, 1, 0));
    }
}
