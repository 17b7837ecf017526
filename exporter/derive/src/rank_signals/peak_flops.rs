//! The peak performance of GPUs: dense operations a second by number format, without sparsity.
//!
//! Sources: NVIDIA's data sheets (A100 2022, H100 2023, H200 2023, HGX B200 2024, L40S, L40, L4, A40, A30,
//! A10, RTX A6000, RTX 6000 Ada, V100, T4) and architecture whitepapers (Ada, Ampere GA102, Blackwell). A
//! data sheet that gives "with sparsity" has twice these figures: H200 is 989, not 1979. GeForce figures are
//! those with FP32 accumulation, as training uses it. torchtitan's `utils.get_peak_flops` has the same bf16
//! figures for data centre GPUs.

/// The number formats, with the values of `gpu.precision`.
pub(super) const PRECISIONS: [&str; 5] = ["tf32", "bf16", "fp16", "fp8", "fp4"];

/// Peak operations a second, in the order of [`PRECISIONS`].
pub(super) type Peaks = [Option<f64>; PRECISIONS.len()];

/// Words of a GPU's name in their order, and its peaks in TFLOP/s: TF32, BF16, FP16, FP8, FP4; 0 for an
/// unsupported format. The first row whose words all occur matches.
const TABLE: &[(&[&str], [f64; PRECISIONS.len()])] = &[
    (&["h100", "pcie"], [378.0, 756.0, 756.0, 1513.0, 0.0]),
    (&["h100", "nvl"], [417.5, 835.5, 835.5, 1671.0, 0.0]),
    (&["h100"], [494.7, 989.4, 989.4, 1978.9, 0.0]),
    (&["h800"], [494.7, 989.4, 989.4, 1978.9, 0.0]),
    (&["h200", "nvl"], [417.5, 835.5, 835.5, 1671.0, 0.0]),
    (&["gh200"], [494.7, 989.4, 989.4, 1978.9, 0.0]),
    (&["h200"], [494.7, 989.4, 989.4, 1978.9, 0.0]),
    (&["h20"], [74.0, 148.0, 148.0, 296.0, 0.0]),
    (&["gb200"], [1250.0, 2500.0, 2500.0, 5000.0, 10_000.0]),
    (&["b200"], [1125.0, 2250.0, 2250.0, 4500.0, 9000.0]),
    (&["a100"], [156.0, 312.0, 312.0, 0.0, 0.0]),
    (&["a800"], [156.0, 312.0, 312.0, 0.0, 0.0]),
    (&["a40"], [74.8, 149.7, 149.7, 0.0, 0.0]),
    (&["a30"], [82.0, 165.0, 165.0, 0.0, 0.0]),
    (&["a10"], [62.5, 125.0, 125.0, 0.0, 0.0]),
    (&["l40s"], [183.0, 362.05, 362.05, 733.0, 0.0]),
    (&["l40"], [90.5, 181.05, 181.05, 362.0, 0.0]),
    (&["l4"], [60.0, 121.0, 121.0, 242.0, 0.0]),
    (&["v100"], [0.0, 0.0, 125.0, 0.0, 0.0]),
    (&["t4"], [0.0, 0.0, 65.0, 0.0, 0.0]),
    (
        &["rtx", "pro", "6000", "blackwell"],
        [251.9, 503.8, 503.8, 1007.6, 2015.2],
    ),
    (&["rtx", "6000", "ada"], [182.1, 364.2, 364.2, 728.5, 0.0]),
    (&["rtx", "a6000"], [77.4, 154.8, 154.8, 0.0, 0.0]),
    (&["rtx", "5090"], [104.8, 209.5, 209.5, 419.0, 1676.0]),
    (&["rtx", "4090"], [82.6, 165.2, 165.2, 330.3, 0.0]),
    (&["rtx", "3090", "ti"], [40.0, 80.0, 80.0, 0.0, 0.0]),
    (&["rtx", "3090"], [35.6, 71.0, 71.0, 0.0, 0.0]),
];

/// Words in the name of another product: slower, or a part of the GPU.
const OTHER_PRODUCTS: [&str; 5] = ["laptop", "mobile", "mig", "d", "max"];

/// Returns the peaks of a GPU by its NVML name, or `None` if it is not in the table.
pub(super) fn find(name: &str) -> Option<Peaks> {
    let name = name.to_ascii_lowercase();
    let words: Vec<&str> = name.split(|c: char| !c.is_ascii_alphanumeric()).collect();
    if OTHER_PRODUCTS.iter().any(|other| words.contains(other)) {
        return None;
    }
    let (_, peaks) = TABLE
        .iter()
        .find(|(wanted, _)| wanted.iter().all(|word| words.contains(word)))?;
    Some(peaks.map(|teraflops| (teraflops > 0.0).then_some(teraflops * 1e12)))
}

/// Returns the index of a number format.
pub(super) fn place_of(precision: &str) -> Option<usize> {
    PRECISIONS.iter().position(|known| *known == precision)
}

/// Returns the peak for MFU: that of bf16, else of fp16, else of the first known format.
pub(super) fn of_training(peaks: &Peaks) -> Option<f64> {
    [1, 2, 0, 3, 4].into_iter().find_map(|place| peaks[place])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn peak_flops_are_found_by_nvml_name() {
        for (name, bf16) in [
            ("NVIDIA H100 80GB HBM3", Some(989.4e12)),
            ("NVIDIA H100 PCIe", Some(756e12)),
            ("NVIDIA H100 NVL", Some(835.5e12)),
            ("NVIDIA H200", Some(989.4e12)),
            ("NVIDIA GH200 480GB", Some(989.4e12)),
            ("NVIDIA A100-SXM4-80GB", Some(312e12)),
            ("NVIDIA B200", Some(2250e12)),
            ("NVIDIA L40S", Some(362.05e12)),
            ("NVIDIA GeForce RTX 4090", Some(165.2e12)),
            ("NVIDIA GeForce RTX 4090 D", None),
            ("NVIDIA GeForce RTX 4090 Laptop GPU", None),
            ("NVIDIA H100 80GB HBM3 MIG 1g.10gb", None),
            ("Radeon", None),
        ] {
            assert_eq!(find(name).and_then(|peaks| peaks[1]), bf16, "{name}");
        }
        assert_eq!(of_training(&find("Tesla V100-SXM2-32GB").unwrap()), Some(125e12));
    }
}
