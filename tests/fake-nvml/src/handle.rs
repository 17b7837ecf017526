//! Device handles: opaque pointers with an index and the generation of the driver; they are never dereferenced.
//!
//! A handle from before a reload of the driver is invalid after it, as with the real library.

use nvml_wrapper_sys::bindings::nvmlDevice_t;

/// The target of a handle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Handle {
    /// The connection to the driver that returned the handle; never zero, so that no handle is null.
    pub(crate) generation: u32,
    /// The GPU, by its index in the scenario.
    pub(crate) gpu: u16,
    /// The MIG instance, by its index among those of the GPU.
    pub(crate) mig: Option<u16>,
}

impl Handle {
    /// Returns the handle as NVML's pointer type.
    pub(crate) fn to_device(self) -> nvmlDevice_t {
        let mig = self.mig.map_or(0, |mig| usize::from(mig) + 1);
        let bits = (self.generation as usize) << 32 | usize::from(self.gpu) << 16 | mig;
        std::ptr::without_provenance_mut(bits)
    }

    /// Returns the target of a device pointer, if there is one.
    pub(crate) fn from_device(device: nvmlDevice_t) -> Option<Self> {
        let bits = device.addr();
        let generation = (bits >> 32) as u32;
        let mig = (bits & 0xffff) as u16;
        (generation != 0).then_some(Self {
            generation,
            gpu: (bits >> 16 & 0xffff) as u16,
            mig: mig.checked_sub(1),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn handle_round_trips_through_a_device_pointer() {
        for handle in [
            Handle {
                generation: 1,
                gpu: 0,
                mig: None,
            },
            Handle {
                generation: 7,
                gpu: 15,
                mig: Some(6),
            },
        ] {
            assert_eq!(Handle::from_device(handle.to_device()), Some(handle));
        }
        assert_eq!(Handle::from_device(std::ptr::null_mut()), None);
    }
}
