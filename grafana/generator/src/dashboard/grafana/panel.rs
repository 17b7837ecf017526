//! Writes one panel as Grafana JSON.

use serde_json::{Map, Value, json};

use super::{
    super::{
        definition::PanelKind,
        model::{Dashboard, Link, Panel, PanelQuery, Step},
        unit::Unit,
    },
    prometheus, tempo,
};

/// The colors of states, from the first to the last one.
const STATE_COLORS: [&str; 8] = [
    "green",
    "blue",
    "yellow",
    "purple",
    "orange",
    "red",
    "semi-dark-blue",
    "semi-dark-purple",
];

/// The labels of series that select the same series in another dashboard: label and variable.
const LABELS_OF_VARIABLES: [(&str, &str); 5] = [
    ("train_run_id", "run"),
    ("train_attempt", "attempt"),
    ("train_rank", "rank"),
    ("gpu_index", "gpu"),
    ("host_name", "host"),
];

/// Returns a panel whose row begins at the height `top`.
pub(crate) fn write(panel: &Panel, dashboard: &Dashboard, id: u32, top: u32) -> Value {
    let place = panel.position;
    let mut json = json!({
        "description": panel.description,
        "gridPos": {"h": place.height, "w": place.width, "x": place.x, "y": top + place.y},
        "id": id,
        "options": options(panel),
        "title": panel.title,
        "type": plugin(panel.kind),
    });
    if panel.kind == PanelKind::Text {
        return json;
    }
    json["datasource"] = if panel.kind == PanelKind::Traces {
        tempo()
    } else {
        prometheus()
    };
    json["fieldConfig"] = field_config(panel, dashboard);
    json["targets"] = panel
        .queries
        .iter()
        .enumerate()
        .map(|(index, query)| target(panel, index, query))
        .collect();
    if panel.kind == PanelKind::Table {
        json["transformations"] = transformations(panel);
    }
    if let Some(link) = &panel.link {
        let url = format!("/d/{}?${{__url_time_range}}&${{__all_variables}}", link.uid);
        json["links"] = json!([{
            "asDropdown": false,
            "icon": "external link",
            // The URL already has the time range and the variables.
            "includeVars": false,
            "keepTime": false,
            "tags": [],
            "targetBlank": false,
            "title": title(link),
            "tooltip": "",
            "type": "link",
            "url": url,
        }]);
    }
    json
}

fn plugin(kind: PanelKind) -> &'static str {
    match kind {
        PanelKind::Stat => "stat",
        PanelKind::Gauge => "gauge",
        PanelKind::Timeseries | PanelKind::Stacked => "timeseries",
        PanelKind::Bars => "bargauge",
        PanelKind::Heatmap => "heatmap",
        PanelKind::StateTimeline => "state-timeline",
        PanelKind::Table | PanelKind::Traces => "table",
        PanelKind::Text => "text",
    }
}

/// Returns the letter of a query.
fn ref_id(index: usize) -> String {
    char::from(b'A' + index as u8).to_string()
}

fn target(panel: &Panel, index: usize, query: &PanelQuery) -> Value {
    if panel.kind == PanelKind::Traces {
        return json!({
            "datasource": tempo(),
            "limit": 20,
            "query": query.expr,
            "queryType": "traceql",
            "refId": ref_id(index),
            "spss": 20,
            "tableType": "spans",
        });
    }
    let is_instant = matches!(panel.kind, PanelKind::Gauge | PanelKind::Bars | PanelKind::Table);
    let format = match panel.kind {
        PanelKind::Table => "table",
        PanelKind::Heatmap => "heatmap",
        _ => "time_series",
    };
    json!({
        "datasource": prometheus(),
        "editorMode": "code",
        "exemplar": query.exemplar,
        "expr": query.expr,
        "format": format,
        "instant": is_instant,
        "legendFormat": if query.legend.is_empty() { "__auto" } else { query.legend.as_str() },
        "range": !is_instant,
        "refId": ref_id(index),
    })
}

