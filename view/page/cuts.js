// Where can it be cut? What crosses behind each place of the plan's order of supernodes, along an axis
// of time, with the plan's cuts as handles; and the slowest stage against the number of stages.

const CURVE = { height: 216, foot: 30, side: 8, head: 34 };

// The places behind which stages end, by the order; the order has every stage in one piece.
function placesOf(stageOf) {
  const places = [];
  for (let i = 0; i + 1 < plan.order.length; i++) if (stageOf[plan.order[i]] !== stageOf[plan.order[i + 1]]) places.push(i);
  return places;
}
// As cuts of the order, if that is what the stages are: supernodes may have been moved one by one.
function cutPlaces(stageOf) {
  const places = placesOf(stageOf);
  return places.length === plan.stages.length - 1 && places.every((p, i) => stageOf[plan.order[p]] === i) ? places : null;
}
function stagesBehind(places) {
  const stageOf = new Int32Array(plan.supernodes.length);
  let s = 0;
  plan.order.forEach((id, i) => {
    stageOf[id] = s;
    if (s < places.length && i === places[s]) s++;
  });
  return stageOf;
}
const same = (a, b) => a.length === b.length && a.every((x, i) => x === b[i]);

function moveTo(stageOf) {
  const reason = whyNot(plan, stageOf);
  if (reason) return say(`Not there: ${reason}.`, true);
  state.moved = same(stageOf, stagesOf(plan)) ? null : stageOf;
  try {
    const cut = split();
    const passed = passedOn(cut).size;
    say(state.moved ? `Moved: ${plan.plan.objective === 'latency' ? `one input takes ${time(cut.latency_ns)}` : `slowest stage ${time(cut.bottleneck_ns)}`}${cut.gap_frac < 0 ? '' : `, gap ${percent(cut.gap_frac)}`}${passed ? `, ${count(passed, 'transfer')} passed on` : ''}.` : 'As planned.');
  } catch (error) {
    state.moved = null;
    return say(error.message, true);
  }
  changedSplit();
  return true;
}
// One cut to another place: not past its neighbours.
function moveCut(i, place) {
  const places = cutPlaces(split().stageOf);
  if (!places) return false;
  const low = i ? places[i - 1] + 1 : 0, high = i + 1 < places.length ? places[i + 1] - 1 : plan.order.length - 2;
  const to = Math.max(low, Math.min(high, place));
  return to !== places[i] && moveTo(stagesBehind(places.map((p, k) => (k === i ? to : p))));
}
function moveSupernode(id, stage) {
  const stageOf = Int32Array.from(split().stageOf);
  stageOf[id] = stage;
  return moveTo(stageOf);
}

// Time of all supernodes up to each place, so that a stage is as wide as it is long.
function axisOf(width) {
  const upTo = [];
  let sum = 0;
  for (const id of plan.order) upTo.push(sum += Math.max(1, plan.supernodes[id].cost_ns ?? 1));
  const x = (i) => CURVE.side + (width - 2 * CURVE.side) * (i < 0 ? 0 : upTo[i] / sum);
  const at = (px) => {
    const wanted = (px - CURVE.side) / (width - 2 * CURVE.side) * sum;
    let low = 0, high = upTo.length - 1;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (upTo[middle] < wanted) low = middle + 1;
      else high = middle;
    }
    return low > 0 && wanted - upTo[low - 1] < upTo[low] - wanted ? low - 1 : low;
  };
  return { x, at };
}

// Bytes behind each place, as steps; of many places in one pixel the least and the most.
function curvePath(axis, top, tall, base) {
  const y = (n) => base - tall * Math.sqrt(n / top);
  let line = `M${axis.x(-1)},${base}`, last = -9, low = 0, high = 0;
  for (let p = 0; p + 1 < plan.order.length; p++) {
    const x = axis.x(p), h = y(plan.cut_bytes[p]);
    if (x - last < 0.7) {
      low = Math.max(low, h);
      high = Math.min(high, h);
      continue;
    }
    if (last >= 0 && high < low) line += `L${last.toFixed(1)},${high.toFixed(1)}V${low.toFixed(1)}`;
    line += `L${x.toFixed(1)},${h.toFixed(1)}`;
    last = x;
    low = high = h;
  }
  return { line: `${line}L${axis.x(plan.order.length - 1)},${base}`, y };
}

