//! The table of field ids: the reading of each field, its type, and the meaning of its scope.
//!
//! The ids are those of NVML's header before driver 580.82, which renumbered 251 to 273.

use nvml_wrapper_sys::bindings::{
    nvmlReturn_enum_NVML_ERROR_INVALID_ARGUMENT as INVALID_ARGUMENT,
    nvmlReturn_enum_NVML_ERROR_NO_PERMISSION as NO_PERMISSION, nvmlReturn_t, nvmlValue_t,
    nvmlValueType_enum_NVML_VALUE_TYPE_DOUBLE as DOUBLE,
    nvmlValueType_enum_NVML_VALUE_TYPE_SIGNED_INT as SIGNED,
    nvmlValueType_enum_NVML_VALUE_TYPE_UNSIGNED_INT as UNSIGNED,
    nvmlValueType_enum_NVML_VALUE_TYPE_UNSIGNED_LONG_LONG as LONG, nvmlValueType_t,
};

use crate::call::CallTarget;

/// The meaning of a field's scope.
#[derive(Clone, Copy)]
enum Scope {
    /// No scope.
    Whole,
    /// The index of an NVLink; the sum over all links if it is the largest number.
    Link,
    /// The index of an NVLink that is part of the field id.
    Fixed(u32),
    /// The sum over all NVLinks.
    AllLinks,
    /// The index of a chip-to-chip link.
    C2c,
    /// The index of a PCI Express lane.
    Lane,
    /// The measured part: the GPU, its module or its memory.
    Power,
    /// The index of a preset profile of power smoothing.
    Profile,
}

struct Field {
    id: u32,
    kind: nvmlValueType_t,
    scope: Scope,
    reading: &'static str,
}

const fn field(id: u32, kind: nvmlValueType_t, scope: Scope, reading: &'static str) -> Field {
    Field {
        id,
        kind,
        scope,
        reading,
    }
}

use Scope::{AllLinks, C2c, Fixed, Lane, Link, Power, Profile, Whole};

