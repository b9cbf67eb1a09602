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
let job = null, from = 0, to = 1, isWhole = true, rows = new Map(), colors = {}, patterns = {}, height = 18;

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
  for (const kind of KINDS) patterns[kind] = pattern(kind);
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
    g.fillStyle = patterns[kind];
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

/*
 * Draws the kinds one above the other, each as high as its share of the time of a pixel; hung and paused fill it. Rows
 * that are too low for patterns are drawn as one picture: they may have hundreds of thousands of rectangles.
 */
function bars(g, scale, width, kinds) {
  const count = Math.ceil(width - LEFT), gap = height > 6 ? 3 : 0, most = height - 2 * gap;
  const tops = new Uint8Array(count * rows.size), image = new ImageData(count, rows.size * height);
  const pixels = new Uint32Array(image.data.buffer);
  for (const [kind, parts] of kinds) {
    const shares = new Float32Array(tops.length);
    for (const [rank, start, length] of parts) {
      const a = (start - from) * scale, b = a + Math.max(1e-6, length * scale), first = rows.get(rank) * count;
      for (let x = Math.max(0, Math.floor(a)); x < Math.min(count, b); x++) {
        shares[first + x] += Math.min(b, x + 1) - Math.max(a, x);
      }
    }
    const rgb = parseInt(colors[kind].slice(1), 16);
    const solid = 0xff000000 + ((rgb & 0xff) << 16) + (rgb & 0xff00) + (rgb >> 16);
    g.fillStyle = patterns[kind];
    for (const row of rows.values()) {
      let since = 0, high = 0, low = 0;
      for (let x = 0; x <= count; x++) {
        const at = row * count + x, share = x < count ? shares[at] : 0, fills = kind === 'hung' || kind === 'paused';
        const wanted = share > 0 ? fills ? most : Math.max(1, Math.round(share * most)) : 0;
        const top = share > 0 ? tops[at] : 0, next = Math.min(wanted, most - top);
        if (next !== high || top !== low) {
          const y = row * height + gap + most - low - high;
          if (high > 0 && gap > 0) g.fillRect(LEFT + since, y, x - since, high);
          for (let i = y; gap === 0 && i < y + high; i++) pixels.fill(solid, i * count + since, i * count + x);
          [since, high, low] = [x, next, top];
        }
        if (next > 0) tops[at] += next;
      }
    }
  }
  if (gap > 0) return;
  const drawn = document.createElement('canvas');
  [drawn.width, drawn.height] = [image.width, image.height];
  drawn.getContext('2d').putImageData(image, 0, 0);
  g.imageSmoothingEnabled = false;
  g.drawImage(drawn, LEFT, 0);
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
  bars(g, scale, width, [
    ['hung', job.operations.filter(o => !o.ended).map(o => [o.rank, o.ts, o.dur])],
    ['paused', job.pauses.map(p => [p.rank, p.ts, p.dur])],
    ['moving', ended.map(o => [o.rank, o.ts + o.dur - o.moving, o.moving])],
    ['waiting', ended.map(o => [o.rank, o.ts, o.dur - o.moving])],
  ]);
  g.fillStyle = colors.text;
  g.font = '12px system-ui, sans-serif';
  g.textBaseline = 'middle';
  const step = Math.max(1, Math.ceil(16 / height));
  job.ranks.forEach((r, i) => {
    if (i % step === 0) g.fillText('rank ' + r.rank, 4, i * height + Math.max(8, height / 2));
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
