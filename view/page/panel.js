// What is selected, what was searched for, and what figures rest on.

function facts(list) {
  const made = element('dl', { class: 'facts' });
  for (const [name, value] of list) if (value !== null) made.append(element('dt', {}, name), element('dd', {}, value));
  return made;
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

const ROWS = 100;
function operatorRows(body, ids, first) {
  for (const id of ids.slice(first, first + ROWS)) {
    const node = data.operators[id];
    const types = node.outputs.filter((v) => v !== null).map((v) => data.tensors[v].type ?? '').join(', ');
    const name = element('td', {}, label(node));
    if (types) name.append(element('br'), element('small', {}, types));
    body.append(element('tr', {}, element('td', {}, element('i', { class: `swatch c-${node.class ?? 'other'}` }), node.op), name, element('td', { class: 'number' }, time(node.cost_ns), ...(node.data_dependent ? [element('br'), element('small', {}, 'only a run tells')] : []))));
  }
  if (first + ROWS >= ids.length) return;
  const more = element('button', { type: 'button' }, `${ids.length - first - ROWS} more`);
  const line = element('tr', {}, element('td', { colspan: 3 }, more));
  more.addEventListener('click', () => { line.remove(); operatorRows(body, ids, first + ROWS); });
  body.append(line);
}

function panel(title, ...content) {
  byId('detail').replaceChildren(element('div', { class: 'panel-head' }, element('h2', {}, title), element('button', { type: 'button', class: 'close', 'aria-label': 'close', onclick: () => select(null) }, '×')), ...content);
  byId('detail').hidden = false;
  byId('detail').scrollTop = 0;
}

// Tensors in or out of a supernode, with who is at the other end.
function tensorList(id, side) {
  const other = side === 'from' ? 'to' : 'from', list = element('ul', { class: 'plain' });
  const edges = plan.edges.filter((e) => e[side] === id);
  for (const e of edges.slice(0, 40)) {
    list.append(element('li', {}, element('button', { type: 'button', onclick: () => select(e[other]) }, `${about(e[other]).kind}, ${whereabouts(e[other])} `, element('small', {}, `${bytes(e.bytes)}, ${e.tensor}`))));
  }
  if (edges.length > 40) list.append(element('li', {}, `and ${edges.length - 40} more`));
  return edges.length ? [element('h3', {}, side === 'from' ? 'goes to' : 'comes from'), list] : [];
}

function showSupernode(id) {
  const g = plan.supernodes[id], cut = split(), stage = cut ? cut.stageOf[id] : g.stage;
  const body = element('tbody');
  operatorRows(body, g.operators, 0);
  const assumed = g.bytes_known || g.bytes_in === null ? '' : ' (with assumed sizes)';
  const share = cut && cut.stages[stage].load_ns ? `, ${percent(costIn(cut, id, stage) / cut.stages[stage].load_ns)} of the stage's load` : '';
  const moves = [];
  if (cut && !whyFixed()) {
    for (const [to, text] of [[stage - 1, 'to the stage before'], [stage + 1, 'to the next stage']]) {
      if (to >= 0 && to < cut.stages.length) moves.push(element('button', { type: 'button', onclick: () => moveSupernode(id, to) }, text));
    }
  }
  panel(about(id).kind, element('p', { class: 'where' }, g.title), facts([
    ['supernode', `${g.id}${stage === null ? '' : `, in stage ${stage}`}`], ['time', `${time(g.cost_ns)}${share}`], ['weights', bytes(g.weight_bytes)],
    ['in', bytes(g.bytes_in) + assumed], ['out', bytes(g.bytes_out) + assumed]]), ...noteList((note) => note.supernode === id),
  ...(moves.length ? [element('p', { class: 'moves' }, 'Move it ', ...moves)] : []),
  element('p', { class: 'moves' }, element('button', { type: 'button', onclick: () => set({ view: 'model' }) }, 'Show in the model')),
  element('h3', {}, count(g.operators.length, 'operator')), element('div', { class: 'scroll' }, element('table', {}, element('thead', {}, element('tr', {}, element('th', { scope: 'col' }, 'operator'), element('th', { scope: 'col' }, 'name'), element('th', { scope: 'col', class: 'number' }, 'time'))), body)),
  ...tensorList(id, 'to'), ...tensorList(id, 'from'));
  byId('detail').dataset.supernode = id;
}

function showBand(from, to) {
  const was = byId('detail').hidden;
  state.selected = null;
  const passed = passedOn(split()), all = split().transfers.filter((t) => t.from === from && t.to === to).sort((a, b) => b.bytes - a.bytes);
  const body = element('tbody');
  for (const t of all.slice(0, 300)) body.append(element('tr', {}, element('td', {}, t.tensor, ...(passed.has(t) ? [element('br'), element('small', {}, 'passed on')] : [])), element('td', { class: 'number' }, `${t.bytes_known ? '' : '~'}${bytes(t.bytes)}`)));
  panel(`stage ${from} to ${to}`, facts([['tensors', `${all.length}`], ['bytes', `${all.every((t) => t.bytes_known) ? '' : '~'}${bytes(all.reduce((n, t) => n + t.bytes, 0))}`]]), element('div', { class: 'scroll' }, element('table', {}, body)));
  delete byId('detail').dataset.supernode;
  markChosen();
  if (!was) return;
  drawView(); // the drawing has another width now
  document.querySelector(`.band[data-from="${from}"][data-to="${to}"]`)?.focus();
}

function drawSelection() {
  if (state.selected !== null) return showSupernode(state.selected);
  byId('detail').hidden = true;
  delete byId('detail').dataset.supernode;
  return byId('detail').replaceChildren();
}

// What is assumed, not known, not measured or not proved: beside the figures, not in a manual.
function drawCaveats() {
  const box = byId('caveats'), p = plan.plan;
  box.replaceChildren();
  // What there is to say beyond it opens with it: by touch and keys too.
  const put = (kind, text, more) => box.append(element('li', { class: kind }, ...(more ? [element('details', {}, element('summary', {}, text), element('span', { class: 'more' }, more))] : [text])));
  if (p) {
    const sizes = Object.entries(p.assumed_dims ?? {});
    if (sizes.length) put('warn', `assumed: ${sizes.slice(0, 3).map(([name, n]) => `${name} = ${n}`).join(', ')}${sizes.length > 3 ? ` and ${sizes.length - 3} more` : ''}`, 'Nothing fixes these sizes; --dim NAME=VALUE does. Figures with ~ rest on them.');
    if (plan.basis.unknown_operators) put('warn', `${count(plan.basis.unknown_operators, 'operator')} of unknown cost`, 'Nobody can tell their work: they count too little.');
    if (p.data_dependent && p.speed_up) put('warn', 'as counted: only a run can tell', p.headline);
    const { cost_source: source, measured_frac: frac } = plan.basis;
    put(source === 'analytic' ? '' : 'good', source === 'analytic' ? 'costs: a roofline of the device, not measured' : `costs: ${source}${frac < 0.995 ? `, for ${percent(frac)} of the time` : ''}`, '--costs FILE takes what a run showed.');
    if (state.moved) put('warn', `cuts were moved: the bound is that of all splits${plan.counting.may_pass_on && !passedOn(planned(plan)).size ? ' that send directly' : ''}`);
    else if (p.proved_optimal) put('good', `proved optimal ${p.proof_scope}`, `For these costs; bound: ${p.bound}.`);
    else if (p.data_dependent && p.gap_frac === 0) put('', 'as fast as the lower bound, as counted', `bound: ${p.bound}`);
    else put('', `not proved optimal: at most ${percent(p.gap_frac)} from the best${p.bound_scope ? ` ${p.bound_scope}` : ''}`, `bound: ${p.bound}`);
    const layouts = split().stages.reduce((n, s) => Math.max(n, s.layout_ns), 0);
    const passed = passedOn(split()).size;
    if (passed) put('', `stages pass tensors on: ${count(passed, 'transfer')}`, plan.counting?.may_pass_on ? 'A stage that receives and sends something anyway sends on what another one made: that saves a message.' : 'What one stage made, another one sends on.');
    if (layouts) put('', `up to ${time(layouts)} of a stage for layouts that cuts change`, 'Tensors that a runtime brings into another layout because of a cut.');
    if (split().stages.some((s) => s.replicas > 1)) put('', 'stages with several devices: times are over their number');
    if (p.headline && !p.speed_up && !state.moved) {
      const [first, ...rest] = p.headline.split(':');
      put('warn', `${p.data_dependent ? 'as counted: only a run can tell; ' : ''}${first}`, rest.length ? p.headline : null);
    }
  }
  for (const item of noteList(() => true)) put('', `${item.childElementCount} notes of plugins`);
}

let searching = 0;
function search() {
  const found = byId('found'), wanted = byId('search').value.trim().toLowerCase();
  found.replaceChildren();
  found.hidden = !wanted;
  if (!wanted) return;
  const hits = [];
  for (const g of plan.supernodes) {
    if (hits.length >= 60) break;
    if (g.title.toLowerCase().includes(wanted) || about(g.id).kind.toLowerCase().includes(wanted)) hits.push([g.title, about(g.id).kind, g.id]);
    for (const id of g.operators) {
      const node = data.operators[id];
      if (hits.length < 60 && (node.name.toLowerCase().includes(wanted) || node.op.toLowerCase() === wanted)) hits.push([label(node), `${node.op} in ${g.title}`, g.id]);
    }
  }
  // Tensors, by who makes them.
  if (hits.length < 60 && wanted.length > 2) {
    for (const t of data.tensors) {
      if (hits.length >= 60) break;
      const g = t.producer === null ? null : data.operators[t.producer].supernode;
      if (g !== null && t.name.toLowerCase().includes(wanted)) hits.push([t.name, 'tensor', g]);
    }
  }
  for (const [name, where, id] of hits) {
    found.append(element('li', {}, element('button', { type: 'button', onclick: () => { found.hidden = true; select(id); } }, name, ' ', element('small', {}, where))));
  }
  found.append(...(hits.length ? [] : [element('li', {}, 'nothing has that name')]));
}
