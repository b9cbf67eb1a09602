import fs from 'node:fs';
import { defineConfig } from 'vitepress';
import { options } from './search.mjs';
import { slug } from './slug.mjs';

const sections = JSON.parse(fs.readFileSync(new URL('../sections.json', import.meta.url), 'utf8'));
const files = new Map(sections.flatMap(({ pages }) => pages.map(([file, place]) => [`${place}.md`, file])));
const operations = fs.readFileSync(new URL('../operations.md', import.meta.url), 'utf8');
const repository = 'https://github.com/tutti-dev/tutti';

export default defineConfig({
  title: 'Tutti',
  description: 'Collectives for the JVM: all-reduce, all-gather, broadcast and the rest, from Maven jars.',
  lang: 'en',
  cleanUrls: false,
  outDir: '../../site',
  cacheDir: '../cache',
  // The check after the build sees these files; VitePress sees its own pages alone.
  ignoreDeadLinks: [/^\/javadoc\//, /\/javadoc\//],
  head: [['link', { rel: 'icon', type: 'image/svg+xml', href: '/icon.svg' }]],
  markdown: {
    anchor: { slugify: slug },
    theme: { light: 'github-light', dark: 'github-dark' },
    languageAlias: { console: 'shell' },
  },
  themeConfig: {
    logo: '/icon.svg',
    nav: [
      { text: 'Start', link: '/start' },
      { text: 'Tutorial', link: '/tutorial' },
      { text: 'Operations', link: '/operations' },
      { text: 'Settings', link: '/reference/settings' },
      { text: 'Javadoc', link: '/javadoc/index.html', target: '_self' },
      {
        text: process.env.TUTTI_VERSION ?? 'development',
        items: [
          { text: 'What each version changed', link: '/changelog' },
          { text: 'Other versions', link: `${repository}/releases` },
        ],
      },
    ],
    sidebar: sections.map(({ text, pages }) => ({
      text,
      collapsed: false,
      items: [
        ...pages.map(([, place, name]) => ({ text: name, link: `/${place}` })),
        ...(text === 'Reference' ? [{ text: 'Javadoc', link: '/javadoc/index.html', target: '_self' }] : []),
      ],
    })),
    outline: { level: [2, 3], label: 'On this page' },
    search: {
      provider: 'local',
      options: { detailedView: true, miniSearch: options(sections, operations) },
    },
    socialLinks: [{ icon: 'github', link: repository }],
    editLink: { pattern: `${repository}/edit/main/:path`, text: 'Edit this page' },
    footer: { message: 'Apache License 2.0' },
  },
  transformPageData(page) {
    return { filePath: files.get(page.relativePath) ?? `docs/${page.relativePath}` };
  },
});
