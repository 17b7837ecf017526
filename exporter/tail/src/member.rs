//! Determines the process of a run that wrote a log: its rank and attempt, from the command line, the configuration, the path of the
//! log or the environment.

use std::path::Path;

use regex::Regex;

use pulsetrain_record::launcher::{
    LOCAL_RANKS, RANKS, RESTARTS, TORCHRUN_NODES, TORCHRUN_RESTARTS, WORLD_SIZES,
};

/// One process of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Member {
    /// The rank in the job.
    pub rank: i64,
    /// The rank on its host, if it is known.
    pub local_rank: Option<i64>,
    /// The number of ranks of the job, if it is known.
    pub world_size: Option<i64>,
    /// The number of restarts before it.
    pub attempt: i64,
}

impl Member {
    /// Reads the variables that launchers set: `RANK`, `LOCAL_RANK`, `WORLD_SIZE`, `TORCHELASTIC_RESTART_COUNT` and those of Slurm
    /// and MPI.
    ///
    /// The number of ranks counts only together with a rank of the same launcher that is lower: `SLURM_NTASKS` is also set in a shell
    /// of an allocation, where nothing is a rank. torchrun's number of restarts counts only on a single node, because the nodes of a
    /// run do not agree on it.
    pub fn of_environment(variable: impl Fn(&str) -> Option<String>) -> Self {
        let read = |name: &str| variable(name)?.trim().parse::<i64>().ok();
        let number = |names: &[&str]| names.iter().find_map(|name| read(name));
        let launcher = RANKS.iter().position(|name| read(name).is_some());
        let rank = number(&RANKS).unwrap_or_default();
        let nodes = read(TORCHRUN_NODES).unwrap_or(1);
        let restarts = RESTARTS
            .iter()
            .filter(|name| nodes < 2 || **name != TORCHRUN_RESTARTS);
        let world_size = launcher.and_then(|launcher| read(WORLD_SIZES[launcher]));
        Self {
            rank,
            local_rank: number(&LOCAL_RANKS),
            world_size: world_size.filter(|size| (0..*size).contains(&rank)),
            attempt: restarts.copied().find_map(read).unwrap_or_default(),
        }
    }

    /// Reads torchrun's layout `attempt_0/3/stdout.log`, whose number is the rank on the host.
    fn of_torchrun(path: &Path) -> Option<Self> {
        let mut parts = path.iter().rev().map(|part| part.to_str());
        if !matches!(parts.next()??, "stdout.log" | "stderr.log") {
            return None;
        }
        let rank = number(parts.next()??)?;
        Some(Self {
            rank,
            local_rank: Some(rank),
            world_size: None,
            attempt: number(parts.next()??.strip_prefix("attempt_")?)?,
        })
    }
}

/// The source of a log's rank.
#[derive(Clone, Debug, Default)]
pub enum RankSource {
    /// From torchrun's layout of the path, else from the environment.
    #[default]
    Inferred,
    /// Every log has this rank.
    Fixed(i64),
    /// From the first group of a pattern in the path; of several matches, the last one counts.
    Path(Regex),
}

/// The error of a pattern that cannot find a rank.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RankPatternError {
    /// The pattern is not a regular expression.
    #[error("{pattern:?} is not a regular expression: {}", last_line(source))]
    Syntax {
        /// The pattern.
        pattern: String,
        /// The error.
        source: regex::Error,
    },
    /// The pattern has no group.
    #[error("{0:?} has no group for the rank")]
    NoGroup(String),
}

impl RankPatternError {
    /// Returns the remedy if it is known; the message itself is the cause only.
    pub fn remedy(&self) -> Option<&'static str> {
        match self {
            Self::Syntax { .. } => None,
            Self::NoGroup(_) => Some("put its digits in one, like rank_(\\d+)"),
        }
    }
}

/// Returns the last line of the error, which has the cause.
fn last_line(error: &regex::Error) -> String {
    let text = error.to_string();
    text.lines().last().unwrap_or_default().trim().to_owned()
}

impl RankSource {
    /// Creates a source from a pattern for the path.
    ///
    /// # Errors
    /// Returns an error if `pattern` is not a regular expression with a group for the rank.
    pub fn from_path(pattern: &str) -> Result<Self, RankPatternError> {
        let regex = Regex::new(pattern).map_err(|source| RankPatternError::Syntax {
            pattern: pattern.to_owned(),
            source,
        })?;
        if regex.captures_len() < 2 {
            return Err(RankPatternError::NoGroup(pattern.to_owned()));
        }
        Ok(Self::Path(regex))
    }

