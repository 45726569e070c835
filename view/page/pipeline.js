// The pipeline: a column for each stage, its supernodes stacked in their order, as high as they take
// time. The slowest stage is the tallest column. What crosses goes from column to column in bands as
// thick as sending takes; the lower bound is a line across. Or memory: what a stage holds, and its limit.

const BOLD = '600 12px system-ui, sans-serif';
const COLUMN = { top: 62, least: 72, most: 230, gap: 64, foot: 26, lanes: 0.14 };

// Marks of one column, from the top: [kind, amount, ids]. Supernodes too thin to be seen go together.
function timeParts(cut, s, scale, ids) {
  const parts = [];
  const stage = cut.stages[s];
  if (stage.recv_ns) parts.push({ kind: 'recv', amount: stage.recv_ns });
  let thin = null;
  const flush = () => { if (thin) parts.push(thin); thin = null; };
  for (const id of ids) {
    const amount = costIn(cut, id, s);
    if (amount * scale >= 2.5) {
      flush();
      parts.push({ kind: 'supernode', amount, ids: [id] });
    } else {
      thin ??= { kind: 'supernode', amount: 0, ids: [] };
      thin.ids.push(id);
      thin.amount += amount;
      if (thin.amount * scale >= 6) flush();
    }
  }
  flush();
  const computed = ids.reduce((sum, id) => sum + costIn(cut, id, s), 0);
  const again = stage.compute_ns - stage.layout_ns - computed;
  if (again > 0) parts.push({ kind: 'again', amount: again });
  if (stage.layout_ns) parts.push({ kind: 'layout', amount: stage.layout_ns });
  if (stage.send_ns) parts.push({ kind: 'send', amount: stage.send_ns });
  return parts;
}
// Time of a supernode in a stage: on its device, where that is known.
function costIn(cut, id, s) {
  const c = plan.counting;
  const ns = c?.supernode_ns ? c.supernode_ns[c.stage_class[s] * plan.supernodes.length + id] : plan.supernodes[id].cost_ns ?? 0;
  return ns / (cut.stages[s].replicas ?? 1);
}
const memoryParts = (stage) => [['weights', stage.weight_bytes], ['activations', stage.activation_bytes], ['stash', stage.stash_bytes ?? 0], ['caches', stage.state_bytes ?? 0], ['buffers', stage.buffer_bytes], ['workspace', stage.workspace_bytes]]
  .filter(([, n]) => n > 0).map(([kind, amount]) => ({ kind, amount }));
const PART_NAMES = { recv: 'receive', send: 'send', layout: 'layouts that cuts change', again: 'computed again here', weights: 'weights', activations: 'activations', stash: 'stash', caches: 'caches', buffers: 'buffers', workspace: 'workspace' };

// Everything for one stage after another, and its supernodes in the plan's order.
function membersOf(cut) {
  const lists = cut.stages.map(() => []);
  for (const id of plan.order) lists[cut.stageOf[id]].push(id);
  return lists;
}

