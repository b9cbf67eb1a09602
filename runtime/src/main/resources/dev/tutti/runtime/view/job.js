'use strict';
const get = id => document.getElementById(id);
const COLUMNS = [
  ['rank', 4, r => r.rank],
  ['process', 9, r => r.process || ''],
  ['operation', 12, r => r.operation || r.state],
  ['for', 5, r => seconds(r.waited_s)],
  ['waits for', 8, r => waitsFor(r)],
  ['last', 6, r => r.collectives ? r.last + '/' + r.collectives : ''],
  ['lag', 7, r => r.collectives ? r.lag_ms.toFixed(1) + ' ms' : ''],
  ['waiting', 6, r => r.time_ms ? (100 * r.waiting_ms / r.time_ms).toFixed(0) + ' %' : ''],
  ['at', 22, r => r.at || '']];
const KINDS = ['moving', 'waiting', 'hung', 'paused'];
const LEFT = 62, FOOT = 24, TINY = 64;
let job = null, from = 0, to = 1, isWhole = true, rows = new Map(), colors = {}, height = 18;

function seconds(s) {
  return s === null || s === undefined ? '' : s < 1 ? (s * 1000).toFixed(0) + ' ms' : s.toFixed(1) + ' s';
}

function waitsFor(r) {
  const all = r.waits_for || [];
  return all.length > 4 ? all.slice(0, 4).join(', ') + ' and ' + (all.length - 4) + ' more' : all.join(', ');
}

function element(name, text) {
  const made = document.createElement(name);
  made.textContent = text;
  return made;
}

function readColors() {
  const style = getComputedStyle(document.documentElement);
  for (const name of [...KINDS, 'text', 'rule', 'ground', 'guilty']) {
    colors[name] = style.getPropertyValue('--' + name).trim();
  }
  for (const kind of KINDS) colors[kind] = pattern(kind);
}

/* Solid for moving, diagonal lines for waiting, a grid for hung, dots for paused. */
function pattern(kind) {
  const tile = document.createElement('canvas');
  tile.width = tile.height = 6;
  const g = tile.getContext('2d');
  g.strokeStyle = g.fillStyle = colors[kind];
  if (kind === 'moving') return colors[kind];
  if (kind === 'paused') {
    g.fillRect(0, 0, 3, 3);
    g.fillRect(3, 3, 3, 3);
  } else {
    g.globalAlpha = .35;
    g.fillRect(0, 0, 6, 6);
    g.globalAlpha = 1;
    g.lineWidth = kind === 'hung' ? 2 : 1;
    g.beginPath();
    g.moveTo(0, 6);
    g.lineTo(6, 0);
    if (kind === 'hung') {
      g.moveTo(0, 0);
      g.lineTo(6, 6);
    }
    g.stroke();
  }
  return g.createPattern(tile, 'repeat');
}

function legend() {
  get('legend').replaceChildren(...KINDS.map(kind => {
    const item = document.createElement('li'), swatch = document.createElement('canvas');
    swatch.width = 26;
    swatch.height = 14;
    const g = swatch.getContext('2d');
    g.fillStyle = colors[kind];
    g.fillRect(0, 0, 26, 14);
    item.append(swatch, kind === 'hung' ? 'not ended' : kind);
    return item;
  }));
}

function table() {
  const columns = COLUMNS.filter(([, , text]) => job.ranks.some(r => text(r) !== ''));
  get('head').replaceChildren(...columns.map(([name, width]) => {
    const cell = element('th', name);
    cell.scope = 'col';
    cell.style.width = width + 'rem';
    return cell;
  }));
  get('ranks').replaceChildren(...job.ranks.map(r => {
    const row = document.createElement('tr');
    if (r.rank === job.verdict.rank) row.className = 'guilty';
    columns.forEach(([, , text], i) => {
      const cell = element(i === 0 ? 'th' : 'td', text(r));
      if (i === 0) cell.scope = 'row';
      cell.title = cell.textContent;
      row.append(cell);
    });
    return row;
  }));
}

function show(given) {
  const isFirst = job === null;
  job = given;
  get('verdict').textContent = job.verdict.text;
  get('verdict').className = job.verdict.state;
  document.title = job.verdict.text;
  const alive = job.ranks.filter(r => r.state === 'alive').length;
  get('note').textContent = alive + ' of ' + job.ranks.length + ' ranks answer';
  rows = new Map(job.ranks.map((r, i) => [r.rank, i]));
  table();
  const details = [...job.problems, ...job.failures, ...job.held_up];
  get('details').replaceChildren(...(details.length ? details : ['nothing more']).map(t => element('li', t)));
  if (isFirst || isWhole) all();
  draw();
}

function end() {
  return job.operations.reduce((most, o) => Math.max(most, o.ts + o.dur), 1);
}

function all() {
  from = 0;
  to = end();
  isWhole = true;
}

/* Draws parts of operations of one kind; those that fall on the same pixel of a row only once. */
function bars(g, scale, kind, parts) {
  const gap = height > 6 ? 3 : 0, width = g.canvas.clientWidth, done = new Map();
  g.fillStyle = colors[kind];
  for (const [rank, start, length] of parts) {
    const row = rows.get(rank), a = Math.max(LEFT, LEFT + (start - from) * scale);
    const b = Math.max(a + 1, LEFT + (start + length - from) * scale);
    if (LEFT + (start + length - from) * scale < LEFT || a > width || b <= done.get(row)) continue;
    done.set(row, Math.ceil(b));
    g.fillRect(a, row * height + gap, b - a, Math.max(1, height - 2 * gap));
  }
}