fn field_config(panel: &Panel, dashboard: &Dashboard) -> Value {
    let mut defaults = Map::new();
    let mut set = |key: &str, value: Value| defaults.insert(key.to_owned(), value);
    set("unit", json!(panel.unit.grafana));
    set("color", color(panel));
    set(
        "thresholds",
        json!({"mode": "absolute", "steps": steps(&panel.steps)}),
    );
    set("mappings", mappings(panel));
    set("custom", custom(panel));
    for (key, value) in [("min", panel.min), ("max", panel.max)] {
        if let Some(value) = value {
            set(key, json!(value));
        }
    }
    if let Some(link) = &panel.link {
        set("links", json!([data_link(link, panel, dashboard)]));
    }
    json!({"defaults": defaults, "overrides": overrides(panel)})
}

fn color(panel: &Panel) -> Value {
    let by_threshold = !panel.steps.is_empty() || panel.kind == PanelKind::StateTimeline;
    match panel.kind {
        PanelKind::Timeseries | PanelKind::Stacked => json!({"mode": "palette-classic"}),
        _ if by_threshold => json!({"mode": "thresholds"}),
        _ => json!({"mode": "fixed", "fixedColor": "blue"}),
    }
}

fn steps(steps: &[Step]) -> Vec<Value> {
    if steps.is_empty() {
        return vec![json!({"color": "green", "value": null})];
    }
    steps
        .iter()
        .map(|step| json!({"color": step.color.rgb(), "value": step.from}))
        .collect()
}

/// Returns the texts and colors of states. A series that is a state of its own is red while it is 1.
fn mappings(panel: &Panel) -> Value {
    if panel.kind != PanelKind::StateTimeline {
        return json!([]);
    }
    let mut options = Map::new();
    if panel.states.is_empty() {
        options.insert(
            "0".to_owned(),
            json!({"color": "green", "index": 0, "text": "no"}),
        );
        options.insert("1".to_owned(), json!({"color": "red", "index": 1, "text": "yes"}));
    }
    for (index, state) in panel.states.iter().enumerate() {
        let color = STATE_COLORS[index % STATE_COLORS.len()];
        options.insert(
            (index + 1).to_string(),
            json!({"color": color, "index": index, "text": state}),
        );
    }
    json!([{"type": "value", "options": options}])
}

fn custom(panel: &Panel) -> Value {
    match panel.kind {
        PanelKind::Timeseries | PanelKind::Stacked => {
            let is_stacked = panel.kind == PanelKind::Stacked;
            json!({
                "axisCenteredZero": false,
                "axisPlacement": "auto",
                "drawStyle": "line",
                "fillOpacity": if is_stacked { 60 } else { 0 },
                "lineInterpolation": "linear",
                "lineWidth": 1,
                "pointSize": 4,
                "showPoints": "auto",
                // A gap separates two attempts; no line connects them.
                "spanNulls": false,
                "stacking": {"group": "A", "mode": if is_stacked { "normal" } else { "none" }},
                "thresholdsStyle": {"mode": if panel.steps.is_empty() { "off" } else { "dashed" }},
            })
        }
        PanelKind::StateTimeline => json!({"fillOpacity": 75, "lineWidth": 0}),
        PanelKind::Table | PanelKind::Traces => {
            json!({"align": "auto", "cellOptions": {"type": "auto"}, "filterable": true})
        }
        PanelKind::Heatmap => json!({"scaleDistribution": {"type": "linear"}}),
        PanelKind::Stat | PanelKind::Gauge | PanelKind::Bars | PanelKind::Text => json!({}),
    }
}

/// Returns the units of columns that differ from that of the table.
fn overrides(panel: &Panel) -> Vec<Value> {
    if panel.kind != PanelKind::Table {
        return Vec::new();
    }
    let with_unit = |query: &&PanelQuery| query.unit != panel.unit;
    let one = |query: &PanelQuery| {
        json!({
            "matcher": {"id": "byName", "options": query.legend},
            "properties": [unit_property(query.unit)],
        })
    };
    panel.queries.iter().filter(with_unit).map(one).collect()
}

fn unit_property(unit: &Unit) -> Value {
    json!({"id": "unit", "value": unit.grafana})
}

