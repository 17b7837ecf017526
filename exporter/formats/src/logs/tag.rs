//! Parses the tag of the process that wrote a line: `[rank3]`, `Rank: 3`, `[GPU3]`, `cuda:3`, `worker-3 |`, `[DP3 TP0]`,
//! `[pod/train-3/main]`, `(TrainWorker pid=7, ip=10.0.0.1)`, `[1,3]<stdout>:`.

use pulsetrain_record::Rank;

/// The process that wrote a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Speaker<'a> {
    /// A rank.
    Ranked(Rank),
    /// A name that ends with a number, such as `worker-3`, which is the rank unless another name has it.
    Numbered(&'a str, i64),
    /// A process without a number, and the group of its like: `TrainWorker` and `pid=7, ip=10.0.0.1`.
    Named(&'a str, &'a str),
}

/// A tag and the length of its text, with the delimiters around it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Tag<'a> {
    pub(super) speaker: Speaker<'a>,
    pub(super) len: usize,
    /// Whether the message begins after it without a space.
    pub(super) is_last: bool,
}

/// Words before a global rank.
const RANKS: [&str; 8] = [
    "rank",
    "global_rank",
    "world_rank",
    "ddp_rank",
    "process_index",
    "process",
    "proc",
    "global rank",
];

/// Words before a rank on a host.
const LOCAL_RANKS: [&str; 11] = [
    "local_rank",
    "local rank",
    "gpu",
    "cuda",
    "device",
    "default",
    "card",
    "npu",
    "hpu",
    "xpu",
    "gpu_id",
];

/// Words before the number of a process of any kind.
const WORKERS: [&str; 12] = [
    "worker", "node", "host", "trainer", "pod", "replica", "machine", "dp", "dp_rank", "learner", "server",
    "instance",
];

/// Parts of the names of processes, which end with their number: `train-worker-3`.
const NAME_PARTS: [&str; 14] = [
    "worker", "node", "host", "train", "pod", "replica", "machine", "gpu", "rank", "learner", "server",
    "instance", "master", "job",
];

/// The longest tag in bytes.
const MAX_LEN: usize = 120;

impl<'a> Tag<'a> {
    /// Parses the tag at the beginning of a text.
    pub(super) fn parse(text: &'a str) -> Option<Self> {
        match text.as_bytes().first()? {
            b'[' | b'(' | b'<' => Self::in_brackets(text),
            b'A'..=b'Z' | b'a'..=b'z' => Self::bare(text),
            _ => None,
        }
    }

    fn in_brackets(text: &'a str) -> Option<Self> {
        let close = match text.as_bytes()[0] {
            b'[' => ']',
            b'(' => ')',
            _ => '>',
        };
        let head = &text[..text.floor_char_boundary(MAX_LEN)];
        // The name of a process of Ray can have brackets.
        let from = head.find(" pid=").filter(|_| close == ')').unwrap_or(0);
        let end = from + head[from..].find(close)?;
        let inside = head[1..end].trim();
        let after = &text[end + 1..];
        if close == ']'
            && let Some(tag) = Self::parse_mpirun(inside, after, end + 1)
        {
            return Some(tag);
        }
        let speaker = match close {
            ')' => ray(inside).or_else(|| all_words(inside)),
            _ => pod(inside).or_else(|| all_words(inside)),
        }?;
        // The number in the prefix of torchrun is the rank on the host.
        let is_of_torchrun = close == ']' && after.starts_with(':') && !inside.contains([' ', ':', '=']);
        let speaker = match speaker {
            Speaker::Ranked(rank) if is_of_torchrun => Speaker::Ranked(Rank::OfHost(rank.number())),
            other => other,
        };
        Some(Self {
            speaker,
            len: end + 1 + colon_len(after),
            is_last: false,
        })
    }

    /// Parses `[1,0]<stdout>:` of Open MPI and `[prterun-host-123@1,0]<stdout>: ` of PRRTE, with the number of the job and the rank.
    fn parse_mpirun(inside: &'a str, after: &str, start: usize) -> Option<Self> {
        let (stream, _) = after.strip_prefix('<')?.split_once(">:")?;
        let (job, rank) = inside.rsplit_once(',')?;
        matches!(stream, "stdout" | "stderr" | "stddiag").then_some(())?;
        Some(Self {
            speaker: Speaker::Ranked(Rank::OfJob(number(rank)?)),
            len: start + stream.len() + 3,
            is_last: !job.contains('@'),
        })
    }