/// The fields with a single id; [`per_link`] has the fields with one id per link.
const FIELDS: &[Field] = &[
    field(1, UNSIGNED, Whole, "mode.ecc"),
    field(2, UNSIGNED, Whole, "mode.ecc_pending"),
    field(3, LONG, Whole, "ecc.corrected.volatile"),
    field(4, LONG, Whole, "ecc.uncorrected.volatile"),
    field(5, LONG, Whole, "ecc.corrected.aggregate"),
    field(6, LONG, Whole, "ecc.uncorrected.aggregate"),
    field(7, LONG, Whole, "ecc.corrected.volatile.l1_cache"),
    field(8, LONG, Whole, "ecc.uncorrected.volatile.l1_cache"),
    field(9, LONG, Whole, "ecc.corrected.volatile.l2_cache"),
    field(10, LONG, Whole, "ecc.uncorrected.volatile.l2_cache"),
    field(11, LONG, Whole, "ecc.corrected.volatile.dram"),
    field(12, LONG, Whole, "ecc.uncorrected.volatile.dram"),
    field(13, LONG, Whole, "ecc.corrected.volatile.register_file"),
    field(14, LONG, Whole, "ecc.uncorrected.volatile.register_file"),
    field(15, LONG, Whole, "ecc.corrected.volatile.texture"),
    field(16, LONG, Whole, "ecc.uncorrected.volatile.texture"),
    field(17, LONG, Whole, "ecc.uncorrected.volatile.cbu"),
    field(18, LONG, Whole, "ecc.corrected.aggregate.l1_cache"),
    field(19, LONG, Whole, "ecc.uncorrected.aggregate.l1_cache"),
    field(20, LONG, Whole, "ecc.corrected.aggregate.l2_cache"),
    field(21, LONG, Whole, "ecc.uncorrected.aggregate.l2_cache"),
    field(22, LONG, Whole, "ecc.corrected.aggregate.dram"),
    field(23, LONG, Whole, "ecc.uncorrected.aggregate.dram"),
    field(24, LONG, Whole, "ecc.corrected.aggregate.register_file"),
    field(25, LONG, Whole, "ecc.uncorrected.aggregate.register_file"),
    field(26, LONG, Whole, "ecc.corrected.aggregate.texture"),
    field(27, LONG, Whole, "ecc.uncorrected.aggregate.texture"),
    field(28, LONG, Whole, "ecc.uncorrected.aggregate.cbu"),
    field(29, LONG, Whole, "retired_pages.corrected"),
    field(30, LONG, Whole, "retired_pages.uncorrected"),
    field(31, UNSIGNED, Whole, "retired_pages.pending"),
    field(38, LONG, AllLinks, "crc_flit_errors"),
    field(45, LONG, AllLinks, "crc_data_errors"),
    field(52, LONG, AllLinks, "replays"),
    field(59, LONG, AllLinks, "recoveries"),
    field(74, LONG, Whole, "throttle.power_ns"),
    field(75, LONG, Whole, "throttle.thermal_ns"),
    field(76, LONG, Whole, "throttle.sync_boost_ns"),
    field(77, LONG, Whole, "throttle.board_limit_ns"),
    field(78, LONG, Whole, "throttle.low_utilization_ns"),
    field(79, LONG, Whole, "throttle.reliability_ns"),
    field(80, LONG, Whole, "throttle.app_clocks_ns"),
    field(81, LONG, Whole, "throttle.base_clocks_ns"),
    field(82, UNSIGNED, Whole, "temperature.memory_c"),
    field(83, LONG, Whole, "energy_mj"),
    field(90, UNSIGNED, Whole, "nvlink.speed_mbps"),
    field(91, UNSIGNED, Whole, "nvlink.count"),
    field(92, UNSIGNED, Whole, "retired_pages.pending_corrected"),
    field(93, UNSIGNED, Whole, "retired_pages.pending_uncorrected"),
    field(94, UNSIGNED, Whole, "pcie.replays"),
    field(95, UNSIGNED, Whole, "pcie.replay_rollovers"),
    field(138, LONG, Link, "tx_kib"),
    field(139, LONG, Link, "rx_kib"),
    field(140, LONG, Link, "raw_tx_kib"),
    field(141, LONG, Link, "raw_rx_kib"),
    field(142, UNSIGNED, Whole, "remapped_rows.corrected"),
    field(143, UNSIGNED, Whole, "remapped_rows.uncorrected"),
    field(144, UNSIGNED, Whole, "remapped_rows.pending"),
    field(145, UNSIGNED, Whole, "remapped_rows.failure"),
    field(146, UNSIGNED, Link, "remote_link"),
    field(147, UNSIGNED, Whole, "nvlink.switch_links"),
    field(160, LONG, AllLinks, "ecc_data_errors"),
    field(161, LONG, Link, "replays"),
    field(162, LONG, Link, "recoveries"),
    field(163, LONG, Link, "crc_errors"),
    field(164, UNSIGNED, Link, "speed_mbps"),
    field(165, UNSIGNED, Link, "state"),
    field(166, UNSIGNED, Link, "version"),
    field(167, UNSIGNED, Link, "power_state"),
    field(168, UNSIGNED, Link, "power_threshold"),
    field(169, UNSIGNED, Whole, "pcie.recoveries"),
    field(170, UNSIGNED, Whole, "c2c.count"),
    field(171, UNSIGNED, C2c, "status"),
    field(172, UNSIGNED, C2c, "bandwidth_max_mbps"),
    field(173, UNSIGNED, Whole, "pcie.errors.correctable"),
    field(174, UNSIGNED, Whole, "pcie.errors.naks_received"),
    field(175, UNSIGNED, Whole, "pcie.errors.receiver"),
    field(176, UNSIGNED, Whole, "pcie.errors.bad_tlp"),
    field(177, UNSIGNED, Whole, "pcie.errors.naks_sent"),
    field(178, UNSIGNED, Whole, "pcie.errors.bad_dllp"),
    field(179, UNSIGNED, Whole, "pcie.errors.non_fatal"),
    field(180, UNSIGNED, Whole, "pcie.errors.fatal"),
    field(181, UNSIGNED, Whole, "pcie.errors.unsupported_request"),
    field(182, UNSIGNED, Whole, "pcie.errors.lcrc"),
    field(183, UNSIGNED, Lane, "errors"),
    field(184, UNSIGNED, Whole, "mig.resetless"),
    field(185, UNSIGNED, Power, "average_mw"),
    field(186, UNSIGNED, Power, "instant_mw"),
    field(187, UNSIGNED, Power, "limit.min_mw"),
    field(188, UNSIGNED, Power, "limit.max_mw"),
    field(189, UNSIGNED, Power, "limit.default_mw"),
    field(190, UNSIGNED, Power, "limit.enforced_mw"),
    field(191, LONG, Power, "energy_mj"),
    field(192, UNSIGNED, Power, "limit.requested_mw"),
    field(193, SIGNED, Whole, "temperature.limit.shutdown_c"),
    field(194, SIGNED, Whole, "temperature.limit.slowdown_c"),
    field(195, SIGNED, Whole, "temperature.limit.memory_max_c"),
    field(196, SIGNED, Whole, "temperature.limit.gpu_max_c"),
    // "Value can be wrapped" (nvml.h): 32 bits, however fast the link is.
    field(197, UNSIGNED, Whole, "pcie.tx_bytes"),
    field(198, UNSIGNED, Whole, "pcie.rx_bytes"),
    field(199, UNSIGNED, Whole, "mig.independent_query"),
    field(201, LONG, Link, "tx_packets"),
    field(202, LONG, Link, "tx_bytes"),
    field(203, LONG, Link, "rx_packets"),
    field(204, LONG, Link, "rx_bytes"),
    field(205, LONG, Link, "vl15_dropped"),
    field(206, LONG, Link, "malformed_packets"),
    field(207, LONG, Link, "buffer_overruns"),
    field(208, LONG, Link, "rx_errors"),
    field(209, LONG, Link, "rx_remote_errors"),
    field(210, LONG, Link, "rx_general_errors"),
    field(211, LONG, Link, "integrity_errors"),
    field(212, LONG, Link, "tx_discards"),
    field(213, LONG, Link, "recoveries_successful"),
    field(214, LONG, Link, "recoveries_failed"),
    field(215, LONG, Link, "recovery_events"),
    field(216, LONG, Link, "raw_ber_lane0"),
    field(217, LONG, Link, "raw_ber_lane1"),
    field(218, LONG, Link, "raw_ber"),
    field(219, LONG, Link, "effective_errors"),
    field(220, LONG, Link, "effective_ber"),
    field(221, LONG, Link, "symbol_errors"),
    field(222, LONG, Link, "symbol_ber"),
    field(226, UNSIGNED, Whole, "reset_status"),
    field(227, UNSIGNED, Whole, "drain_and_reset_status"),
    field(230, UNSIGNED, Whole, "recovery_action"),
    field(231, UNSIGNED, C2c, "error_interrupts"),
    field(232, UNSIGNED, C2c, "replays"),
    field(233, UNSIGNED, C2c, "replays_back_to_back"),
    field(234, UNSIGNED, C2c, "power_state"),
    field(235, LONG, Link, "fec.0"),
    field(236, LONG, Link, "fec.1"),
    field(237, LONG, Link, "fec.2"),
    field(238, LONG, Link, "fec.3"),
    field(239, LONG, Link, "fec.4"),
    field(240, LONG, Link, "fec.5"),
    field(241, LONG, Link, "fec.6"),
    field(242, LONG, Link, "fec.7"),
    field(243, LONG, Link, "fec.8"),
    field(244, LONG, Link, "fec.9"),
    field(245, LONG, Link, "fec.10"),
    field(246, LONG, Link, "fec.11"),
    field(247, LONG, Link, "fec.12"),
    field(248, LONG, Link, "fec.13"),
    field(249, LONG, Link, "fec.14"),
    field(250, LONG, Link, "fec.15"),
    field(251, LONG, Whole, "throttle.sw_thermal_ns"),
    field(252, LONG, Whole, "throttle.hw_thermal_ns"),
    field(253, LONG, Whole, "throttle.hw_power_brake_ns"),
    field(254, UNSIGNED, Whole, "power_sync.frequency"),
    field(255, DOUBLE, Whole, "power_sync.activity"),
    field(256, UNSIGNED, Whole, "power_smoothing.enabled"),
    field(257, UNSIGNED, Whole, "power_smoothing.privilege"),
    field(258, UNSIGNED, Whole, "power_smoothing.immediate_ramp_down"),
    field(259, UNSIGNED, Whole, "power_smoothing.ceiling_w"),
    field(260, UNSIGNED, Whole, "power_smoothing.floor_w"),
    field(261, UNSIGNED, Whole, "power_smoothing.floor_max_percent"),
    field(262, UNSIGNED, Whole, "power_smoothing.floor_min_percent"),
    field(263, UNSIGNED, Whole, "power_smoothing.lifetime_percent"),
    field(264, UNSIGNED, Whole, "power_smoothing.profiles"),
    field(265, UNSIGNED, Profile, "floor_percent"),
    field(266, UNSIGNED, Profile, "ramp_up_mw_per_second"),
    field(267, UNSIGNED, Profile, "ramp_down_mw_per_second"),
    field(268, UNSIGNED, Profile, "ramp_down_hysteresis_ms"),
    field(269, UNSIGNED, Whole, "power_smoothing.active_profile"),
    field(270, UNSIGNED, Whole, "power_smoothing.admin.floor_percent"),
    field(
        271,
        UNSIGNED,
        Whole,
        "power_smoothing.admin.ramp_up_mw_per_second",
    ),
    field(
        272,
        UNSIGNED,
        Whole,
        "power_smoothing.admin.ramp_down_mw_per_second",
    ),
    field(
        273,
        UNSIGNED,
        Whole,
        "power_smoothing.admin.ramp_down_hysteresis_ms",
    ),
    field(274, UNSIGNED, Whole, "power.edpp_percent"),
    field(275, UNSIGNED, Whole, "power_smoothing.primary_floor_w"),
    field(276, UNSIGNED, Whole, "power_smoothing.secondary_floor_w"),
    field(277, UNSIGNED, Whole, "power_smoothing.min_activation_offset_w"),
    field(278, UNSIGNED, Whole, "power_smoothing.min_activation_point_w"),
    field(279, UNSIGNED, Whole, "power_smoothing.window_ms"),
    field(280, UNSIGNED, Whole, "power_smoothing.delayed"),
    field(281, UNSIGNED, Profile, "secondary_floor_w"),
    field(282, UNSIGNED, Profile, "activation_windows"),
    field(283, UNSIGNED, Profile, "target_windows"),
    field(284, UNSIGNED, Profile, "activation_offset_w"),
    field(285, UNSIGNED, Whole, "power_smoothing.admin.secondary_floor_w"),
    field(286, UNSIGNED, Whole, "power_smoothing.admin.activation_windows"),
    field(287, UNSIGNED, Whole, "power_smoothing.admin.target_windows"),
    field(288, UNSIGNED, Whole, "power_smoothing.admin.activation_offset_w"),
    field(301, UNSIGNED, Whole, "remapped_rows.inactive_corrected"),
    field(302, UNSIGNED, Whole, "remapped_rows.inactive_uncorrected"),
];

