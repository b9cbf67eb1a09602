// Copies the pages of the repository to where VitePress reads them and rewrites their links: to a page, to its place
// on the site; to another file of the repository, to that file on its host. A link to a file that does not exist ends
// the build.
//
// node prepare.mjs REPOSITORY TARGET
import fs from 'node:fs';
import path from 'node:path';
import { sections } from './sidebar.mjs';

const [root, target] = process.argv.slice(2);
const host = 'https://github.com/tutti-dev/tutti';
const missing = [];

function pagesOf(folder) {
  return fs
    .readdirSync(path.join(root, folder), { withFileTypes: true })
    .filter((entry) => entry.name.endsWith('.md') || (entry.isDirectory() && entry.name !== 'site'))
    .flatMap((entry) => {
      const name = `${folder}/${entry.name}`;
      return entry.isDirectory() ? pagesOf(name) : [name];
    });
}

function title(file) {
  return fs.readFileSync(path.join(root, file), 'utf8').match(/^# (.*)$/m)[1].replaceAll('`', '');
}

const listed = new Set(sections.flatMap((section) => section.pages.map(([file]) => file)));
for (const file of pagesOf('docs').sort()) {
  if (!listed.has(file) && file !== 'docs/index.md') {
    const name = file.startsWith('docs/reference/') ? 'Reference' : 'Guides';
    const section = sections.find((each) => each.text === name);
    section.pages.push([file, file.slice('docs/'.length, -'.md'.length), title(file)]);
  }
}
for (const section of sections) {
  section.pages = section.pages.filter(([file]) => fs.existsSync(path.join(root, file)));
}

const places = new Map([['docs/index.md', 'index']]);
for (const section of sections) {
  section.pages.forEach(([file, place]) => places.set(file, place));
}

function rewritten(file, place, link) {
  if (/^([a-z]+:|#)/.test(link)) {
    return link;
  }
  const [, name, anchor] = link.match(/^([^#]*)(#.*)?$/);
  const linked = path.posix.normalize(path.posix.join(path.posix.dirname(file), decodeURI(name)));
  const onDisk = path.join(root, linked);
  if (!fs.existsSync(onDisk)) {
    missing.push(`${file}: ${link}`);
    return link;
  }
  const other = places.get(linked.replace(/\/$/, '')) ?? places.get(path.posix.join(linked, 'README.md'));
  const from = path.posix.dirname(place);
  if (other) {
    return (path.posix.relative(from, other) || '.').replace(/^(?!\.)/, './') + (anchor ?? '');
  }
  if (/\.(svg|png)$/.test(linked)) {
    const copy = path.join(target, linked);
    fs.mkdirSync(path.dirname(copy), { recursive: true });
    fs.copyFileSync(onDisk, copy);
    return path.posix.relative(from, linked).replace(/^(?!\.)/, './');
  }
  const kind = fs.statSync(onDisk).isDirectory() ? 'tree' : 'blob';
  return `${host}/${kind}/main/${linked}${anchor ?? ''}`;
}

// Links stand outside of fenced code and code spans, which the first alternative skips.
const code = /^(?<fence>`{3,}|~{3,}).*?^\k<fence>[ \t]*$|(?<!`)(?<ticks>`+)(?!`)(?:(?!\n\n).)*?(?<!`)\k<ticks>(?!`)/msu;
const pattern = new RegExp(
  `${code.source}|(?<before>\\]\\(|^\\[[^\\]\\n]+\\]:[ ]+)(?<link>[^)\\s]+)`,
  'gmsu',
);

// What Maven and Gradle need stands in tabs.
const tabs = /^```xml\n((?:(?!```).*\n)*)```\n\n```kotlin\n((?:(?!```).*\n)*)```$/gm;

for (const [file, place] of places) {
  const text = fs.readFileSync(path.join(root, file), 'utf8').replace(pattern, (all, ...rest) => {
    const { before, link } = rest.at(-1);
    return before === undefined ? all : before + rewritten(file, place, link);
  });
  const tabbed = text.replace(
    tabs,
    '::: code-group\n\n```xml [Maven]\n$1```\n\n```kotlin [Gradle]\n$2```\n\n:::',
  );
  const out = path.join(target, `${place}.md`);
  fs.mkdirSync(path.dirname(out), { recursive: true });
  fs.writeFileSync(out, tabbed);
}
fs.writeFileSync(path.join(target, 'sections.json'), JSON.stringify(sections));
if (missing.length > 0) {
  console.error(`Links to files that do not exist:\n  ${missing.join('\n  ')}`);
  process.exit(1);
}
console.log(`${places.size} pages`);