    /// Parses a tag without brackets, which a colon or a bar ends; a space is enough after a number that belongs to its word:
    /// `rank=3 `, `cuda:3 `, `gpu3 `.
    fn bare(text: &'a str) -> Option<Self> {
        if let Some((speaker, len, is_joined)) = word(text) {
            let after = &text[len..];
            let delimiter = match colon_len(after) {
                0 => bar_len(after),
                colon => Some(colon),
            };
            let is_ended = delimiter.is_some() || is_joined && after.starts_with([' ', '\t']);
            if is_ended {
                return Some(Self {
                    speaker,
                    len: len + delimiter.unwrap_or(0),
                    is_last: false,
                });
            }
        }
        Self::named(text)
    }

    /// Parses the name of a process before a bar or a colon: `train-worker-3: `, `trainer-1  | `.
    fn named(text: &'a str) -> Option<Self> {
        let is_of_name = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
        let len = text.bytes().take(MAX_LEN).take_while(is_of_name).count();
        let name = &text[..len];
        let after = &text[len..];
        let stem = name.trim_end_matches(|letter: char| letter.is_ascii_digit());
        // The names of hosts have no underscore; the keys of records do.
        let delimiter = match bar_len(after) {
            Some(bar) => bar,
            None if stem.contains('_') => return None,
            None if after.starts_with(": ") => 1,
            None => (after.starts_with(' ') && stem.ends_with('-')).then_some(1)?,
        };
        let number = number(&name[stem.len()..])?;
        let is_name = is_process(stem) || after.starts_with("  |") && !is_quantity(stem);
        Some(Self {
            speaker: Speaker::Numbered(is_name.then_some(name)?, number),
            len: len + delimiter + container_len(after),
            is_last: false,
        })
    }
}

/// Returns whether the name of a process has one of the usual words, and none of a quantity.
fn is_process(name: &str) -> bool {
    let lower = name.to_ascii_lowercase();
    NAME_PARTS.iter().any(|part| lower.contains(part)) && !is_quantity(name)
}

/// Returns whether a name is of a quantity.
fn is_quantity(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    ["loss", "acc", "step", "epoch", "iter"]
        .iter()
        .any(|word| name.contains(word))
}

/// Returns the length of the name of a container after that of a pod, as stern prints it.
fn container_len(after: &str) -> usize {
    let rest = after
        .strip_prefix(" › ")
        .or_else(|| after.strip_prefix(' '))
        .unwrap_or_default();
    let word = rest.split(' ').next().unwrap_or_default();
    match CONTAINERS.contains(&word) && rest.len() > word.len() {
        true => after.len() - rest.len() + word.len() - 1,
        false => 0,
    }
}

/// The usual names of containers of training jobs.
const CONTAINERS: [&str; 12] = [
    "main",
    "app",
    "pytorch",
    "tensorflow",
    "jax",
    "trainer",
    "worker",
    "master",
    "launcher",
    "container",
    "ray-worker",
    "ray-head",
];

/// Returns the length of a colon.
fn colon_len(after: &str) -> usize {
    usize::from(after.starts_with([':', ';']))
}

/// Returns the length of the bar between the name of a container and its line.
fn bar_len(after: &str) -> Option<usize> {
    let rest = after.trim_start_matches(' ').strip_prefix('|')?;
    Some(after.len() - rest.len())
}

/// Parses `pod/train-3/main` of kubectl.
fn pod(inside: &str) -> Option<Speaker<'_>> {
    let path = inside.strip_prefix("pod/")?;
    let name = path.split('/').next()?;
    let stem = name.trim_end_matches(|letter: char| letter.is_ascii_digit());
    Some(match number(&name[stem.len()..]) {
        Some(number) if stem.ends_with('-') => Speaker::Numbered(name, number),
        _ => Speaker::Named("pod", name),
    })
}

