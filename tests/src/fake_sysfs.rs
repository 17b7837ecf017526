//! The files of AMD GPUs in `/sys`.
//!
//! Names, units and formats are those of the kernel (`Documentation/gpu/amdgpu/thermal.rst`, `driver-misc.rst`, `ras.rst`,
//! `amdgpu_ras.c`, `kfd_topology.c`, `kfd_process.c`); `gpu_metrics` has the declarations of its tables. The files that an
//! MI300X and an MI250X have and lack follow from the attributes that `amdgpu_pm.c` hides for their chips (GC 9.4.3 and 9.4.2):
//! an MI300X has no `edge` temperature, no average power, no fan and no `pcie_replay_count`. Identifiers and sizes are those of
//! public reports about such nodes.

mod gpu_metrics;

use std::{
    fs,
    path::{Path, PathBuf},
};

pub use self::gpu_metrics::GpuMetrics;
use crate::Folder;

/// One joule in units of the energy counter, which are 2^-16 J.
const PER_JOULE: f64 = 65536.0;

/// A machine with AMD GPUs.
#[derive(Debug, Default)]
pub struct FakeSysfs(Folder);

/// A model of GPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AmdModel {
    /// `gpu_metrics` 1.5, as in its first drivers; [`FakeSysfs::set_metrics`] sets the tables of later drivers.
    Mi300x,
    /// `gpu_metrics` 1.3.
    Mi250x,
}

impl FakeSysfs {
    /// Creates a machine with `gpus` GPUs of a model.
    pub fn with(model: AmdModel, gpus: u32) -> Self {
        let machine = Self::default();
        // A card of another vendor, a display output and a CPU are not AMD GPUs.
        machine.write("class/drm/card0/device/vendor", "0x1a03\n");
        machine.write("class/drm/card0-VGA-1/status", "disconnected\n");
        machine.write("class/kfd/kfd/topology/nodes/0/gpu_id", "0\n");
        machine.write(
            "class/kfd/kfd/topology/nodes/0/properties",
            "cpu_cores_count 96\nsimd_count 0\n",
        );
        fs::create_dir_all(machine.root().join("class/kfd/kfd/proc")).expect("a folder can be made");
        machine.write("module/amdgpu/version", "6.10.5\n");
        for gpu in 0..gpus {
            machine.add(model, gpu);
        }
        machine
    }

    /// Returns the folder that replaces `/sys`.
    pub fn root(&self) -> &Path {
        self.0.root()
    }

    /// Returns the path of a file of a GPU.
    pub fn file(&self, gpu: u32, name: &str) -> PathBuf {
        self.root().join(device(gpu)).join(name)
    }

    /// Replaces a file of a GPU.
    pub fn set(&self, gpu: u32, name: &str, text: &str) {
        self.write(&format!("{}/{name}", device(gpu)), text);
    }

    /// Sets the power of a GPU and its energy counter, in joules.
    pub fn set_energy(&self, model: AmdModel, gpu: u32, watts: f64, joules: f64) {
        self.set_counted(model, gpu, model.metrics(), watts, joules);
    }

    /// Sets the power of a GPU and its table with the energy counter, in joules.
    pub fn set_counted(&self, model: AmdModel, gpu: u32, table: GpuMetrics, watts: f64, joules: f64) {
        self.set(
            gpu,
            &format!("hwmon/hwmon{gpu}/{}", model.power_file()),
            &format!("{:.0}\n", watts * 1e6),
        );
        let counter = (joules * PER_JOULE) as u64;
        self.set_metrics(gpu, &table.with("energy_accumulator", &[counter]));
    }

    /// Sets the table of a GPU.
    pub fn set_metrics(&self, gpu: u32, table: &GpuMetrics) {
        replace(&self.file(gpu, "gpu_metrics"), &table.bytes());
    }

    /// Sets the reasons that throttle an MI250X: the bits of `indep_throttle_status`.
    pub fn set_throttle_status(&self, gpu: u32, bits: u64) {
        let table = AmdModel::Mi250x.metrics().with("indep_throttle_status", &[bits]);
        self.set_metrics(gpu, &table);
    }

    /// Adds a process with memory on a GPU.
    pub fn set_process(&self, gpu: u32, pid: u32, bytes: u64) {
        self.write(
            &format!("class/kfd/kfd/proc/{pid}/vram_{}", gpu_id(gpu)),
            &format!("{bytes}\n"),
        );
    }

    /// Removes a GPU.
    pub fn remove(&self, gpu: u32) {
        fs::remove_dir_all(self.root().join(format!("class/drm/card{}", gpu + 1))).expect("it is there");
    }