function cutDrawing(cut, width) {
  const base = CURVE.height - CURVE.foot, tall = base - CURVE.head - 14, axis = axisOf(width);
  const top = Math.max(1, plan.cut_bytes.slice(0, -1).reduce((m, n) => Math.max(m, n), 0));
  const { line, y } = curvePath(axis, top, tall, base);
  const svg = drawing('svg', { viewBox: `0 0 ${width} ${CURVE.height}`, width, height: CURVE.height, class: 'cut-curve', role: 'group', 'aria-label': 'bytes that cross behind each supernode, and the cuts' });
  const places = cutPlaces(cut.stageOf);
  const ends = [-1, ...(places ?? placesOf(cut.stageOf)), plan.order.length - 1];
  for (let i = 0; i + 1 < ends.length; i++) {
    const s = cut.stageOf[plan.order[ends[i] + 1]], x = axis.x(ends[i]), wide = axis.x(ends[i + 1]) - x;
    svg.append(drawing('rect', { x, y: base + 3, width: Math.max(0, wide - 1), height: 20, style: `fill:${stageColour(s)}` }));
    const name = [`${s} · ${time(cut.stages[s].load_ns)}`, `${s}`].find((text) => widthOf(text) <= wide - 18);
    if (name) svg.append(drawing('text', { class: 'on', x: x + 9, y: base + 17 }, name));
    svg.append(drawing('rect', { class: 'zone', x, y: CURVE.head, width: Math.max(0, wide), height: base - CURVE.head, style: `fill:${stageColour(s, true)}` }));
  }
  svg.append(drawing('path', { class: 'area', d: `${line}Z` }), drawing('path', { class: 'curve', d: line }));
  const sure = data.tensors.every((t) => t.bytes_known || t.constant) ? '' : '~';
  for (const part of [1, 0.25]) {
    svg.append(drawing('line', { class: 'grid', x1: CURVE.side, x2: width - CURVE.side, y1: y(top * part), y2: y(top * part) }), drawing('text', { class: 'soft halo axis', x: CURVE.side + 2, y: y(top * part) - 3 }, `${sure}${bytes(top * part)}`));
  }
  // What cuts send stands above them, a row higher where it would touch the one before.
  const rows = [[26, -Infinity], [12, -Infinity]], tops = (places ?? []).map((place) => {
    const wide = widthOf(`${sure}${bytes(plan.cut_bytes[place])}`, BOLD) + 6, x = axis.x(place), from = x < 40 ? x : x > width - 40 ? x - wide : x - wide / 2;
    const row = rows.find(([, end]) => from >= end);
    if (row) row[1] = from + wide;
    return row?.[0] ?? null;
  });
  if (places && !whyFixed()) places.forEach((place, i) => svg.append(handle(i, place, axis, svg, { base, text: `${sure}${bytes(plan.cut_bytes[place])}`, y: tops[i] })));
  else for (const place of places ?? []) svg.append(drawing('line', { class: 'cut', x1: axis.x(place), x2: axis.x(place), y1: CURVE.head, y2: base }));
  crossHair(svg, axis, { width, base, sure });
  svg.addEventListener('click', (event) => {
    if (event.target.closest('.handle')) return;
    select(plan.order[axis.at((event.clientX - svg.getBoundingClientRect().left) * width / svg.getBoundingClientRect().width)]);
  });
  return svg;
}

// What a cut at the pointer would send.
function crossHair(svg, axis, { width, base, sure }) {
  const line = drawing('line', { y1: CURVE.head, y2: base }), text = drawing('text', { class: 'halo', y: CURVE.head + 14 });
  const cross = drawing('g', { class: 'cross', visibility: 'hidden' }, line, text);
  svg.append(cross);
  svg.addEventListener('pointermove', (event) => {
    const rect = svg.getBoundingClientRect(), place = Math.min(plan.order.length - 2, axis.at((event.clientX - rect.left) * width / rect.width)), x = axis.x(place), right = x > width / 2, id = plan.order[place];
    for (const end of ['x1', 'x2']) line.setAttribute(end, x);
    text.setAttribute('x', x + (right ? -6 : 6));
    text.setAttribute('text-anchor', right ? 'end' : 'start');
    text.textContent = fitted(`behind ${about(id).kind}, ${whereabouts(id)}: ${sure}${bytes(plan.cut_bytes[place])}, ${time(plan.cut_ns[place])}`, (right ? x : width - x) - 12, undefined, false);
    cross.setAttribute('visibility', event.buttons ? 'hidden' : 'visible');
  });
  svg.addEventListener('pointerleave', () => cross.setAttribute('visibility', 'hidden'));
}

