// The model: scopes within scopes, closed at the start and fitted to the window, on a canvas. A click
// opens one, down to supernodes, and shows a supernode's operators beside it.

const BOX = { width: 168, height: 40, head: 24, pad: 14, row: 34, column: 22, most: 24 };
const view = { x: 0, y: 0, zoom: 1, root: null, plan: null, boxes: [], lines: [], canvas: null, fit: true, focused: null, opened: new Set() };

// The tree of scopes: {key, title, ids, children}; a leaf is one supernode. What is too long for one box
// to hold goes into boxes of consecutive supernodes.
function scopeTree(p) {
  const root = { key: '', title: '', children: [], ids: p.supernodes.map((g) => g.id) };
  const nodes = new Map([['', root]]);
  for (const g of p.supernodes) {
    const { path } = about(g.id, p);
    let at = root, key = '';
    for (const word of path) {
      key += `/${word}`;
      let next = nodes.get(key);
      if (!next) {
        next = { key, title: word, children: [], ids: [], parent: at };
        nodes.set(key, next);
        at.children.push(next);
      }
      next.ids.push(g.id);
      at = next;
    }
    at.children.push({ key: `#${g.id}`, title: about(g.id, p).kind, ids: [g.id], children: [], parent: at, leaf: true });
  }
  settle(root);
  return root;
}
function settle(node) {
  if (node.leaf) return;
  for (const child of node.children) settle(child);
  // A scope with one thing in it is that thing.
  node.children = node.children.map((child) => {
    if (child.leaf || child.children.length !== 1) return child;
    const only = child.children[0];
    return { ...only, title: only.leaf ? only.title : `${child.title}.${only.title}`, within: child.title, parent: node };
  });
  for (const child of node.children) child.parent = node;
  node.children.sort((a, b) => a.ids[0] - b.ids[0]);
  for (const child of node.children) for (const c of child.children) c.parent = child;
  bunch(node);
}
function bunch(node) {
  while (node.children.length > 2 * BOX.most) {
    const size = Math.max(BOX.most, Math.ceil(Math.sqrt(node.children.length))), bunches = [];
    for (let i = 0; i < node.children.length; i += size) {
      const part = node.children.slice(i, i + size);
      const made = { key: `${node.key}+${part[0].key}+${part.length}`, children: part, ids: part.flatMap((c) => c.ids), parent: node, bunch: true };
      made.title = bunchTitle(made.ids);
      for (const child of part) child.parent = made;
      bunches.push(made);
    }
    node.children = bunches;
  }
}

// What takes most of the time in it.
function bunchTitle(ids) {
  const sum = new Map();
  for (const id of ids) sum.set(about(id).kind, (sum.get(about(id).kind) ?? 0) + (plan.supernodes[id].cost_ns ?? 1));
  return [...sum].sort((a, b) => b[1] - a[1]).slice(0, 2).map(([kind]) => kind).join(', ') + (sum.size > 2 ? ' …' : '');
}