/// Parses `TrainActor pid=7, ip=10.0.0.1`.
fn ray(inside: &str) -> Option<Speaker<'_>> {
    let (group, process) = inside.split_once(" pid=")?;
    number(process.split(',').next()?)?;
    if let Some((_, rank)) = group.split_once("rank=") {
        let len = rank.bytes().take_while(u8::is_ascii_digit).count();
        return Some(Speaker::Ranked(Rank::OfJob(number(&rank[..len])?)));
    }
    Some(Speaker::Named(group, process))
}

/// Parses a text that consists of tags: `rank 3`, `DP3 TP0`, `rank 3/8`, `host3:0`. The first one decides; names with several
/// numbers are compared by all of their text.
fn all_words(inside: &str) -> Option<Speaker<'_>> {
    let (speaker, len, _) = word(inside)?;
    let rest = &inside[len..];
    if rest.is_empty() {
        return Some(speaker);
    }
    let is_other = |part: &str| {
        let digits = part.trim_start_matches(|letter: char| letter.is_ascii_alphabetic());
        part.is_empty() || number(digits).is_some()
    };
    let are_parts = rest.starts_with([' ', ':', '/', ',', '|'])
        && rest.split([' ', ':', '/', ',', '|', '=']).all(is_other);
    if !are_parts {
        return None;
    }
    Some(match speaker {
        Speaker::Numbered(_, number) => Speaker::Numbered(inside, number),
        other => other,
    })
}

/// Parses one word with its number: `rank3`, `rank: 3`, `worker-3`, `cuda:3`, `xla:0/3`, `pid 103`. Returns the length, and whether
/// the number belongs to the word without a space.
fn word(text: &str) -> Option<(Speaker<'_>, usize, bool)> {
    let head = &text[..text.floor_char_boundary(MAX_LEN)];
    let is_letter = |byte: &u8| byte.is_ascii_alphabetic() || *byte == b'_';
    let mut word_len = head.bytes().take_while(is_letter).count();
    // `local rank 3`
    if matches!(&head[..word_len], "local" | "Local" | "global" | "Global")
        && head[word_len..].starts_with(' ')
    {
        word_len += 1 + head[word_len + 1..].bytes().take_while(is_letter).count();
    }
    let rest = &head[word_len..];
    let digits = rest.trim_start_matches([' ', ':', '=', '-', '#']);
    let separator = &rest[..rest.len() - digits.len()];
    if separator.len() > 3 {
        return None;
    }
    // `device=cuda:3`, `Device=xla:0/3`
    let (nested, digits) = match digits {
        nested if nested.starts_with("cuda:") => (true, &nested["cuda:".len()..]),
        nested if nested.starts_with("xla:") => (true, nested["xla:".len()..].split_once('/')?.1),
        plain if head.starts_with("xla:") => (true, plain.split_once('/')?.1),
        plain => (false, plain),
    };
    let len = digits.bytes().take_while(u8::is_ascii_digit).count();
    let number = number(&digits[..len])?;
    let end = head.len() - digits.len() + len;
    let is_ended = digits[len..]
        .bytes()
        .next()
        .is_none_or(|next| !next.is_ascii_alphanumeric() && next != b'.');
    is_ended.then_some(())?;
    let word = head[..word_len].to_ascii_lowercase();
    let word = word.trim_end_matches('_');
    let is_one_of = |words: &[&str]| words.contains(&word);
    // `gpu01` is the name of a host, and `GPU1` a device.
    let is_host = separator.is_empty() && head.starts_with("gpu");
    let speaker = if is_host {
        Speaker::Numbered(&text[..end], number)
    } else if is_one_of(&RANKS) || &head[..word_len] == "R" && separator.is_empty() {
        Speaker::Ranked(Rank::OfJob(number))
    } else if is_one_of(&LOCAL_RANKS) || nested {
        Speaker::Ranked(Rank::OfHost(number))
    } else if is_one_of(&WORKERS) {
        Speaker::Numbered(&text[..end], number)
    } else if word == "pid" {
        Speaker::Named("pid", &text[..end])
    } else {
        return None;
    };
    let is_joined = !separator.contains([' ', '-', '#']) && (separator != ":" || nested || word == "cuda");
    let is_rank = word == "rank" && separator == " ";
    Some((speaker, end, is_joined || is_rank))
}