/// Fields that have an id for each of the links 0 to 5 and, in another range, 6 to 11: the two first ids and the reading.
const PER_LINK: [(u32, u32, nvmlValueType_t, &str); 6] = [
    (32, 96, LONG, "crc_flit_errors"),
    (39, 102, LONG, "crc_data_errors"),
    (46, 108, LONG, "replays"),
    (53, 114, LONG, "recoveries"),
    (84, 132, UNSIGNED, "speed_mbps"),
    (148, 154, LONG, "ecc_data_errors"),
];

/// Returns the value of a field, with its type.
pub(super) fn read(
    target: &CallTarget,
    id: u32,
    scope: u32,
) -> Result<(nvmlValueType_t, nvmlValue_t), nvmlReturn_t> {
    let field = find(id).ok_or(INVALID_ARGUMENT)?;
    if is_power_smoothing(&field) && target.read("power_smoothing.restricted").is_ok() {
        return Err(NO_PERMISSION);
    }
    let number = match field.scope {
        Whole => target.read(field.reading)?,
        Link if scope == u32::MAX && target.read("nvlink.no_sums").is_ok() => return Err(INVALID_ARGUMENT),
        Link if scope == u32::MAX => all_links(target, field.reading)?,
        Link => link(target, scope, field.reading)?,
        Fixed(number) => link(target, number, field.reading)?,
        AllLinks => all_links(target, field.reading)?,
        C2c => target.read_part("c2c", scope, field.reading)?,
        Lane if f64::from(scope) >= target.read("pcie.width")? => return Err(INVALID_ARGUMENT),
        Lane => target.read_part("pcie.lane", scope, field.reading)?,
        Power => target.read(&power_name(scope, field.reading)?)?,
        Profile if f64::from(scope) >= target.read("power_smoothing.profiles")? => {
            return Err(INVALID_ARGUMENT);
        }
        Profile => target.read_part("power_smoothing.profile", scope, field.reading)?,
    };
    Ok((field.kind, value(field.kind, number)))
}

