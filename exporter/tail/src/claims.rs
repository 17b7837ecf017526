//! The registry of inputs by the rank of a run that they record. Two inputs with the same rank have equal series and span ids, so a
//! backend loses one of them: the user gets a warning.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
};

use pulsetrain_formats::LogFormat;
use pulsetrain_pipeline::Problem;
use pulsetrain_record::Run;

use crate::follow::log_of;

/// The claims of all inputs of a process. Clones share them.
#[derive(Clone, Debug, Default)]
pub struct Claims(Arc<Mutex<BTreeMap<Claim, String>>>);

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Claim {
    format: &'static str,
    run: String,
    attempt: i64,
    rank: i64,
}

/// A rank of a run that two inputs have recorded.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct SharedRank {
    /// The input that claimed it first.
    pub(crate) other: String,
    run: String,
    attempt: i64,
    rank: i64,
}

impl SharedRank {
    const REMEDY: &str = "give each log its rank: --rank N for one log, --rank-pattern 'rank_?(\\d+)' for several, or \
                                     rank: {from: path, pattern: 'rank_?(\\d+)'} in the configuration";

    /// Returns the cause and the remedy.
    pub fn problem(&self) -> Problem {
        Problem::new(self.to_string()).with_remedy(Self::REMEDY)
    }
}

impl std::fmt::Display for SharedRank {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self {
            other,
            run,
            attempt,
            rank,
        } = self;
        write!(
            f,
            "has run {run}, rank {rank}, attempt {attempt} like {other}, so their series and spans collide"
        )
    }
}

impl Claims {
    /// Claims a rank of a run for `input`. Returns the input that has claimed it before, unless a rank may have several files of the
    /// format.
    pub(crate) fn claim(&self, input: &str, format: &LogFormat, run: &Run, rank: i64) -> Option<SharedRank> {
        if format.splits {
            return None;
        }
        let claim = Claim {
            format: format.name,
            run: run.id.clone(),
            attempt: run.attempt,
            rank,
        };
        let mut claims = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let other = claims.entry(claim.clone()).or_insert_with(|| input.to_owned());
        // A rotated file belongs to its log.
        (log_of(other) != log_of(input)).then(|| SharedRank {
            other: other.clone(),
            run: claim.run,
            attempt: claim.attempt,
            rank: claim.rank,
        })
    }

    /// Releases the claims of `input`, which is no longer read or belongs to another run.
    pub(crate) fn release(&self, input: &str) {
        let mut claims = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        claims.retain(|_, claimant| claimant != input);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pulsetrain_formats::format_by_name;

    fn run(id: &str, attempt: i64) -> Run {
        Run {
            id: id.to_owned(),
            attempt,
            ..Run::default()
        }
    }

    #[test]
    fn claims_collide_only_for_the_same_run_attempt_and_rank() {
        let claims = Claims::default();
        let format = format_by_name("keyvalue").unwrap();
        let claim =
            |input, run: &Run, rank| claims.claim(input, format, run, rank).map(|shared| shared.other);
        assert_eq!(claim("a", &run("r", 0), 0), None);
        assert_eq!(claim("a", &run("r", 0), 0), None);
        assert_eq!(claim("b", &run("r", 0), 1), None);
        assert_eq!(claim("b", &run("r", 1), 0), None);
        assert_eq!(claim("b", &run("s", 0), 0), None);
        assert_eq!(claim("b", &run("r", 0), 0).as_deref(), Some("a"));
        claims.release("a");
        assert_eq!(claim("b", &run("r", 0), 0), None);
    }

    #[test]
    fn a_log_and_its_rotated_files_do_not_collide() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name).display().to_string();
        for name in ["train.log", "train.log.1", "train.log.2.gz", "out.0", "out.1"] {
            std::fs::write(path(name), "").unwrap();
        }
        let format = format_by_name("keyvalue").unwrap();
        let collide = |one: &str, two: &str| {
            let claims = Claims::default();
            claims.claim(&path(one), format, &run("r", 0), 0);
            claims.claim(&path(two), format, &run("r", 0), 0).is_some()
        };
        assert!(!collide("train.log", "train.log.1"));
        assert!(!collide("train.log.2.gz", "train.log.1"));
        assert!(collide("out.0", "out.1"), "these are not rotated files");
    }

    #[test]
    fn formats_with_several_files_per_rank_do_not_collide() {
        let claims = Claims::default();
        for name in ["tensorboard", "hf-trainer-state", "wandb"] {
            let format = format_by_name(name).unwrap();
            assert_eq!(claims.claim("a", format, &run("r", 0), 0), None);
            assert_eq!(claims.claim("b", format, &run("r", 0), 0), None, "{name}");
        }
    }
}