/// Returns the rank in the keys of a record: `"rank": 3`, `rank=3`, `Device=xla:0/3`.
pub(super) fn in_record(text: &str) -> Option<Speaker<'_>> {
    const KEYS: [&str; 4] = ["rank", "device=xla:", "device=cuda:", "gpu_id"];
    /// One of them is in every such record, whatever its case.
    const PARTS: [&str; 5] = ["ank", "ANK", "xla:", "cuda:", "gpu_id"];
    let head = &text[..text.floor_char_boundary(MAX_RECORD)];
    let can_be = PARTS
        .iter()
        .any(|part| memchr::memmem::find(head.as_bytes(), part.as_bytes()).is_some());
    if !can_be {
        return None;
    }
    let lower = head.to_ascii_lowercase();
    let found = KEYS.iter().find_map(|key| {
        let mut starts = memchr::memmem::find_iter(lower.as_bytes(), key.as_bytes());
        starts.find_map(|at| keyed(head, &lower, at))
    });
    found.map(Speaker::Ranked)
}

/// The bytes of a record in which its rank is searched.
const MAX_RECORD: usize = 512;

/// Returns the rank whose key has its last word at an offset.
fn keyed(head: &str, lower: &str, at: usize) -> Option<Rank> {
    let is_letter = |letter: char| letter.is_ascii_alphanumeric() || letter == '_' || letter == '.';
    let start = lower[..at].trim_end_matches(is_letter).len();
    let before = head[..start].trim_end();
    // The rank of an adapter is not one of a process.
    let is_other = ["lora", "low", "matrix", "-"]
        .iter()
        .any(|word| lower[..before.len()].ends_with(word));
    let key_len = lower[start..].find(|letter: char| !is_letter(letter))?;
    let key = &lower[start..start + key_len];
    let rest = &head[start + key_len..];
    let value = rest.trim_start_matches(['"', '\'']).trim_start();
    let value = value.strip_prefix(['=', ':'])?.trim_start();
    let value = match value.strip_prefix("xla:") {
        Some(ordinal) => ordinal.split_once('/')?.1,
        None => value.strip_prefix("cuda:").unwrap_or(value),
    };
    let len = value.bytes().take_while(u8::is_ascii_digit).count();
    let is_ended = value[len..]
        .bytes()
        .next()
        .is_none_or(|next| !next.is_ascii_alphanumeric() && next != b'.');
    let number = number(&value[..len]).filter(|_| is_ended && !is_other)?;
    match key {
        "rank" | "global_rank" | "world_rank" => Some(Rank::OfJob(number)),
        "local_rank" | "device" | "gpu_id" => Some(Rank::OfHost(number)),
        _ => None,
    }
}

