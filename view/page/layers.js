// Boxes in rows, each below all that it reads, and lines that pass between boxes: the usual four steps of
// layered drawings (rows, order in a row, places, lines), for each box that is open. A line into a box
// goes on inside of it from where it comes in; tall drawings go on in further columns.

const WIDEST = 8; // things in a row
const GAP = { column: 22, row: 30, pad: 14, head: 26, lane: 7, gutter: 26 };

// The items of one box: its children, places in its rim where lines come in and go out, and places in
// between that lines keep free. {node | rim | through, w, h, rank, x (middle), y (top), into, from}
function itemsOf(node) {
  const items = node.children.map((child) => ({ node: child, w: child.w, h: child.h, from: [], into: [] }));
  node.children.forEach((child, i) => { child.item = items[i]; });
  return items;
}
function join(a, b, net) {
  const known = a.into.find((l) => l.to === b && l.net === net);
  if (known) return known;
  const link = { from: a, to: b, net };
  a.into.push(link);
  b.from.push(link);
  return link;
}

// Rows: below all that is read; what reads nothing stands just above its readers.
function rankItems(items) {
  const above = (item) => item.from.filter((l) => !l.from.rim), below = (item) => item.into.filter((l) => !l.to.rim);
  for (const item of items) {
    item.rank = 0;
    for (const { from } of above(item)) item.rank = Math.max(item.rank, from.rank + 1);
  }
  for (let i = items.length - 1; i >= 0; i--) {
    const from = above(items[i]), into = below(items[i]);
    if (into.length && from.length < into.length && !(from.length === 1 && into.length > 1)) items[i].rank = Math.max(items[i].rank, Math.min(...into.map((l) => l.to.rank)) - 1);
  }
  // What is beside too many others goes a row down.
  for (let r = 0, more = 0; r <= items.reduce((m, item) => Math.max(m, item.rank), 0); r += 1 + more) {
    const row = items.filter((item) => item.rank === r);
    more = Math.max(0, Math.ceil(row.length / WIDEST) - 1);
    if (!more) continue;
    for (const item of items) if (item.rank > r) item.rank += more;
    row.forEach((item, i) => { item.rank += Math.floor(i / WIDEST); });
  }
}

// Columns: where to go on beside, so that all is as large as can be in a window of that shape. [first rank of each]
function columnsOf(rows, crossing, shape) {
  const wide = rows.map((row) => row.reduce((n, item) => n + item.w + GAP.column, -GAP.column));
  const tall = rows.map((row) => Math.max(...row.map((item) => item.h)) + GAP.row);
  const all = tall.reduce((a, b) => a + b, 0);
  let best = null;
  for (let n = 1; n <= Math.min(8, rows.length); n++) {
    const starts = [0];
    let y = 0, left = all;
    for (let r = 0; r < rows.length; r++) {
      const limit = left / (n - starts.length + 1);
      if (starts.length < n && y > 0 && y + tall[r] / 2 > limit) {
        // The narrowest of the last few places.
        let at = r;
        for (let k = r - 1; k > starts.at(-1) && k > r - 1 - Math.max(1, (r - starts.at(-1)) / 4); k--) if (crossing[k] < crossing[at]) at = k;
        for (let k = starts.at(-1); k < at; k++) left -= tall[k];
        starts.push(at);
        y = 0;
        r = at - 1;
        continue;
      }
      y += tall[r];
    }
    const ends = [...starts.slice(1), rows.length];
    const w = starts.reduce((sum, s, i) => sum + Math.max(...wide.slice(s, ends[i])), 0) + (starts.length - 1) * 2.5 * GAP.gutter;
    const h = Math.max(...starts.map((s, i) => tall.slice(s, ends[i]).reduce((a, b) => a + b, 0)));
    const far = starts.slice(1).reduce((sum, s) => sum + crossing[s], 0);
    const long = Math.max(w / shape, h, 330) * 1.06 ** (starts.length - 1) * 1.03 ** far;
    if (!best || long < best.long) best = { long, starts };
  }
  return best.starts;
}

// Lines that pass rows keep a place in each: one for all that comes from one item.
function passRows(rows, items) {
  for (const item of [...items]) {
    const passes = new Map();
    for (const link of item.into) {
      if (link.to.column !== item.column || link.to.rank <= item.rank) continue;
      link.way = [];
      for (let r = item.rank + 1; r < link.to.rank; r++) {
        if (!passes.has(r)) {
          const made = { through: true, w: 2, h: 0, rank: r, column: item.column, up: [passes.get(r - 1) ?? item], down: [] };
          (passes.get(r - 1) ?? item).down.push(made);
          passes.set(r, made);
          rows[r].push(made);
        }
        link.way.push(passes.get(r));
      }
      const last = link.way.at(-1) ?? item;
      last.down.push(link.to);
      link.to.up.push(last);
    }
  }
}

