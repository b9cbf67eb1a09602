// Checks the search of the built site: for each term, the page that explains it comes first.
//
// node find.mjs SITE WORK, where WORK has the copied pages and VitePress
import fs from 'node:fs';
import path from 'node:path';
import { pathToFileURL } from 'node:url';
import { options } from './search.mjs';

const [site, work] = process.argv.slice(2).map((each) => path.resolve(each));
const wanted = {
  allReduce: 'operations',
  broadcast: 'operations',
  barrier: 'operations',
  TUTTI_TIMEOUT: 'reference/settings',
  TUTTI_BACKEND: 'reference/settings',
  install: 'start',
  gradle: 'start',
  checkpoint: 'checkpoints',
  bucket: 'gradients',
  tutorial: 'tutorial',
  breakpoint: 'debugging',
  PowerSGD: 'gradients',
  torchrun: 'launchers',
  kubernetes: 'launchers',
  spark: 'spark',
  token: 'security',
  TLS: 'security',
  World: 'unit-tests',
  junit: 'unit-tests',
  nccl: 'gpus',
  init_process_group: 'from-torch-distributed',
  hang: 'help',
  status: 'watching',
  jdwp: 'debugging',
  'tutti bench': 'reference/command-line',
  mpirun: 'launchers',
};

const chunks = path.join(site, 'assets/chunks');
const [index] = fs.readdirSync(chunks).filter((name) => name.startsWith('@localSearchIndexroot'));
const { default: json } = await import(pathToFileURL(path.join(chunks, index)));
const library = path.join(work, 'node_modules/minisearch/dist/es/index.js');
const { default: MiniSearch } = await import(pathToFileURL(library));
const sections = JSON.parse(fs.readFileSync(path.join(work, 'pages/sections.json'), 'utf8'));
const operations = fs.readFileSync(path.join(work, 'pages/operations.md'), 'utf8');
// The options of VPLocalSearchBox.vue with those of config.mjs.
const own = options(sections, operations);
const search = MiniSearch.loadJSON(json, {
  fields: ['title', 'titles', 'text'],
  storeFields: ['title', 'titles'],
  ...own.options,
  searchOptions: { fuzzy: 0.2, boost: { title: 4, text: 2, titles: 1 }, ...own.searchOptions },
});
const wrong = Object.entries(wanted).flatMap(([term, page]) => {
  const found = search.search(term)[0]?.id ?? 'nothing';
  return found.replace(/^\/|(\.html)?(#.*)?$/g, '') === page ? [] : [`${term}: found ${found}, not ${page}`];
});
if (wrong.length > 0) {
  console.error(`The search finds wrong pages:\n  ${wrong.join('\n  ')}`);
  process.exit(1);
}
console.log(`${Object.keys(wanted).length} terms find their pages`);