function pipelineDrawing(cut, { width, height, most, lanesTall = 0, title }) {
  const memory = state.mode === 'memory', n = cut.stages.length;
  const full = cut.stages.map((s) => (memory ? s.memory_bytes : workOf(s)));
  const limits = memory ? cut.stages.map((s) => s.memory_limit_bytes).filter((l) => l !== null) : [];
  const largest = Math.max(1, most ?? 0, ...full, ...limits.filter((l) => l < 1.6 * Math.max(...full)));
  const phone = width < 560, bounded = !memory && plan.plan.objective === 'throughput', margin = phone ? 4 : bounded ? 88 : 8; // on the right: what the bound is
  const wish = Math.max(phone ? 14 : 20, Math.min(COLUMN.gap, width / n / (phone ? 6 : 3)));
  const wide = Math.min(COLUMN.most, Math.max(n > 8 ? 40 : COLUMN.least, (width - wish * (n - 1) - margin - 8) / n));
  const gap = n > 1 ? Math.max(phone ? 10 : 20, Math.min(wish, (width - 8 - margin - n * wide) / (n - 1))) : wish;
  const total = Math.max(width, 8 + n * wide + (n - 1) * gap + margin), left = Math.max(8, (total - margin - n * wide - (n - 1) * gap) / 2);
  const bundles = memory ? [] : bundlesOf(cut), lanes = lanesOf(bundles, COLUMN.lanes * height);
  const tall = height - COLUMN.top - COLUMN.foot - Math.max(lanes.tall, lanesTall), scale = tall / largest;
  const x = (s) => left + s * (wide + gap);
  const svg = drawing('svg', { viewBox: `0 0 ${total} ${height}`, width: total, height, class: 'pipeline', role: 'group', 'aria-label': title });
  const bands = drawing('g', { class: 'bands' }), marks = drawing('g'), heads = drawing('g'), over = drawing('g');
  svg.append(bands, marks, heads, over);
  const members = membersOf(cut), heaviest = plan.supernodes.reduce((m, g) => Math.max(m, g.cost_ns ?? 0), 0);
  const edge = cut.stages.map(() => ({})); // where receiving and sending stand
  cut.stages.forEach((stage, s) => {
    let y = COLUMN.top;
    marks.append(drawing('rect', { class: 'track', x: x(s), y, width: wide, height: tall, rx: 3 }));
    for (const p of memory ? memoryParts(stage) : timeParts(cut, s, scale, members[s])) {
      const h = p.amount * scale;
      if (p.kind === 'recv' || p.kind === 'send') edge[s][p.kind] = [y, h];
      marks.append(columnPart(p, s, { x: x(s), y, wide, h, heaviest }));
      y += h;
    }
    heads.append(columnHead(cut, s, { x: x(s), wide, room: wide + (phone ? 3 : gap - 8), memory }));
    if (memory && stage.memory_limit_bytes !== null && stage.memory_limit_bytes <= largest) {
      const at = COLUMN.top + stage.memory_limit_bytes * scale;
      over.append(drawing('line', { class: 'limit', x1: x(s) - 6, x2: x(s) + wide + 6, y1: at, y2: at }), drawing('text', { class: 'limit', x: x(s) + wide, y: at + 12, 'text-anchor': 'end' }, `limit ${bytes(stage.memory_limit_bytes)}`));
    }
  });
  if (bounded) drawBound(over, scale, { right: x(n - 1) + wide, total, named: !phone });
  if (!memory) drawBands(bands, over, { bundles, lanes, stages: cut.stages }, edge, { x, wide, gap, tall });
  return svg;
}

function columnPart(p, s, { x, y, wide, h, heaviest }) {
  const shape = { x, y, width: wide, height: Math.max(h - (h > 3 ? 0.8 : 0), 0.3) };
  if (p.kind !== 'supernode') {
    const rect = drawing('rect', { ...shape, class: `part ${p.kind}` });
    const amount = state.mode === 'memory' ? bytes(p.amount) : time(p.amount);
    rect.append(drawing('title', {}, `stage ${s}, ${PART_NAMES[p.kind]}: ${amount}`));
    const g = drawing('g', {}, rect);
    const text = [`${PART_NAMES[p.kind].split(' ')[0]} ${amount}`, amount].find((each) => widthOf(each) <= wide - 10);
    if (h >= 15 && text) g.append(drawing('text', { class: 'on', x: x + 6, y: y + h / 2 + 4 }, text));
    return g;
  }
  const id = p.ids[0], one = p.ids.length === 1;
  const name = one ? fullName(id) : `${count(p.ids.length, 'supernode')}, ${fullName(id)} to ${fullName(p.ids.at(-1))}`;
  const g = drawing('g', { class: `mark${p.ids.includes(state.selected) ? ' chosen' : ''}`, 'data-ids': p.ids.join(','), role: 'button', tabindex: -1, 'aria-label': `${name}: ${time(p.amount)}` });
  const rect = drawing('rect', shape);
  paint(rect, p.ids.reduce((best, i) => (costIn(split(), i, s) > costIn(split(), best, s) ? i : best), id), s, heaviest);
  g.append(rect, drawing('title', {}, `${name}\n${time(p.amount)}${one ? `, ${bytes(plan.supernodes[id].weight_bytes)} of weights` : ''}`));
  const text = h >= 15 ? markText(one ? about(id).kind : count(p.ids.length, 'supernode'), one ? id : null, { x, y, wide, h }) : null;
  if (text) g.append(text);
  return g;
}