// The order in rows: by the means of neighbours above and below in turn; the one with fewest crossings stays.
function orderRows(rows) {
  const number = () => rows.forEach((row) => row.forEach((item, i) => { item.at = i; }));
  const count = () => {
    let n = 0;
    for (const row of rows) {
      const ends = [];
      for (const item of row) for (const to of item.down) ends.push([item.at, to.at]);
      for (let i = 0; i < ends.length; i++) for (let k = i + 1; k < ends.length; k++) n += (ends[i][0] - ends[k][0]) * (ends[i][1] - ends[k][1]) < 0;
    }
    return n;
  };
  number();
  let best = count(), kept = rows.map((row) => [...row]);
  for (let round = 0; round < 8 && best > 0; round++) {
    const down = round % 2 === 0, side = down ? 'up' : 'down';
    for (const row of down ? rows : [...rows].reverse()) {
      for (const item of row) item.mean = item[side].length ? item[side].reduce((n, other) => n + other.at, 0) / item[side].length : item.at;
      row.sort((a, b) => a.mean - b.mean || a.at - b.at);
      row.forEach((item, i) => { item.at = i; });
    }
    const now = count();
    if (now < best) { best = now; kept = rows.map((row) => [...row]); }
  }
  rows.forEach((row, r) => { row.splice(0, row.length, ...kept[r]); });
  number();
}

// Places as near as can be to what is wished for, in their order and apart: least squares, by joining
// neighbours that would overlap.
function spread(row, wished, weights) {
  const blocks = [];
  let at = 0;
  row.forEach((item, i) => {
    at += i ? (row[i - 1].w + item.w) / 2 + GAP.column * (row[i - 1].through && item.through ? 0.5 : 1) : 0;
    item.off = at;
    blocks.push({ sum: weights[i] * (wished[i] - at), weight: weights[i], items: [item] });
    while (blocks.length > 1 && blocks.at(-2).sum / blocks.at(-2).weight > blocks.at(-1).sum / blocks.at(-1).weight) {
      const last = blocks.pop(), before = blocks.at(-1);
      before.sum += last.sum;
      before.weight += last.weight;
      before.items.push(...last.items);
    }
  });
  for (const block of blocks) for (const item of block.items) item.x = block.sum / block.weight + item.off;
}
function placeItems(rows) {
  for (const row of rows) spread(row, row.map(() => 0), row.map(() => 1));
  for (let round = 0; round < 30; round++) {
    const down = round % 2 === 0, both = round > 15;
    for (const row of down ? rows : [...rows].reverse()) {
      const wished = [], weights = [];
      for (const item of row) {
        let sum = 0, weight = 0;
        for (const side of both ? ['up', 'down'] : [down ? 'up' : 'down']) {
          for (const other of item[side]) {
            const [above, below] = side === 'up' ? [other, item] : [item, other], alone = above.down.length === 1 && below.up.length === 1;
            const w = item.through && other.through ? 16 : alone ? 6 : item.through || other.through ? 3 : 1;
            sum += w * other.x;
            weight += w;
          }
        }
        wished.push(weight ? sum / weight : item.x);
        weights.push(weight ? weight + (item.through ? 1 : 0) : 0.05);
      }
      spread(row, wished, weights);
    }
  }
}