// A cut that is dragged, or moved with the arrow keys.
function handle(i, place, axis, svg, { base, text, y }) {
  const x = axis.x(place), behind = plan.supernodes[plan.order[place]].title;
  const g = drawing('g', { class: 'handle', tabindex: 0, role: 'slider', 'data-cut': i, 'aria-label': `cut between stage ${i} and ${i + 1}`, 'aria-valuemin': 0, 'aria-valuemax': plan.order.length - 2, 'aria-valuenow': place, 'aria-valuetext': `behind ${behind}, ${text}` });
  const anchor = x < 40 ? 'start' : x > Number(svg.getAttribute('width')) - 40 ? 'end' : 'middle';
  g.append(drawing('line', { class: 'cut', x1: x, x2: x, y1: y === null ? CURVE.head : y + 4, y2: base + 24 }), drawing('rect', { class: 'grip', x: x - 6, y: base - 2, width: 12, height: 30, rx: 4 }), drawing('rect', { class: 'reach', x: x - 14, y: 0, width: 28, height: CURVE.height - 14 }),
    ...(y === null ? [] : [drawing('text', { class: 'cut halo', x, y, 'text-anchor': anchor }, text)]), drawing('title', {}, `behind ${behind}: ${text}, ${time(plan.cut_ns[place])}; drag, or arrow keys`));
  g.addEventListener('pointerdown', (event) => {
    event.preventDefault();
    const move = (e) => {
      const rect = byId('cut-curve').getBoundingClientRect();
      moveCut(i, axis.at((e.clientX - rect.left) * Number(svg.getAttribute('width')) / rect.width));
    };
    const end = () => { removeEventListener('pointermove', move); removeEventListener('pointerup', end); };
    addEventListener('pointermove', move);
    addEventListener('pointerup', end);
  });
  g.addEventListener('keydown', (event) => {
    const by = { ArrowRight: 1, ArrowUp: 1, ArrowLeft: -1, ArrowDown: -1, PageUp: 10, PageDown: -10 }[event.key];
    if (!by) return;
    event.preventDefault();
    moveCut(i, place + by);
    document.querySelector(`.handle[data-cut="${i}"]`)?.focus();
  });
  return g;
}

// The slowest stage by number of stages, over the lower bound; a click chooses.
function rangeDrawing(width) {
  const plans = data.plans.map((p, i) => ({ p, i })).filter(({ p }) => p.stages);
  const height = 200, base = height - 36, value = valuePlanned;
  const top = plans.reduce((m, { p }) => Math.max(m, value(p)), 1), step = Math.min(90, (width - 16) / plans.length);
  const svg = drawing('svg', { viewBox: `0 0 ${width} ${height}`, width, height, class: 'range', role: 'group', 'aria-label': 'slowest stage by number of stages' });
  const half = ({ p }) => Math.max(widthOf(time(value(p)), '11px system-ui, sans-serif'), p.plan.proved_optimal ? 46 : 0) / 2 + 1;
  const named = []; // that have room for figures: the one that is shown, and others beside it
  const order = [...plans.keys()].sort((a, b) => (plans[b].i === state.plan) - (plans[a].i === state.plan) || a - b);
  for (const at of order) if (named.every((n) => Math.abs(n - at) * step >= half(plans[n]) + half(plans[at]))) named.push(at);
  plans.forEach(({ p, i }, at) => {
    const x = 8 + at * step, h = (base - 18) * value(p) / top, low = (base - 18) * p.plan.lower_bound_ns / top, now = i === state.plan;
    const g = drawing('g', { class: `bar${now ? ' now' : ''}`, role: 'button', tabindex: 0, 'data-plan': i, 'aria-pressed': now, 'aria-label': `${count(p.stages.length, 'stage')}: ${time(value(p))}${p.plan.proved_optimal ? `, proved optimal ${p.plan.proof_scope}` : `, gap ${percent(p.plan.gap_frac)}`}` });
    g.append(drawing('rect', { class: 'value', x: x + 3, y: base - h, width: step - 6, height: h, rx: 2 }),
      drawing('line', { class: 'bound', x1: x, x2: x + step, y1: base - low, y2: base - low }),
      drawing('text', { x: x + step / 2, y: base + 15, 'text-anchor': 'middle' }, `${p.stages.length}`));
    if (named.includes(at)) {
      const middle = Math.max(half({ p }), Math.min(width - half({ p }), x + step / 2));
      g.append(drawing('text', { class: 'soft', x: middle, y: base - h - 4, 'text-anchor': 'middle' }, time(value(p))), drawing('text', { class: 'soft', x: middle, y: base + 29, 'text-anchor': 'middle' }, p.plan.proved_optimal ? 'optimal' : percent(p.plan.gap_frac)));
    }
    const choose = () => choosePlan(i);
    g.addEventListener('click', choose);
    g.addEventListener('keydown', (event) => { if (event.key === 'Enter' || event.key === ' ') { event.preventDefault(); choose(); } });
    svg.append(g);
  });
  return svg;
}