/// Returns whether only privileged users can read a field.
fn is_power_smoothing(field: &Field) -> bool {
    matches!(field.scope, Profile) || field.reading.starts_with("power_smoothing.")
}

/// Maps the id in the header of a driver to the id before driver 580.82.
pub(super) fn id_before_580_82(driver: &str, id: u32) -> u32 {
    let mut parts = driver
        .split('.')
        .map(|part| part.parse::<u32>().unwrap_or_default());
    let version = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
    match id {
        251..=268 if version >= (580, 82) => id + 5,
        269..=273 if version >= (580, 82) => id - 18,
        _ => id,
    }
}

/// Returns a number as one of NVML's types.
pub(super) fn value(kind: nvmlValueType_t, number: f64) -> nvmlValue_t {
    // The other bytes of the union are zero, so that a reader of the wrong member gets a deterministic value.
    let mut value = nvmlValue_t { ullVal: 0 };
    match kind {
        DOUBLE => value.dVal = number,
        SIGNED => value.siVal = number as i32,
        // Counts beyond 32 bits wrap.
        UNSIGNED => value.uiVal = number as u64 as u32,
        _ => value.ullVal = number as u64,
    }
    value
}

fn find(id: u32) -> Option<Field> {
    if let Some(known) = FIELDS.iter().find(|field| field.id == id) {
        return Some(Field { ..*known });
    }
    PER_LINK.iter().find_map(|(first, sixth, kind, reading)| {
        let link = match id {
            _ if (*first..first + 6).contains(&id) => id - first,
            _ if (*sixth..sixth + 6).contains(&id) => id - sixth + 6,
            _ => return None,
        };
        Some(field(id, *kind, Fixed(link), reading))
    })
}

