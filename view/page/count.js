// Loads, transfers and memory of any split of the plan's supernodes into its stages, by the rules of
// the planner (docs/inspect.md): integers, to the nanosecond and the byte. A sum that a number here
// cannot hold exactly is an error, never a rounded figure.

function add(a, b) {
  const sum = a + b;
  if (!Number.isSafeInteger(sum)) throw new RangeError('a sum is too large to be counted in a page');
  return sum;
}
const part = (amount, percentage) => {
  const product = amount * percentage;
  if (!Number.isSafeInteger(product)) throw new RangeError('a product is too large to be counted in a page');
  return Math.floor(product / 100);
};

// Lists by number: items[off[i]] .. items[off[i + 1] - 1].
function lists(n, pairs) {
  const off = new Int32Array(n + 2);
  for (let i = 0; i < pairs.length; i += 2) off[pairs[i] + 2]++;
  for (let i = 0; i <= n; i++) off[i + 1] += off[i];
  const items = new Int32Array(pairs.length / 2);
  for (let i = 0; i < pairs.length; i += 2) items[off[pairs[i] + 1]++] = pairs[i + 1];
  return { off, items };
}

// Who reads which value; the same for all plans.
let readersOf = null;
function readers() {
  if (readersOf) return readersOf;
  const pairs = [];
  for (const node of data.operators) {
    for (const v of node.inputs) if (v !== null) pairs.push(v, node.id);
    for (const v of node.captures) pairs.push(v, node.id);
  }
  readersOf = lists(data.tensors.length, pairs);
  return readersOf;
}

// Tensors between supernodes: who makes each, and all that read it.
const netsOf = new WeakMap();
function nets(p) {
  if (netsOf.has(p)) return netsOf.get(p);
  const { off, items } = readers();
  const groupOf = groups(p), met = new Int32Array(p.supernodes.length).fill(-1);
  const made = [];
  for (const value of data.tensors) {
    if (value.producer === null || value.constant) continue;
    const from = groupOf[value.producer], to = [];
    for (let i = off[value.id]; i < off[value.id + 1]; i++) {
      const g = groupOf[items[i]];
      if (g < 0 || g === from || met[g] === value.id) continue;
      met[g] = value.id;
      to.push(g);
    }
    if (to.length) made.push({ value: value.id, from, to });
  }
  netsOf.set(p, made);
  return made;
}

// The supernode of each operator; -1: a function of constants.
const groupsOf = new WeakMap();
function groups(p) {
  if (groupsOf.has(p)) return groupsOf.get(p);
  const of = new Int32Array(data.operators.length).fill(-1);
  for (const g of p.supernodes) for (const n of g.operators) of[n] = g.id;
  groupsOf.set(p, of);
  return of;
}

// Stages of the plan as it was made.
const stagesOf = (p) => Int32Array.from(p.supernodes, (g) => g.stage);

function transferTime(p, from, to, n) {
  const c = p.counting, pair = from * p.stages.length + to, rate = c.bytes_per_second[pair];
  const moved = rate === null ? 0 : Math.max(0, Math.ceil((n / rate) * 1e9));
  return add(c.latency_ns[pair], moved);
}

const bySender = (a, b) => a.from - b.from || a.value - b.value || a.to - b.to;

// Each tensor once to each stage that reads it, straight from where it is made.
function wishesOf(p, stageOf) {
  const found = [];
  for (const net of nets(p)) {
    const from = stageOf[net.from];
    let to = null;
    for (const g of net.to) {
      if (stageOf[g] === from) continue;
      to ??= new Set();
      to.add(stageOf[g]);
    }
    if (!to) continue;
    const value = data.tensors[net.value];
    for (const stage of to) found.push({ tensor: value.name, value: net.value, from, to: stage, bytes: value.bytes, bytes_known: value.bytes_known });
  }
  return found.sort(bySender);
}