// Loads beside each other while cuts move: as it is now over as it was planned.
function loadDrawing(cut, width) {
  const was = planned(plan), row = Math.max(12, Math.min(26, 300 / cut.stages.length)), left = Math.min(96, 12 + Math.max(...cut.stages.map((s) => widthOf(`${s.index} · ${s.device}`)))), right = 72;
  const top = Math.max(...cut.stages.map(workOf), ...was.stages.map(workOf), 1);
  const height = cut.stages.length * row + 22, x = (ns) => left + (width - left - right) * ns / top;
  const svg = drawing('svg', { viewBox: `0 0 ${width} ${height}`, width, height, class: 'loads', role: 'img', 'aria-label': 'load of each stage' });
  const bound = plan.plan.objective === 'throughput' ? plan.plan.lower_bound_ns : 0;
  cut.stages.forEach((s, i) => {
    const y = i * row;
    svg.append(drawing('text', { x: 0, y: y + row / 2 + 4 }, fitted(`${i} · ${s.device}`, left - 8, undefined, false)));
    let from = 0;
    for (const [kind, ns] of [['recv', s.recv_ns], ['compute', s.compute_ns], ['send', s.send_ns]]) {
      svg.append(drawing('rect', { class: `part ${kind}`, x: x(from), y: y + 2, width: Math.max(0, x(from + ns) - x(from)), height: row - 5, style: kind === 'compute' ? `fill:${stageColour(i)}` : null }));
      from += ns;
    }
    if (cut.moved) svg.append(drawing('line', { class: 'was', x1: x(was.stages[i].load_ns), x2: x(was.stages[i].load_ns), y1: y, y2: y + row - 1 }));
    svg.append(drawing('text', { x: width - 4, y: y + row / 2 + 4, 'text-anchor': 'end', class: s.load_ns >= cut.bottleneck_ns ? 'hot' : null }, time(s.load_ns)));
  });
  const named = `lower bound ${time(bound)}`, fits = x(bound) > left + widthOf(named, '11px system-ui, sans-serif') - 40;
  if (bound) svg.append(drawing('line', { class: 'bound', x1: x(bound), x2: x(bound), y1: 0, y2: height - 16 }), drawing('text', { class: 'bound', x: x(bound), y: height - 4, 'text-anchor': fits ? 'end' : 'start' }, named));
  return svg;
}
// What the parts of a bar are.
function loadLegend(cut) {
  const box = element('p', { class: 'legend' });
  for (const [kind, text] of [['recv', 'receive'], ['', 'compute'], ['send', 'send']]) {
    const mark = element('i', { class: `swatch ${kind}` });
    if (!kind) mark.style.background = stageColour(0);
    box.append(element('span', {}, mark, text));
  }
  if (cut.moved) box.append(element('span', {}, element('i', { class: 'was-line' }), 'as planned'));
  return box;
}

