// The model: scopes within scopes, closed at the start and fitted to the window, on a canvas. A click
// opens one, down to supernodes, and shows a supernode's operators beside it.

const BOX = { least: 118, most: 236, height: 40, line: 14, small: '11px system-ui, sans-serif' };
const MANY = 6; // readers: their lines are drawn when it is selected or pointed at
const view = { x: 0, y: 0, zoom: 1, root: null, plan: null, boxes: [], nets: [], canvas: null, fit: true, focused: null, hover: null, opened: new Set() };
const isOpen = (node) => !node.leaf && (node === view.root || view.opened.has(node.key));

// Boxes as they stand on the plane, outer ones first, and lines between them.
function settleModel() {
  if (view.plan !== plan) {
    view.root = scopeTree(plan);
    view.plan = plan;
    view.fit = true;
    openFirst();
  }
  const boxes = [], owner = new Int32Array(plan.supernodes.length);
  const walk = (node) => {
    node.box = { node, open: isOpen(node) };
    if (node !== view.root) boxes.push(node.box);
    node.rims = node.lines = null;
    if (node.box.open) for (const child of childrenOf(node)) walk(child);
    else for (const id of node.ids) owner[id] = boxes.length - 1;
  };
  walk(view.root);
  view.boxes = boxes;
  view.hover = null;
  view.owner = owner;
  view.nets = netsBetween(boxes, owner);
  arrange(view.root);
  const stand = (node, x, y) => {
    Object.assign(node.box, { x: x + (node.x ?? 0), y: y + (node.y ?? 0), w: node.w, h: node.h });
    if (node === view.root) node.box.x = node.box.y = 0;
    if (node.box.open) for (const child of node.children) stand(child, node.box.x, node.box.y);
    for (const line of node.lines ?? []) line.net.drawn.push({ ...line, x: node.box.x, y: node.box.y });
  };
  stand(view.root, 0, 0);
  for (const net of view.nets) drawNet(net);
}

// What goes from one box to others: {from, to: [{box, bytes, cut}], hidden: [those that are too many to be drawn]}.
function netsBetween(boxes, owner) {
  const nets = new Map();
  for (const e of plan.edges) {
    const a = owner[e.from], b = owner[e.to];
    if (a === b) continue;
    if (!nets.has(a)) nets.set(a, { from: boxes[a], ends: new Map(), drawn: [] });
    const net = nets.get(a);
    if (!net.ends.has(b)) net.ends.set(b, { box: boxes[b], bytes: 0, cut: false, tensors: new Set() });
    const end = net.ends.get(b);
    if (!end.tensors.has(e.tensor)) end.bytes += e.bytes ?? 0;
    end.tensors.add(e.tensor);
    end.cut ||= stageNow(e.from) !== stageNow(e.to);
  }
  const list = [...nets.values()];
  for (const net of list) {
    const ends = [...net.ends.values()].sort((x, y) => x.box.node.middle - y.box.node.middle);
    // Lines go down: what goes back to a scope that is all over the model is not drawn, nor what many read.
    const on = ends.filter((end) => goesOn(net.from.node, end.box.node)), many = ends.length >= MANY;
    net.to = many ? on.slice(0, 1) : on;
    net.hidden = ends.filter((end) => !net.to.includes(end));
    for (const end of net.to) joinNet(net, end);
  }
  return list;
}
const outer = (node) => { const all = [node]; for (let at = node.parent; at; at = at.parent) all.push(at); return all; };
// Whether one comes before another in the box that holds both.
function goesOn(a, b) {
  const up = outer(a), down = outer(b), meet = up.findIndex((node) => down.includes(node));
  const all = up[meet].children;
  return all.indexOf(up[meet - 1]) < all.indexOf(down[down.indexOf(up[meet]) - 1]);
}
// Its way from box to box: out of those that are open around it, across, and into those around its reader.
function joinNet(net, end) {
  const up = outer(net.from.node).slice(1), down = outer(end.box.node).slice(1), meet = up.find((node) => down.includes(node));
  const link = (node, from, to) => {
    node.links ??= [];
    node.links.push({ from, to, net, end });
  };
  let from = net.from.node;
  for (const node of up.slice(0, up.indexOf(meet))) {
    link(node, from, 'out');
    from = node;
  }
  const inward = down.slice(0, down.indexOf(meet)).reverse();
  link(meet, from, inward[0] ?? end.box.node);
  inward.forEach((node, i) => link(node, 'in', inward[i + 1] ?? end.box.node));
}