// Which child of a node each supernode is in, as it is drawn.
function arrange(node) {
  const place = new Map();
  node.children.forEach((child, i) => { for (const id of child.ids) place.set(id, i); });
  const into = node.children.map(() => new Set());
  for (const id of node.ids) {
    for (const e of edgesFrom(id)) {
      const a = place.get(e.from), b = place.get(e.to);
      if (b !== undefined && a !== b && a < b) into[b].add(a);
    }
  }
  for (const child of node.children) {
    if (isOpen(child)) arrange(child);
    else Object.assign(child, { w: BOX.width, h: BOX.height });
  }
  const rank = [];
  node.children.forEach((child, i) => { rank[i] = 0; for (const a of into[i]) rank[i] = Math.max(rank[i], rank[a] + 1); });
  const rows = [];
  node.children.forEach((child, i) => { (rows[rank[i]] ??= []).push([child, i]); });
  placeRows(node, rows.flatMap(splitRow), into);
}
const splitRow = (row) => {
  const rows = [];
  for (let i = 0; i < row.length; i += 8) rows.push(row.slice(i, i + 8));
  return rows;
};
// How wide and how tall rows are in that many columns.
function packed(size, columns) {
  const tall = size.reduce((n, s) => n + s.h + BOX.row, 0);
  const limit = tall / columns + (columns > 1 ? Math.max(...size.map((s) => s.h)) / 2 : 1);
  let w = 0, h = 0, y = 0, wide = 0;
  for (const s of size) {
    if (y > 0 && y + s.h + BOX.pad > limit + BOX.pad) {
      w += wide + 3 * BOX.column;
      y = wide = 0;
    }
    wide = Math.max(wide, s.w);
    y += s.h + BOX.row;
    h = Math.max(h, y);
  }
  return { limit, w: w + wide, h };
}
// As many columns as let the whole be largest in a box of that shape; few, where it hardly matters.
function suited(size, shape) {
  let best = null;
  for (let columns = 1; columns <= Math.min(12, size.length); columns++) {
    const { limit, w, h } = packed(size, columns), long = Math.max(w / shape, h, 330) * 1.05 ** columns;
    if (!best || long < best.long) best = { long, limit };
  }
  return best?.limit ?? 0;
}
// Rows from the top; tall ones go on in further columns, so that the whole suits a window.
function placeRows(node, rows, into) {
  const size = rows.map((row) => ({ w: row.reduce((n, [c]) => n + c.w + BOX.column, -BOX.column), h: Math.max(...row.map(([c]) => c.h)) }));
  const limit = suited(size, node === view.root && view.canvas ? view.canvas.clientWidth / Math.max(1, view.canvas.clientHeight) : 1.3);
  let x = BOX.pad, y = BOX.head + BOX.pad, wide = 0, bottom = 0;
  rows.forEach((row, r) => {
    if (y > BOX.head + BOX.pad && y + size[r].h - BOX.head > limit + BOX.pad) {
      x += wide + 3 * BOX.column;
      y = BOX.head + BOX.pad;
      wide = 0;
    }
    wide = Math.max(wide, size[r].w);
    row.column = { x, r };
    let at = 0;
    // Beside what it reads.
    const mean = ([, i]) => { const known = [...into[i]].map((a) => node.children[a].cx).filter((n) => n !== undefined); return known.length ? known.reduce((a, b) => a + b, 0) / known.length : 0; };
    if (row.length > 1) {
      const means = new Map(row.map((each) => [each[1], mean(each)]));
      row.sort((a, b) => means.get(a[1]) - means.get(b[1]) || a[1] - b[1]);
    }
    for (const [child] of row) {
      child.x = x + at;
      child.y = y;
      child.cx = child.x + child.w / 2;
      at += child.w + BOX.column;
    }
    y += size[r].h + BOX.row;
    bottom = Math.max(bottom, y);
  });
  // Rows stand in the middle of their column.
  const columnsWide = new Map();
  rows.forEach((row, r) => columnsWide.set(row.column.x, Math.max(columnsWide.get(row.column.x) ?? 0, size[r].w)));
  rows.forEach((row, r) => { const shift = (columnsWide.get(row.column.x) - size[r].w) / 2; for (const [child] of row) { child.x += shift; child.cx += shift; } });
  node.w = x + wide + BOX.pad;
  node.h = bottom - BOX.row + BOX.pad;
}
const isOpen = (node) => !node.leaf && (node === view.root || view.opened.has(node.key));

const edgesBy = new WeakMap();
function edgesFrom(id) {
  if (!edgesBy.has(plan)) {
    const by = [];
    for (const e of plan.edges) (by[e.from] ??= []).push(e);
    edgesBy.set(plan, by);
  }
  return edgesBy.get(plan)[id] ?? [];
}