// What a supernode does and where it is: beside each other, or below as there is room; null: there is none.
function markText(kind, id, { x, y, wide, h }) {
  const room = wide - 12, rows = Math.max(1, Math.floor((h - 3) / 14)), lines = wrapped(kind, room, rows, BOLD);
  const text = drawing('text', { class: 'on' });
  // A few letters tell nothing, but for a word.
  const told = (line) => !line.endsWith('…') || line.length > 6 || kind.startsWith(`${line.slice(0, -1)} `);
  if (!lines.length || !told(lines[0])) return null;
  const left = room - widthOf(lines.at(-1), BOLD) - 6;
  const more = id !== null && rows > lines.length, beside = id === null ? null : placeIn(id, left, more);
  const below = beside || !more ? null : placeIn(id, room) ?? ([fitted(whereabouts(id), room)].find((part) => part.length > 6) ?? null);
  const first = y + h / 2 + 4 - (lines.length + (below ? 1 : 0) - 1) * 7;
  lines.forEach((line, i) => text.append(drawing('tspan', { class: 'kind', x: x + 6, y: first + 14 * i }, line)));
  if (beside) text.append(drawing('tspan', { class: 'where', dx: 5 }, beside));
  if (below) text.append(drawing('tspan', { class: 'where', x: x + 6, y: first + 14 * lines.length }, below));
  return text;
}
// Where it is, in as many words as there is room for; null: not for the last of them, or of two, where that is asked.
const placeIn = (id, room, whole = false) => {
  const { path } = about(id), where = whereabouts(id), more = plan.scopes[id] ? [4, 3].map((n) => path.slice(-n).join('.')) : [];
  return [...more, where, ...(whole ? [] : [where.replace(/^.*\.(?=.*\D)/, '')])].find((each) => each && widthOf(each) <= room) ?? null;
};

function columnHead(cut, s, { x, wide, room, memory }) {
  // A device by a few letters is none.
  const stage = cut.stages[s], called = fitted(`${s} · ${stage.device}`, room, BOLD, false), told = !called.endsWith('…') || called.length > `${s} · `.length + 6;
  const slowest = stage.load_ns >= cut.bottleneck_ns || (inSegments(cut) && stage.device === slowestDevice(cut));
  const limit = stage.memory_limit_bytes, narrow = wide < 60;
  const share = limit === null ? '' : `, ${percent(stage.memory_bytes / limit)} of ${bytes(limit)}`;
  const over = limit !== null && stage.memory_bytes > limit;
  const head = drawing('g', { class: 'head' });
  head.append(drawing('rect', { x, y: 2, width: wide, height: 4, rx: 2, style: `fill:${stageColour(s)}` }));
  head.append(drawing('text', { class: 'stage', x, y: 22 }, narrow || !told ? `${s}` : called));
  const first = memory ? bytes(stage.memory_bytes) : time(stage.load_ns), second = memory ? time(stage.load_ns) : bytes(stage.memory_bytes);
  const size = [18, 15, 13].find((px) => widthOf(first, `600 ${px}px system-ui, sans-serif`) <= room) ?? 11;
  const big = drawing('text', { class: `big${(memory ? over : slowest) ? ' hot' : ''}`, x, y: 41, style: `font-size:${size}px` }, first);
  if (!narrow && (memory ? over : slowest) && wide > 150) big.append(drawing('tspan', { class: 'small', dx: 6 }, memory ? 'does not fit' : 'slowest'));
  head.append(big);
  const line = narrow ? '' : memory ? second : share || wide < 120 ? `${second}${share}` : `${second} of memory`;
  head.append(drawing('text', { class: `small${over ? ' hot' : ''}`, x, y: 55 }, line.length * 5.8 > wide + 20 && share && !memory ? `${second}, ${percent(stage.memory_bytes / limit)}` : memory && share ? share.slice(2) : line));
  head.append(drawing('title', {}, `stage ${s} on ${stage.device}: ${time(stage.load_ns)} (compute ${time(stage.compute_ns)}, receive ${time(stage.recv_ns)}, send ${time(stage.send_ns)}), memory ${bytes(stage.memory_bytes)}${share}`));
  return head;
}

