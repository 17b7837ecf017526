// The type of a dashboard's JSON: Grafana's own types, with the options of each panel those of its plugin.
import type { AnnotationQuery, Dashboard, FieldConfigSource, Panel, RowPanel, VariableModel } from '@grafana/schema';
import type * as barchart from '@grafana/schema/dist/esm/raw/composable/barchart/panelcfg/x/BarChartPanelCfg_types.gen';
import type * as bargauge from '@grafana/schema/dist/esm/raw/composable/bargauge/panelcfg/x/BarGaugePanelCfg_types.gen';
import type * as gauge from '@grafana/schema/dist/esm/raw/composable/gauge/panelcfg/x/GaugePanelCfg_types.gen';
import type * as heatmap from '@grafana/schema/dist/esm/raw/composable/heatmap/panelcfg/x/HeatmapPanelCfg_types.gen';
import type * as histogram from '@grafana/schema/dist/esm/raw/composable/histogram/panelcfg/x/HistogramPanelCfg_types.gen';
import type * as piechart from '@grafana/schema/dist/esm/raw/composable/piechart/panelcfg/x/PieChartPanelCfg_types.gen';
import type * as stat from '@grafana/schema/dist/esm/raw/composable/stat/panelcfg/x/StatPanelCfg_types.gen';
import type * as statetimeline from '@grafana/schema/dist/esm/raw/composable/statetimeline/panelcfg/x/StateTimelinePanelCfg_types.gen';
import type * as statushistory from '@grafana/schema/dist/esm/raw/composable/statushistory/panelcfg/x/StatusHistoryPanelCfg_types.gen';
import type * as table from '@grafana/schema/dist/esm/raw/composable/table/panelcfg/x/TablePanelCfg_types.gen';
import type * as text from '@grafana/schema/dist/esm/raw/composable/text/panelcfg/x/TextPanelCfg_types.gen';
import type * as timeseries from '@grafana/schema/dist/esm/raw/composable/timeseries/panelcfg/x/TimeSeriesPanelCfg_types.gen';
import type { GraphFieldConfig } from '@grafana/schema';

// What JSON has in place of a value of the types: the value of an enum of strings, and no key where there is a default.
type Json<T> = T extends string ? `${T}` : T extends object ? { [K in keyof T]: Json<T[K]> } : T;
type Optional<T> = T extends readonly unknown[] ? T : T extends object ? { [K in keyof T]?: Optional<T[K]> } : T;

type Fields<Custom> = Omit<FieldConfigSource, 'defaults'> & {
  defaults: Omit<FieldConfigSource['defaults'], 'custom'> & { custom?: Optional<Custom> };
};
// `id` is required: Grafana's links to a panel name it.
type PanelOf<Type extends string, Options, Custom = Record<string, never>> = Omit<Panel, 'type' | 'id' | 'options' | 'fieldConfig'> & {
  type: Type;
  id: number;
  options?: Optional<Options>;
  fieldConfig?: Fields<Custom>;
};

type DataPanel =
  | PanelOf<'barchart', barchart.Options, barchart.FieldConfig>
  | PanelOf<'bargauge', bargauge.Options>
  | PanelOf<'gauge', gauge.Options>
  | PanelOf<'heatmap', heatmap.Options, heatmap.FieldConfig>
  | PanelOf<'histogram', histogram.Options, histogram.FieldConfig>
  | PanelOf<'piechart', piechart.Options, piechart.FieldConfig>
  | PanelOf<'stat', stat.Options>
  | PanelOf<'state-timeline', statetimeline.Options, statetimeline.FieldConfig>
  | PanelOf<'status-history', statushistory.Options, statushistory.FieldConfig>
  | PanelOf<'table', table.Options, table.FieldConfig>
  | PanelOf<'text', text.Options>
  | PanelOf<'timeseries', timeseries.Options, GraphFieldConfig>
  // A trace of Tempo: the plugin has no options of its own.
  | PanelOf<'traces', Record<string, never>>;

// The types have annotations of Grafana's own source only. These are the keys of an annotation from Prometheus, as Grafana
// saves it.
type PrometheusAnnotation = AnnotationQuery & {
  expr: string;
  step?: string;
  tagKeys?: string;
  textFormat?: string;
  titleFormat?: string;
  useValueForTime?: boolean;
};

type Row = Omit<RowPanel, 'panels' | 'type'> & { type: 'row'; panels: DataPanel[] };

export type DashboardJson = Json<
  Omit<Dashboard, 'panels' | 'templating' | 'annotations' | 'id'> & {
    id?: number | null;
    uid: string;
    title: string;
    panels: Array<DataPanel | Row>;
    templating?: { list?: VariableModel[] };
    annotations?: { list?: Array<AnnotationQuery | PrometheusAnnotation> };
  }
>;