function chargeLayouts(p, stageOf, stages) {
  const c = p.counting, n = c.price_maker.length, met = new Int32Array(stages.length).fill(-1);
  const classes = n ? c.price_recv_ns.length / n : 0;
  for (let i = 0; i < n; i++) {
    const from = stageOf[c.price_maker[i]];
    for (let r = i ? c.price_end[i - 1] : 0; r < c.price_end[i]; r++) {
      const to = stageOf[c.price_reader[r]];
      if (to === from || met[to] === i) continue;
      met[to] = i;
      const recv = c.price_recv_ns[i * classes + c.stage_class[to]];
      const send = c.price_send_ns[i * classes + c.stage_class[from]];
      for (const [s, ns] of [[to, recv], [from, send]]) {
        stages[s].layout_ns = add(stages[s].layout_ns, ns);
        stages[s].compute_ns = add(stages[s].compute_ns, ns);
      }
    }
  }
}

// Operators by stage in topological order; functions of constants stand in every stage that reads them.
function operatorsOf(p, stageOf) {
  const { off, items } = readers(), groupOf = groups(p), c = p.counting;
  const stages = p.stages.map(() => []), free = new Map();
  const stateOf = new Map(c.states.flatMap(([output, input]) => [[output, input], [input, input]]));
  for (let i = c.topological.length - 1; i >= 0; i--) {
    const node = data.operators[c.topological[i]];
    if (groupOf[node.id] >= 0) continue;
    const own = new Set();
    for (const v of node.outputs) {
      for (let r = v === null ? 0 : off[v]; v !== null && r < off[v + 1]; r++) {
        if (groupOf[items[r]] >= 0) own.add(stageOf[groupOf[items[r]]]);
        else for (const s of free.get(items[r])) own.add(s);
      }
    }
    if (!own.size) own.add(homeOfUnread(node, stateOf, stageOf, groupOf));
    free.set(node.id, own);
  }
  for (const n of c.topological) {
    if (groupOf[n] >= 0) stages[stageOf[groupOf[n]]].push(n);
    else for (const s of free.get(n)) stages[s].push(n);
  }
  return stages;
}

function homeOfUnread(node, stateOf, stageOf, groupOf) {
  const { off, items } = readers();
  for (const v of node.outputs) {
    const input = stateOf.get(v);
    if (input === undefined) continue;
    for (let r = off[input]; r < off[input + 1]; r++) if (groupOf[items[r]] >= 0) return stageOf[groupOf[items[r]]];
  }
  return 0;
}

// Scratch of memory: by value, told apart by stamps.
let scratch = null;
const rare = new WeakMap();
function rareFacts(p) {
  if (!rare.has(p)) {
    const c = p.counting;
    const held = new Map(); // value -> its pair, where it is no activation
    for (const [output, input, shared] of c.states) {
      held.set(input, { output, input });
      if (shared) held.set(output, { output, input });
    }
    rare.set(p, { held, bodies: new Map(c.bodies.map((b) => [b[0], b])), workspace: new Map(c.workspace), unsendable: new Set(c.unsendable), keeps: new Set(c.keeps_copies), next: c.next_hop ? Int32Array.from(c.next_hop, (stage) => stage ?? NO_WAY) : null });
  }
  return rare.get(p);
}