// All tensors from one stage to another as one.
function bundlesOf(cut) {
  const bundles = new Map(), passed = passedOn(cut);
  for (const t of cut.transfers) {
    const key = `${t.from}-${t.to}`;
    const b = bundles.get(key) ?? { from: t.from, to: t.to, bytes: 0, sure: true, passed: 0, tensors: [] };
    b.bytes += t.bytes;
    b.sure &&= t.bytes_known;
    b.passed += passed.has(t);
    b.tensors.push(t);
    bundles.set(key, b);
  }
  return [...bundles.values()];
}
// What passes stages by goes below them: a lane for each that runs beside another, within `most` pixels.
function lanesOf(bundles, most) {
  const lanes = [], of = new Map();
  for (const b of bundles.filter((each) => each.to > each.from + 1)) {
    let i = lanes.findIndex((end) => end <= b.from);
    if (i < 0) i = lanes.push(0) - 1;
    lanes[i] = b.to;
    of.set(b, i);
  }
  const pitch = Math.min(10, most / Math.max(1, lanes.length));
  return { of, pitch, tall: lanes.length ? lanes.length * pitch + 8 : 0 };
}

// Bundles as bands, at both ends as thick as the time that they take.
function drawBands(bands, over, { bundles, lanes, stages }, edge, { x, wide, gap, tall }) {
  const out = stages.map(() => 0), into = stages.map(() => 0), foot = COLUMN.top + tall;
  const sum = (side, s) => bundles.reduce((n, b) => n + (b[side] === s ? b.bytes : 0), 0) || 1;
  const labels = [];
  for (const b of bundles) {
    const [y1, h1] = edge[b.from].send ?? [foot, 0], [y2, h2] = edge[b.to].recv ?? [COLUMN.top, 0];
    const t1 = Math.max(3, h1 * b.bytes / sum('from', b.from)), t2 = Math.max(3, h2 * b.bytes / sum('to', b.to));
    const a = y1 + out[b.from], z = y2 + into[b.to], x1 = x(b.from) + wide, x2 = x(b.to), lane = lanes.of.get(b);
    out[b.from] += t1;
    into[b.to] += t2;
    const thin = lane === undefined ? 0 : Math.max(1, Math.min(lanes.pitch - 2, Math.max(t1, t2)));
    const path = bandPath([x1, a, t1], [x2, z, t2], gap, lane === undefined ? null : [foot + 6 + lane * lanes.pitch, thin]);
    const text = `${b.sure ? '' : '~'}${bytes(b.bytes)}`, tensors = `${count(b.tensors.length, 'tensor')}${b.passed ? `, ${b.passed} of them passed on` : ''}`;
    const g = drawing('g', { class: 'band', role: 'button', tabindex: 0, 'data-from': b.from, 'data-to': b.to, 'aria-label': `stage ${b.from} to ${b.to}: ${tensors}, ${text}` });
    g.append(drawing('path', { d: path }), drawing('title', {}, `stage ${b.from} → ${b.to}: ${text} in ${tensors}\n${b.tensors.slice(0, 8).map((t) => t.tensor).join('\n')}${b.tensors.length > 8 ? '\n…' : ''}`));
    bands.append(g);
    const next = lane === undefined;
    labels.push({ x: next ? (x1 + x2) / 2 : x2 - gap / 2, y: next ? (a + z) / 2 : z + t2 + 14, text, from: next ? null : b.from, n: b.tensors.length });
  }
  labelBands(over, labels, gap - 2);
}
// From the end of one column to the begin of another, or down to a lane below those between.
function bandPath([x1, a, t1], [x2, z, t2], gap, lane) {
  const bend = (x, from, to, y, aside = 0) => `C${(x + to) / 2 + aside},${from} ${(x + to) / 2 + aside},${y} ${to},${y}`;
  // Where it is steep, too, as wide as it is thick: its sides turn apart.
  const apart = Math.min(Math.max(t1, t2), gap * 0.5) * 0.6 * (z < a ? 1 : -1);
  if (!lane) return `M${x1},${a} ${bend(x1, a, x2, z, -apart)} L${x2},${z + t2} ${bend(x2, z + t2, x1, a + t1, apart)} Z`;
  const [y, t] = lane, down = x1 + gap, up = x2 - gap, turn = Math.min(t, gap * 0.5) * 0.6;
  return `M${x1},${a} ${bend(x1, a, down, y)} H${up} ${bend(up, y, x2, z, -turn)} L${x2},${z + t2} ${bend(x2, z + t2, up, y + t, turn)} H${down} ${bend(down, y + t, x1, a + t1)} Z`;
}
function labelBands(over, labels, room) {
  const small = '11px system-ui, sans-serif', taken = [];
  for (const l of labels.sort((a, b) => (a.from !== null) - (b.from !== null))) {
    const lines = [l.text, l.from !== null ? `from ${l.from}` : l.n > 1 ? count(l.n, 'tensor') : ''].filter((line) => line && widthOf(line, small) <= room);
    if (lines[0] !== l.text || taken.some(([x, y]) => x === l.x && Math.abs(y - l.y) < 27)) continue;
    taken.push([l.x, l.y]);
    lines.forEach((line, i) => over.append(drawing('text', { class: 'band-label', x: l.x, y: l.y + 12 * i, 'text-anchor': 'middle' }, line)));
  }
}