// Boxes as they stand on the plane, outer ones first; lines between the innermost.
function settleModel() {
  if (view.plan !== plan) {
    view.root = scopeTree(plan);
    view.plan = plan;
    view.fit = true;
    openFirst();
  }
  arrange(view.root);
  const boxes = [], owner = new Int32Array(plan.supernodes.length);
  const walk = (node, x, y) => {
    const box = { node, x: x + (node.x ?? 0), y: y + (node.y ?? 0), w: node.w, h: node.h, open: isOpen(node) };
    if (node !== view.root) boxes.push(box);
    else { box.x = 0; box.y = 0; }
    if (box.open) for (const child of node.children) walk(child, box.x, box.y);
    else for (const id of node.ids) owner[id] = boxes.length - 1;
  };
  walk(view.root, 0, 0);
  const lines = new Map();
  for (const e of plan.edges) {
    const a = owner[e.from], b = owner[e.to];
    if (a === b) continue;
    const key = a * boxes.length + b, line = lines.get(key) ?? { a: boxes[a], b: boxes[b], bytes: 0, tensors: new Set(), cut: false };
    if (!line.tensors.has(e.tensor)) line.bytes += e.bytes ?? 0;
    line.tensors.add(e.tensor);
    line.cut ||= stageNow(e.from) !== stageNow(e.to);
    lines.set(key, line);
  }
  view.boxes = boxes;
  view.lines = [...lines.values()];
  view.owner = owner;
}
// A scope that holds most of the model says little while it is closed.
function openFirst() {
  let at = view.root;
  for (let visible = at.children.length; visible < 20;) {
    const next = at.children.filter((c) => !c.leaf).sort((a, b) => b.ids.length - a.ids.length)[0];
    if (!next || next.children.length > 40 || (visible >= 7 && next.ids.length < 0.5 * view.root.ids.length)) break;
    view.opened.add(next.key);
    visible += next.children.length - 1;
    at = next;
  }
}
const stageNow = (id) => split()?.stageOf[id] ?? null;
const costOf = (node) => (node.cost ??= node.ids.reduce((n, id) => n + (view.plan.supernodes[id].cost_ns ?? 0), 0));

function boxFill(node) {
  if (state.colour === 'stage') return stageColour(stageNow(node.ids[0]));
  const total = Math.max(1, costOf(view.root));
  if (state.colour === 'heat') return heatColour(Math.min(1, 4 * costOf(node) / total));
  const sum = new Map();
  for (const id of node.ids) sum.set(about(id).class, (sum.get(about(id).class) ?? 0) + Math.max(1, plan.supernodes[id].cost_ns ?? 1));
  return styleColour(`--c-${[...sum].sort((a, b) => b[1] - a[1])[0][0]}`);
}
const styleColour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim() || '#888';

// A scope is called by what is in it where its own name tells little.
function boxTitle(node) {
  if (node.leaf) return node.title;
  if (/^\d+ blocks$/.test(node.title)) return `${node.title}: ${node.does ??= bunchTitle(node.ids)}`;
  if (!/^\d+$/.test(node.title)) return node.title;
  return `${node.parent?.title ? `${node.parent.title}.` : ''}${node.title}`;
}
function boxDetail(node) {
  const cost = plan.supernodes[node.ids[0]].cost_ns === null ? '' : time(costOf(node));
  return node.leaf ? [cost, node.within ?? about(node.ids[0]).path.at(-1) ?? ''].filter(Boolean).join(' · ') : [cost, count(node.ids.length, 'supernode')].filter(Boolean).join(' · ');
}

