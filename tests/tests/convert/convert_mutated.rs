//! Mutated inputs of `convert`: it exits in time, without a panic, in bounded memory, and reports a reason for every failure.
//!
//! `MUTATED_SECONDS=600 PULSETRAIN=target/release/pulsetrain cargo test --workspace --all-features --locked --test convert -- convert_mutated --nocapture`
//! is the long run; its figures are in `benches/results/convert.txt`.

use std::{
    env, fs,
    io::Read,
    path::{Path, PathBuf},
    process::Command,
    time::{Duration, Instant},
};

use fastrand::Rng;
use flate2::read::GzDecoder;
use pulsetrain_tests::{Folder, command, corpus, repeat_for};

/// The duration of the mutations in seconds, unless `MUTATED_SECONDS` is set.
const SECONDS: u64 = 10;
/// The timeout of one conversion, in seconds.
const MAX_SECONDS: &str = "10";
/// The memory limit of one conversion: an allocation beyond it fails, which ends the conversion with a signal.
const MAX_MEMORY: &str = "--data=1073741824";

/// The options of conversions to a trace; the number of conversions to OTLP is the same.
const OPTIONS: [&[&str]; 8] = [
    &[],
    &["--attributes", "full"],
    &["--memory", "1KiB"],
    &["--by", "trace", "--color-by-trace"],
    &["--downsample", "10us", "--buckets"],
    &["--split", "2KiB"],
    &["--align-clocks"],
    &["--memory", "1KiB", "--attributes", "full", "--align-clocks"],
];

const ZIPKIN: &str = r#"[{"traceId":"5af7183fb1d4cf5f","id":"352bff9a74ca9ad2","name":"get","timestamp":1556604172355737,"duration":1431,
"localEndpoint":{"serviceName":"web"},"annotations":[{"timestamp":1556604172355737,"value":"ws"}],"tags":{"http.method":"GET"}}]"#;

/// Returns valid inputs of every format.
fn seeds(folder: &Folder) -> Vec<(String, Vec<u8>)> {
    let rich = corpus("perfetto/rich.json");
    let mut files = vec![rich.clone(), corpus("kineto/run.otlp.jsonl")];
    for (name, options) in [
        ("rich.binpb", &[][..]),
        ("lean.pftrace", &[]),
        ("full.pftrace", &["--attributes", "full"]),
        ("lean.pftrace.gz", &[]),
    ] {
        let path = folder.path(name);
        let output = command(["convert", "-o"])
            .arg(&path)
            .arg(&rich)
            .args(options)
            .output();
        output.expect("pulsetrain can be started");
        files.push(path);
    }
    let unframed = folder.path("rich.pb");
    let framed = fs::read(folder.path("rich.binpb")).expect("it was written");
    fs::write(&unframed, &framed[4..]).expect("it can be written");
    files.push(unframed);
    let mut seeds: Vec<_> = files
        .iter()
        .map(|path| {
            let name = path
                .file_name()
                .unwrap_or_default()
                .to_string_lossy()
                .into_owned();
            let mut bytes = fs::read(path).expect("a seed can be read");
            bytes.truncate(64 << 10);
            (name, bytes)
        })
        .collect();
    let kineto = fs::read(corpus("kineto/run.pt.trace.json.gz")).expect("it is there");
    let mut text = Vec::new();
    GzDecoder::new(&kineto[..])
        .read_to_end(&mut text)
        .expect("it is sound");
    seeds.push(("kineto.json".to_owned(), text));
    seeds.push(("kineto.json.gz".to_owned(), kineto));
    let nsight = fs::read(corpus("nsight/run.sqlite")).expect("it is there");
    seeds.push(("nsight.sqlite".to_owned(), nsight));
    seeds.push(("zipkin.json".to_owned(), ZIPKIN.into()));
    let compressed = zstd::encode_all(&framed[..], 1).expect("memory takes it");
    seeds.push(("rich.binpb.zst".to_owned(), compressed));
    seeds
}