// Its name stands beside the columns, where there is room; the legend has it too.
function drawBound(over, scale, { right, total, named }) {
  const bound = plan.plan.lower_bound_ns, y = COLUMN.top + bound * scale;
  if (!bound) return;
  over.append(drawing('line', { class: 'bound', x1: 0, x2: total, y1: y, y2: y }));
  if (named) over.append(drawing('text', { class: 'bound', x: right + 8, y: y - 5 }, 'lower bound'), drawing('text', { class: 'bound', x: right + 8, y: y + 13 }, time(bound)));
}

// Devices that run several stages each: where there are any, all devices, else none.
function devicesOf({ stages }) {
  const names = [...new Set(stages.map((s) => s.device))];
  return names.length < stages.length ? names : [];
}
const inSegments = (cut) => devicesOf(cut).length > 0;
const loadOf = (cut, device) => cut.stages.reduce((n, s) => n + (s.device === device ? s.load_ns : 0), 0);
const slowestDevice = (cut) => devicesOf(cut).reduce((a, b) => (loadOf(cut, b) > loadOf(cut, a) ? b : a));

function figures(cut) {
  const box = element('dl', { class: 'figures' });
  const put = (name, value, small, kind = '') => box.append(element('div', { class: kind }, element('dt', {}, name), element('dd', {}, value, ...(small ? [element('small', {}, small)] : []))));
  const p = plan.plan, was = cut.moved ? planned(plan) : null;
  const latency = p.objective === 'latency', fills = p.objective === 'fill-drain', value = cut.value_ns;
  const slow = cut.stages.findIndex((s) => s.load_ns >= cut.bottleneck_ns), segments = inSegments(cut);
  const change = was ? value - was.value_ns : 0;
  put(fills ? 'fill-drain' : latency ? 'one input takes' : segments ? 'slowest device' : 'slowest stage', time(value), was ? (change ? `${signed(time(change), change)} by moving` : 'as before, moved') : fills ? 'slowest forward and slowest backward' : latency ? '' : segments ? slowestDevice(cut) : `stage ${slow}`, change > 0 ? 'worse' : '');
  put('lower bound', time(p.lower_bound_ns), p.bound === 'none' ? '' : p.data_dependent ? 'as counted' : '');
  put('gap', cut.gap_frac < 0 ? 'none' : percent(cut.gap_frac), cut.moved ? (cut.gap_frac < 0 ? 'the bound is of sending directly' : '') : p.proved_optimal ? `proved optimal ${p.proof_scope}` : 'not proved optimal', p.proved_optimal && !cut.moved ? 'good' : '');
  if (!cut.moved && p.speed_up > 0) put('speed-up', `${fixed(p.speed_up, 2)}x`, `by ${count(devicesOf(plan).length || plan.stages.reduce((n, s) => n + (s.replicas ?? 1), 0), 'device')}, over ${p.single_device ?? 'one'}`);
  const passed = passedOn(cut).size;
  put('crossing', `${cut.transfers.every((t) => t.bytes_known) ? '' : '~'}${bytes(cut.transfers.reduce((n, t) => n + t.bytes, 0))}`, `${count(cut.transfers.length, 'transfer')}${passed ? `, ${passed} passed on` : ''}`);
  const fullest = cut.stages.reduce((a, b) => (b.memory_bytes > a.memory_bytes ? b : a));
  const overfull = cut.stages.some((s) => s.memory_limit_bytes !== null && s.memory_bytes > s.memory_limit_bytes);
  put('most memory', bytes(fullest.memory_bytes), overfull ? 'does not fit' : `stage ${fullest.index}`, overfull ? 'worse' : '');
  return box;
}