fn link(target: &CallTarget, link: u32, reading: &str) -> Result<f64, nvmlReturn_t> {
    if f64::from(link) >= target.read("nvlink.count")? {
        return Err(INVALID_ARGUMENT);
    }
    target.read_part("nvlink", link, reading)
}

fn all_links(target: &CallTarget, reading: &str) -> Result<f64, nvmlReturn_t> {
    let links = 0..target.read("nvlink.count")? as u32;
    links.map(|number| link(target, number, reading)).sum()
}

fn power_name(scope: u32, reading: &str) -> Result<String, nvmlReturn_t> {
    match (scope, reading) {
        (0, "energy_mj") => Ok(reading.to_owned()),
        (0, _) => Ok(format!("power.{reading}")),
        (1, _) => Ok(format!("power.module.{reading}")),
        (2, _) => Ok(format!("power.memory.{reading}")),
        _ => Err(INVALID_ARGUMENT),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn newer_driver_uses_renumbered_field_ids() {
        assert_eq!(id_before_580_82("570.86.15", 251), 251);
        assert_eq!(id_before_580_82("580.65.06", 251), 251);
        let later: Vec<_> = (250..=274).map(|id| id_before_580_82("580.82.07", id)).collect();
        let expected: Vec<_> = [250]
            .into_iter()
            .chain(256..=273)
            .chain(251..=255)
            .chain([274])
            .collect();
        assert_eq!(later, expected);
    }

    #[test]
    fn field_ids_are_unique_across_readings() {
        let mut ids: Vec<_> = FIELDS.iter().map(|field| field.id).collect();
        for (first, sixth, ..) in PER_LINK {
            ids.extend((first..first + 6).chain(sixth..sixth + 6));
        }
        let all = ids.len();
        ids.sort_unstable();
        ids.dedup();
        assert_eq!(ids.len(), all);
    }
}