function draw() {
  if (job === null) return;
  const canvas = get('line'), count = job.ranks.length, ratio = devicePixelRatio || 1;
  height = count <= TINY ? 18 : Math.max(2, Math.floor(1200 / count));
  const width = canvas.clientWidth;
  canvas.style.height = count * height + FOOT + 'px';
  canvas.width = width * ratio;
  canvas.height = (count * height + FOOT) * ratio;
  const g = canvas.getContext('2d'), scale = (width - LEFT) / (to - from);
  g.setTransform(ratio, 0, 0, ratio, 0, 0);
  g.fillStyle = colors.guilty;
  if (rows.has(job.verdict.rank)) g.fillRect(0, rows.get(job.verdict.rank) * height, width, height);
  const ended = job.operations.filter(o => o.ended);
  bars(g, scale, 'waiting', ended.map(o => [o.rank, o.ts, o.dur - o.moving]));
  bars(g, scale, 'moving', ended.map(o => [o.rank, o.ts + o.dur - o.moving, o.moving]));
  bars(g, scale, 'hung', job.operations.filter(o => !o.ended).map(o => [o.rank, o.ts, o.dur]));
  bars(g, scale, 'paused', job.pauses.map(p => [p.rank, p.ts, p.dur]));
  g.fillStyle = colors.text;
  g.font = '12px system-ui, sans-serif';
  g.textBaseline = 'middle';
  const step = Math.max(1, Math.ceil(16 / height));
  job.ranks.forEach((r, i) => {
    if (i % step === 0) g.fillText('rank ' + r.rank, 4, Math.max(8, i * height + height / 2));
  });
  axis(g, scale, width, count * height);
  canvas.setAttribute('aria-label', 'Time line of ' + count + ' ranks: ' + job.verdict.text);
}

/* As many labels as fit, at round times; each is drawn wholly inside the line. */
function axis(g, scale, width, top) {
  const rough = (to - from) / Math.max(1, Math.floor((width - LEFT) / 110));
  const power = Math.pow(10, Math.floor(Math.log10(rough)));
  const step = [1, 2, 5, 10].map(n => n * power).find(n => n >= rough);
  for (let t = Math.ceil(from / step) * step; t <= to; t += step) {
    const x = LEFT + (t - from) * scale;
    const label = step < 1e3 ? (t / 1e3).toFixed(3) + ' ms' : step < 1e6 ? (t / 1e3).toFixed(0) + ' ms' : (t / 1e6).toFixed(0) + ' s';
    g.fillStyle = colors.rule;
    g.fillRect(x, 0, 1, top + 4);
    g.fillStyle = colors.text;
    const wide = g.measureText(label).width;
    if (x + wide < width) g.fillText(label, x, top + 14);
  }
}

function zoom(factor, x) {
  const t = from + (x - LEFT) * (to - from) / (get('line').clientWidth - LEFT);
  from = t - (t - from) * factor;
  to = t + (to - t) * factor;
  isWhole = false;
  draw();
}

function move(part) {
  const by = (to - from) * part;
  from += by;
  to += by;
  isWhole = false;
  draw();
}

function tell(event) {
  const t = from + (event.offsetX - LEFT) * (to - from) / (get('line').clientWidth - LEFT);
  const rank = job.ranks[Math.floor(event.offsetY / height)];
  const near = (to - from) / 400;
  const hit = rank && [...job.pauses, ...job.operations].find(
    o => o.rank === rank.rank && t >= o.ts - near && t <= o.ts + o.dur + near);
  if (hit) {
    get('tip').textContent = 'rank ' + hit.rank + ': ' + hit.name + ', ' + (hit.dur / 1e3).toFixed(3) + ' ms'
      + (hit.moving === undefined ? '' : ', of which ' + ((hit.dur - hit.moving) / 1e3).toFixed(3) + ' ms waiting');
  }
}

function listen() {
  const canvas = get('line');
  let down = null;
  canvas.addEventListener('wheel', e => {
    if (e.ctrlKey || e.shiftKey || e.altKey) {
      e.preventDefault();
      zoom(e.deltaY > 0 ? 1.25 : .8, e.offsetX);
    }
  }, {passive: false});
  canvas.addEventListener('pointerdown', e => { down = e.offsetX; });
  window.addEventListener('pointerup', () => { down = null; });
  canvas.addEventListener('pointermove', e => {
    if (down !== null) {
      move((down - e.offsetX) / (canvas.clientWidth - LEFT));
      down = e.offsetX;
    } else if (job) {
      tell(e);
    }
  });
  canvas.addEventListener('keydown', e => {
    const middle = (LEFT + canvas.clientWidth) / 2;
    const act = {
      ArrowLeft: () => move(-.1), ArrowRight: () => move(.1), '+': () => zoom(.8, middle), '=': () => zoom(.8, middle),
      '-': () => zoom(1.25, middle), '0': () => { all(); draw(); }}[e.key];
    if (act) {
      e.preventDefault();
      act();
    }
  });
  window.addEventListener('resize', draw);
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => {
    readColors();
    legend();
    draw();
  });
}

async function poll() {
  try {
    // Not a relative URL: that of a page which was opened with user and password has both.
    const answer = await fetch(location.origin + '/job');
    if (!answer.ok) throw new Error(await answer.text());
    show(await answer.json());
  } catch (error) {
    get('note').textContent = 'No answer: ' + error.message;
  }
  setTimeout(poll, 2000);
}

readColors();
legend();
listen();
if (get('data')) {
  show(JSON.parse(get('data').textContent));
  get('note').textContent = job.ranks.length + ' ranks';
} else {
  poll();
}