const MOST_PINS = 256; // that a command takes one by one
function exportBox(cut) {
  const { pins, unnamed } = pinsOf(plan, cut.stageOf), many = pins.length > MOST_PINS;
  const file = `${document.title.replace(/\.onnx$/i, '').replace(/[^\w.-]/g, '_')}-${cut.stages.length}.pins`;
  const lines = [`-k ${cut.stages.length}`, ...(many ? [`--pins ${quoted(file)}`] : pins.map((pin) => `--pin ${quoted(pin)}`))];
  const area = element('textarea', { readonly: true, rows: Math.min(8, lines.length + 1), 'aria-label': 'options for onnx-pipeline-split', spellcheck: 'false' });
  area.value = lines.join(' \\\n  ');
  const copy = element('button', { type: 'button', onclick: () => { area.select(); navigator.clipboard?.writeText(area.value).then(() => say('Copied.'), () => document.execCommand('copy')); } }, 'Copy');
  const keep = element('button', { type: 'button', id: 'save-pins', onclick: () => save(file, pins.map((pin) => `${pin.replace(/^\\*#/, '\\$&')}\n`).join('')) }, `Save ${file}`);
  const order = plan.plan.device_order === 'chosen' ? ` List the devices in this order: ${cut.stages.map((s) => s.device).join(', ')}.` : '';
  const box = element('div', { class: 'export', id: 'export' }, element('h2', {}, 'As options'), area, element('p', { class: 'moves' }, copy, keep,
    element('small', {}, `Give them to onnx-pipeline-split with the options that this page was made with: no other split obeys them. ${many ? `The file has the ${count(pins.length, 'pin')}.` : 'The file has the same pins, for --pins.'}${order}`)));
  if (unnamed.length) box.append(element('p', { class: 'warning' }, `${count(unnamed.length, 'supernode')} without an operator of a name that no other has cannot be pinned; the tool may place ${unnamed.length === 1 ? 'it' : 'them'} elsewhere.`));
  return box;
}
// A text as a file, where the browser keeps files.
function save(name, text) {
  const url = URL.createObjectURL(new Blob([text], { type: 'text/plain' }));
  element('a', { href: url, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(url), 10000);
}

// Whether what a plan computes twice saves transfers, whatever it passes on.
function sendsLess(p) {
  const sent = new Set(p.transfers.map((t) => `${t.to} ${t.tensor}`));
  return wishesOf(p, stagesOf(p)).some((wish) => !sent.has(`${wish.to} ${wish.tensor}`));
}

function drawCuts(box) {
  if (!plan.stages || plan.supernodes.length < 2 || plan.supernodes[0].cost_ns === null) {
    box.append(element('p', { class: 'hint' }, plan.stages ? 'There is nothing to cut.' : 'There are no stages yet: -k N makes them.'));
    return;
  }
  const cut = split(), fixed = whyFixed(), width = roomIn(box);
  box.append(figures(cut));
  const frame = element('div', { id: 'cut-curve' });
  frame.append(cutDrawing(cut, width));
  const tools = element('div', { class: 'tools' });
  if (fixed) tools.append(element('span', { class: 'hint' }, `Cuts stay where they are: ${fixed}.`));
  else tools.append(element('span', { class: 'hint' }, cutPlaces(cut.stageOf) ? 'Drag a cut, or move it with the arrow keys: all figures follow.' : 'Supernodes were moved one by one; cuts of the order cannot tell it.'),
    element('button', { type: 'button', id: 'undo', disabled: !cut.moved, onclick: () => moveTo(stagesOf(plan)) }, 'Back to the plan'));
  box.append(element('h2', {}, 'What a cut sends, by place'), frame, element('p', { class: 'legend' }, 'Supernodes in the plan\'s order, each as wide as its time; height: bytes that a cut sends there (square root).'), tools);
  if (!fixed && plan.stages.some((s) => s.duplicated) && sendsLess(plan)) box.append(element('p', { class: 'warning' }, 'The plan computes some operators twice to send less. Moved cuts are counted without that.'));
  const several = data.plans.filter((p) => p.stages).length > 1, half = Math.max(280, (width < 760 || !several ? width : width / 2) - 12);
  const loads = element('div', { class: several ? 'half' : '' }, element('h2', {}, 'Loads'), loadDrawing(cut, half), loadLegend(cut));
  if (several) box.append(element('div', { class: 'halves' }, loads, element('div', { class: 'half' }, element('h2', {}, 'Slowest stage, by number of stages'), rangeDrawing(half))));
  else box.append(loads, element('p', { class: 'hint' }, '-k 1..8 puts plans for several numbers of stages beside each other here.'));
  if (cut.moved) box.append(exportBox(cut));
  box.append(stageTable(cut));
  // What the first move needs, before somebody moves.
  const now = plan;
  if (!fixed) setTimeout(() => { nets(now); rareFacts(now); namesUsed(); });
}
