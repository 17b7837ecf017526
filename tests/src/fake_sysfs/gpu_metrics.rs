//! The table `gpu_metrics` of a GPU, encoded according to the declarations of the kernel.
//!
//! A format is the list of its fields in the order of `kgd_pp_interface.h`, each with its size and the number of its values,
//! with C alignment. Format 1.9 is the list of `smu_v13_0_6_ppt.h` in the packed form of `smu_cmn.h`. All bits of an unset
//! field are one. The sizes of the tables of an MI300X are those in SebastianM-C/GPUDiagnostics.jl.

use std::collections::BTreeMap;

/// A field: its name in the kernel, the size of a value in bytes, and the number of values.
type Field = (&'static str, usize, usize);

const TEMPERATURES: &[Field] = &[
    ("temperature_hotspot", 2, 1),
    ("temperature_mem", 2, 1),
    ("temperature_vrsoc", 2, 1),
    ("curr_socket_power", 2, 1),
    ("average_gfx_activity", 2, 1),
    ("average_umc_activity", 2, 1),
];
const VCN: &[Field] = &[("vcn_activity", 2, 4)];
const JPEG: &[Field] = &[("jpeg_activity", 2, 32)];
const BANDWIDTH: &[Field] = &[("mem_max_bandwidth", 8, 1)];
const ENERGY: &[Field] = &[("energy_accumulator", 8, 1), ("system_clock_counter", 8, 1)];
const STATUS: &[Field] = &[("throttle_status", 4, 1)];
const RESIDENCIES: &[Field] = &[
    ("accumulation_counter", 4, 1),
    ("prochot_residency_acc", 4, 1),
    ("ppt_residency_acc", 4, 1),
    ("socket_thm_residency_acc", 4, 1),
    ("vr_thm_residency_acc", 4, 1),
    ("hbm_thm_residency_acc", 4, 1),
];
const LINKS: &[Field] = &[
    ("gfxclk_lock_status", 4, 1),
    ("pcie_link_width", 2, 1),
    ("pcie_link_speed", 2, 1),
    ("xgmi_link_width", 2, 1),
    ("xgmi_link_speed", 2, 1),
    ("gfx_activity_acc", 4, 1),
    ("mem_activity_acc", 4, 1),
    ("pcie_bandwidth_acc", 8, 1),
    ("pcie_bandwidth_inst", 8, 1),
    ("pcie_l0_to_recov_count_acc", 8, 1),
    ("pcie_replay_count_acc", 8, 1),
    ("pcie_replay_rover_count_acc", 8, 1),
];
const NAKS: &[Field] = &[
    ("pcie_nak_sent_count_acc", 4, 1),
    ("pcie_nak_rcvd_count_acc", 4, 1),
];
const XGMI: &[Field] = &[("xgmi_read_data_acc", 8, 8), ("xgmi_write_data_acc", 8, 8)];
const XGMI_STATE: &[Field] = &[("xgmi_link_status", 2, 8), ("padding", 2, 1)];
const CLOCKS: &[Field] = &[
    ("firmware_timestamp", 8, 1),
    ("current_gfxclk", 2, 8),
    ("current_socclk", 2, 4),
    ("current_vclk0", 2, 4),
    ("current_dclk0", 2, 4),
    ("current_uclk", 2, 1),
    ("num_partition or padding", 2, 1),
];
/// The counters of eight partitions, in words: `amdgpu_xcp_metrics`, `_v1_1` and `_v1_2`.
const PARTITIONS_1_6: &[Field] = &[
    ("xcp_stats", 8, 8 * 21),
    ("pcie_lc_perf_other_end_recovery", 4, 1),
];
const PARTITIONS_1_7: &[Field] = &[
    ("xcp_stats", 8, 8 * 29),
    ("pcie_lc_perf_other_end_recovery", 4, 1),
];
const PARTITIONS_1_8: &[Field] = &[
    ("xcp_stats", 8, 8 * 47),
    ("pcie_lc_perf_other_end_recovery", 4, 1),
];

/// Format 1.3, of an MI200.
const V1_3: &[Field] = &[
    ("temperature_*", 2, 6),
    ("average_*_activity", 2, 3),
    ("average_socket_power", 2, 1),
    ("energy_accumulator", 8, 1),
    ("system_clock_counter", 8, 1),
    ("average_*_frequency", 2, 7),
    ("current_*clk*", 2, 7),
    ("throttle_status", 4, 1),
    ("current_fan_speed", 2, 1),
    ("pcie_link_width", 2, 1),
    ("pcie_link_speed", 2, 1),
    ("padding", 2, 1),
    ("gfx_activity_acc", 4, 1),
    ("mem_activity_acc", 4, 1),
    ("temperature_hbm", 2, 4),
    ("firmware_timestamp", 8, 1),
    ("voltage_*", 2, 3),
    ("padding1", 2, 1),
    ("indep_throttle_status", 8, 1),
];

/// The attributes of format 1.9 in the order of the driver: id, type and field. An MI300X with the driver 6.16.13 has these 47,
/// 1,150 bytes in total; later drivers have counters of 64 bits.
const ATTRIBUTES: &[(u64, u64, Field)] = &[
    (0, U16, ("temperature_hotspot", 2, 1)),
    (1, U16, ("temperature_mem", 2, 1)),
    (2, U16, ("temperature_vrsoc", 2, 1)),
    (3, U16, ("curr_socket_power", 2, 1)),
    (4, U16, ("average_gfx_activity", 2, 1)),
    (5, U16, ("average_umc_activity", 2, 1)),
    (6, U64, ("mem_max_bandwidth", 8, 1)),
    (7, U64, ("energy_accumulator", 8, 1)),
    (8, U64, ("system_clock_counter", 8, 1)),
    (9, U32, ("accumulation_counter", 4, 1)),
    (10, U32, ("prochot_residency_acc", 4, 1)),
    (11, U32, ("ppt_residency_acc", 4, 1)),
    (12, U32, ("socket_thm_residency_acc", 4, 1)),
    (13, U32, ("vr_thm_residency_acc", 4, 1)),
    (14, U32, ("hbm_thm_residency_acc", 4, 1)),
    (15, U32, ("gfxclk_lock_status", 4, 1)),
    (16, U16, ("pcie_link_width", 2, 1)),
    (17, U16, ("pcie_link_speed", 2, 1)),
    (18, U16, ("xgmi_link_width", 2, 1)),
    (19, U16, ("xgmi_link_speed", 2, 1)),
    (20, U32, ("gfx_activity_acc", 4, 1)),
    (21, U32, ("mem_activity_acc", 4, 1)),
    (22, U64, ("pcie_bandwidth_acc", 8, 1)),
    (23, U64, ("pcie_bandwidth_inst", 8, 1)),
    (24, U64, ("pcie_l0_to_recov_count_acc", 8, 1)),
    (25, U64, ("pcie_replay_count_acc", 8, 1)),
    (26, U64, ("pcie_replay_rover_count_acc", 8, 1)),
    (27, U32, ("pcie_nak_sent_count_acc", 4, 1)),
    (28, U32, ("pcie_nak_rcvd_count_acc", 4, 1)),
    (29, U64, ("xgmi_read_data_acc", 8, 8)),
    (30, U64, ("xgmi_write_data_acc", 8, 8)),
    (31, U16, ("xgmi_link_status", 2, 8)),
    (32, U64, ("firmware_timestamp", 8, 1)),
    (33, U16, ("current_gfxclk", 2, 8)),
    (34, U16, ("current_socclk", 2, 4)),
    (35, U16, ("current_vclk0", 2, 4)),
    (36, U16, ("current_dclk0", 2, 4)),
    (37, U16, ("current_uclk", 2, 1)),
    (39, U32, ("pcie_lc_perf_other_end_recovery", 4, 1)),
    (40, U32, ("gfx_busy_inst", 4, 8)),
    (41, U16, ("jpeg_busy", 2, 40)),
    (42, U16, ("vcn_busy", 2, 4)),
    (43, U64, ("gfx_busy_acc", 8, 8)),
    (44, U64, ("gfx_below_host_limit_ppt_acc", 8, 8)),
    (45, U64, ("gfx_below_host_limit_thm_acc", 8, 8)),
    (46, U64, ("gfx_low_utilization_acc", 8, 8)),
    (47, U64, ("gfx_below_host_limit_total_acc", 8, 8)),
];
/// `AMDGPU_METRICS_TYPE_*`.
const U16: u64 = 2;
const U32: u64 = 4;
const U64: u64 = 6;

/// A table.
#[derive(Clone, Debug)]
pub struct GpuMetrics {
    /// The minor version of the format.
    revision: u8,
    values: BTreeMap<&'static str, Vec<u64>>,
}

impl GpuMetrics {
    /// Returns a table of format 1.`revision` in which no field is set.
    pub fn empty(revision: u8) -> Self {
        Self {
            revision,
            values: BTreeMap::new(),
        }
    }

    /// Returns the table of an MI300X that is connected to seven others: seven of its links are in use.
    pub fn of_mi300x(revision: u8) -> Self {
        let kilobytes = |first: u64| (0..8).map(move |link| if link < 7 { first + link } else { u64::MAX });
        let mut table = Self::empty(revision)
            .with("pcie_l0_to_recov_count_acc", &[4])
            .with("pcie_replay_count_acc", &[2])
            .with("xgmi_link_width", &[16])
            .with("xgmi_link_speed", &[32])
            .with("xgmi_link_status", &[1, 1, 1, 0, 1, 1, 1, u64::MAX])
            .with("xgmi_read_data_acc", &kilobytes(1000).collect::<Vec<_>>())
            .with("xgmi_write_data_acc", &kilobytes(2000).collect::<Vec<_>>())
            .with("throttle_status", &[0]);
        table.set_cycles(1, 1000, [0; 5]);
        table
    }

    /// Returns the table with a field set.
    pub fn with(mut self, field: &'static str, values: &[u64]) -> Self {
        self.values.insert(field, values.to_vec());
        self
    }

    /// Sets the time since boot, the cycle count of the firmware, and the cycles in which each throttler was active: the signal
    /// "processor hot", the power limit, the socket, the voltage regulators and the memory.
    pub fn set_cycles(&mut self, seconds: u64, cycles: u64, residencies: [u64; 5]) {
        let nanos = seconds * 1_000_000_000;
        self.values.insert("system_clock_counter", vec![nanos]);
        let counters = [cycles].into_iter().chain(residencies);
        for ((field, ..), count) in RESIDENCIES.iter().zip(counters) {
            self.values.insert(field, vec![count]);
        }
    }

    /// Returns the content of the file.
    pub fn bytes(&self) -> Vec<u8> {
        let mut bytes = vec![0, 0, 1, self.revision];
        if self.revision == 9 {
            bytes.extend((ATTRIBUTES.len() as u32).to_le_bytes());
            for (id, kind, field) in ATTRIBUTES {
                bytes.extend((kind << 20 | id << 10 | field.2 as u64).to_le_bytes());
                self.write(*field, &mut bytes);
            }
        } else {
            for field in self.fields().iter().copied().flatten() {
                bytes.resize(bytes.len().next_multiple_of(field.1), 0xff);
                self.write(*field, &mut bytes);
            }
            bytes.resize(bytes.len().next_multiple_of(8), 0xff);
        }
        let size = u16::try_from(bytes.len()).expect("a table is small");
        bytes[..2].copy_from_slice(&size.to_le_bytes());
        bytes
    }

    fn write(&self, (name, size, count): Field, bytes: &mut Vec<u8>) {
        let known = self.values.get(name);
        for index in 0..count {
            let value = known.and_then(|values| values.get(index)).copied();
            bytes.extend(&value.unwrap_or(u64::MAX).to_le_bytes()[..size]);
        }
    }

    /// Returns the fields of the format.
    fn fields(&self) -> &'static [&'static [Field]] {
        match self.revision {
            3 => &[V1_3],
            4 => &[TEMPERATURES, VCN, ENERGY, STATUS, LINKS, XGMI, CLOCKS],
            5 => &[TEMPERATURES, VCN, JPEG, ENERGY, STATUS, LINKS, NAKS, XGMI, CLOCKS],
            6 => &[
                TEMPERATURES,
                ENERGY,
                RESIDENCIES,
                LINKS,
                NAKS,
                XGMI,
                CLOCKS,
                PARTITIONS_1_6,
            ],
            7 => &[
                TEMPERATURES,
                BANDWIDTH,
                ENERGY,
                RESIDENCIES,
                LINKS,
                NAKS,
                XGMI,
                XGMI_STATE,
                CLOCKS,
                PARTITIONS_1_7,
            ],
            8 => &[
                TEMPERATURES,
                BANDWIDTH,
                ENERGY,
                RESIDENCIES,
                LINKS,
                NAKS,
                XGMI,
                XGMI_STATE,
                CLOCKS,
                PARTITIONS_1_8,
            ],
            other => panic!("format 1.{other} is not known"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metrics_tables_have_the_size_of_the_real_formats() {
        for (revision, size) in [(3, 120), (4, 288), (5, 360), (6, 1664), (9, 1150)] {
            let bytes = GpuMetrics::of_mi300x(revision).bytes();
            assert_eq!(bytes.len(), size, "format 1.{revision}");
            assert_eq!(usize::from(u16::from_le_bytes([bytes[0], bytes[1]])), size);
        }
    }
}
