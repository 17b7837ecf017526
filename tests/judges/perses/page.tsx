// The page that draws one dashboard with the panels of Perses: /NAME draws the dashboard that the server has as
// /dashboards/NAME, `theme=dark` in the dark theme. `setTheme('dark')` draws what is loaded in the other theme. Every data
// source is the server's own /prometheus or /tempo.
import { useState } from 'react';
import { createRoot } from 'react-dom/client';
import { BrowserRouter } from 'react-router-dom';
import { QueryParamProvider } from 'use-query-params';
import { ReactRouter6Adapter } from 'use-query-params/adapters/react-router-6';
import { QueryClient, QueryClientProvider } from '@tanstack/react-query';
import { CssBaseline, ThemeProvider } from '@mui/material';
import { ChartsProvider, SnackbarProvider, generateChartsTheme, getTheme } from '@perses-dev/components';
import { PluginRegistry, ReactRouterProvider, ValidationProvider, remotePluginLoader } from '@perses-dev/plugin-system';
import { ViewDashboard } from '@perses-dev/dashboards';

const parameters = new URLSearchParams(location.search);
type Mode = 'light' | 'dark';
const themes = { light: getTheme('light'), dark: getTheme('dark') };
const chartsThemes = { light: generateChartsTheme(themes.light, {}), dark: generateChartsTheme(themes.dark, {}) };

// `scrapeInterval` bounds the step of a query from below; it would be a minute.
const source = (name: string, kind: string, spec: object): any => ({
  kind: 'GlobalDatasource',
  metadata: { name },
  spec: { default: true, plugin: { kind, spec } },
});
const sources: Record<string, any> = {
  PrometheusDatasource: source('prometheus', 'PrometheusDatasource', { directUrl: '/prometheus', scrapeInterval: '1s' }),
  TempoDatasource: source('tempo', 'TempoDatasource', { directUrl: '/tempo' }),
};
const api: any = {
  buildProxyUrl: ({ name }: any) => `/${name}`,
  getDatasource: async () => undefined,
  getGlobalDatasource: async ({ kind }: any) => sources[kind],
  listDatasources: async () => [],
  listGlobalDatasources: async (kind?: string) => Object.values(sources).filter((each) => !kind || each.spec.plugin.kind === kind),
};

const pluginLoader = remotePluginLoader();
const defaultPluginKinds = { Panel: 'TimeSeriesChart', TimeSeriesQuery: 'PrometheusTimeSeriesQuery' };
const client = new QueryClient({ defaultOptions: { queries: { refetchOnWindowFocus: false, retry: 0 } } });
const dashboard = await (await fetch('/dashboards' + location.pathname)).json();

/** What does not depend on the theme keeps its data when the theme changes. */
function Page() {
  const [mode, setMode] = useState<Mode>(parameters.get('theme') === 'dark' ? 'dark' : 'light');
  (window as any).setTheme = setMode;
  return (
    <ThemeProvider theme={themes[mode]}>
      <CssBaseline />
      <ChartsProvider chartsTheme={chartsThemes[mode]}>
        <SnackbarProvider>
          <BrowserRouter>
            <QueryParamProvider adapter={ReactRouter6Adapter}>
              <ReactRouterProvider>
                <PluginRegistry pluginLoader={pluginLoader} defaultPluginKinds={defaultPluginKinds}>
                  <ValidationProvider>
                    <ViewDashboard
                      dashboardResource={dashboard}
                      datasourceApi={api}
                      isReadonly
                      isVariableEnabled={false}
                      isDatasourceEnabled={false}
                      isEditing={false}
                    />
                  </ValidationProvider>
                </PluginRegistry>
              </ReactRouterProvider>
            </QueryParamProvider>
          </BrowserRouter>
        </SnackbarProvider>
      </ChartsProvider>
    </ThemeProvider>
  );
}

createRoot(document.getElementById('root')!).render(
  <QueryClientProvider client={client}>
    <Page />
  </QueryClientProvider>,
);
