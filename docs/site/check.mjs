// Checks the built site: each link to a file of the site finds it, and each anchor its element.
//
// node check.mjs SITE
import fs from 'node:fs';
import path from 'node:path';

const site = path.resolve(process.argv[2]);
const ids = new Map();
const broken = new Set();
let links = 0;

function idsOf(file) {
  if (!ids.has(file)) {
    const html = fs.readFileSync(file, 'utf8');
    ids.set(file, new Set([...html.matchAll(/\s(?:id|name)="([^"]*)"/g)].map((match) => unescaped(match[1]))));
  }
  return ids.get(file);
}

function unescaped(text) {
  return text
    .replace(/&lt;/g, '<')
    .replace(/&gt;/g, '>')
    .replace(/&quot;/g, '"')
    .replace(/&#x27;|&#39;/g, "'")
    .replace(/&amp;/g, '&');
}

function decoded(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

function found(file, link) {
  const [name, anchor] = unescaped(link).split('#');
  const plain = decoded(name.replace(/\?.*$/, ''));
  let linked = file;
  if (plain !== '') {
    linked = plain.startsWith('/') ? path.join(site, plain) : path.join(path.dirname(file), plain);
    if (fs.existsSync(linked) && fs.statSync(linked).isDirectory()) {
      linked = path.join(linked, 'index.html');
    }
    if (!fs.existsSync(linked) && fs.existsSync(`${linked}.html`)) {
      linked += '.html';
    }
  }
  if (!fs.existsSync(linked)) {
    return false;
  }
  return !anchor || !linked.endsWith('.html') || idsOf(linked).has(decoded(anchor)) || idsOf(linked).has(anchor);
}

for (const entry of fs.readdirSync(site, { recursive: true })) {
  const file = path.join(site, entry);
  if (!entry.endsWith('.html') || entry.startsWith('javadoc/legal') || entry === '404.html') {
    continue;
  }
  const html = fs.readFileSync(file, 'utf8').replace(/<(script|style)\b.*?<\/\1>/gs, '');
  for (const [, , link] of html.matchAll(/<[^>]*\s(href|src)="([^"]*)"/g)) {
    if (/^([a-z]+:|\/\/)/i.test(link) || link === '') {
      continue;
    }
    links++;
    if (!found(file, link)) {
      broken.add(`${entry}: ${unescaped(link)}`);
    }
  }
}
if (broken.size > 0) {
  console.error(`Dead links and anchors:\n  ${[...broken].join('\n  ')}`);
  process.exit(1);
}
console.log(`${links} links and anchors hold`);
