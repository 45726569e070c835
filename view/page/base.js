// Data, elements, words for numbers. Everything that comes from the model reaches the document through
// textContent or attributes, or as a label on a canvas, never as markup.

// What changes the order in which a line is read is escaped in the data, and nowhere shown.
const hidden = /(?<!\\)((?:\\\\)*)\\u(?:00[89][0-9a-f]|061c|200[ef]|202[89a-e]|206[6-9])/g;
const data = (() => {
  const text = document.getElementById('data').textContent;
  return JSON.parse(text.includes('\\u') ? text.replace(hidden, '$1\\ufffd') : text);
})();
const byId = (id) => document.getElementById(id);
const SVG = 'http://www.w3.org/2000/svg';

// An element with attributes, `on...` listeners and children; strings become text.
function element(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (key.startsWith('on')) made.addEventListener(key.slice(2), value);
    else if (value === true) made.setAttribute(key, '');
    else if (value !== false && value !== null && value !== undefined) made.setAttribute(key, value);
  }
  made.append(...children);
  return made;
}

function drawing(name, attributes = {}, ...children) {
  const made = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) {
    if (value !== null && value !== undefined) made.setAttribute(key, value);
  }
  made.append(...children);
  return made;
}

// So many decimals, as the commands print them: of what is halfway between two, the even one.
function fixed(value, decimals) {
  const away = value.toFixed(decimals), halfway = Math.abs(value * 2 ** (decimals + 1)) % 2 === 1;
  return halfway && away.at(-1) % 2 ? (value * (1 - 2 ** -40)).toFixed(decimals) : away;
}
// Three digits and a unit: "24.9 ms", "591 KiB".
function scaled(value, units, step) {
  let unit = 0;
  for (; Math.abs(value) >= 999.5 && unit + 1 < units.length; unit++) value /= step;
  const size = Math.abs(value);
  return `${fixed(value, unit === 0 || size >= 99.95 ? 0 : size >= 9.995 ? 1 : 2)} ${units[unit]}`;
}
const bytes = (n) => (n === null ? 'unknown' : scaled(n, ['B', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB', 'EiB'], 1024));
const time = (ns) => (ns === null ? 'unknown' : scaled(ns, ['ns', 'us', 'ms', 's'], 1000));
const percent = (part) => `${fixed(100 * part, part < 0.0995 ? 2 : 1)} %`;
const signed = (text, n) => (n > 0 ? `+${text}` : text);
const count = (n, noun) => `${String(n).replace(/\B(?=(\d{3})+$)/g, '\u202f')} ${noun}${n === 1 ? '' : 's'}`;
const label = (node) => node.name || `#${node.id}`;
const dark = matchMedia('(prefers-color-scheme: dark)');

// A stage's colour: neighbours far apart, also for who does not see red and green as two.
const STAGES = [[212, 58], [28, 72], [172, 40], [338, 48], [48, 70], [258, 42], [196, 60], [12, 55], [146, 34], [300, 32]];
const stageColour = (stage, faint = false) => {
  if (stage === null) return dark.matches ? '#3a434f' : '#dfe3e8';
  const [hue, chroma] = STAGES[stage] ?? [(stage * 137.508) % 360, 40];
  return dark.matches ? `hsl(${hue}, ${chroma * 0.75}%, ${faint ? 22 : hue > 30 && hue < 200 ? 31 : 38}%)` : `hsl(${hue}, ${chroma}%, ${faint ? 93 : 72}%)`;
};
// As much of the end of a text as there is room for: it tells more than its start.
const pen = document.createElement('canvas').getContext('2d');
function fitted(text, room, font = '12px system-ui, sans-serif', fromEnd = true) {
  pen.font = font;
  const wide = pen.measureText(text).width;
  if (wide <= room) return text;
  let n = Math.max(1, Math.floor(text.length * room / wide) - 1);
  const cutOff = () => (fromEnd ? `…${text.slice(text.length - n)}` : `${text.slice(0, n)}…`);
  while (n > 1 && pen.measureText(cutOff()).width > room) n--;
  return n > 1 ? cutOff() : '';
}
// The same on several lines, broken between words; what is left out at the end begins with one, too.
function wrapped(text, room, rows, font) {
  const lines = [];
  for (const word of text.split(' ')) {
    const last = lines.at(-1);
    if (last !== undefined && (lines.length === rows || widthOf(`${last} ${word}`, font) <= room)) lines[lines.length - 1] = `${last} ${word}`;
    else lines.push(word);
  }
  const whole = (line) => (/ .*…$/.test(line) ? line.replace(/[ +]+[^ +]*…$/, '…') : line);
  return lines.map((line) => whole(fitted(line, room, font, false))).filter(Boolean);
}
const widthOf = (text, font = '12px system-ui, sans-serif') => { pen.font = font; return pen.measureText(text).width; };
// From cold to hot, 0 to 1: lightness carries it, so that it holds without colours too.
function heatColour(part) {
  const p = Math.sqrt(Math.max(0, Math.min(1, part)));
  return dark.matches ? `hsl(${222 + 160 * p}, ${30 + 45 * p}%, ${22 + 18 * p}%)` : `hsl(${212 + 160 * p}, ${45 + 40 * p}%, ${93 - 36 * p}%)`;
}

// What is shown: which plan, which view, what is selected. The address keeps it.
const state = {
  plan: 0, view: 'pipeline', selected: null, mode: 'time', colour: 'class',
  moved: null, // [supernodes] stages, where cuts were moved
  other: -1, // a plan to compare with; -1: none
  batches: data.micro_batches, trace: null, order: data.plans.some((p) => p.plan?.objective === 'fill-drain') ? 'fill' : '1f1b', scale: null,
};
let plan = data.plans[0];
// How wide a drawing in it may be.
function roomIn(box) {
  const style = getComputedStyle(box);
  return Math.max(300, box.clientWidth - parseFloat(style.paddingLeft) - parseFloat(style.paddingRight));
}