function paintModel() {
  const { canvas } = view;
  if (!canvas) return;
  const ratio = devicePixelRatio || 1, w = canvas.clientWidth, h = canvas.clientHeight;
  if (canvas.width !== Math.round(w * ratio)) canvas.width = Math.round(w * ratio);
  if (canvas.height !== Math.round(h * ratio)) canvas.height = Math.round(h * ratio);
  const c = canvas.getContext('2d'), tint = { ink: styleColour('--ink'), soft: styleColour('--soft'), line: styleColour('--edge'), cut: styleColour('--cut'), card: styleColour('--card'), paper: styleColour('--paper'), on: styleColour('--on'), accent: styleColour('--accent') };
  c.setTransform(ratio, 0, 0, ratio, 0, 0);
  c.clearRect(0, 0, w, h);
  c.translate(view.x, view.y);
  c.scale(view.zoom, view.zoom);
  const seen = (b) => b.x * view.zoom + view.x < w && (b.x + b.w) * view.zoom + view.x > 0 && b.y * view.zoom + view.y < h && (b.y + b.h) * view.zoom + view.y > 0;
  for (const b of view.boxes) if (b.open && seen(b)) paintOpen(c, b, tint);
  const chosen = state.selected === null ? null : view.boxes[view.owner[state.selected]];
  const clear = Math.max(0.35, Math.min(1, Math.sqrt(60 / view.lines.length))); // many lines are faint ones
  for (const l of view.lines) paintLine(c, l, { tint, clear, near: chosen && (l.a === chosen || l.b === chosen) });
  for (const b of view.boxes) if (!b.open && seen(b)) paintClosed(c, b, tint, b === chosen);
  if (view.focused) outline(c, view.focused, tint.accent, 2.5 / view.zoom, 3);
}
function rounded(c, x, y, w, h, r) {
  c.beginPath();
  c.roundRect(x, y, w, h, r);
}
function outline(c, b, colour, wide, out = 0) {
  c.strokeStyle = colour;
  c.lineWidth = wide;
  rounded(c, b.x - out, b.y - out, b.w + 2 * out, b.h + 2 * out, 6);
  c.stroke();
}
function paintOpen(c, b, tint) {
  let depth = 0;
  for (let at = b.node.parent; at; at = at.parent) depth++;
  c.fillStyle = depth % 2 ? tint.paper : tint.card;
  rounded(c, b.x, b.y, b.w, b.h, 8);
  c.fill();
  outline(c, b, tint.line, 1);
  c.fillStyle = tint.soft;
  const size = Math.max(12, Math.min(20, 10.5 / view.zoom)), font = `600 ${size}px system-ui, sans-serif`;
  c.font = font;
  c.fillText(fitted(`− ${boxTitle(b.node)}`, b.w - 16, font, false), b.x + 9, b.y + 11 + size / 2);
}
function paintClosed(c, b, tint, chosen) {
  if (!b.node.leaf) { // a pile
    c.fillStyle = tint.card;
    c.strokeStyle = tint.line;
    c.lineWidth = 1;
    rounded(c, b.x + 4, b.y + 4, b.w, b.h, 6);
    c.fill();
    c.stroke();
  }
  c.fillStyle = boxFill(b.node);
  rounded(c, b.x, b.y, b.w, b.h, 6);
  c.fill();
  paintStages(c, b, tint);
  if (chosen) outline(c, b, tint.ink, 3);
  if (view.zoom < 0.25) return;
  c.fillStyle = tint.on;
  if (view.zoom < 0.74) { // its name alone, as large as can be read
    const size = Math.min(b.h * 0.62, 10.5 / view.zoom), font = `600 ${size}px system-ui, sans-serif`;
    c.font = font;
    c.fillText(fitted(`${b.node.leaf ? '' : '+ '}${boxTitle(b.node)}`, b.w - 12, font, false), b.x + 6, b.y + b.h / 2 + size * 0.28);
    return;
  }
  c.font = '600 12px system-ui, sans-serif';
  c.fillText(fitted(`${b.node.leaf ? '' : '+ '}${boxTitle(b.node)}`, b.w - 16, '600 12px system-ui, sans-serif', false), b.x + 9, b.y + 17);
  c.font = '11px system-ui, sans-serif';
  c.globalAlpha = 0.8;
  c.fillText(fitted(boxDetail(b.node), b.w - 16, '11px system-ui, sans-serif', false), b.x + 9, b.y + 31);
  c.globalAlpha = 1;
}
// Along its foot: which stages have how much of its time.
function paintStages(c, b, tint) {
  if (!plan.stages || state.colour === 'stage' && b.node.leaf) return;
  const sum = new Map();
  for (const id of b.node.ids) sum.set(stageNow(id), (sum.get(stageNow(id)) ?? 0) + Math.max(1, plan.supernodes[id].cost_ns ?? 1));
  const total = [...sum.values()].reduce((x, y) => x + y, 0);
  const tall = Math.min(7, 3 / Math.min(1, view.zoom));
  c.fillStyle = tint.card; // apart from the box, which may have the same colour
  c.fillRect(b.x + 3, b.y + b.h - tall - 3, b.w - 6, tall + 2);
  let x = b.x + 4;
  for (const [stage, n] of [...sum].sort((p, q) => p[0] - q[0])) {
    const w = (b.w - 8) * n / total;
    c.fillStyle = stageColour(stage);
    c.fillRect(x, b.y + b.h - tall - 2, w, tall);
    x += w;
  }
}
function paintLine(c, { a, b, bytes: n, cut }, { tint, clear, near }) {
  const down = b.y > a.y + a.h - 1, aside = down && b.y - a.y - a.h > BOX.row + BOX.height && Math.abs(b.x + b.w / 2 - a.x - a.w / 2) < BOX.width / 2;
  const x1 = aside || !down ? a.x + a.w : a.x + a.w / 2, y1 = aside || !down ? a.y + Math.min(a.h / 2, 20) : a.y + a.h;
  const x2 = aside ? b.x + b.w : down ? b.x + b.w / 2 : b.x, y2 = aside || !down ? b.y + Math.min(b.h / 2, 20) : b.y;
  c.strokeStyle = near ? tint.ink : cut ? tint.cut : tint.line;
  c.lineWidth = (near ? 1 : 0) + (cut ? 2 : 1) + Math.min(3, Math.log2(1 + n / 65536) / 3);
  c.globalAlpha = near ? 0.95 : clear * (cut ? 0.95 : 0.6);
  c.beginPath();
  c.moveTo(x1, y1);
  if (aside) { // past the boxes between, not through them
    const out = Math.max(x1, x2) + Math.min(70, 16 + (y2 - y1) / 12);
    c.bezierCurveTo(out, y1, out, y1, out, y1 + Math.min(30, (y2 - y1) / 2));
    c.lineTo(out, y2 - Math.min(30, (y2 - y1) / 2));
    c.bezierCurveTo(out, y2, out, y2, x2, y2);
  } else if (down) {
    const reach = Math.min(60, (y2 - y1) / 2);
    c.bezierCurveTo(x1, y1 + reach, x2, y2 - reach, x2, y2);
  } else {
    const reach = Math.max(24, Math.abs(x2 - x1) / 3);
    c.bezierCurveTo(x1 + reach, y1, x2 - reach, y2, x2, y2);
  }
  c.stroke();
  if (view.zoom > 0.4) arrowHead(c, x2, y2, aside ? [-1, 0] : down ? [0, 1] : [1, 0]);
  c.globalAlpha = 1;
}
function arrowHead(c, x, y, [dx, dy]) {
  const long = 6 + c.lineWidth, wide = 2.5 + c.lineWidth / 2;
  c.fillStyle = c.strokeStyle;
  c.beginPath();
  c.moveTo(x, y);
  c.lineTo(x - long * dx - wide * dy, y - long * dy - wide * dx);
  c.lineTo(x - long * dx + wide * dy, y - long * dy + wide * dx);
  c.fill();
}
// What the foot of a box and the lines say.
function modelLegend() {
  const { box, key, swatch } = legend();
  if (!plan.stages) return box;
  if (state.colour !== 'stage' && plan.stages.length <= 16) for (const s of plan.stages) key(swatch('foot', stageColour(s.index)), s.index ? `${s.index}` : 'at the foot: stage 0');
  if (plan.stages.length > 1) key(element('i', { class: 'cut-line' }), 'goes to another stage');
  return box;
}