/// Changes bytes in one or several places: single bytes, and pieces that are removed, duplicated or moved.
fn mutate(bytes: &mut Vec<u8>, random: &mut Rng) {
    let places = random.choice([1, 1, 1, 2, 5]).expect("there are some");
    for _ in 0..places {
        let place = random.usize(..=bytes.len());
        let end = (place + random.usize(1..64)).min(bytes.len());
        match random.u8(..7) {
            0 if place < bytes.len() => bytes[place] ^= 1 << random.u8(..8),
            1 if place < bytes.len() => bytes[place] = random.u8(..),
            2 => bytes.truncate(place),
            3 => drop(bytes.drain(place..end)),
            4 => {
                let piece = bytes[place..end].to_vec();
                let to = random.usize(..=bytes.len());
                drop(bytes.splice(to..to, piece));
            }
            5 => bytes.insert(
                place,
                *random
                    .choice(b"0123456789-.eE\"{}[],:\\\xff\x80\x7f")
                    .expect("there are some"),
            ),
            _ => drop(bytes.splice(place..end, [0xff; 9])),
        }
    }
}

/// Converts an input; returns the exit code, or the rule that the conversion violates.
fn fault(input: &Path, output: &Path, options: &[&str]) -> Result<i32, String> {
    let convert = command(["convert", "-o"]);
    let mut limited = Command::new("prlimit");
    limited
        .args([MAX_MEMORY, "timeout", "--signal=KILL", MAX_SECONDS])
        .arg(convert.get_program());
    limited
        .args(convert.get_args())
        .arg(output)
        .arg(input)
        .args(options);
    let finished = limited.output().expect("prlimit can be started");
    let stderr = String::from_utf8_lossy(&finished.stderr);
    match finished.status.code() {
        Some(code @ 0..=2) if !stderr.contains("panicked") && !stderr.is_empty() => Ok(code),
        code => Err(format!("{code:?} with {options:?}: {stderr}")),
    }
}

#[test]
#[expect(clippy::disallowed_methods, reason = "the longest conversion is measured")]
fn mutated_inputs_never_panic_hang_or_fail_without_a_reason() {
    let seconds =
        env::var("MUTATED_SECONDS").map_or(SECONDS, |text| text.parse().expect("a number of seconds"));
    let folder = Folder::new();
    let seeds = seeds(&folder);
    for (name, bytes) in &seeds {
        let input = folder.file(&format!("sound-{name}"), bytes);
        let code = fault(&input, &folder.path("sound.pftrace"), &[]);
        assert!(matches!(code, Ok(0 | 1)), "{name}: {code:?}");
    }
    let seed = env::var("MUTATED_SEED").map_or(1, |text| text.parse().expect("a number"));
    let mut random = Rng::with_seed(seed);
    let mut codes = [0_u64; 3];
    let mut faults: Vec<(PathBuf, String)> = Vec::new();
    let mut slowest = Duration::ZERO;
    repeat_for(Duration::from_secs(seconds), || {
        let (name, sound) = &seeds[random.usize(..seeds.len())];
        let mut bytes = sound.clone();
        mutate(&mut bytes, &mut random);
        let input = folder.file(&format!("mutated-{name}"), &bytes);
        let options = OPTIONS[random.usize(..OPTIONS.len())];
        let begin = Instant::now();
        let found = if random.bool() {
            fault(&input, &folder.path("out.pftrace"), options)
        } else {
            fault(&input, &folder.path("out.jsonl"), &[])
        };
        slowest = slowest.max(begin.elapsed());
        match found {
            Ok(code) => codes[code as usize] += 1,
            Err(reason) => {
                let kept = env::temp_dir().join(format!("mutated-{}-{name}", faults.len()));
                fs::write(&kept, &bytes).expect("it can be kept");
                faults.push((kept, reason));
            }
        }
    });
    eprintln!(
        "{} inputs in {seconds} s: {} converted, {} with a problem, {} refused; the slowest took {slowest:.1?}",
        codes.iter().sum::<u64>(),
        codes[0],
        codes[1],
        codes[2],
    );
    assert!(faults.is_empty(), "{faults:#?}");
    assert!(codes[0] > 0 && codes[1] > 0, "{codes:?}");
}