    /// Adds a GPU.
    pub fn add(&self, model: AmdModel, gpu: u32) {
        let set = |name: &str, text: &str| self.set(gpu, name, text);
        let address = format!("0000:{:02x}:00.0", bus(gpu));
        set(
            "uevent",
            &format!("DRIVER=amdgpu\nPCI_CLASS=120000\nPCI_SLOT_NAME={address}\n"),
        );
        set(
            "unique_id",
            &format!("{:016x}\n", 0x21b6_d616_38a8_6f8c + u64::from(gpu)),
        );
        set("serial_number", &format!("69224600{gpu:04}\n"));
        set("current_link_width", "16\n");
        set("max_link_width", "16\n");
        set("ras/umc_err_count", "ue: 0\nce: 3\n");
        set("ras/gfx_err_count", "ue: 1\nce: 4\n");
        set("ras/features", "feature mask: 0x3fff\n");
        set("mem_info_vram_used", "297512960\n");
        set("gpu_busy_percent", "37\n");
        let sensor = |name: &str, text: &str| set(&format!("hwmon/hwmon{gpu}/{name}"), text);
        sensor("name", "amdgpu\n");
        sensor("temp2_label", "junction\n");
        sensor("temp3_label", "mem\n");
        sensor("temp2_input", "62000\n");
        sensor("temp3_input", "51000\n");
        sensor(model.power_file(), "143000000\n");
        match model {
            AmdModel::Mi300x => {
                set("device", "0x74a1\n");
                set("product_name", "AMD Instinct MI300X OAM\n");
                set("current_compute_partition", "SPX\n");
                set("current_memory_partition", "NPS1\n");
                set("vbios_version", "113-M3000100-102\n");
                set("mem_info_vram_total", "206141652992\n");
                set("mem_busy_percent", "12\n");
                set("current_link_speed", "32.0 GT/s PCIe\n");
                set("max_link_speed", "32.0 GT/s PCIe\n");
                set("pp_dpm_sclk", "0: 132Mhz *\n1: 2100Mhz\n");
                set("pp_dpm_mclk", "0: 900Mhz *\n1: 1100Mhz\n2: 1200Mhz\n3: 1300Mhz\n");
                sensor("power1_cap", "750000000\n");
                sensor("power1_cap_default", "750000000\n");
                sensor("temp2_emergency", "110000\n");
                sensor("freq1_input", "132000000\n");
                sensor("freq2_input", "900000000\n");
            }
            AmdModel::Mi250x => {
                set("device", "0x7408\n");
                set("vbios_version", "113-D65201-045\n");
                set("mem_info_vram_total", "68702699520\n");
                set("mem_busy_percent", "0\n");
                set("current_link_speed", "16.0 GT/s PCIe\n");
                set("max_link_speed", "16.0 GT/s PCIe\n");
                set("pcie_replay_count", "0\n");
                set("pp_dpm_sclk", "0: 500Mhz\n1: 800Mhz *\n2: 1700Mhz\n");
                set("pp_dpm_mclk", "0: 400Mhz\n1: 700Mhz\n2: 1200Mhz\n3: 1600Mhz *\n");
                sensor("power1_cap", "560000000\n");
                sensor("temp1_label", "edge\n");
                sensor("temp1_input", "47000\n");
                sensor("freq1_input", "800000000\n");
                sensor("freq2_input", "1600000000\n");
            }
        }
        self.set_energy(model, gpu, 143.0, 0.0);
        let node = format!("class/kfd/kfd/topology/nodes/{}", gpu + 1);
        self.write(&format!("{node}/gpu_id"), &format!("{}\n", gpu_id(gpu)));
        let version = model.target_version();
        let properties = format!(
            "simd_count 1216\ngfx_target_version {version}\nlocation_id {}\ndomain 0\n",
            bus(gpu) << 8
        );
        self.write(&format!("{node}/properties"), &properties);
        // Written last, so that a card is complete when it is found.
        set("vendor", "0x1002\n");
    }

    fn write(&self, name: &str, text: &str) {
        let path = self.root().join(name);
        let folder = path.parent().expect("a file is in a folder");
        fs::create_dir_all(folder).expect("a folder can be made");
        fs::write(path, text).expect("a file can be written");
    }
}

impl AmdModel {
    fn power_file(self) -> &'static str {
        match self {
            Self::Mi300x => "power1_input",
            Self::Mi250x => "power1_average",
        }
    }

    fn target_version(self) -> u32 {
        match self {
            Self::Mi300x => 90402,
            Self::Mi250x => 90010,
        }
    }

    /// Returns the table of an idle GPU of this model.
    fn metrics(self) -> GpuMetrics {
        match self {
            Self::Mi300x => GpuMetrics::of_mi300x(5),
            Self::Mi250x => GpuMetrics::empty(3)
                .with("indep_throttle_status", &[0])
                .with("energy_accumulator", &[0]),
        }
    }
}

/// Replaces a file atomically.
fn replace(path: &Path, content: &[u8]) {
    let new = path.with_extension("new");
    fs::write(&new, content).expect("a file can be written");
    fs::rename(new, path).expect("a file can be replaced");
}

fn device(gpu: u32) -> String {
    format!("class/drm/card{}/device", gpu + 1)
}

fn bus(gpu: u32) -> u32 {
    0x0c + 0x10 * gpu
}

fn gpu_id(gpu: u32) -> u32 {
    28_851 + gpu
}