function fitModel() {
  const { canvas, root } = view, w = canvas.clientWidth, h = canvas.clientHeight;
  view.zoom = Math.min(1.25, w / (root.w + 20), h / (root.h + 20));
  // Too small to be read: begin where the model does.
  const small = view.zoom < 0.4;
  if (small) view.zoom = Math.min(0.7, Math.max(0.4, w / (root.w + 20)));
  view.x = Math.max((w - root.w * view.zoom) / 2, small ? 10 : -Infinity);
  view.y = Math.max((h - root.h * view.zoom) / 2, small ? 0 : -Infinity);
  view.fit = false;
}
let painting = 0;
function repaint() {
  cancelAnimationFrame(painting);
  painting = requestAnimationFrame(paintModel);
}
function boxAt(px, py) {
  const x = (px - view.x) / view.zoom, y = (py - view.y) / view.zoom;
  for (let i = view.boxes.length - 1; i >= 0; i--) {
    const b = view.boxes[i];
    if (x >= b.x && x <= b.x + b.w && y >= b.y && y <= b.y + (b.open ? BOX.head + 4 : b.h)) return b;
  }
  return null;
}
// Opens or closes a scope, which stays where it is on the screen.
function toggleModel(key) {
  const before = view.boxes.find((b) => b.node.key === key);
  if (!before || before.node.leaf) return;
  if (view.opened.has(key)) view.opened.delete(key);
  else view.opened.add(key);
  settleModel();
  const after = view.boxes.find((b) => b.node.key === key);
  view.x += (before.x - after.x) * view.zoom;
  view.y += (before.y - after.y) * view.zoom;
  view.focused = view.focused ? after : null;
  listBoxes();
  repaint();
}
function act(box) {
  if (!box) return select(null);
  if (box.node.leaf) return select(box.node.ids[0]);
  return toggleModel(box.node.key);
}

