'use strict';
// The page: supernode graph, stages, cuts, schedule. Everything that comes from the model reaches the
// document through textContent or as a label on the canvas, never as markup.
(() => {
  // What changes the order in which a line is read is escaped in the data, and nowhere shown.
  const hidden = /(?<!\\)((?:\\\\)*)\\u(?:00[89][0-9a-f]|061c|200[ef]|202[89a-e]|206[6-9])/g;
  const data = JSON.parse(document.getElementById('data').textContent.replace(hidden, '$1\\ufffd'));
  const byId = (id) => document.getElementById(id);
  const SVG = 'http://www.w3.org/2000/svg';

  function element(name, attributes = {}, ...children) {
    const made = document.createElement(name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    made.append(...children);
    return made;
  }

  function drawing(name, attributes = {}, text) {
    const made = document.createElementNS(SVG, name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    if (text !== undefined) made.textContent = text;
    return made;
  }

  function scaled(value, units, step) {
    let unit = 0;
    for (; value >= 999.5 && unit + 1 < units.length; unit++) value /= step;
    return `${value >= 99.95 || unit === 0 ? value.toFixed(0) : value.toPrecision(3)} ${units[unit]}`;
  }
  const bytes = (n) => (n === null ? 'unknown' : scaled(n, ['B', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB'], 1024));
  const time = (ns) => (ns === null ? 'unknown' : scaled(ns, ['ns', 'us', 'ms', 's'], 1000));
  const count = (n, noun) => `${n} ${noun}${n === 1 ? '' : 's'}`;
  const colour = (stage, light = 78) =>
    (stage === null ? '#e4e7eb' : `hsl(${(210 + stage * 137.508) % 360}, 62%, ${light}%)`);
  const label = (node) => node.name || `#${node.id}`;
  const dark = matchMedia('(prefers-color-scheme: dark)');
  const ink = () => (dark.matches
    ? { text: '#10151c', line: '#7d8896', soft: '#b3bdc9', paper: '#161b22', cut: '#ff8a70', chosen: '#fff' }
    : { text: '#1c2430', line: '#9aa5b3', soft: '#5b6675', paper: '#fff', cut: '#c8553d', chosen: '#000' });

  let plan = data.plans[0];
  let cy = null;
  let boxes = []; // what is drawn: supernodes, or blocks of them
  let boxOf = []; // by supernode

  // The end of a long title tells more than its start.
  const shortened = (title) => (title.length > 44 ? `…${title.slice(-43)}` : title);
  const blockName = (repeat, b) => `${repeat.title || 'block'}, ${b + 1} of ${repeat.blocks}`;

  // One box a supernode; folded, one for each repeated block that lies in one stage.
  function makeBoxes() {
    boxes = [];
    boxOf = new Array(plan.supernodes.length);
    const blockOf = new Map();
    if (byId('fold').checked) {
      for (const repeat of plan.repeats) {
        for (let b = 0; b < repeat.blocks; b++) {
          const first = repeat.first + b * repeat.supernodes;
          const ids = plan.supernodes.slice(first, first + repeat.supernodes).map((g) => g.id);
          const { stage } = plan.supernodes[first];
          if (ids.some((id) => plan.supernodes[id].stage !== stage)) continue;
          for (const id of ids) blockOf.set(id, { ids, title: blockName(repeat, b) });
        }
      }
    }
    for (const g of plan.supernodes) {
      const block = blockOf.get(g.id) ?? { ids: [g.id], title: g.title };
      if (block.ids[0] === g.id) {
        const cost = block.ids.reduce((sum, id) => sum + (plan.supernodes[id].cost_ns ?? 0), 0);
        const operators = block.ids.reduce((sum, id) => sum + plan.supernodes[id].operators.length, 0);
        boxes.push({ id: boxes.length, ids: block.ids, title: block.title, stage: g.stage, operators,
          cost_ns: g.cost_ns === null ? null : cost });
      }
      boxOf[g.id] = boxes.length - 1;
    }
  }

  // One line for all tensors between the same two boxes; each counts once, whoever reads it there.
  function makeLines() {
    const lines = new Map();
    for (const edge of plan.edges) {
      const from = boxOf[edge.from], to = boxOf[edge.to];
      if (from === to) continue;
      const line = lines.get(`${from}-${to}`) ?? { from, to, sum: 0, tensors: new Set() };
      if (!line.tensors.has(edge.tensor)) line.sum += edge.bytes ?? 0;
      line.tensors.add(edge.tensor);
      lines.set(`${from}-${to}`, line);
    }
    return [...lines.values()];
  }

  // Rows: the longest path inside a stage. Tall stages continue in further columns, so that the
  // whole is about as wide as it is high.
  const WIDTH = 170, HEIGHT = 62, GAP = 90;

  function place(groups, edges) {
    const into = groups.map(() => []);
    for (const { from, to } of edges) into[to].push(from);
    const row = new Array(groups.length).fill(0);
    for (const g of groups) {
      for (const from of into[g.id]) {
        if (groups[from].stage === g.stage) row[g.id] = Math.max(row[g.id], row[from] + 1);
      }
    }
    const stages = new Map();
    for (const g of groups) {
      const key = g.stage ?? 0;
      if (!stages.has(key)) stages.set(key, []);
      const rows = stages.get(key);
      (rows[row[g.id]] ??= []).push(g.id);
    }
    // A row that is very wide goes on below itself.
    const wide = Math.max(6, Math.ceil(Math.sqrt(groups.length) / 2));
    for (const [key, rows] of stages) {
      stages.set(key, rows.flatMap((ids) => {
        const lines = [];
        for (let i = 0; i < ids.length; i += wide) lines.push(ids.slice(i, i + wide));
        return lines;
      }));
    }
    const area = [...stages.values()].reduce((sum, rows) =>
      sum + rows.reduce((most, r) => Math.max(most, r.length), 1) * rows.length, 0);
    const tallest = Math.max(24, Math.ceil(Math.sqrt(area * WIDTH / HEIGHT / 1.5)));
    const at = new Array(groups.length);
    let left = 0;
    for (const key of [...stages.keys()].sort((a, b) => a - b)) {
      const rows = stages.get(key);
      for (let first = 0; first < rows.length; first += tallest) {
        const part = rows.slice(first, first + tallest);
        const widest = part.reduce((most, r) => Math.max(most, r.length), 1);
        part.forEach((ids, y) => {
          // Beside what it reads: the mean place of its predecessors decides the order in a row.
          const mean = (id) => {
            const known = into[id].filter((from) => at[from] && groups[from].stage === groups[id].stage);
            return known.length ? known.reduce((sum, from) => sum + at[from].x, 0) / known.length : Infinity;
          };
          const sorted = ids.map((id) => [mean(id), id]).sort((a, b) => a[0] - b[0] || a[1] - b[1]);
          sorted.forEach(([, id], i) => {
            at[id] = { x: left + (i + (widest - ids.length) / 2) * WIDTH, y: y * HEIGHT };
          });
        });
        left += widest * WIDTH + GAP / 2;
      }
      left += GAP;
    }
    return at;
  }

  function style(large) {
    const tint = ink();
    return [
      { selector: 'node', style: { shape: 'round-rectangle', width: WIDTH - 24, height: HEIGHT - 24, label: 'data(label)', color: tint.text, 'background-color': 'data(colour)', 'border-width': 'data(border)', 'border-color': tint.soft, 'text-valign': 'center', 'text-wrap': 'wrap', 'text-max-width': `${WIDTH - 32}px`, 'text-overflow-wrap': 'anywhere', 'font-size': 9, 'min-zoomed-font-size': 5 } },
      { selector: 'edge', style: { width: 1.2, 'line-color': tint.line, 'target-arrow-color': tint.line, 'target-arrow-shape': large ? 'none' : 'triangle', 'arrow-scale': 0.7, 'curve-style': large ? 'haystack' : 'bezier', label: large ? '' : 'data(label)', 'font-size': 7, color: tint.soft, 'min-zoomed-font-size': 6, 'text-background-color': tint.paper, 'text-background-opacity': 0.8 } },
      // Beside the boxes that it passes, not behind them.
      ...(large ? [] : [{ selector: 'edge[skip > 0]', style: { 'curve-style': 'unbundled-bezier', 'control-point-distances': WIDTH * 0.6, 'control-point-weights': 0.5 } }]),
      { selector: 'edge[cut > 0]', style: { width: 2.4, 'line-color': tint.cut, 'target-arrow-color': tint.cut } },
      { selector: ':selected', style: { 'border-color': tint.chosen, 'border-width': 5 } },
    ];
  }

  function draw() {
    makeBoxes();
    const lines = makeLines();
    const at = place(boxes, lines);
    const large = boxes.length > 800;
    const most = boxes.reduce((max, g) => Math.max(max, g.cost_ns ?? 0), 1);
    const elements = boxes.map((g) => ({
      group: 'nodes',
      data: {
        id: `g${g.id}`,
        label: `${shortened(g.title)}\n${g.ids.length > 1 ? count(g.ids.length, 'supernode') : count(g.operators, 'operator')}, ${time(g.cost_ns)}`,
        colour: colour(g.stage), border: 1 + 4 * Math.sqrt((g.cost_ns ?? 0) / most),
      },
      position: at[g.id],
    }));
    for (const { from, to, sum } of lines) {
      const cut = boxes[from].stage !== boxes[to].stage;
      elements.push({ group: 'edges', data: { id: `e${from}-${to}`, source: `g${from}`, target: `g${to}`, label: bytes(sum), cut: cut ? 1 : 0, skip: !cut && at[from].x === at[to].x && at[to].y - at[from].y > HEIGHT ? 1 : 0 } });
    }
    cy?.destroy();
    cy = cytoscape({
      container: byId('canvas'), elements, layout: { name: 'preset' }, minZoom: 0.005, maxZoom: 4,
      textureOnViewport: large, hideEdgesOnViewport: large, boxSelectionEnabled: false, autoungrabify: true,
      style: style(large),
    });
    cy.on('tap', 'node', (event) => {
      const box = boxes[Number(event.target.id().slice(1))];
      if (box.ids.length > 1) showBlock(box);
      else show(box.ids[0]);
    });
    cy.fit(undefined, 24);
    // Nothing can be read in a large graph as a whole: begin at its first supernodes.
    if (large) focus([plan.order[0]], 0.9);
    drawLegend();
  }

  function drawLegend() {
    const legend = byId('legend');
    const swatch = (kind, background) => {
      const made = element('span', { class: `swatch ${kind}` });
      if (background) made.style.background = background;
      return made;
    };
    legend.replaceChildren();
    for (const { index } of plan.stages ?? []) legend.append(swatch('', colour(index)), `stage ${index}`);
    if (plan.stages?.length > 1) legend.append(swatch('crossing'), 'sent between stages');
    legend.append(swatch('dear'), 'the thicker the border, the more time');
  }

  // Centres the boxes of some supernodes; zooms in, or out until all can be seen.
  function focus(ids, zoom = Math.max(cy.zoom(), 0.9)) {
    const wanted = cy.collection();
    for (const id of ids) wanted.merge(cy.getElementById(`g${boxOf[id]}`));
    cy.elements().unselect();
    wanted.select();
    if (wanted.length > 1) {
      cy.fit(wanted, 60);
    } else {
      cy.zoom(zoom);
      cy.center(wanted);
    }
  }

  function facts(list) {
    const made = element('dl');
    for (const [name, value] of list) made.append(element('dt', {}, name), element('dd', {}, value));
    return made;
  }

  const ROWS = 200;

  function operatorRows(body, ids, first) {
    for (const id of ids.slice(first, first + ROWS)) {
      const node = data.operators[id];
      const types = node.outputs.filter((v) => v !== null).map((v) => data.tensors[v].type ?? '').join(', ');
      const name = element('td', {}, label(node));
      if (types) name.append(element('br'), element('small', {}, types));
      body.append(element('tr', {}, element('td', {}, node.op), name,
        element('td', { class: 'number' }, time(node.cost_ns))));
    }
    if (first + ROWS >= ids.length) return;
    const more = element('button', { type: 'button' }, `${ids.length - first - ROWS} more`);
    const line = element('tr', {}, element('td', { colspan: 3 }, more));
    more.addEventListener('click', () => { line.remove(); operatorRows(body, ids, first + ROWS); });
    body.append(line);
  }

  // The notes that plugins left with some operators, or with the model.
  function noteList(wanted) {
    const list = element('ul', { class: 'notes' });
    for (const note of plan.notes.filter(wanted)) {
      const where = note.operator === null ? '' : `, ${label(data.operators[note.operator])}`;
      list.append(element('li', {}, note.text, ' ', element('small', {}, `${note.pass}${where}`)));
    }
    return list.childElementCount ? [list] : [];
  }

  function select(title, list, ...rest) {
    byId('detail').replaceChildren(element('h2', {}, title), facts(list), ...rest);
    byId('detail').scrollIntoView({ block: 'nearest' });
  }

  function show(id) {
    const group = plan.supernodes[id];
    cy.elements().unselect();
    cy.getElementById(`g${boxOf[id]}`).select();
    const body = element('tbody');
    operatorRows(body, group.operators, 0);
    const assumed = group.bytes_known || group.bytes_in === null ? '' : ' (with assumed sizes)';
    select(group.title, [
      ['supernode', `${group.id}${group.stage === null ? '' : `, in stage ${group.stage}`}`],
      ['time', time(group.cost_ns)], ['weights', bytes(group.weight_bytes)],
      ['in', bytes(group.bytes_in) + assumed], ['out', bytes(group.bytes_out) + assumed],
    ], ...noteList((note) => note.supernode === id),
    element('div', { class: 'scroll' }, element('table', {}, element('thead', {}, element('tr', {},
      element('th', {}, 'operator'), element('th', {}, count(group.operators.length, 'name')),
      element('th', { class: 'number' }, 'time'))), body)));
    byId('detail').dataset.supernode = id;
  }

  // A folded block: its supernodes, each of which can be looked at.
  function showBlock(box) {
    const list = element('ul', { class: 'plain' });
    for (const id of box.ids) {
      const button = element('button', { type: 'button' }, plan.supernodes[id].title, ' ',
        element('small', {}, time(plan.supernodes[id].cost_ns)));
      button.addEventListener('click', () => show(id));
      list.append(element('li', {}, button));
    }
    const weights = box.ids.reduce((sum, id) => sum + (plan.supernodes[id].weight_bytes ?? 0), 0);
    select(box.title, [
      ['block', `${count(box.ids.length, 'supernode')}${box.stage === null ? '' : `, in stage ${box.stage}`}`],
      ['time', time(box.cost_ns)], ['weights', bytes(weights)],
    ], list);
    byId('detail').dataset.supernode = box.ids[0];
  }

  function drawRepeats() {
    const list = byId('repeats').querySelector('ul');
    byId('repeats').hidden = !plan.repeats.length;
    list.replaceChildren();
    for (const repeat of plan.repeats) {
      const n = repeat.blocks * repeat.supernodes;
      const all = plan.supernodes.slice(repeat.first, repeat.first + n);
      const cost = all.reduce((sum, g) => sum + (g.cost_ns ?? 0), 0);
      const button = element('button', { type: 'button' },
        `${repeat.title || 'without names'}: ${repeat.blocks} × block of ${count(repeat.supernodes, 'supernode')}`,
        ' ', element('small', {}, time(all[0].cost_ns === null ? null : cost)));
      button.addEventListener('click', () => focus(all.map((g) => g.id)));
      list.append(element('li', {}, button));
    }
  }

  function drawNotes() {
    const notes = noteList(() => true);
    byId('notes').hidden = !notes.length;
    byId('notes').replaceChildren(element('h2', {}, 'Notes'), ...notes);
  }

  function bar(parts, whole) {
    const made = element('div', { class: 'bar' });
    for (const [kind, amount] of parts) {
      const part = element('i', { class: kind });
      part.style.width = `${100 * amount / Math.max(whole, 1)}%`;
      made.append(part);
    }
    return made;
  }

  const trains = () => plan.stages?.[0]?.backward_ns !== undefined;

  function drawStages() {
    const box = byId('stages');
    box.replaceChildren(element('h2', {}, 'Stages'));
    if (!plan.stages) {
      box.append(element('p', { class: 'hint' }, 'Not partitioned yet.'));
      return;
    }
    const key = element('p', { class: 'key' });
    const kinds = trains() ? [['compute', 'forward'], ['backward', 'backward'], ['stash', 'stash']] : [['compute', 'compute']];
    for (const [kind, text] of [...kinds, ['recv', 'receive'], ['send', 'send'], ['weights', 'weights'], ['activations', 'activations'], ['buffers', 'buffers'], ['workspace', 'workspace']]) {
      key.append(element('span', { class: `swatch ${kind}` }), text);
    }
    box.append(key);
    const slowest = Math.max(...plan.stages.map((s) => s.load_ns));
    const fullest = Math.max(...plan.stages.map((s) => s.memory_bytes));
    for (const s of plan.stages) {
      const limit = s.memory_limit_bytes;
      const swatch = element('span', { class: 'swatch' });
      swatch.style.background = colour(s.index);
      const title = element('span', {}, swatch, `stage ${s.index}, ${s.device}`);
      const memoryBar = bar([['weights', s.weight_bytes], ['activations', s.activation_bytes], ['stash', s.stash_bytes ?? 0], ['buffers', s.buffer_bytes], ['workspace', s.workspace_bytes]].filter(([kind]) => trains() || kind !== 'stash'), limit ?? fullest);
      if (limit !== null && s.memory_bytes > limit) memoryBar.classList.add('over');
      box.append(element('div', { class: 'stage' },
        element('p', {}, title, element('span', {}, `${time(s.load_ns)}${s.load_ns === slowest ? ', the slowest' : ''}`)),
        bar([...(trains() ? [['compute', s.forward_ns], ['backward', s.backward_ns]] : [['compute', s.compute_ns]]), ['recv', s.recv_ns], ['send', s.send_ns]], slowest),
        ...(trains() ? [element('p', {}, element('span', {}, `forward ${time(s.forward_ns)}, backward ${time(s.backward_ns)}`), element('span', {}, `stash ${bytes(s.stash_bytes)}`))] : []),
        memoryBar,
        element('p', {}, element('span', {}, `${count(s.operators, 'operator')}, ${count(s.supernodes, 'supernode')}`),
          element('span', {}, `${bytes(s.memory_bytes)}${limit === null ? '' : ` of ${bytes(limit)}`}`))));
    }
  }

  function drawCuts() {
    const box = byId('cuts');
    box.replaceChildren(element('h2', {}, 'Cost of a cut, by place'));
    const places = plan.cut_bytes.length - 1;
    if (places < 1 || plan.supernodes[0].cost_ns === null) {
      box.append(element('p', { class: 'hint' }, 'Nothing to cut, or no costs yet.'));
      return;
    }
    const W = 400, H = 130;
    const top = plan.cut_bytes.slice(0, places).reduce((most, n) => Math.max(most, n), 1);
    const x = (p) => W * (p + 0.5) / places;
    const y = (n) => H - (H - 16) * n / top;
    const svg = drawing('svg', { viewBox: `0 0 ${W} ${H + 18}`, role: 'img', 'aria-label': 'bytes that cross behind each supernode' });
    const points = [];
    let free = 0;
    for (let p = 0; p < places; p++) points.push(`${x(p).toFixed(1)},${y(plan.cut_bytes[p]).toFixed(1)}`);
    svg.append(drawing('line', { class: 'axis', x1: 0, x2: W, y1: H, y2: H }));
    svg.append(drawing('polyline', { class: 'curve', points: points.join(' ') }));
    for (let p = 0; p < places; p++) {
      const here = plan.supernodes[plan.order[p]], next = plan.supernodes[plan.order[p + 1]];
      if (here.stage === next.stage) continue;
      const line = drawing('line', { class: 'cut', x1: x(p), x2: x(p), y1: 0, y2: H });
      line.append(drawing('title', {}, `${bytes(plan.cut_bytes[p])}, ${time(plan.cut_ns[p])}`));
      svg.append(line);
      // A label stands where the one before it has ended; what has no room is told by the pointer.
      const text = bytes(plan.cut_bytes[p]);
      const left = Math.min(x(p) + 3, W - 6 * text.length);
      if (left < free) continue;
      svg.append(drawing('text', { x: left, y: 10 }, text));
      free = left + 6 * text.length + 6;
    }
    svg.append(drawing('text', { x: 0, y: H + 14, class: 'soft' }, `supernodes in order; ${bytes(top)} at most; dashed: the plan's cuts`));
    svg.addEventListener('click', (event) => {
      const box = svg.getBoundingClientRect();
      const p = Math.min(places - 1, Math.max(0, Math.floor((event.clientX - box.left) / box.width * places)));
      focus([plan.order[p]]);
      show(plan.order[p]);
    });
    box.append(svg);
  }

  // When stages work on which micro-batch, forward only: each stage takes the next one when it is
  // done and the stage before it has sent it. [stage, micro-batch, start, end]
  function simulate(loads, n) {
    const slots = [];
    let ready = new Array(n).fill(0);
    loads.forEach((load, stage) => {
      let free = 0;
      ready = ready.map((at, batch) => {
        const start = Math.max(at, free);
        free = start + load;
        slots.push([stage, batch, start, free]);
        return free;
      });
    });
    const makespan = ready[n - 1] ?? 0;
    const busy = n * loads.reduce((sum, load) => sum + load, 0);
    return { slots, makespan, bubble: makespan ? 1 - busy / (makespan * loads.length) : 0 };
  }

  // A step of training by fill-drain: all forward, then all back. What crosses goes both ways.
  function step(stages, n) {
    const crossing = (s) => (s.recv_ns + s.send_ns) / 2, last = stages.length - 1;
    const forward = simulate(stages.map((s) => s.forward_ns + crossing(s)), n);
    const back = simulate(stages.map((s) => s.backward_ns + crossing(s)).reverse(), n);
    const makespan = forward.makespan + back.makespan;
    const slots = [...forward.slots, ...back.slots.map(([stage, batch, from, to]) => [last - stage, batch, from + forward.makespan, to + forward.makespan])];
    const busy = n * stages.reduce((sum, s) => sum + s.load_ns, 0);
    return { slots, makespan, bubble: makespan ? 1 - busy / (makespan * stages.length) : 0 };
  }

  function drawSchedule() {
    const box = byId('gantt');
    box.replaceChildren();
    byId('batches').parentElement.hidden = !plan.stages;
    if (!plan.stages) {
      box.append(element('p', { class: 'hint' }, 'Not partitioned yet.'));
      return;
    }
    const n = Math.min(1000, Math.max(1, Math.floor(Number(byId('batches').value)) || 1));
    const { slots, makespan, bubble } = trains() ? step(plan.stages, n) : simulate(plan.stages.map((s) => s.load_ns), n);
    const W = 400, ROW = 20, rows = plan.stages.length;
    const svg = drawing('svg', { viewBox: `0 0 ${W} ${rows * ROW + 18}`, role: 'img', 'aria-label': 'which stage works on which micro-batch, over time' });
    for (const [stage, batch, from, to] of slots) {
      const width = W * (to - from) / Math.max(makespan, 1);
      if (width < 0.05) continue; // nothing to see
      const rect = drawing('rect', { x: W * from / makespan, y: stage * ROW + 1, width: Math.max(width - 0.4, 0.2), height: ROW - 2, fill: colour(stage, 78 - 12 * (batch % 2)) });
      rect.append(drawing('title', {}, `stage ${stage}, micro-batch ${batch}: ${time(from)} to ${time(to)}`));
      svg.append(rect);
      if (width > 7 * String(batch).length + 6) svg.append(drawing('text', { class: 'on', x: W * from / makespan + 3, y: stage * ROW + 14 }, batch));
    }
    svg.append(drawing('text', { x: 0, y: rows * ROW + 14, class: 'soft' }, `${n} micro-batch${n === 1 ? '' : 'es'} in ${time(makespan)}${trains() ? ' forward, then back' : ''}, ${(100 * bubble).toFixed(1)} % idle`));
    box.append(svg);
  }

  function summary() {
    const p = plan.plan;
    byId('summary').textContent = [
      count(data.operators.length, 'operator'), count(plan.supernodes.length, 'supernode'),
      ...(p ? [count(plan.stages.length, 'stage'), `slowest ${time(p.bottleneck_ns)}`,
        ...(p.objective === 'latency' ? [`one input ${time(p.latency_ns)}`] : []),
        `at least ${time(p.lower_bound_ns)}${p.data_dependent ? ' as counted' : ''}`,
        ...(p.proved_optimal ? [`proved optimal${p.device_order === 'given' ? ' for this order of devices' : ''}`] : []),
        ...(p.headline ? [p.headline] : [])] : [])].join(', ');
  }

  function update() {
    plan = data.plans[Number(byId('slider').value)];
    byId('chosen').textContent = plan.stages ? plan.stages.length : '';
    delete byId('detail').dataset.supernode;
    summary();
    draw();
    drawRepeats();
    drawNotes();
    drawStages();
    drawCuts();
    drawSchedule();
  }

  let searching = 0;
  function search() {
    const found = byId('found');
    const wanted = byId('search').value.toLowerCase();
    found.replaceChildren();
    found.hidden = !wanted;
    if (!wanted) return;
    const hits = [];
    for (const g of plan.supernodes) {
      if (hits.length >= 60) break;
      if (g.title.toLowerCase().includes(wanted)) hits.push([g.title, 'supernode', g.id]);
      for (const id of g.operators) {
        const node = data.operators[id];
        if (hits.length < 60 && (node.name.toLowerCase().includes(wanted) || node.op.toLowerCase() === wanted)) {
          hits.push([label(node), `${node.op} in ${g.title}`, g.id]);
        }
      }
    }
    for (const [name, where, id] of hits) {
      const button = element('button', { type: 'button' }, name, ' ', element('small', {}, where));
      button.addEventListener('click', () => { found.hidden = true; focus([id]); show(id); });
      found.append(element('li', {}, button));
    }
    if (!hits.length) found.append(element('li', {}, 'nothing has that name'));
  }

  byId('search').addEventListener('input', () => { clearTimeout(searching); searching = setTimeout(search, 120); });
  byId('search').addEventListener('keydown', (event) => { if (event.key === 'Escape') byId('found').hidden = true; });
  byId('fit').addEventListener('click', () => cy.fit(undefined, 24));
  byId('fold').addEventListener('change', draw);
  byId('batches').value = data.micro_batches;
  byId('batches').addEventListener('input', drawSchedule);
  dark.addEventListener('change', draw);
  byId('slider').max = data.plans.length - 1;
  byId('slider').value = data.plans.length > 1 ? data.chosen : 0;
  byId('choice').hidden = data.plans.length < 2;
  byId('slider').addEventListener('input', update);
  update();
  // For tests, and for who wants to ask more of the graph from the browser's console.
  window.page = { data, show, simulate, graph: () => cy, box: (id) => cy.getElementById(`g${boxOf[id]}`) };
})();