function stageTable(cut) {
  const number = (text, kind = '') => element('td', { class: `number ${kind}` }, text);
  const body = element('tbody');
  const trains = cut.stages[0].backward_ns !== undefined;
  for (const s of cut.stages) {
    const limit = s.memory_limit_bytes, over = limit !== null && s.memory_bytes > limit;
    const swatch = element('i', { class: 'swatch' });
    swatch.style.background = stageColour(s.index);
    body.append(element('tr', {}, element('th', { scope: 'row' }, swatch, `${s.index}`), element('td', {}, s.device), number(`${s.operators}`), number(`${s.supernodes}`),
      number(bytes(s.weight_bytes)), number(`${bytes(s.memory_bytes)}${limit === null ? '' : ` of ${bytes(limit)}`}`, over ? 'hot' : ''),
      ...(trains ? [number(time(s.forward_ns)), number(time(s.backward_ns)), number(bytes(s.stash_bytes))] : [number(time(s.compute_ns))]),
      number(time(s.recv_ns)), number(time(s.send_ns)), number(time(s.load_ns), s.load_ns >= cut.bottleneck_ns ? 'hot' : '')));
  }
  const heads = ['stage', 'device', 'operators', 'supernodes', 'weights', 'memory', ...(trains ? ['forward', 'backward', 'stash'] : ['compute']), 'receive', 'send', 'load'];
  return element('div', { class: 'scroll' }, element('table', { class: 'stages' }, element('caption', {}, 'Stages'),
    element('thead', {}, element('tr', {}, ...heads.map((h, i) => element('th', { scope: 'col', class: i < 2 ? '' : 'number' }, h)))), body));
}

// A switch between a few words.
function choice(name, options, value, set) {
  const group = element('span', { class: 'choice', role: 'group', 'aria-label': name });
  for (const [key, text] of options) group.append(element('button', { type: 'button', 'aria-pressed': key === value ? 'true' : 'false', onclick: () => set(key) }, text));
  return group;
}
const COLOURS = [['class', 'operator class'], ['heat', 'time'], ['stage', 'stage']];

function drawPipeline(box) {
  if (!plan.stages) {
    box.append(element('p', { class: 'hint' }, 'Not partitioned yet: the model is shown as the passes see it so far. -k N makes stages.'));
    return;
  }
  const cut = split();
  box.append(figures(cut), element('div', { class: 'tools' },
    choice('what a column is', [['time', 'time'], ['memory', 'memory']], state.mode, (mode) => set({ mode })),
    ...(state.mode === 'time' ? [element('span', { class: 'label' }, 'coloured by'), choice('coloured by', COLOURS, state.colour, (colour) => set({ colour }))] : [])));
  const other = compared(), room = roomIn(box), beside = other && room >= 860;
  const frame = element('div', { class: 'frame' }), pair = element('div', { class: 'pair' }, element('div', {}, ...(other ? [element('h2', {}, state.moved ? 'As it is now' : count(cut.stages.length, 'stage'))] : []), frame));
  box.append(pair);
  // Each as wide as it has stages, so that columns are alike.
  const part = other ? Math.max(0.3, Math.min(0.7, cut.stages.length / (cut.stages.length + other.stages.length))) : 1;
  const width = beside ? (room - 24) * part : room, beyond = beside ? room - 24 - width : room, height = Math.max(room < 560 ? 560 : 330, Math.min(720, innerHeight - frame.getBoundingClientRect().top - 74));
  pair.firstChild.style.width = `${width}px`;
  const most = other ? Math.max(...[cut, other === plan ? planned(plan) : split(other)].flatMap((c) => c.stages.map((s) => (state.mode === 'memory' ? s.memory_bytes : workOf(s))))) : null;
  // On one scale: as high, and with as much room below.
  const lanesTall = other && state.mode === 'time' ? lanesOf(bundlesOf(other === plan ? planned(plan) : split(other)), COLUMN.lanes * height).tall : 0;
  const ownTall = other && state.mode === 'time' ? lanesOf(bundlesOf(cut), COLUMN.lanes * height).tall : 0;
  frame.append(pipelineDrawing(cut, { width, height, most, lanesTall, title: `pipeline of ${count(cut.stages.length, 'stage')}` }));
  if (other) drawOther(pair, other, { width: beyond, height, most, lanesTall: ownTall });
  keyboard(frame);
  box.append(pipelineLegend());
  box.append(stageTable(cut));
}

