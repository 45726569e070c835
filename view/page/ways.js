// Which way tensors go from stage to stage: straight, or by way of stages in between, where devices have
// no link or where that saves messages. As base/route.c and passes/placing/pass_on.c find them, step by
// step: one split has one answer.

const NO_WAY = -1, MOST_SWEEPS = 4, MOST_HOPS = 2 ** 26;

// Ways over links that come and go. next[i * n + j]: the stage that a tensor goes to from i on its way to j; of
// the fewest hops the first. Neighbours are always linked.
class Ways {
  constructor(n, all) {
    this.n = n;
    this.linked = new Uint8Array(n * n);
    this.asked = new Uint8Array(n * n); // of `next`, what counts for the transfers at hand
    this.hops = new Int32Array(n * n);
    this.next = new Int32Array(n * n).fill(NO_WAY);
    for (let i = 0; i < n; i++) for (let j = i + 1; j < n; j++) this.linked[i * n + j] = all || j === i + 1 ? 1 : 0;
    for (let j = 0; j < n; j++) for (let i = j - 1; i >= 0; i--) this.settle(i, j);
  }

  // The way from i to j, once all from behind i are known: whether it has more or fewer hops than before.
  settle(i, j) {
    const { n, linked, hops, next } = this, was = hops[i * n + j];
    let best = i + 1;
    for (let m = i + 2; m <= j; m++) if (linked[i * n + m] && hops[m * n + j] < hops[best * n + j]) best = m;
    this.changed ||= this.asked[i * n + j] > 0 && next[i * n + j] !== best;
    next[i * n + j] = best;
    hops[i * n + j] = hops[best * n + j] + 1;
    return hops[i * n + j] !== was;
  }

  // One link more or less; whether a way is another that counts.
  flip(i, j) {
    this.linked[i * this.n + j] ^= 1;
    this.changed = false;
    for (let to = j; to < this.n; to++) if (this.settle(i, to)) for (let from = i - 1; from >= 0; from--) this.settle(from, to);
    return this.changed;
  }
}

// Calls back for each hop that brings a tensor from its stage to another; false: there is no way. `held` tells
// by `stamp` which stages have it, and is kept up; receivers come in ascending order. `asked` is told which of `next` counted.
function route(n, next, { home, to, held, stamp, asked }, hop) {
  const direct = (s) => {
    asked[s * n + to] = 1;
    return next[s * n + to] === to;
  };
  let from = direct(home) ? home : NO_WAY;
  for (let s = 0; from < 0 && s < to; s++) if (held[s] === stamp && direct(s)) from = s;
  if (from >= 0) {
    held[to] = stamp;
    hop(from, to);
    return true;
  }
  for (let at = home; at !== to;) {
    const on = next[at * n + to];
    asked[at * n + to] = 1;
    if (on < 0) return false;
    if (held[on] !== stamp) hop(at, on);
    held[on] = stamp;
    at = on;
  }
  return true;
}

// Transfers, which are straight and stand by tensor and receiver, as hops over these ways; null: one has none.
function passOn(n, next, wishes) {
  const hops = [], held = new Int32Array(n).fill(-1), asked = new Uint8Array(n * n);
  for (const wish of wishes) {
    const way = { home: wish.from, to: wish.to, held, stamp: wish.value, asked };
    held[wish.from] = wish.value;
    if (!route(n, next, way, (from, to) => hops.push({ ...wish, from, to }))) return null;
  }
  return hops;
}

const isLess = (a, b) => (a.slowest === b.slowest ? a.sum < b.sum : a.slowest < b.slowest);

// What a split takes where links are alike and latency is a message's: by its wishes, and what its stages compute.
class Toll {
  constructor(p, wishes, compute) {
    this.n = compute.length;
    this.compute = compute;
    this.latency = p.counting.latency_ns[1];
    this.wishes = wishes.map((w) => ({ home: w.from, to: w.to, value: w.value, ns: transferTime(p, w.from, w.to, w.bytes) - this.latency, held: null, stamp: 0, asked: null }));
    this.held = new Int32Array(this.n);
    this.asked = new Uint8Array(this.n * this.n);
    for (const wish of this.wishes) Object.assign(wish, { held: this.held, asked: this.asked });
    this.sent = new Int32Array(this.n * this.n);
    this.load = new Float64Array(this.n);
    this.stamp = this.looked = 0;
  }

  // As `ns` more to send for one and to receive for the other, in a message that may be the first of these two.
  charge(from, to, ns, round) {
    const pair = from * this.n + to, all = this.sent[pair] < round ? ns + this.latency : ns;
    this.sent[pair] = round;
    this.looked++;
    this.load[from] += all;
    this.load[to] += all;
  }

  // The slowest stage, the sum of all, and how much was looked at.
  measure(next) {
    const { n, load, held, looked } = this, round = ++this.stamp;
    load.set(this.compute);
    this.asked.fill(0);
    this.looked += n * n;
    let last = null;
    const hop = (from, to) => this.charge(from, to, last.ns, round);
    for (const wish of this.wishes) {
      if (wish.value !== last?.value) this.stamp++;
      last = wish;
      held[wish.home] = wish.stamp = this.stamp;
      if (held[wish.to] === this.stamp) continue; // it was passed on there
      this.looked += Math.floor(n / 4);
      route(n, next, wish, hop);
    }
    return { slowest: load.reduce((most, ns) => Math.max(most, ns), 0), sum: load.reduce(add, 0), looked: this.looked - looked };
  }

  // One link more or less, while that is better; neighbours stay linked.
  improve(all) {
    const { n } = this, ways = new Ways(n, all);
    let best = this.measure(ways.next), any = true;
    ways.asked.set(this.asked);
    for (let sweep = 0; any && sweep < MOST_SWEEPS; sweep++) {
      any = false;
      for (let i = 0; i < n; i++) {
        for (let j = i + 2; j < n && this.looked < MOST_HOPS; j++) {
          const other = ways.flip(i, j) ? this.measure(ways.next) : null;
          if (other && isLess(other, best)) {
            best = other;
            ways.asked.set(this.asked);
            any = true;
            continue;
          }
          if (!other) this.looked += best.looked;
          ways.flip(i, j);
        }
      }
    }
    return { ...this.measure(ways.next), next: ways.next };
  }

  // What the slowest stage takes whatever goes by way of others: one message each way, each tensor once.
  floor() {
    const load = Float64Array.from(this.compute), sends = new Uint8Array(this.n), receives = new Uint8Array(this.n);
    let value = null;
    for (const wish of this.wishes) {
      if (wish.value !== value) load[wish.home] += wish.ns;
      ({ value } = wish);
      load[wish.to] += wish.ns;
      sends[wish.home] = receives[wish.to] = 1;
    }
    return load.reduce((most, ns, s) => Math.max(most, ns + this.latency * (sends[s] + receives[s])), 0);
  }
}

// The ways that are better than to send all straight, which takes `direct`, or null.
function betterWays(p, wishes, compute, direct) {
  const pays = (ns) => ns * (1 + p.counting.slack_frac) < direct, toll = new Toll(p, wishes, compute);
  if (!pays(toll.floor())) return null;
  const few = toll.improve(false), all = toll.improve(true);
  const best = isLess(all, few) ? all : few;
  return pays(best.slowest) ? best.next : null;
}