function memoryOf(p, s, nodes, sent) {
  const c = p.counting, { held, bodies, workspace, keeps } = rareFacts(p), { tensors, operators } = data;
  scratch ??= { stamp: 0, made: new Int32Array(tensors.length), seen: new Int32Array(tensors.length), use: new Int32Array(tensors.length), died: new Int32Array(tensors.length), dying: 0 };
  const { made, seen, use, died } = scratch, stamp = ++scratch.stamp, END = 0x7fffffff;
  const size = (v) => tensors[v].bytes ?? 0;
  const active = (v) => (held.has(v) ? 0 : size(v));
  const stateBytes = (v) => {
    const pair = held.get(v);
    return !pair || (v === pair.output && v !== pair.input && seen[pair.input] === stamp) ? 0 : size(v);
  };
  let weights = 0, copies = 0, outside = 0, largest = 0, live = 0, state = 0, received = 0, sentBytes = 0, n = 0;
  nodes.forEach((id, at) => { for (const v of operators[id].outputs) if (v !== null) { made[v] = stamp; use[v] = at; } });
  const read = (v, node, at, body, conv) => {
    use[v] = at;
    if (seen[v] === stamp) return;
    seen[v] = stamp;
    if (tensors[v].constant) {
      weights = add(weights, size(v));
      if (conv) largest = Math.max(largest, size(v));
      const row = 4 * c.copies[v] + (conv ? 1 : 0);
      copies = add(copies, part(size(v), body ? c.body_percent : c.copies_percent[row]));
      outside = add(outside, part(size(v), body ? c.body_percent : c.copies_percent[row + 2]));
    } else if (made[v] !== stamp) {
      const given = tensors[v].producer === null;
      live = add(live, given ? active(v) : size(v));
      if (given) state = add(state, stateBytes(v));
      else received = add(received, size(v));
    }
  };
  nodes.forEach((id, at) => {
    const node = operators[id], body = bodies.get(id), conv = node.class === 'conv' || node.class === 'depthwise';
    n += body ? body[1] : 1;
    if (body && body[3]) {
      weights = add(weights, body[3]);
      copies = add(copies, body[4]);
      outside = add(outside, body[4]);
    }
    for (const v of node.inputs) if (v !== null) read(v, node, at, body?.[2], conv);
    for (const v of node.captures) read(v, node, at, body?.[2], conv);
  });
  if (held.size) for (const id of nodes) for (const v of operators[id].outputs) if (v !== null) state = add(state, stateBytes(v));
  for (const v of sent) {
    sentBytes = add(sentBytes, size(v));
    if (made[v] !== stamp && seen[v] !== stamp) { // passed on unread
      live = add(live, size(v));
      received = add(received, size(v));
    }
    use[v] = END;
  }
  let most = live;
  nodes.forEach((id, at) => {
    const node = operators[id], now = ++scratch.dying;
    for (const v of node.outputs) if (v !== null && !tensors[v].constant) live = add(live, active(v));
    most = Math.max(most, add(live, workspace.get(id) ?? 0));
    const end = (v) => {
      if (use[v] !== at || died[v] === now || tensors[v].output || tensors[v].constant) return;
      died[v] = now;
      live -= active(v);
    };
    for (const v of node.inputs) if (v !== null) end(v);
    for (const v of node.captures) end(v);
    for (const v of node.outputs) if (v !== null) end(v);
  });
  const buffers = add(received, sentBytes) * c.queue_depth;
  let room = c.stage_workspace_bytes[s];
  if (keeps.has(s)) {
    room = add(room, weights > c.outside_bytes && !c.inline_weights ? outside : copies);
    room = add(room, add(largest, part(most, c.arena_percent)));
    room = add(room, c.session_bytes + c.operator_bytes * n);
  }
  const states = state * c.sequences;
  return { operators: nodes.length, weight_bytes: weights, activation_bytes: most, buffer_bytes: buffers, workspace_bytes: room, state_bytes: states,
    memory_bytes: [most, buffers, room, states].reduce(add, weights) };
}

// All that a stage does, one after the other: what one input takes, and what is drawn.
const workOf = (s) => add(s.compute_ns, add(s.recv_ns, s.send_ns));

// What the planner would say of these stages for the supernodes; nodes computed twice are left out. Tensors
// go by way of other stages where that is faster, or where there is no link.
function countSplit(p, stageOf) {
  const { next: given } = rareFacts(p), wishes = wishesOf(p, stageOf);
  const straight = countWith(p, stageOf, given ? passOn(p.stages.length, given, wishes) : wishes);
  if (!p.counting.may_pass_on) return straight;
  const next = betterWays(p, wishes, straight.stages.map((s) => s.compute_ns), straight.bottleneck_ns);
  const other = next ? countWith(p, stageOf, passOn(p.stages.length, next, wishes)) : straight;
  return other.stages.every((s) => s.memory_limit_bytes === null || s.memory_bytes <= s.memory_limit_bytes) ? other : straight;
}