function pipelineLegend() {
  const { box, key, swatch } = legend();
  if (state.mode === 'memory') {
    box.replaceChildren();
    const present = new Set(split().stages.flatMap((s) => memoryParts(s).map((p) => p.kind)));
    for (const kind of ['weights', 'activations', 'stash', 'caches', 'buffers', 'workspace']) if (present.has(kind)) key(swatch(kind), PART_NAMES[kind]);
    return box;
  }
  key(swatch('recv'), 'receive');
  key(swatch('send'), 'send');
  if (plan.plan.lower_bound_ns && plan.plan.objective === 'throughput') key(element('i', { class: 'bound-line' }), `lower bound ${time(plan.plan.lower_bound_ns)}`);
  if (split().stages.some((s) => s.layout_ns > 0)) key(swatch('layout'), PART_NAMES.layout);
  return box;
}

// The plan that this one is compared with: another number of stages, or this one before it was moved.
function compared() {
  return state.other >= 0 && data.plans[state.other]?.stages && (state.other !== state.plan || state.moved) ? data.plans[state.other] : null;
}
function drawOther(box, other, size) {
  const before = plan, moved = state.moved;
  const same = other === plan, a = split();
  const was = same ? planned(plan) : split(other);
  const change = was.value_ns / a.value_ns;
  const frame = element('div', { class: 'frame other' });
  box.append(element('div', { style: `width:${size.width}px` }, element('h2', {}, same ? 'As it was planned' : count(other.stages.length, 'stage'), ' ',
    element('small', {}, `${time(was.value_ns)}, ${change >= 1 ? `${change.toFixed(2)} times as long` : `${(1 / change).toFixed(2)} times as fast`}`)), frame));
  plan = other;
  state.moved = null;
  try {
    frame.append(pipelineDrawing(was, { ...size, title: `compared: pipeline of ${count(was.stages.length, 'stage')}` }));
  } finally {
    plan = before;
    state.moved = moved;
  }
}

// One stop for the tab key; arrows go on from there, and Enter shows what is there.
function keyboard(frame) {
  const marks = [...frame.querySelectorAll('.mark')];
  if (marks.length) (frame.querySelector('.mark.chosen') ?? marks[0]).setAttribute('tabindex', 0);
  const idsOf = (mark) => mark.dataset.ids.split(',').map(Number);
  const choose = (mark) => select(idsOf(mark).length === 1 ? idsOf(mark)[0] : idsOf(mark).reduce((a, b) => (plan.supernodes[b].cost_ns > plan.supernodes[a].cost_ns ? b : a)));
  frame.addEventListener('click', (event) => {
    const mark = event.target.closest('.mark'), band = event.target.closest('.band');
    if (mark) choose(mark);
    else if (band) showBand(Number(band.dataset.from), Number(band.dataset.to));
  });
  frame.addEventListener('keydown', (event) => {
    const band = event.target.closest('.band');
    if (band && (event.key === 'Enter' || event.key === ' ')) { event.preventDefault(); showBand(Number(band.dataset.from), Number(band.dataset.to)); return; }
    const at = marks.indexOf(event.target.closest('.mark'));
    if (at < 0) return;
    const stage = (m) => split().stageOf[idsOf(m)[0]];
    let to = -1;
    if (event.key === 'ArrowDown') to = at + 1;
    else if (event.key === 'ArrowUp') to = at - 1;
    else if (event.key === 'ArrowRight') to = marks.findIndex((m, i) => i > at && stage(m) > stage(marks[at]));
    else if (event.key === 'ArrowLeft') to = marks.findIndex((m) => stage(m) === stage(marks[at]) - 1);
    else if (event.key === 'Enter' || event.key === ' ') { event.preventDefault(); choose(marks[at]); return; } else return;
    event.preventDefault();
    if (!marks[to]) return;
    marks[at].setAttribute('tabindex', -1);
    marks[to].setAttribute('tabindex', 0);
    marks[to].focus();
  });
}
// The selection alone changed: no need to draw all anew.
function markChosen() {
  for (const mark of document.querySelectorAll('.mark')) mark.classList.toggle('chosen', mark.dataset.ids.split(',').includes(String(state.selected)));
}
