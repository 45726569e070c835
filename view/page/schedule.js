// When stages work on which micro-batch: as the plan has it, and as a run's trace shows it.

// Forward only: each stage takes the next micro-batch when it is done and the stage before it has sent
// it. Slots are [stage, micro-batch, start, end, backward].
function simulate(loads, n) {
  const slots = [];
  let ready = new Array(n).fill(0);
  loads.forEach((load, stage) => {
    let free = 0;
    ready = ready.map((at, batch) => {
      const start = Math.max(at, free);
      free = start + load;
      slots.push([stage, batch, start, free, false]);
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
  const slots = [...forward.slots, ...back.slots.map(([stage, batch, from, to]) => [last - stage, batch, from + forward.makespan, to + forward.makespan, true])];
  const busy = n * stages.reduce((sum, s) => sum + s.load_ns, 0);
  return { slots, makespan, bubble: makespan ? 1 - busy / (makespan * stages.length) : 0 };
}
const scheduled = (cut, n) => (cut.stages[0]?.backward_ns !== undefined ? step(cut.stages, n) : simulate(cut.stages.map((s) => s.load_ns), n));

// Spans of computing in a trace of onnx-pipeline-run, as slots; null where it is none.
function readTrace(text) {
  let events;
  try {
    events = JSON.parse(text)?.traceEvents;
  } catch {
    return null;
  }
  if (!Array.isArray(events)) return null;
  const slots = events.filter((e) => e && e.ph === 'X' && e.name === 'compute' && Number.isInteger(e.pid) && e.pid >= 0 && e.pid < 4096 && Number.isFinite(e.ts) && Number.isFinite(e.dur) && e.dur >= 0 && Number.isInteger(e.args?.micro_batch))
    .map((e) => [e.pid, e.args.micro_batch, e.ts * 1000, (e.ts + e.dur) * 1000, false]);
  if (!slots.length) return null;
  const start = slots.reduce((m, s) => Math.min(m, s[2]), Infinity), first = slots.reduce((m, s) => Math.min(m, s[1]), Infinity);
  for (const s of slots) { s[2] -= start; s[3] -= start; s[1] -= first; }
  const stages = slots.reduce((m, s) => Math.max(m, s[0]), 0) + 1, n = slots.reduce((m, s) => Math.max(m, s[1]), 0) + 1;
  return { slots, stages, n, ...spanned(slots, stages) };
}
function spanned(slots, stages) {
  const makespan = slots.reduce((m, s) => Math.max(m, s[3]), 0), busy = slots.reduce((sum, s) => sum + s[3] - s[2], 0);
  return { makespan, bubble: makespan ? 1 - busy / (makespan * stages) : 0 };
}
// The first micro-batches of a trace: as many as are drawn of the plan.
function traceHead(trace, n) {
  const slots = trace.slots.filter((s) => s[1] < n);
  return { slots, ...spanned(slots, trace.stages) };
}

// Boxes of a row too thin to be seen become one.
function gantt(run, { rows, width, longest, name }) {
  const titles = Array.from({ length: rows }, (_, s) => (width < 560 || !plan.stages[s] ? `stage ${s}` : `${s} · ${plan.stages[s].device}`));
  const left = Math.min(130, 12 + Math.max(...titles.map((t) => widthOf(t)))), row = Math.max(14, Math.min(48, 380 / rows)), height = rows * row + 26, scale = (width - left - 8) / Math.max(1, longest);
  const svg = drawing('svg', { viewBox: `0 0 ${width} ${height}`, width, height, class: 'gantt', role: 'img', 'aria-label': `${name}: which stage works on which micro-batch, over time; ${percent(run.bubble)} idle` });
  const step = niceStep(longest / Math.max(2, width / 130));
  titles.forEach((text, s) => svg.append(drawing('text', { x: 0, y: s * row + row / 2 + 4 }, fitted(text, left - 8, undefined, false)), drawing('rect', { class: 'track', x: left, y: s * row + 1, width: Math.max(0, run.makespan * scale), height: row - 2 })));
  for (let at = 0; at <= longest; at += step) {
    const x = left + at * scale, text = at ? time(at) : '0', small = '11px system-ui, sans-serif';
    svg.append(drawing('line', { class: 'grid', x1: x, x2: x, y1: 0, y2: rows * row + 4 }));
    svg.append(drawing('text', { class: 'soft', x: Math.min(x, width - widthOf(text, small)), y: height - 6 }, text));
  }
  const end = new Array(rows).fill(-1);
  for (const [stage, batch, from, to, back] of run.slots) {
    const x = left + from * scale, w = (to - from) * scale;
    if (x + w < end[stage] + 0.5) continue;
    end[stage] = x + w;
    const g = drawing('g', { class: `slot${back ? ' back' : ''}${batch % 2 ? ' odd' : ''}` });
    g.append(drawing('rect', { x, y: stage * row + 1, width: Math.max(w - 0.6, 0.4), height: row - 2, rx: w > 6 ? 2 : 0, style: `fill:${stageColour(stage)}` }), drawing('title', {}, `stage ${stage}, micro-batch ${batch}${back ? ', backward' : ''}: ${time(from)} to ${time(to)}`));
    if (w > 7 * String(batch).length + 7) g.append(drawing('text', { class: 'on', x: x + 4, y: stage * row + row / 2 + 4 }, `${batch}`));
    svg.append(g);
  }
  return svg;
}
function niceStep(least) {
  const power = 10 ** Math.floor(Math.log10(Math.max(1, least)));
  return [1, 2, 5, 10].map((n) => n * power).find((n) => n >= least);
}

function takeTrace(file) {
  if (!file) return;
  file.text().then((text) => {
    const trace = readTrace(text);
    if (!trace) return say(`${file.name} is no trace of onnx-pipeline-run.`, true);
    state.trace = trace;
    return show();
  });
}

function drawSchedule(box) {
  if (!plan.stages) {
    box.append(element('p', { class: 'hint' }, 'There are no stages yet: -k N makes them.'));
    return;
  }
  const cut = split(), trace = state.trace, width = roomIn(box);
  const n = Math.min(1000, Math.max(1, Math.floor(Number(state.batches)) || 1));
  const run = scheduled(cut, n), head = trace ? traceHead(trace, n) : null;
  const longest = Math.max(run.makespan, head?.makespan ?? 0), rows = Math.max(cut.stages.length, trace?.stages ?? 0);
  const figure = (what, value, small) => element('div', {}, element('dt', {}, what), element('dd', {}, value, element('small', {}, small)));
  const list = element('dl', { class: 'figures' }, figure('all done after', time(run.makespan), count(n, 'micro-batch').replace('batchs', 'batches')), figure('idle', percent(run.bubble), 'the bubble: filling, draining, waiting'), figure('one every', time(cut.bottleneck_ns), 'once filled'), figure('latency', time(cut.latency_ns), 'of one by itself'));
  if (head) list.append(figure('measured', time(head.makespan), `${(head.makespan / run.makespan).toFixed(2)} times the prediction, ${percent(head.bubble)} idle`));
  const input = element('input', { id: 'batches', type: 'number', min: 1, max: 1000, step: 1, value: n, oninput: (event) => { state.batches = event.target.value; redrawSchedule(); } });
  const file = element('input', { id: 'trace', type: 'file', accept: '.json', 'aria-label': 'a trace of onnx-pipeline-run', onchange: (event) => takeTrace(event.target.files[0]) });
  box.append(element('div', { class: 'tools' }, element('label', {}, 'Micro-batches ', input), element('label', {}, 'Beside it, a run\'s ', element('code', {}, '--trace'), ' ', file)));
  const body = element('div', { id: 'schedule-body' });
  box.append(body);
  body.append(list, element('h2', {}, 'As planned'), gantt(run, { rows, width, longest, name: 'planned' }));
  if (head) body.append(element('h2', {}, 'As measured'), gantt(head, { rows, width, longest, name: 'measured' }), drift(cut, trace));
}
// The field that is being typed in stays.
function redrawSchedule() {
  const fresh = element('div');
  byId('view').append(fresh);
  drawSchedule(fresh);
  byId('schedule-body').replaceWith(fresh.querySelector('#schedule-body'));
  fresh.remove();
}

// What each stage took beside what was planned: the median of the measured.
function drift(cut, trace) {
  const body = element('tbody');
  cut.stages.forEach((s, i) => {
    const took = trace.slots.filter((slot) => slot[0] === i).map((slot) => slot[3] - slot[2]).sort((a, b) => a - b);
    const median = took.length ? took[took.length >> 1] : null;
    body.append(element('tr', {}, element('th', { scope: 'row' }, `${i}`), element('td', {}, s.device), element('td', { class: 'number' }, time(s.compute_ns)), element('td', { class: 'number' }, time(median)), element('td', { class: 'number' }, median === null || !s.compute_ns ? '' : (median / s.compute_ns).toFixed(2))));
  });
  return element('table', { class: 'stages' }, element('caption', {}, 'Computing, planned and measured (median)'), element('thead', {}, element('tr', {}, ...['stage', 'device', 'planned', 'measured', 'ratio'].map((h, i) => element('th', { scope: 'col', class: i < 2 ? '' : 'number' }, h)))), body);
}
