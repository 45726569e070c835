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
// Stages that share devices: each takes what can begin first, of several the earlier micro-batch.
function simulateShared(stages, n) {
  const slots = [], free = new Map(), next = stages.map(() => 0), done = stages.map(() => []);
  for (let left = n * stages.length; left > 0; left--) {
    let best = null;
    stages.forEach((stage, s) => {
      const m = next[s], there = s ? done[s - 1][m] : 0;
      if (m === n || there === undefined) return;
      const start = Math.max(there, free.get(stage.device) ?? 0);
      if (!best || start < best.start || (start === best.start && m < best.m)) best = { s, m, start };
    });
    const { s, m, start } = best, end = start + stages[s].load_ns;
    slots.push([s, m, start, end, false]);
    done[s][m] = end;
    free.set(stages[s].device, end);
    next[s]++;
  }
  const makespan = Math.max(0, ...free.values()), busy = n * stages.reduce((sum, s) => sum + s.load_ns, 0);
  return { slots, makespan, bubble: makespan ? 1 - busy / (makespan * free.size) : 0 };
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
// A step by 1F1B: a stage runs forward as often as there are stages from it on, then back and forward in turn.
function oneByOne(stages, n) {
  const k = stages.length, crossing = (s) => (s.recv_ns + s.send_ns) / 2, slots = [];
  const done = [stages.map(() => []), stages.map(() => [])], free = stages.map(() => 0), ran = stages.map(() => [0, 0]);
  const ready = (s, m, back) => (back ? (s + 1 < k ? done[1][s + 1][m] : done[0][s][m]) : s ? done[0][s - 1][m] : 0);
  for (let left = 2 * k * n; left > 0;) {
    for (let s = 0; s < k; s++) {
      for (;;) {
        const [there, here] = ran[s], back = there >= Math.min(n, k - s) && (there === n || there > here + Math.min(n, k - s) - 1), m = back ? here : there;
        if (m === n || (back && here >= there)) break;
        const at = ready(s, m, back);
        if (at === undefined) break;
        const from = Math.max(at, free[s]), to = from + (back ? stages[s].backward_ns : stages[s].forward_ns) + crossing(stages[s]);
        done[back ? 1 : 0][s][m] = free[s] = to;
        slots.push([s, m, from, to, back]);
        ran[s][back ? 1 : 0]++;
        left--;
      }
    }
  }
  const makespan = free.reduce((m, to) => Math.max(m, to), 0), busy = n * stages.reduce((sum, s) => sum + s.forward_ns + s.backward_ns + 2 * crossing(s), 0);
  return { slots, makespan, bubble: makespan ? 1 - busy / (makespan * k) : 0 };
}
const trains = (cut) => cut.stages[0]?.backward_ns !== undefined;
const scheduled = (cut, n) => (inSegments(cut) ? simulateShared(cut.stages, n) : !trains(cut) ? simulate(cut.stages.map((s) => s.load_ns), n) : state.order === 'fill' ? step(cut.stages, n) : oneByOne(cut.stages, n));

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
function gantt(run, { rows, width, longest, name, tall = 380 }) {
  const busy = new Array(rows).fill(0);
  for (const [stage, , from, to] of run.slots) busy[stage] += to - from;
  const titles = Array.from({ length: rows }, (_, s) => (width < 560 || !plan.stages[s] ? `stage ${s}` : `${s} · ${plan.stages[s].device}`));
  const left = Math.min(130, 12 + Math.max(width < 560 ? 44 : 70, ...titles.map((t) => widthOf(t)))), row = Math.max(14, Math.min(72, tall / rows)), height = rows * row + 26, scale = (width - left - 8) / Math.max(1, longest);
  const svg = drawing('svg', { viewBox: `0 0 ${width} ${height}`, width, height, class: 'gantt', role: 'img', 'aria-label': `${name}: which stage works on which micro-batch, over time; ${percent(run.bubble)} idle` });
  const step = niceStep(longest / Math.max(2, width / 130));
  titles.forEach((text, s) => {
    const below = row >= 32 && run.makespan > 0 && (width < 560 ? percent(busy[s] / run.makespan) : `${percent(busy[s] / run.makespan)} busy`);
    svg.append(drawing('text', { x: 0, y: s * row + row / 2 + (below ? -2 : 4) }, fitted(text, left - 8, undefined, false)), drawing('rect', { class: 'track', x: left, y: s * row + 1, width: Math.max(0, run.makespan * scale), height: row - 2 }));
    if (below) svg.append(drawing('text', { class: 'soft', x: 0, y: s * row + row / 2 + 13 }, below));
  });
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
  // On one scale, unless one would be a few pixels wide beside the other.
  const ends = [run.makespan, head?.makespan ?? run.makespan], both = Math.max(...ends), own = state.scale ? state.scale === 'own' : both > 4 * Math.min(...ends);
  const rows = Math.max(cut.stages.length, trace?.stages ?? 0);
  const figure = (what, value, small) => element('div', {}, element('dt', {}, what), element('dd', {}, value, element('small', {}, small)));
  const list = element('dl', { class: 'figures' }, figure('all done after', time(run.makespan), count(n, 'micro-batch').replace('batchs', 'batches')), figure('idle', percent(run.bubble), 'the bubble: filling, draining, waiting'), figure('one every', time(plan.plan.objective === 'fill-drain' ? cut.value_ns : cut.bottleneck_ns), 'once filled'), figure('latency', time(cut.latency_ns), 'of one by itself'));
  if (head) list.append(figure('measured', time(head.makespan), `${(head.makespan / run.makespan).toFixed(2)} times the prediction, ${percent(head.bubble)} idle`));
  const input = element('input', { id: 'batches', type: 'number', min: 1, max: 1000, step: 1, value: n, oninput: (event) => { state.batches = event.target.value; redrawSchedule(); } });
  const file = element('input', { id: 'trace', type: 'file', accept: '.json', 'aria-label': 'a trace of onnx-pipeline-run', onchange: (event) => takeTrace(event.target.files[0]) });
  box.append(element('div', { class: 'tools' }, element('label', {}, 'Micro-batches ', input), ...(trains(cut) ? [choice('order of a step', [['1f1b', '1F1B'], ['fill', 'fill, then drain']], state.order, (order) => set({ order }))] : []), ...(head ? [choice('scale of both', [['same', 'one scale'], ['own', 'own scales']], own ? 'own' : 'same', (scale) => set({ scale }))] : []), element('label', {}, 'Beside it, a run\'s ', element('code', {}, '--trace'), ' ', file)));
  const body = element('div', { id: 'schedule-body' });
  box.append(body);
  const tall = Math.max(240, (innerHeight - body.getBoundingClientRect().top - 190) / (head ? 2 : 1));
  body.append(list, element('h2', {}, 'As planned'), gantt(run, { rows, width, longest: own ? run.makespan : both, name: 'planned', tall }));
  if (head) body.append(element('h2', {}, 'As measured', ...(own && head.makespan !== run.makespan ? [' ', element('small', {}, 'on a scale of its own')] : [])), gantt(head, { rows, width, longest: own ? head.makespan : both, name: 'measured', tall }), drift(cut, trace));
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