/// Parses a number of at most six digits.
pub(super) fn number(digits: &str) -> Option<i64> {
    let is_number = (1..7).contains(&digits.len()) && digits.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| digits.parse().ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;
    use pulsetrain_record::Rank::{OfHost, OfJob};

    fn speaker(text: &str) -> Option<Speaker<'_>> {
        Tag::parse(text).map(|tag| tag.speaker)
    }

    #[test]
    fn ranks_of_every_style_are_parsed() {
        for (tag, rank) in [
            ("[rank3]: ", OfHost(3)),
            ("[rank3] ", OfJob(3)),
            ("[Rank 3] ", OfJob(3)),
            ("[rank: 3] ", OfJob(3)),
            ("[RANK 3]", OfJob(3)),
            ("rank3: ", OfJob(3)),
            ("Rank 3: ", OfJob(3)),
            ("rank=3 ", OfJob(3)),
            ("rank 3 ", OfJob(3)),
            ("Rank: 3; ", OfJob(3)),
            ("R3 ", OfJob(3)),
            ("[R3] ", OfJob(3)),
            ("Process 3: ", OfJob(3)),
            ("[Process 3] ", OfJob(3)),
            ("proc 3 | ", OfJob(3)),
            ("global_rank=3 ", OfJob(3)),
            ("[rank 3/8] ", OfJob(3)),
            ("[1,3]<stdout>:", OfJob(3)),
            ("[prterun-host-1@1,3]<stderr>: ", OfJob(3)),
            ("(TrainActor(rank=3) pid=7, ip=10.0.0.1) ", OfJob(3)),
            ("[default3]:", OfHost(3)),
            ("[GPU3] ", OfHost(3)),
            ("[GPU 3] ", OfHost(3)),
            ("GPU 3: ", OfHost(3)),
            ("cuda:3 ", OfHost(3)),
            ("[cuda:3] ", OfHost(3)),
            ("xla:0/3 ", OfHost(3)),
            ("local_rank=3 ", OfHost(3)),
            ("device=3 ", OfHost(3)),
            ("device: 3 | ", OfHost(3)),
        ] {
            let line = [tag, "step 10 loss 2.5"].concat();
            assert_eq!(speaker(&line), Some(Speaker::Ranked(rank)), "{line}");
        }
    }

    #[test]
    fn processes_have_a_name_and_a_number() {
        for (tag, name) in [
            ("worker-3 | ", "worker-3"),
            ("worker3: ", "worker3"),
            ("[worker 3] ", "worker 3"),
            ("node-3: ", "node-3"),
            ("[node3] ", "node3"),
            ("[host3:0] ", "host3:0"),
            ("[DP3 TP0] ", "DP3 TP0"),
            ("[dp3] ", "dp3"),
            ("gpu3 ", "gpu3"),
            ("[gpu03] ", "gpu03"),
            ("trainer-3  | ", "trainer-3"),
            ("pod-3 | ", "pod-3"),
            ("pod-3 ", "pod-3"),
            ("[pod/train-3/main] ", "train-3"),
            ("train-worker-3: ", "train-worker-3"),
            ("gpu-a100-3: ", "gpu-a100-3"),
        ] {
            let line = [tag, "step 10 loss 2.5"].concat();
            assert_eq!(speaker(&line), Some(Speaker::Numbered(name, 3)), "{line}");
        }
        assert_eq!(
            speaker("(TrainWorker pid=7, ip=10.0.0.1) x"),
            Some(Speaker::Named("TrainWorker", "7, ip=10.0.0.1"))
        );
        assert_eq!(speaker("[pid 103] x"), Some(Speaker::Named("pid", "pid 103")));
        assert_eq!(
            speaker("[pod/train-7f9c4-x2x9z/main] x"),
            Some(Speaker::Named("pod", "train-7f9c4-x2x9z"))
        );
    }

    #[test]
    fn beginnings_of_records_are_not_tags() {
        for line in [
            "step 10 loss 2.5",
            "epoch 3: loss 2.5",
            "epoch-3 | loss 2.5",
            "rank_loss: 2.5",
            "rank 0.5",
            "gpu_mem: 20",
            "gpu 90%",
            "device: cuda",
            "loss3: 2.5",
            "top5: 90.1",
            "train loss: 2.5",
            "train: 3 [10/100]",
            "node features: 3",
            "[3] step",
            "[10/100] loss",
            "(3) x",
            "(loss: 2.5) ",
            "[G] step     5 [gpu  0] | power  620 W",
            "worker count 3",
            "INFO: x",
            "",
            "[",
        ] {
            assert_eq!(speaker(line), None, "{line}");
        }
    }

    #[test]
    fn rank_is_found_among_the_keys_of_a_record() {
        for (line, rank) in [
            (
                r#"{"timestamp": "x", "rank": 3, "fields": {"step": 50}}"#,
                Some(OfJob(3)),
            ),
            ("level=info rank=3 step=10", Some(OfJob(3))),
            ("log.py: 277: Rank: 3; iter: 57", Some(OfJob(3))),
            ("| Training Device=xla:0/3 Epoch=1", Some(OfHost(3))),
            ("local_rank=3 step=10", Some(OfHost(3))),
            ("lora_rank=16 step=10", None),
            ("LoRA rank: 16 step=10", None),
            ("effective_rank: 12 step=10", None),
            ("rank: 1.5 step=10", None),
            ("device=cuda step=10", None),
            ("ranking=3", None),
        ] {
            assert_eq!(in_record(line), rank.map(Speaker::Ranked), "{line}");
        }
    }
}