// Opens all around a supernode and brings it to the middle.
function focusModel() {
  if (!view.canvas) return;
  if (state.selected !== null) {
    const around = (node) => { for (const child of node.children) if (child.ids.includes(state.selected)) { if (!child.leaf) view.opened.add(child.key); around(child); } };
    around(view.root);
    settleModel();
    const box = view.boxes[view.owner[state.selected]];
    view.zoom = Math.max(view.zoom, 0.75);
    view.x = view.canvas.clientWidth / 2 - (box.x + box.w / 2) * view.zoom;
    view.y = view.canvas.clientHeight / 2 - (box.y + box.h / 2) * view.zoom;
    listBoxes();
  }
  repaint();
}
function zoomBy(factor, px, py) {
  const zoom = Math.max(0.02, Math.min(3, view.zoom * factor));
  view.x = px - (px - view.x) * zoom / view.zoom;
  view.y = py - (py - view.y) * zoom / view.zoom;
  view.zoom = zoom;
  repaint();
}

// Drag, pinch, wheel.
function listenModel(canvas) {
  const down = new Map();
  let moved = 0;
  const at = (e) => { const r = canvas.getBoundingClientRect(); return [e.clientX - r.left, e.clientY - r.top]; };
  canvas.addEventListener('pointerdown', (e) => { canvas.setPointerCapture(e.pointerId); down.set(e.pointerId, at(e)); if (down.size === 1) moved = 0; });
  canvas.addEventListener('pointermove', (e) => {
    if (!down.has(e.pointerId)) { canvas.style.cursor = boxAt(...at(e)) ? 'pointer' : 'grab'; return; }
    const [x, y] = at(e), [ox, oy] = down.get(e.pointerId);
    moved += Math.abs(x - ox) + Math.abs(y - oy);
    if (down.size === 2) {
      const [other] = [...down].filter(([id]) => id !== e.pointerId).map(([, p]) => p);
      zoomBy(Math.hypot(x - other[0], y - other[1]) / Math.max(1, Math.hypot(ox - other[0], oy - other[1])), (x + other[0]) / 2, (y + other[1]) / 2);
    } else if (moved > 4) {
      view.x += x - ox;
      view.y += y - oy;
      repaint();
    }
    down.set(e.pointerId, [x, y]);
  });
  const up = (e) => { if (down.delete(e.pointerId) && moved <= 4 && e.type === 'pointerup') act(boxAt(...at(e))); };
  canvas.addEventListener('pointerup', up);
  canvas.addEventListener('pointercancel', up);
  canvas.addEventListener('wheel', (e) => { e.preventDefault(); zoomBy(Math.exp(-e.deltaY * (e.deltaMode ? 0.05 : 0.0016)), ...at(e)); }, { passive: false });
}