// Everything inside of one open box; all links go from an item to a later one.
function layOut(node, { items, shape, least }) {
  const inner = items.filter((item) => !item.rim);
  rankItems(inner);
  const n = inner.reduce((m, item) => Math.max(m, item.rank + 1), 0), byRank = Array.from({ length: n }, () => []);
  for (const item of inner) byRank[item.rank].push(item);
  // How many lines go past the begin of each row.
  const crossing = new Int32Array(n + 1);
  for (const item of inner) {
    const end = item.into.reduce((m, l) => (l.to.rim ? m : Math.max(m, l.to.rank)), item.rank);
    for (let r = item.rank + 1; r <= end; r++) crossing[r]++;
  }
  const starts = columnsOf(byRank, crossing, shape), columns = [];
  for (const item of inner) item.column = starts.findLastIndex((s) => s <= item.rank);
  // Lines that come in go to the top of each column that reads them; what goes out leaves at the foot.
  const rims = [];
  for (const item of items.filter((each) => each.rim)) rims.push(...rimsOf(item));
  let x = GAP.pad, bottom = 0;
  node.gutters = [];
  const far = inner.flatMap((item) => item.into.filter((l) => !l.to.rim && l.to.column !== item.column)), lanes = new Map();
  for (const l of far) if (!lanes.has(l.from)) lanes.set(l.from, lanes.size);
  const skips = far.some((l) => Math.abs(l.to.column - l.from.column) !== 1), top = GAP.head + GAP.pad + (skips ? lanes.size * GAP.lane : 0);
  for (let c = 0; c < starts.length; c++) {
    const first = starts[c], end = starts[c + 1] ?? n;
    const mine = [...inner, ...rims].filter((item) => item.column === c);
    const rows = [mine.filter((item) => item.rim === 'in'), ...byRank.slice(first, end).map((row) => [...row]), mine.filter((item) => item.rim === 'out')];
    for (const item of mine) {
      item.up = [];
      item.down = [];
      if (item.rim) item.rank = item.rim === 'in' ? first - 1 : end;
    }
    passRows(Object.assign(Object.create(null), Object.fromEntries(rows.map((row, i) => [first - 1 + i, row]))), mine);
    orderRows(rows);
    placeItems(rows);
    const left = Math.min(...rows.flat().map((item) => item.x - item.w / 2)), right = Math.max(...rows.flat().map((item) => item.x + item.w / 2));
    const wide = right - left;
    let y = top;
    rows.forEach((row, r) => {
      const tall = row.reduce((m, item) => Math.max(m, item.h), 0);
      for (const item of row) {
        item.x += x - left;
        item.y = r === 0 ? 0 : y;
        item.tall = tall;
      }
      row.y = y;
      if (r > 0 && r + 1 < rows.length) y += tall + GAP.row + Math.min(24, 2.5 * Math.max(0, row.reduce((m, item) => m + item.down.length, 0) - 4));
    });
    columns.push({ x, wide, rows, first });
    bottom = Math.max(bottom, y - GAP.row);
    x += wide + GAP.gutter + lanes.size * GAP.lane;
    node.gutters.push(x - GAP.gutter / 2 - lanes.size * GAP.lane);
  }
  node.w = Math.max(x - GAP.gutter - lanes.size * GAP.lane + GAP.pad, least);
  node.h = bottom + GAP.pad;
  for (const item of rims) if (item.rim === 'out') item.y = node.h;
  for (const item of inner) Object.assign(item.node, { x: item.x - item.w / 2, y: item.y });
  node.rims = rims;
  node.lines = linesOf(node, { items: [...inner, ...rims], lanes, top });
}
// A line that comes in or goes out has a place in the rim at each column where it is needed.
function rimsOf(item) {
  const by = new Map();
  for (const link of item.rim === 'in' ? item.into : item.from) {
    const other = item.rim === 'in' ? link.to : link.from;
    if (!by.has(other.column)) by.set(other.column, { ...item, w: 8, h: 0, column: other.column, from: [], into: [] });
    const made = by.get(other.column);
    if (item.rim === 'in') { link.from = made; made.into.push(link); } else { link.to = made; made.from.push(link); }
  }
  return [...by.values()];
}

// Where a line leaves or enters an item: at its rim, where the box is open, else spread along its side.
function exitsOf(item, net) {
  const open = item.node?.rims?.filter((rim) => rim.rim === 'out' && rim.net === net);
  return open?.length ? open.map((rim) => [item.node.x + rim.x, item.y + item.h]) : [[item.x, item.rim ? item.y : item.y + item.h]];
}
function entriesOf(item, net) {
  const open = item.node?.rims?.filter((rim) => rim.rim === 'in' && rim.net === net);
  if (open?.length) return open.map((rim) => [item.node.x + rim.x, item.y]);
  if (item.rim) return [[item.x, item.y]];
  item.entries ??= [...new Set(item.from.map((l) => l.net))].sort((a, b) => a.order - b.order);
  const { entries } = item, step = Math.min(12, (item.w - 24) / entries.length);
  return [[item.x + (entries.indexOf(net) - (entries.length - 1) / 2) * step, item.y]];
}
// [{net, to, points, square}]: points from the top to the bottom; a square one turns at right angles.
function linesOf(node, { items, lanes, top }) {
  const lines = [];
  for (const item of items) for (const link of item.from) link.net.order = link.from.x;
  for (const item of items) {
    for (const link of item.into) {
      const { net, to } = link, inside = !to.rim;
      for (const start of exitsOf(item, net)) {
        for (const end of entriesOf(to, net)) {
          if (link.way) {
            const points = [start];
            if (item.tall > item.h) points.push([start[0], start[1], item.y + item.tall]); // not past a taller neighbour
            for (const pass of link.way) points.push([pass.x, pass.y, pass.y + pass.tall]);
            points.push(end);
            lines.push({ net, link, points, arrow: inside && !to.node?.rims });
          } else {
            lines.push({ net, link, points: aroundPoints(node, item, to, { start, end, lanes, top }), square: true, arrow: inside && !to.node?.rims });
          }
        }
      }
    }
  }
  return lines;
}
// To another column, by the space between rows and columns; lines of different items beside each other.
function aroundPoints(node, a, b, { start, end, lanes, top }) {
  const lane = (lanes.get(a) ?? 0) * GAP.lane, below = a.y + a.tall + GAP.row * 0.3, above = b.y - 9;
  const gutter = (c) => node.gutters[c] + lane;
  if (b.column === a.column + 1) return [start, [start[0], below], [gutter(a.column), below], [gutter(a.column), above], [end[0], above], end];
  const over = top - GAP.pad / 2 - lane - 3;
  return [start, [start[0], below], [gutter(a.column), below], [gutter(a.column), over], [gutter(b.column - 1), over], [gutter(b.column - 1), above], [end[0], above], end];
}