function countWith(p, stageOf, transfers) {
  const c = p.counting, n = p.supernodes.length;
  const stages = p.stages.map((s) => ({ index: s.index, device: s.device, memory_limit_bytes: s.memory_limit_bytes, supernodes: 0, duplicated: 0, compute_ns: 0, recv_ns: 0, send_ns: 0, layout_ns: 0, load_ns: 0 }));
  for (let g = 0; g < n; g++) {
    const s = stages[stageOf[g]];
    s.supernodes++;
    s.compute_ns = add(s.compute_ns, c.supernode_ns[c.stage_class[stageOf[g]] * n + g]);
  }
  const sent = stages.map(() => []);
  transfers.sort(bySender);
  const perPair = p.plan.message_latency === 'per_pair', met = new Int32Array(stages.length).fill(-1);
  for (const t of transfers) {
    let ns = transferTime(p, t.from, t.to, t.bytes);
    if (perPair && met[t.to] === t.from) ns -= c.latency_ns[t.from * stages.length + t.to]; // one message
    met[t.to] = t.from;
    stages[t.from].send_ns = add(stages[t.from].send_ns, ns);
    stages[t.to].recv_ns = add(stages[t.to].recv_ns, ns);
    if (sent[t.from].at(-1) !== t.value) sent[t.from].push(t.value);
  }
  chargeLayouts(p, stageOf, stages);
  operatorsOf(p, stageOf).forEach((nodes, s) => Object.assign(stages[s], memoryOf(p, s, nodes, sent[s])));
  for (const s of stages) s.load_ns = p.plan.overlap ? Math.max(s.compute_ns, s.recv_ns, s.send_ns) : workOf(s);
  return { stages, transfers, stageOf, ...valueOf(p, stages, transfers), moved: true };
}

// The slowest stage, and one input by itself.
function valueOf(p, stages, transfers) {
  const ready = stages.map(() => 0);
  let latency_ns = 0;
  for (const s of stages) {
    const end = add(ready[s.index], workOf(s));
    for (const t of transfers) if (t.from === s.index) ready[t.to] = Math.max(ready[t.to], end);
    latency_ns = Math.max(latency_ns, end);
  }
  const bottleneck_ns = stages.reduce((most, s) => Math.max(most, s.load_ns), 0);
  const value_ns = p.plan.objective === 'latency' ? latency_ns : bottleneck_ns;
  return { bottleneck_ns, latency_ns, value_ns, gap_frac: value_ns > 0 ? (value_ns - p.plan.lower_bound_ns) / value_ns : 0 };
}

// The plan as it was made, or as it was moved.
// Of a stage that several devices compute in turn: over their number, which the bottleneck counts too.
const turnOf = (s) => (s.replicas > 1 ? { ...s, device: `${s.device} x${s.replicas}`,
  ...Object.fromEntries(['compute_ns', 'recv_ns', 'send_ns', 'layout_ns', 'load_ns'].map((key) => [key, Math.ceil(s[key] / s.replicas)])) } : s);
const valuePlanned = (p) => ({ latency: p.plan.latency_ns, 'fill-drain': p.plan.fill_drain_ns })[p.plan.objective] ?? p.plan.bottleneck_ns;
function planned(p) {
  return { stages: p.stages.map(turnOf), transfers: p.transfers, stageOf: stagesOf(p), bottleneck_ns: p.plan.bottleneck_ns, latency_ns: p.plan.latency_ns, value_ns: valuePlanned(p), gap_frac: p.plan.gap_frac, moved: false };
}
const counted = new WeakMap();
function split(p = plan) {
  if (!p.stages) return null;
  if (p === plan && state.moved) {
    if (!counted.has(state.moved)) counted.set(state.moved, countSplit(p, state.moved));
    return counted.get(state.moved);
  }
  if (!counted.has(p)) counted.set(p, planned(p));
  return counted.get(p);
}

// Transfers of what another stage made: all ways go up from that.
function passedOn(cut) {
  const home = new Map(), key = (t) => t.value ?? t.tensor;
  for (const t of cut.transfers) home.set(key(t), Math.min(t.from, home.get(key(t)) ?? t.from));
  return new Set(cut.transfers.filter((t) => t.from > home.get(key(t))));
}