// For who does not see the canvas: the same boxes as buttons.
function listBoxes() {
  const list = byId('boxes');
  list.replaceChildren();
  for (const b of view.boxes.slice(0, 300)) {
    const attributes = { type: 'button', onclick: () => act(b), onfocus: () => { view.focused = b; bring(b); }, onblur: () => { view.focused = null; repaint(); } };
    if (!b.node.leaf) attributes['aria-expanded'] = b.open;
    list.append(element('li', {}, element('button', attributes, `${boxTitle(b.node)}, ${boxDetail(b.node)}`)));
  }
}
function bring(b) {
  const { canvas } = view, x = b.x * view.zoom + view.x, y = b.y * view.zoom + view.y;
  if (x < 0 || y < 0 || x + Math.min(200, b.w * view.zoom) > canvas.clientWidth || y + 40 > canvas.clientHeight) {
    view.x += canvas.clientWidth / 3 - x;
    view.y += canvas.clientHeight / 3 - y;
  }
  repaint();
}

function drawModel(box) {
  const colours = plan.stages ? COLOURS : COLOURS.slice(0, 2);
  if (!plan.stages && state.colour === 'stage') state.colour = 'class';
  const all = (open) => { const walk = (n) => { if (!n.leaf && n !== view.root) { if (open) view.opened.add(n.key); else view.opened.delete(n.key); } n.children.forEach(walk); }; walk(view.root); if (!open) openFirst(); view.fit = true; show(); };
  box.append(element('div', { class: 'tools' }, element('span', { class: 'label' }, 'coloured by'), choice('coloured by', colours, state.colour, (colour) => set({ colour })),
    element('button', { type: 'button', id: 'fit', onclick: () => { fitModel(); repaint(); } }, 'Fit'), element('button', { type: 'button', id: 'fold', onclick: () => all(false) }, 'Close all'),
    ...(plan.supernodes.length <= 600 ? [element('button', { type: 'button', id: 'unfold', onclick: () => all(true) }, 'Open all')] : [])));
  const canvas = element('canvas', { id: 'canvas', 'aria-hidden': 'true' });
  const frame = element('div', { class: 'plane' }, canvas, element('ul', { id: 'boxes', class: 'unseen', 'aria-label': 'scopes and supernodes' }));
  box.append(frame, modelLegend());
  frame.style.height = `${Math.max(320, innerHeight - frame.getBoundingClientRect().top - 60)}px`;
  view.canvas = canvas;
  settleModel();
  if (view.fit) fitModel();
  listenModel(canvas);
  listBoxes();
  if (state.selected !== null) focusModel();
  paintModel();
}
function leaveModel() { view.canvas = null; view.focused = null; }
const modelBoxes = () => view.boxes.map((b) => ({ key: b.node.key, title: boxTitle(b.node), ids: b.node.ids, leaf: !!b.node.leaf, open: b.open, wide: b.w * view.zoom, x: view.x + (b.x + 20) * view.zoom, y: view.y + (b.y + 12) * view.zoom }));
