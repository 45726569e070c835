// What supernodes are called: by what they do, then where they are.

// By plan and supernode, once.
const known = new WeakMap();
function about(id, p = plan) {
  if (!known.has(p)) known.set(p, []);
  const list = known.get(p);
  if (!list[id]) {
    const { kind } = p.supernodes[id];
    list[id] = { kind, class: classOf(p.supernodes[id], kind), path: pathOf(p, id) };
  }
  return list[id];
}

// The class that says what it is for: what computes goes before what only follows it, then time tells.
const FIRST = ['attention', 'rnn', 'matmul', 'conv', 'depthwise'];
function classOf(g, kind) {
  const present = new Set(g.operators.map((id) => data.operators[id].class));
  if (kind === 'attention') return 'attention';
  if (kind === 'LayerNorm' || kind === 'RMSNorm') return 'norm'; // also where it is told in parts
  for (const name of FIRST) if (present.has(name)) return name;
  const sum = new Map();
  let best = null;
  for (const id of g.operators) {
    const node = data.operators[id];
    if (!node.class) continue;
    const ns = (sum.get(node.class) ?? 0) + (node.cost_ns ?? 0);
    sum.set(node.class, ns);
    if (best === null || ns > sum.get(best)) best = node.class;
  }
  return best ?? 'other';
}
const CLASSES = { attention: 'attention', matmul: 'matrix product', conv: 'convolution', depthwise: 'depthwise', rnn: 'recurrent', norm: 'normalisation', pool: 'pooling', reduce: 'reduction', elementwise: 'element by element', resize: 'resize', quant: 'quantisation', search: 'search', control: 'control flow', move: 'rearranging', other: 'other', shape: 'sizes', view: 'views', constant: 'constants' };

// Scopes of a supernode, from the outside in; for one without, the block that repeats, if it is in one.
function pathOf(p, id) {
  const scope = p.scopes?.[id];
  if (scope) return scope.split('.');
  const repeat = p.repeats.find((r) => id >= r.first && id < r.first + r.blocks * r.supernodes);
  return repeat ? [repeat.title || `${repeat.blocks} blocks`, `block ${Math.floor((id - repeat.first) / repeat.supernodes)}`] : [];
}
function whereabouts(id) {
  const { title } = plan.supernodes[id], { path } = about(id);
  return plan.scopes[id] ? path.slice(-2).join('.') : title.startsWith('#') && path.length ? path.at(-1) : title;
}
const fullName = (id) => `${about(id).kind}, ${plan.supernodes[id].title}`;

// What a mark is filled with, by the reader's choice: a class of the style sheet, or a colour.
function paint(mark, id, stage, heaviest) {
  mark.removeAttribute('style');
  if (state.colour === 'class') mark.classList.add(`c-${about(id).class}`);
  else if (state.colour === 'stage') mark.style.fill = stageColour(stage);
  else mark.style.fill = heatColour((plan.supernodes[id].cost_ns ?? 0) / Math.max(1, heaviest));
}
function legend() {
  const box = element('p', { class: 'legend' });
  const key = (swatch, text) => box.append(element('span', {}, swatch, text));
  const swatch = (kind, fill) => {
    const made = element('i', { class: `swatch ${kind}` });
    if (fill) made.style.background = fill;
    return made;
  };
  if (state.colour === 'class') {
    const present = new Set(plan.supernodes.map((g) => about(g.id).class));
    for (const [name, text] of Object.entries(CLASSES)) if (present.has(name)) key(swatch(`c-${name}`), text);
  } else if (state.colour === 'stage') {
    for (const s of plan.stages ?? []) key(swatch('', stageColour(s.index)), `stage ${s.index}`);
  } else {
    for (const at of [0, 0.1, 0.3, 0.6, 1]) key(swatch('', heatColour(at)), at === 0 ? 'little time' : at === 1 ? 'the most' : '');
  }
  return { box, key, swatch };
}