// Why cuts cannot be moved here, or null.
function whyFixed(p = plan) {
  if (!p.stages) return 'there are no stages yet';
  if (!p.counting) return 'what they are counted from is not in this page';
  if (p.counting.uncounted) return `loads of ${p.counting.uncounted} are not counted in the page`;
  return p.stages.length < 2 ? 'there is one stage' : null;
}

// What forbids a split: the first reason, or null.
function whyNot(p, stageOf) {
  const c = p.counting, n = p.supernodes.length, { unsendable, next } = rareFacts(p);
  const title = (g) => p.supernodes[g].title;
  for (const net of nets(p)) {
    for (const g of net.to) {
      if (stageOf[g] < stageOf[net.from]) return `${title(g)} reads what ${title(net.from)} makes, and would come before it`;
      if (stageOf[g] !== stageOf[net.from] && unsendable.has(net.value)) return `${data.tensors[net.value].name} cannot be sent`;
    }
  }
  for (const at of c.refused) {
    const g = at % n;
    if (c.stage_class[stageOf[g]] === Math.floor(at / n)) return `${p.stages[stageOf[g]].device} does not run ${title(g)}`;
  }
  for (const [g, s] of c.pinned) if (stageOf[g] !== s) return `${title(g)} is pinned to stage ${s}`;
  for (const marks of [c.together, c.state]) {
    const first = new Map();
    for (const [g, mark] of marks) {
      if (first.has(mark) && stageOf[first.get(mark)] !== stageOf[g]) return `${title(g)} and ${title(first.get(mark))} share a stage`;
      first.set(mark, g);
    }
  }
  if (next) {
    const lost = wishesOf(p, stageOf).find((wish) => !passOn(p.stages.length, next, [wish]));
    if (lost) return `no links lead from ${p.stages[lost.from].device} to ${p.stages[lost.to].device}`;
  }
  const used = new Set(stageOf);
  return used.size < p.stages.length ? `stage ${p.stages.findIndex((s) => !used.has(s.index))} would be empty` : null;
}

// How many operators have a name.
let usedNames = null;
function namesUsed() {
  if (usedNames) return usedNames;
  usedNames = new Map();
  for (const operator of data.operators) {
    const name = pinName(operator);
    usedNames.set(name, (usedNames.get(name) ?? 0) + 1);
  }
  return usedNames;
}
// What a pin names an operator by: its own name or, without one, that of its first output.
function pinName({ name, outputs }) {
  return name || (outputs.length && outputs[0] !== null ? data.tensors[outputs[0]].name : '');
}

// Pins that leave no other split: stages never fall along an edge, so that it is enough to pin where a
// stage's paths begin and end, one operator of each supernode, which the passes make again; all operators where
// with these pins they would merge others. Supernodes without a name of their own cannot be pinned, and are told.
function pinsOf(p, stageOf) {
  const n = p.supernodes.length, last = p.stages.length - 1;
  const begins = new Uint8Array(n).fill(1), ends = new Uint8Array(n).fill(1);
  for (const net of nets(p)) {
    for (const g of net.to) {
      if (stageOf[g] !== stageOf[net.from]) continue;
      begins[g] = 0;
      ends[net.from] = 0;
    }
  }
  const times = namesUsed(), pins = [], unnamed = [], { coarsened } = p.counting;
  const nameOf = (id) => pinName(data.operators[id]);
  const isNamed = (id) => nameOf(id) && times.get(nameOf(id)) === 1 && !/[\0-\x1f\ufffd]/.test(nameOf(id));
  for (const g of p.supernodes) {
    const s = stageOf[g.id];
    if (!coarsened && !((begins[g.id] && s > 0) || (ends[g.id] && s < last))) continue;
    const named = g.operators.filter(isNamed);
    if (named.length < (coarsened ? g.operators.length : 1)) unnamed.push(g.id);
    for (const id of coarsened ? named : named.slice(0, 1)) pins.push(`${nameOf(id)}=${s}`);
  }
  return { pins, unnamed };
}
const quoted = (word) => (/^[\w./=:,+-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`);
