//! The layout of panels, which flow from left to right in 24 columns.

use super::definition::{PanelDefinition, PanelKind};

/// Columns of a page, in Grafana as in Perses.
const COLUMNS: u32 = 24;

/// A place on the page, in columns and rows of the grid.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Position {
    pub(crate) x: u32,
    pub(crate) y: u32,
    pub(crate) width: u32,
    pub(crate) height: u32,
}

/// Returns the positions of the panels of one row, from its top, and its height.
pub(crate) fn flow(panels: &[PanelDefinition]) -> (Vec<Position>, u32) {
    let (mut x, mut y, mut line) = (0, 0, 0);
    let mut positions = Vec::with_capacity(panels.len());
    for panel in panels {
        let (width, height) = size(panel);
        if x + width > COLUMNS {
            (x, y, line) = (0, y + line, 0);
        }
        positions.push(Position { x, y, width, height });
        x += width;
        line = line.max(height);
    }
    (positions, y + line)
}

fn size(panel: &PanelDefinition) -> (u32, u32) {
    let (width, height) = match panel.kind {
        PanelKind::Stat | PanelKind::Gauge => (4, 5),
        PanelKind::Timeseries | PanelKind::Stacked | PanelKind::Bars | PanelKind::Heatmap => (12, 8),
        PanelKind::StateTimeline => (24, 7),
        PanelKind::Table | PanelKind::Traces => (24, 9),
        PanelKind::Text => (24, 3),
    };
    (
        panel.width.unwrap_or(width).clamp(1, COLUMNS),
        panel.height.unwrap_or(height),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn panel(kind: &str, more: &str) -> PanelDefinition {
        serde_saphyr::from_str(&format!(
            "{{title: t, description: d, kind: {kind}, unit: s{more}}}"
        ))
        .unwrap()
    }

    #[test]
    fn panels_flow_left_to_right_and_wrap_at_full_width() {
        let (positions, height) = flow(&[
            panel("stat", ", height: 6"),
            panel("timeseries", ""),
            panel("timeseries", ", width: 9"),
            panel("stat", ""),
        ]);
        let at = |x, y, width, height| Position { x, y, width, height };
        assert_eq!(
            positions,
            [at(0, 0, 4, 6), at(4, 0, 12, 8), at(0, 8, 9, 8), at(9, 8, 4, 5)]
        );
        assert_eq!(height, 16);
    }
}
