// Scopes within scopes, from names, from blocks that repeat, and where there are neither, from places
// that few tensors cross.

const MOST = 28, LONGEST = 48; // things in one box that is open; in a chain

// The tree of scopes: {key, title, ids, children}; a leaf is one supernode.
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
  const place = new Int32Array(p.supernodes.length);
  (p.order ?? root.ids).forEach((id, i) => { place[id] = i; });
  settle(root, place);
  return root;
}
function settle(node, place) {
  // Where it is in the order: a scope that is all over the model, in the middle of what it has.
  node.middle = node.ids.reduce((n, id) => n + place[id], 0) / Math.max(1, node.ids.length);
  if (node.leaf) return;
  for (const child of node.children) settle(child, place);
  // A scope with one thing in it is that thing.
  node.children = node.children.map((child) => {
    if (child.leaf || child.children.length !== 1) return child;
    const only = child.children[0];
    return { ...only, title: only.leaf ? only.title : `${child.title}.${only.title}`, within: child.title, parent: node };
  });
  for (const child of node.children) { child.parent = node; for (const c of child.children) c.parent = child; }
  node.children.sort((a, b) => a.middle - b.middle || a.ids[0] - b.ids[0]);
}
// What is open has few children: made of many when it is first looked into.
function childrenOf(node) {
  if (!node.gathered) gather(node);
  node.gathered = true;
  return node.children;
}

// For consecutive children of a node: how many of them something crosses the place behind each for. What
// many read does not count: it crosses everything.
function crossings(children) {
  const n = children.length, of = new Int32Array(plan.supernodes.length).fill(-1), met = new Int32Array(n).fill(-1), behind = new Int32Array(n + 1), by = edgesOf(plan);
  children.forEach((child, i) => { for (const id of child.ids) of[id] = i; });
  children.forEach((child, i) => {
    let last = i, readers = 0;
    for (const id of child.ids) {
      for (const e of by[id] ?? []) {
        const to = of[e.to];
        if (to <= i || met[to] === i) continue;
        met[to] = i;
        readers++;
        last = Math.max(last, to);
      }
    }
    if (readers > 5) return;
    behind[i]++;
    behind[last]--;
  });
  for (let i = 1; i < n; i++) behind[i] += behind[i - 1];
  return behind;
}
// What is too much for one box goes into boxes of consecutive things, parted where little crosses.
function gather(node) {
  const n = node.children.length;
  if (n <= MOST) return;
  const behind = crossings(node.children);
  if (n <= LONGEST && behind.every((lines) => lines < 3)) return; // a chain, or nearly
  const size = n / Math.max(4, Math.min(12, Math.round(Math.sqrt(n))));
  const least = Math.max(1, Math.floor(size / 3)), most = Math.ceil(2 * size);
  // Places that are looked at: of many, the narrowest of each stretch.
  const places = [0], stretch = Math.max(1, Math.floor(n / 700));
  for (let i = 1; i < n; i += stretch) {
    let best = i;
    for (let k = i; k < Math.min(n, i + stretch); k++) if (behind[k - 1] < behind[best - 1]) best = k;
    places.push(best);
  }
  places.push(n);
  const value = [0], from = [0];
  for (let b = 1; b < places.length; b++) {
    value[b] = Infinity;
    for (let a = b - 1; a >= 0 && (places[b] - places[a] <= most || a === b - 1); a--) {
      const m = places[b] - places[a];
      if (m < least && b + 1 < places.length && a > 0) continue;
      const cost = value[a] + ((m - size) / size) ** 2 + (b + 1 < places.length ? 0.5 * Math.max(0, behind[places[b] - 1] - 1) : 0);
      if (cost < value[b]) { value[b] = cost; from[b] = a; }
    }
  }
  const bunches = [];
  for (let b = places.length - 1; b > 0; b = from[b]) bunches.unshift(node.children.slice(places[from[b]], places[b]));
  node.children = bunches.map((part) => {
    if (part.length === 1) return part[0];
    const made = { key: `${node.key}+${part[0].key}+${part.length}`, children: part, ids: part.flatMap((c) => c.ids), parent: node, bunch: true };
    made.middle = part.reduce((n, child) => n + child.middle * child.ids.length, 0) / made.ids.length;
    for (const child of part) child.parent = made;
    return made;
  });
}

// What takes most of the time in it, and how often it is there.
function bunchTitle(ids) {
  const sum = new Map(), times = new Map();
  for (const id of ids) {
    const { kind } = about(id);
    sum.set(kind, (sum.get(kind) ?? 0) + (plan.supernodes[id].cost_ns ?? 1));
    times.set(kind, (times.get(kind) ?? 0) + 1);
  }
  const named = [...sum].sort((a, b) => b[1] - a[1]).slice(0, 2).map(([kind]) => (times.get(kind) > 1 ? `${kind}\u00a0×${times.get(kind)}` : kind));
  return named.join(', ') + (sum.size > 2 ? ' …' : '');
}

const edgesBy = new WeakMap();
function edgesOf(p) {
  if (!edgesBy.has(p)) {
    const by = new Array(p.supernodes.length);
    for (const e of p.edges) (by[e.from] ??= []).push(e);
    edgesBy.set(p, by);
  }
  return edgesBy.get(p);
}
const edgesFrom = (id) => edgesOf(plan)[id] ?? [];
