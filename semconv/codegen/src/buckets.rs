//! The named sets of histogram bounds that a metric may use (`annotations.pulsetrain.buckets`).

/// A named set of bounds, in the metric's unit.
pub(crate) struct Buckets {
    /// The name in the registry.
    pub(crate) name: &'static str,
    /// The purpose of the set, as the generated constant's documentation.
    pub(crate) brief: &'static str,
    /// The inclusive upper bounds, in ascending order.
    pub(crate) bounds: &'static [f64],
}

/// Every set.
pub(crate) const ALL: &[Buckets] = &[
    Buckets {
        name: "seconds",
        brief: "Bounds for durations in seconds: 1 ms to 1 h.",
        bounds: &[
            0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0, 120.0,
            300.0, 600.0, 1800.0, 3600.0,
        ],
    },
    Buckets {
        name: "watts",
        brief: "Bounds for the power of one accelerator in watts: 25 W to 1.6 kW.",
        bounds: &[
            25.0, 50.0, 75.0, 100.0, 150.0, 200.0, 250.0, 300.0, 350.0, 400.0, 450.0, 500.0, 600.0, 700.0,
            800.0, 1000.0, 1200.0, 1400.0, 1600.0,
        ],
    },
    Buckets {
        name: "watts_together",
        brief: "Bounds for the power of the accelerators of a host together in watts: 50 W to 16 kW.",
        bounds: &[
            50.0, 100.0, 200.0, 300.0, 400.0, 500.0, 600.0, 700.0, 850.0, 1000.0, 1400.0, 2000.0, 2800.0,
            4000.0, 5600.0, 8000.0, 11_000.0, 16_000.0,
        ],
    },
    Buckets {
        name: "joules",
        brief: "Bounds for the energy of a step in joules: 1 J to 1 MJ.",
        bounds: &[
            1.0,
            2.0,
            5.0,
            10.0,
            20.0,
            50.0,
            100.0,
            200.0,
            500.0,
            1000.0,
            2000.0,
            5000.0,
            10_000.0,
            20_000.0,
            50_000.0,
            100_000.0,
            200_000.0,
            500_000.0,
            1_000_000.0,
        ],
    },
    Buckets {
        name: "shares",
        brief: "Bounds for shares of the time: every tenth, and closer where all is idle or busy.",
        bounds: &[
            0.01, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99, 1.0,
        ],
    },
    Buckets {
        name: "own",
        brief: "No bounds: every point brings its own.",
        bounds: &[],
    },
];

/// Returns the set of that name.
pub(crate) fn find(name: &str) -> Option<&'static Buckets> {
    ALL.iter().find(|buckets| buckets.name == name)
}