function arrange(node) {
  for (const child of node.children) {
    if (child.box.open) arrange(child);
    else Object.assign(child, sizeOf(child));
  }
  const items = itemsOf(node), rims = new Map();
  const itemOf = (what, net) => {
    if (typeof what !== 'string') return what.item;
    const key = `${what} ${net.from.node.key}`;
    if (!rims.has(key)) rims.set(key, { rim: what, net, w: 8, h: 0, from: [], into: [] });
    return rims.get(key);
  };
  for (const { from, to, net, end } of node.links ?? []) {
    const joined = join(itemOf(from, net), itemOf(to, net), net);
    (joined.ends ??= new Set()).add(end);
  }
  node.links = null;
  const head = node === view.root ? 0 : widthOf(boxTitle(node), BOLD) + 40;
  layOut(node, { items: [...items, ...rims.values()], least: head, shape: node === view.root && view.canvas ? view.canvas.clientWidth / Math.max(1, view.canvas.clientHeight) : 1.3 });
}
// As wide as its words are.
function sizeOf(node) {
  const title = wrapped(`${node.leaf ? '' : '+ '}${boxTitle(node)}`, BOX.most - 20, 2, BOLD);
  const w = Math.max(...title.map((line) => widthOf(line, BOLD)), widthOf(boxDetail(node), BOX.small));
  return { w: Math.ceil(Math.max(BOX.least, Math.min(BOX.most, w + 20))), h: BOX.height + BOX.line * (title.length - 1) };
}
// A scope that holds most of the model says little while it is closed.
function openFirst() {
  let at = view.root;
  for (let visible = childrenOf(at).length; visible < 20;) {
    const next = at.children.filter((c) => !c.leaf).sort((a, b) => b.ids.length - a.ids.length)[0];
    if (!next || (next.children.length > 400 && visible >= 4) || childrenOf(next).length > 40 || (visible >= 7 && next.ids.length < 0.5 * view.root.ids.length)) break;
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
  if (node.bunch) return node.does ??= bunchTitle(node.ids);
  if (/^\d+ blocks$/.test(node.title)) return `${node.title}: ${node.does ??= bunchTitle(node.children[0].ids)}`;
  if (!/^\d+$/.test(node.title)) return node.title;
  return `${node.parent?.title ? `${node.parent.title}.` : ''}${node.title}`;
}
function boxDetail(node) {
  const cost = plan.supernodes[node.ids[0]].cost_ns === null ? '' : time(costOf(node));
  const { path } = about(node.ids[0]), last = node.within ?? path.at(-1) ?? ''; // a number alone says little
  const where = !node.leaf ? count(node.ids.length, 'supernode') : /^\d+$/.test(last) ? path.slice(-2).join('.') : last;
  return [cost, where].filter(Boolean).join(' · ');
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
  const chosen = state.selected === null ? null : view.boxes[view.owner[state.selected]], near = [chosen, view.hover, view.focused].filter(Boolean);
  for (const net of view.nets) paintNet(c, net, tint);
  for (const b of near) paintNear(c, b, tint);
  for (const b of view.boxes) if (!b.open && seen(b)) paintClosed(c, b, tint, b === chosen);
  for (const b of view.boxes) if (b.open && seen(b)) paintTitle(c, b, tint);
  if (view.zoom > 0.3) for (const net of view.nets) if (net.hidden.length) paintMany(c, net, tint);
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
}
// Over the lines that come in beside it.
function paintTitle(c, b, tint) {
  const size = Math.max(12, Math.min(20, 10.5 / view.zoom)), font = `600 ${size}px system-ui, sans-serif`;
  c.font = font;
  c.strokeStyle = tint.card;
  c.lineWidth = 5;
  c.lineJoin = 'round';
  c.fillStyle = tint.soft;
  const text = fitted(`− ${boxTitle(b.node)}`, b.w - 16, font, false);
  c.strokeText(text, b.x + 9, b.y + 11 + size / 2);
  c.fillText(text, b.x + 9, b.y + 11 + size / 2);
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
  c.font = BOLD;
  const lines = wrapped(`${b.node.leaf ? '' : '+ '}${boxTitle(b.node)}`, b.w - 16, 2, BOLD);
  lines.forEach((line, i) => c.fillText(line, b.x + 9, b.y + 16 + BOX.line * i));
  c.font = BOX.small;
  c.globalAlpha = 0.85;
  c.fillText(fitted(boxDetail(b.node), b.w - 16, BOX.small, false), b.x + 9, b.y + 15 + BOX.line * lines.length);
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
// The lines of a net as two paths, of what stays in a stage and what leaves it, and where they end.
function drawNet(net) {
  net.paths = [new Path2D(), new Path2D()];
  net.arrows = [];
  net.wide = [0, 0];
  for (const line of net.drawn) {
    line.path = new Path2D();
    trace(line.path, line);
    const ends = [...line.link.ends], cut = ends.some((end) => end.cut) ? 1 : 0;
    net.paths[cut].addPath(line.path);
    net.wide[cut] = ends.reduce((m, end) => Math.max(m, end.bytes), net.wide[cut]);
    if (line.arrow) net.arrows.push([line.points.at(-1)[0] + line.x, line.points.at(-1)[1] + line.y, cut]);
  }
}
const thick = (n, cut) => (cut ? 1.8 : 1) + Math.min(2, Math.log2(1 + n / 65536) / 5);
function trace(path, { points, square, x: dx, y: dy }) {
  let [x, y] = [points[0][0] + dx, points[0][1] + dy];
  path.moveTo(x, y);
  if (square) {
    for (let i = 1; i + 1 < points.length; i++) {
      const [a, b] = [points[i], points[i + 1]], r = Math.min(9, Math.hypot(a[0] - points[i - 1][0], a[1] - points[i - 1][1]) / 2, Math.hypot(b[0] - a[0], b[1] - a[1]) / 2);
      path.arcTo(a[0] + dx, a[1] + dy, b[0] + dx, b[1] + dy, r);
    }
    path.lineTo(points.at(-1)[0] + dx, points.at(-1)[1] + dy);
    return;
  }
  for (const point of points.slice(1)) {
    const [px, top, foot = top] = point, tx = px + dx, ty = top + dy;
    if (Math.abs(tx - x) < 0.5) path.lineTo(tx, ty);
    else path.bezierCurveTo(x, y + (ty - y) * 0.55, tx, ty - (ty - y) * 0.55, tx, ty);
    if (foot > top) path.lineTo(tx, foot + dy);
    [x, y] = [tx, foot + dy];
  }
}
function paintNet(c, net, tint) {
  for (const cut of [0, 1]) {
    c.strokeStyle = c.fillStyle = cut ? tint.cut : tint.line;
    c.lineWidth = Math.max(thick(net.wide[cut], cut), 0.8 / view.zoom);
    c.globalAlpha = cut ? 0.95 : dark.matches ? 1 : 0.8;
    c.stroke(net.paths[cut]);
    if (view.zoom > 0.3) for (const [x, y, red] of net.arrows) if (red === cut) arrowHead(c, x, y, [0, 1]);
  }
  c.globalAlpha = 1;
}
// All lines of a box that is selected or pointed at, those too that are not drawn else.
function paintNear(c, b, tint) {
  const reads = (end) => end.box === b || inside(end.box.node, b.node);
  c.strokeStyle = c.fillStyle = tint.ink;
  for (const net of view.nets) {
    const own = net.from === b || inside(net.from.node, b.node);
    for (const line of net.drawn) {
      if (!own && ![...line.link.ends].some(reads)) continue;
      c.lineWidth = 2;
      c.stroke(line.path);
      if (line.arrow) arrowHead(c, line.points.at(-1)[0] + line.x, line.points.at(-1)[1] + line.y, [0, 1]);
    }
    for (const end of net.hidden) {
      if (!own && !reads(end)) continue;
      const x1 = net.from.x + net.from.w / 2, y1 = net.from.y + net.from.h, x2 = end.box.x, y2 = end.box.y + end.box.h / 2;
      c.strokeStyle = end.cut ? tint.cut : tint.ink;
      c.lineWidth = 1.4;
      c.beginPath();
      c.moveTo(x1, y1);
      c.bezierCurveTo(x1, y1 + 60, x2 - 60, y2, x2, y2);
      c.stroke();
      c.strokeStyle = tint.ink;
    }
  }
}
const inside = (node, outer) => { for (let at = node.parent; at; at = at.parent) if (at === outer) return true; return false; };
// How many more read it, and a ring at each of them.
function paintMany(c, net, tint) {
  const { from } = net, red = net.hidden.some((end) => end.cut), text = `to ${net.hidden.length} more`;
  for (const { box, cut } of net.hidden) {
    if (box.open) continue;
    c.beginPath();
    c.arc(box.x, box.y + box.h / 2, 3.5, 0, 7);
    c.fillStyle = tint.card;
    c.fill();
    c.lineWidth = 1.5;
    c.strokeStyle = cut ? tint.cut : tint.soft;
    c.stroke();
  }
  c.font = BOX.small;
  const wide = widthOf(text, BOX.small) + 12, x = from.x + from.w - wide, y = from.y + from.h - 5;
  c.fillStyle = tint.card;
  rounded(c, x, y, wide, 16, 8);
  c.fill();
  c.lineWidth = 1;
  c.strokeStyle = red ? tint.cut : tint.line;
  c.stroke();
  c.fillStyle = tint.soft;
  c.fillText(text, x + 6, y + 12);
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
  if (plan.stages) {
    if (state.colour !== 'stage' && plan.stages.length <= 16) for (const s of plan.stages) key(swatch('foot', stageColour(s.index)), s.index ? `${s.index}` : 'at the foot: stage 0');
    if (plan.stages.length > 1) key(element('i', { class: 'cut-line' }), 'goes to another stage');
  }
  box.append(element('span', { id: 'ring-key' }, element('i', { class: 'ring' }), 'reads what many read, or what a later box gives: point at it to see from where'));
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
    if (x >= b.x && x <= b.x + b.w && y >= b.y && y <= b.y + (b.open ? GAP.head : b.h)) return b;
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
    const around = (node) => { for (const child of childrenOf(node)) if (child.ids.includes(state.selected)) { if (!child.leaf) view.opened.add(child.key); around(child); } };
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

function zoomKey(key) {
  const { canvas } = view;
  if (key !== '0') return zoomBy(key === '-' ? 0.8 : 1.25, canvas.clientWidth / 2, canvas.clientHeight / 2);
  fitModel();
  return repaint();
}

// Drag, pinch, wheel.
function listenModel(canvas) {
  const down = new Map();
  let moved = 0;
  const at = (e) => { const r = canvas.getBoundingClientRect(); return [e.clientX - r.left, e.clientY - r.top]; };
  canvas.addEventListener('pointerdown', (e) => { canvas.setPointerCapture(e.pointerId); down.set(e.pointerId, at(e)); if (down.size === 1) moved = 0; });
  canvas.addEventListener('pointermove', (e) => {
    if (!down.has(e.pointerId)) { point(boxAt(...at(e)), at(e)); return; }
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
  canvas.addEventListener('pointerleave', () => point(null));
  const up = (e) => { if (down.delete(e.pointerId) && moved <= 4 && e.type === 'pointerup') act(boxAt(...at(e))); };
  canvas.addEventListener('pointerup', up);
  canvas.addEventListener('pointercancel', up);
  canvas.addEventListener('wheel', (e) => { e.preventDefault(); zoomBy(Math.exp(-e.deltaY * (e.deltaMode ? 0.05 : 0.0016)), ...at(e)); }, { passive: false });
}

// What the mouse is over: its lines, and what there is to know of it.
function point(box, at) {
  view.canvas.style.cursor = box ? 'pointer' : 'grab';
  const tip = byId('tip');
  tip.hidden = !box || !at;
  if (box && at) {
    if (box !== view.hover) tip.replaceChildren(element('b', {}, boxTitle(box.node)), ...tipLines(box).map((line) => element('span', {}, line)));
    const { offsetWidth: w, offsetHeight: h } = tip;
    tip.style.left = `${Math.max(4, Math.min(at[0] + 14, view.canvas.clientWidth - w - 4))}px`;
    tip.style.top = `${at[1] + 18 + h > view.canvas.clientHeight ? Math.max(4, at[1] - h - 10) : at[1] + 18}px`;
  }
  if (box === view.hover) return;
  view.hover = box;
  repaint();
}
function tipLines({ node, open }) {
  const { ids } = node, own = new Set(ids), total = Math.max(1, costOf(view.root)), stages = [...new Set(ids.map(stageNow))].filter((s) => s !== null).sort((a, b) => a - b), out = new Map();
  for (const id of ids) for (const e of edgesFrom(id)) if (!own.has(e.to) && (!out.has(e.tensor) || out.get(e.tensor).bytes === undefined)) out.set(e.tensor, e);
  const first = [...out.values()].sort((a, b) => (b.bytes ?? 0) - (a.bytes ?? 0)).slice(0, 3);
  const cost = plan.supernodes[ids[0]].cost_ns === null ? null : `${time(costOf(node))}, ${percent(costOf(node) / total)} of the model`;
  const weights = ids.reduce((n, id) => n + (plan.supernodes[id].weight_bytes ?? 0), 0);
  return [node.leaf ? plan.supernodes[ids[0]].title : null, node.leaf ? null : count(ids.length, 'supernode'), cost, weights ? `${bytes(weights)} of weights` : null,
    stages.length ? `stage${stages.length > 1 ? 's' : ''} ${stages.length > 6 ? `${stages[0]} to ${stages.at(-1)}` : stages.join(', ')}` : null,
    ...first.map((e) => `gives ${e.type ?? e.tensor}, ${bytes(e.bytes)}`), out.size > 3 ? `and ${out.size - 3} more` : null, node.leaf ? null : open ? 'click closes it' : 'click opens it'].filter(Boolean);
}

// For who does not see the canvas: the same boxes as a tree, with one stop for the tab key and arrows from
// there. Its pieces are made as they are come to.
const PIECE = 200;
function listBoxes() {
  const list = byId('boxes');
  list.replaceChildren();
  view.listed = 0;
  listMore(list);
  byId('ring-key').hidden = !view.nets.some((net) => net.hidden.length);
}
function listMore(list) {
  for (const b of view.boxes.slice(view.listed, view.listed + PIECE)) {
    const level = outer(b.node).length - 1;
    const attributes = { role: 'treeitem', tabindex: view.listed ? -1 : 0, 'aria-level': level, onclick: () => act(b), onfocus: () => { view.focused = b; bring(b); }, onblur: () => { view.focused = null; repaint(); } };
    if (!b.node.leaf) attributes['aria-expanded'] = b.open ? 'true' : 'false';
    list.append(element('li', attributes, `${boxTitle(b.node)}, ${boxDetail(b.node)}`));
    view.listed++;
  }
  const left = view.boxes.length - view.listed;
  if (left > 0) list.append(element('li', { role: 'treeitem', tabindex: -1, 'aria-level': 1, onclick: (event) => { event.target.remove(); listMore(list); } }, `${left} more`));
}
// The place of a box in the tree, which is made as far as that.
function listedAt(i) {
  const list = byId('boxes');
  while (i >= view.listed && view.listed < view.boxes.length) {
    if (list.lastElementChild && view.listed) list.lastElementChild.remove();
    listMore(list);
  }
  return list.children[i];
}
function walkBoxes(event) {
  const list = byId('boxes'), at = [...list.children].indexOf(event.target), b = view.boxes[at];
  if (!b) return;
  const outerOf = () => view.boxes.findIndex((other) => other.node === b.node.parent);
  const go = { ArrowDown: () => at + 1, ArrowUp: () => at - 1, Home: () => 0, End: () => view.boxes.length - 1, ArrowRight: () => (b.open ? at + 1 : at), ArrowLeft: () => (b.open ? at : outerOf()) }[event.key];
  const turns = event.key === 'Enter' || event.key === ' ' || (event.key === 'ArrowRight' && !b.open && !b.node.leaf) || (event.key === 'ArrowLeft' && b.open);
  if (!go && !turns) return;
  event.preventDefault();
  const { key } = b.node;
  if (turns) act(b);
  const to = turns ? view.boxes.findIndex((other) => other.node.key === key) : go();
  if (to < 0 || to >= view.boxes.length) return;
  list.querySelector('[tabindex="0"]')?.setAttribute('tabindex', -1);
  const item = listedAt(to);
  item.setAttribute('tabindex', 0);
  item.focus();
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
  const all = (open) => { const walk = (n) => { if (!n.leaf && n !== view.root) { if (open) view.opened.add(n.key); else view.opened.delete(n.key); } childrenOf(n).forEach(walk); }; walk(view.root); if (!open) openFirst(); view.fit = true; show(); };
  box.append(element('div', { class: 'tools' }, element('span', { class: 'label' }, 'coloured by'), choice('coloured by', colours, state.colour, (colour) => set({ colour })),
    element('button', { type: 'button', id: 'fit', onclick: () => { fitModel(); repaint(); } }, 'Fit'), element('button', { type: 'button', id: 'fold', onclick: () => all(false) }, 'Close all'),
    ...(plan.supernodes.length <= 600 ? [element('button', { type: 'button', id: 'unfold', onclick: () => all(true) }, 'Open all')] : [])));
  const canvas = element('canvas', { id: 'canvas', 'aria-hidden': 'true' });
  const frame = element('div', { class: 'plane' }, canvas, element('ul', { id: 'boxes', class: 'unseen', role: 'tree', 'aria-label': 'scopes and supernodes', onkeydown: walkBoxes }), element('div', { id: 'tip', hidden: true }));
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
function leaveModel() { view.canvas = null; view.focused = null; view.hover = null; }
// Points along all lines that are drawn, and what each comes from and goes to: for tests.
const modelLines = () => view.nets.flatMap((net) => net.drawn.map(({ points, square, x: dx, y: dy, link }) => {
  const at = [[points[0][0] + dx, points[0][1] + dy]];
  for (const [px, top, foot = top] of points.slice(1)) {
    const [x, y] = at.at(-1), tx = px + dx, ty = top + dy;
    for (let t = 0.1; t < 1.05; t += 0.1) at.push(square ? [x + (tx - x) * t, y + (ty - y) * t] : [x + (tx - x) * t * t * (3 - 2 * t), y + (ty - y) * (1.65 * t * (1 - t) ** 2 + 1.35 * t * t * (1 - t) + t ** 3)]);
    if (foot > top) at.push([tx, (ty + foot + dy) / 2], [tx, foot + dy]);
  }
  return { at, from: net.from.node.key, to: [...link.ends].map((end) => end.box.node.key) };
}));
const modelBoxes = () => view.boxes.map((b) => ({ key: b.node.key, title: boxTitle(b.node), ids: b.node.ids, leaf: !!b.node.leaf, open: b.open, wide: b.w * view.zoom, box: [b.x, b.y, b.w, b.h], reads: view.nets.some((net) => net.hidden.some((end) => end.box === b)), x: view.x + (b.x + 20) * view.zoom, y: view.y + (b.y + 12) * view.zoom }));