    /// Returns the process that wrote the log at `path`. `from_environment` is used if neither this source nor the path gives it.
    pub fn member(&self, path: &str, from_environment: Member) -> Member {
        let inferred = Member::of_torchrun(Path::new(path)).unwrap_or(from_environment);
        let explicit = match self {
            Self::Inferred => return inferred,
            Self::Fixed(rank) => Some(*rank),
            Self::Path(pattern) => found(pattern, path),
        };
        // The local rank of another rank would be wrong.
        let local_rank = inferred
            .local_rank
            .filter(|_| explicit.is_none_or(|rank| rank == inferred.rank));
        let rank = explicit.unwrap_or(inferred.rank);
        Member {
            rank,
            local_rank,
            world_size: inferred.world_size.filter(|size| rank < *size),
            ..inferred
        }
    }

    /// Returns the pattern if it finds no rank in `path`.
    pub(crate) fn missed(&self, path: &str) -> Option<&str> {
        match self {
            Self::Path(pattern) if found(pattern, path).is_none() => Some(pattern.as_str()),
            _ => None,
        }
    }
}

fn found(pattern: &Regex, path: &str) -> Option<i64> {
    let last = pattern.captures_iter(path).last()?;
    number(last.get(1)?.as_str())
}

fn number(digits: &str) -> Option<i64> {
    let is_number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| digits.parse().ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    const SLURM: Member = Member {
        rank: 5,
        local_rank: Some(1),
        world_size: Some(8),
        attempt: 2,
    };

    fn rank(source: &RankSource, path: &str) -> i64 {
        source.member(path, SLURM).rank
    }

    fn of_environment(variables: &[(&str, &str)]) -> Member {
        Member::of_environment(|name| {
            let found = variables.iter().find(|(known, _)| *known == name);
            found.map(|(_, value)| (*value).to_owned())
        })
    }

    #[test]
    fn environment_of_every_launcher_identifies_the_member() {
        for variables in [
            [
                ("RANK", "5"),
                ("LOCAL_RANK", "1"),
                ("WORLD_SIZE", "8"),
                ("TORCHELASTIC_RESTART_COUNT", "2"),
            ],
            [
                ("SLURM_PROCID", "5"),
                ("SLURM_LOCALID", "1"),
                ("SLURM_NTASKS", "8"),
                ("SLURM_RESTART_COUNT", "2"),
            ],
        ] {
            assert_eq!(of_environment(&variables), SLURM);
        }
        assert_eq!(of_environment(&[]), Member::default());
    }

    #[test]
    fn world_size_requires_a_rank_from_the_same_launcher() {
        let (rank, size) = (("RANK", "3"), ("WORLD_SIZE", "8"));
        let slurm_size = ("SLURM_NTASKS", "2");
        for (variables, expected, why) in [
            (
                &[("OMPI_COMM_WORLD_RANK", "3"), ("OMPI_COMM_WORLD_SIZE", "4")][..],
                Some(4),
                "MPI",
            ),
            (&[slurm_size], None, "a shell of an allocation"),
            (
                &[rank, size, ("SLURM_PROCID", "0"), slurm_size],
                Some(8),
                "torchrun within Slurm",
            ),
            (&[("RANK", "8"), size], None, "the rank is too high"),
        ] {
            assert_eq!(of_environment(variables).world_size, expected, "{why}");
        }
        let fixed = RankSource::Fixed(9).member("train.log", SLURM);
        assert_eq!((fixed.rank, fixed.world_size), (9, None));
    }

    #[test]
    fn only_the_exact_torchrun_layout_yields_a_rank() {
        let inferred = RankSource::Inferred;
        let torchrun = Member {
            rank: 3,
            local_rank: Some(3),
            world_size: None,
            attempt: 1,
        };
        for path in ["/l/none_x/attempt_1/3/stdout.log", "attempt_1/3/stderr.log"] {
            assert_eq!(inferred.member(path, SLURM), torchrun, "{path}");
        }
        for path in [
            "rank_3.log",
            "rank3.log",
            "3/stdout.log",
            "try_1/3/stdout.log",
            "attempt_1/3/train.log",
            "attempt_1/gpu3/stdout.log",
            "standard input",
        ] {
            assert_eq!(inferred.member(path, SLURM), SLURM, "{path}");
        }
    }

    #[test]
    fn a_pattern_finds_the_rank_in_the_path() {
        let by_name = RankSource::from_path(r"rank_?(\d+)").unwrap();
        assert_eq!(rank(&by_name, "/rank_0_job/rank_12.log"), 12);
        assert_eq!(by_name.missed("/rank_0_job/rank_12.log"), None);
        assert_eq!(by_name.missed("/job/train.log"), Some(r"rank_?(\d+)"));
        assert_eq!(rank(&by_name, "/job/train.log"), 5, "that of the environment");
        for wrong in ["rank_(", "rank_3"] {
            assert!(
                RankSource::from_path(wrong)
                    .unwrap_err()
                    .to_string()
                    .contains(wrong)
            );
        }
    }

    #[test]
    fn configured_rank_takes_precedence() {
        assert_eq!(rank(&RankSource::Fixed(7), "attempt_1/3/stdout.log"), 7);
        let member = RankSource::Fixed(7).member("attempt_1/3/stdout.log", SLURM);
        assert_eq!((member.local_rank, member.attempt), (None, 1));
    }
}
