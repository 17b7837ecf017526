// Bundles page.tsx and the parts of Perses that it uses into dist/. The plugins are not in it: the page loads them.
import rspack from '@rspack/core';

const page = '<!doctype html><html><body><div id="root"></div></body></html>';
const transform = { react: { runtime: 'automatic' } };

export default {
  mode: 'production',
  entry: './page.tsx',
  devtool: false,
  performance: { hints: false },
  output: { path: `${process.cwd()}/dist`, publicPath: '/assets/' },
  optimization: { minimize: false },
  experiments: { topLevelAwait: true, css: true },
  resolve: { extensions: ['...', '.ts', '.tsx'] },
  module: {
    rules: [
      {
        test: /\.tsx?$/,
        type: 'javascript/auto',
        loader: 'builtin:swc-loader',
        options: { jsc: { parser: { syntax: 'typescript', tsx: true }, transform, target: 'es2022' } },
      },
      { test: /\.css$/, type: 'css' },
      { test: /\.(woff2?|ttf|eot|svg|png)$/, type: 'asset' },
    ],
  },
  plugins: [
    new rspack.HtmlRspackPlugin({ templateContent: page }),
    new rspack.DefinePlugin({ 'process.env.NODE_ENV': '"production"' }),
  ],
};