fn options(panel: &Panel) -> Value {
    let reduce = json!({"calcs": ["lastNotNull"], "fields": "", "values": false});
    match panel.kind {
        PanelKind::Stat => json!({
            "colorMode": if panel.steps.is_empty() { "none" } else { "value" },
            "graphMode": "area",
            "justifyMode": "auto",
            "orientation": "auto",
            "reduceOptions": reduce,
            "textMode": "auto",
        }),
        PanelKind::Gauge => json!({
            "orientation": "auto",
            "reduceOptions": reduce,
            "showThresholdLabels": false,
            "showThresholdMarkers": true,
        }),
        PanelKind::Bars => json!({
            "displayMode": "gradient",
            "orientation": "horizontal",
            "reduceOptions": reduce,
            "showUnfilled": true,
            "valueMode": "color",
        }),
        PanelKind::Timeseries | PanelKind::Stacked => json!({
            "legend": {"calcs": ["lastNotNull", "max"], "displayMode": "table", "placement": "bottom", "showLegend": true},
            "tooltip": {"mode": "multi", "sort": "desc"},
        }),
        PanelKind::Heatmap => json!({
            "calculate": false,
            "cellGap": 1,
            "color": {"exponent": 0.5, "mode": "scheme", "scheme": "Oranges", "steps": 64},
            "exemplars": {"color": "rgba(255,0,255,0.7)"},
            "filterValues": {"le": 1e-9},
            "legend": {"show": true},
            "rowsFrame": {"layout": "auto"},
            "tooltip": {"mode": "single", "yHistogram": true},
            "yAxis": {"axisPlacement": "left", "unit": panel.unit.grafana},
        }),
        PanelKind::StateTimeline => json!({
            "alignValue": "left",
            "legend": {"displayMode": "list", "placement": "bottom", "showLegend": true},
            "mergeValues": true,
            "rowHeight": 0.8,
            "showValue": "auto",
            "tooltip": {"mode": "single"},
        }),
        PanelKind::Table | PanelKind::Traces => json!({"cellHeight": "sm", "showHeader": true}),
        PanelKind::Text => json!({"content": panel.text, "mode": "markdown"}),
    }
}

/// Joins the queries of a table: a row for each combination of labels, a column for each query, without the time.
fn transformations(panel: &Panel) -> Value {
    let value = |index| match panel.queries.len() {
        1 => "Value".to_owned(),
        _ => format!("Value #{}", ref_id(index)),
    };
    let names: Map<String, Value> = panel
        .queries
        .iter()
        .enumerate()
        .map(|(index, query)| (value(index), json!(query.legend)))
        .collect();
    let columns = panel
        .columns
        .iter()
        .cloned()
        .chain((0..panel.queries.len()).map(value));
    let order: Map<String, Value> = columns
        .enumerate()
        .map(|(index, name)| (name, json!(index)))
        .collect();
    json!([
        {"id": "merge", "options": {}},
        {"id": "organize", "options": {"excludeByName": {"Time": true}, "indexByName": order, "renameByName": names}},
    ])
}

fn title(link: &Link) -> String {
    format!("Open {}", link.name.replace('-', " "))
}

/// Returns the link of a series: the selection of this dashboard, narrowed to the run, rank or GPU of the series.
fn data_link(link: &Link, panel: &Panel, dashboard: &Dashboard) -> Value {
    let has_label = |label: &str| {
        panel
            .queries
            .iter()
            .any(|query| query.legend.contains(&format!("{{{{{label}}}}}")))
    };
    let mut parameters = vec!["${__url_time_range}".to_owned()];
    for (label, variable) in LABELS_OF_VARIABLES {
        if has_label(label) {
            parameters.push(format!("var-{variable}=${{__field.labels.{label}}}"));
        } else if dashboard.variables.iter().any(|(name, _)| name == variable) {
            parameters.push(format!("${{{variable}:queryparam}}"));
        }
    }
    let url = format!("/d/{}?{}", link.uid, parameters.join("&"));
    json!({"title": title(link), "url": url, "targetBlank": false})
}
