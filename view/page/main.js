// Views, the address, keys.

const VIEWS = { pipeline: drawPipeline, cuts: drawCuts, schedule: drawSchedule, model: drawModel };

function say(text, bad = false) {
  const box = byId('said');
  box.textContent = text;
  box.className = bad ? 'bad' : '';
  clearTimeout(say.timer);
  say.timer = setTimeout(() => { box.textContent = ''; }, 6000);
}

function show() {
  plan = data.plans[state.plan];
  const box = byId('view');
  leaveModel();
  box.replaceChildren();
  box.dataset.view = state.view;
  box.setAttribute('aria-labelledby', `tab-${state.view}`);
  for (const tab of document.querySelectorAll('[role=tab]')) {
    const now = tab.dataset.view === state.view;
    tab.setAttribute('aria-selected', now);
    tab.tabIndex = now ? 0 : -1;
  }
  drawCaveats();
  drawSelection();
  VIEWS[state.view](box);
  remember();
}
function set(change) {
  Object.assign(state, change);
  show();
}
function select(id) {
  state.selected = id === state.selected ? null : id;
  const was = byId('detail').hidden;
  drawSelection();
  markChosen();
  if (state.view === 'model') focusModel();
  else if (was !== byId('detail').hidden) show(); // the drawing has another width now
  remember();
}
function choosePlan(i) {
  state.plan = i;
  state.moved = null;
  if (state.selected !== null && state.selected >= data.plans[i].supernodes.length) state.selected = null;
  byId('plan').value = i;
  show();
}
function drawView() {
  const box = byId('view'), scroll = scrollY;
  box.replaceChildren();
  VIEWS[state.view](box);
  scrollTo(0, scroll);
}
// A cut was moved: what changes is drawn anew where the pointer is.
function changedSplit() {
  drawCaveats();
  drawSelection();
  drawView();
  remember();
}

// The address says what is shown, so that it can be sent to somebody. One that was entered since is not written over.
let writing = 0, address = location.hash;
function remember() {
  clearTimeout(writing);
  writing = setTimeout(() => {
    if (location.hash !== address) return;
    const words = [`view=${state.view}`];
    if (data.plans.length > 1) words.push(`k=${plan.stages?.length ?? 0}`);
    if (state.selected !== null) words.push(`supernode=${state.selected}`);
    if (state.mode !== 'time') words.push(`mode=${state.mode}`);
    if (state.colour !== 'class') words.push(`colour=${state.colour}`);
    if (state.other >= 0) words.push(`compare=${data.plans[state.other].stages.length}`);
    const places = state.moved && cutPlaces(state.moved);
    if (places) words.push(`cuts=${places.join(',')}`);
    try {
      history.replaceState(null, '', `#${words.join('&')}`);
      address = location.hash;
    } catch { /* too often, or a page without an address */ }
  }, 150);
}
function recall() {
  address = location.hash;
  const said = new Map(location.hash.slice(1).split('&').map((w) => w.split('=')));
  const number = (key) => (/^\d+$/.test(said.get(key) ?? '') ? Number(said.get(key)) : null);
  const planOf = (k) => data.plans.findIndex((p) => p.stages?.length === k);
  if (Object.hasOwn(VIEWS, said.get('view') ?? '')) state.view = said.get('view');
  if (said.get('mode') === 'memory') state.mode = 'memory';
  if (COLOURS.some(([key]) => key === said.get('colour'))) state.colour = said.get('colour');
  if (number('k') !== null && planOf(number('k')) >= 0) state.plan = planOf(number('k'));
  plan = data.plans[state.plan];
  if (number('compare') !== null) state.other = planOf(number('compare'));
  if (number('supernode') !== null && number('supernode') < plan.supernodes.length) state.selected = number('supernode');
  const places = (said.get('cuts') ?? '').split(',').map(Number);
  if (said.has('cuts') && !whyFixed() && places.length === plan.stages.length - 1 && places.every((n, i) => Number.isInteger(n) && n >= 0 && n < plan.order.length - 1 && (!i || n > places[i - 1]))) {
    const stageOf = stagesBehind(places);
    if (!whyNot(plan, stageOf)) state.moved = stageOf;
  }
}

function shortcuts(event) {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  const typing = event.target.closest?.('input, textarea, select');
  if (event.key === 'Escape') {
    if (!byId('found').hidden) byId('found').hidden = true;
    else if (byId('help').open) byId('help').close();
    else if (state.selected !== null) select(null);
    event.target.blur?.();
  }
  if (typing) return;
  const views = Object.keys(VIEWS), at = state.plan;
  if (event.key === '/') { event.preventDefault(); byId('search').focus(); }
  else if (event.key >= '1' && event.key <= String(views.length)) set({ view: views[Number(event.key) - 1] });
  else if (event.key === '[' && at > 0) choosePlan(at - 1);
  else if (event.key === ']' && at + 1 < data.plans.length) choosePlan(at + 1);
  else if (event.key === 'm') set({ mode: state.mode === 'time' ? 'memory' : 'time' });
  else if (event.key === '?') byId('help').showModal();
  else if (state.view === 'model' && '+=-0'.includes(event.key)) zoomKey(event.key);
}

function fillChoices() {
  const plans = byId('plan'), other = byId('other');
  data.plans.forEach((p, i) => plans.append(element('option', { value: i }, p.stages ? count(p.stages.length, 'stage') : 'no stages')));
  plans.parentElement.hidden = data.plans.length < 2;
  other.append(element('option', { value: -1 }, 'nothing'));
  data.plans.forEach((p, i) => { if (p.stages) other.append(element('option', { value: i }, data.plans.length > 1 ? count(p.stages.length, 'stage') : 'the plan as it was made')); });
  other.parentElement.hidden = !data.plans[0].stages;
  plans.addEventListener('change', () => choosePlan(Number(plans.value)));
  other.addEventListener('change', () => set({ other: Number(other.value), view: 'pipeline' }));
  plans.value = state.plan;
  other.value = state.other;
}

function begin() {
  state.plan = data.plans.length > 1 ? data.chosen : 0;
  state.trace = readTrace(byId('run-trace').textContent);
  if (!data.plans[0].stages) state.view = 'model'; // nothing else has something to show
  recall();
  fillChoices();
  byId('summary').textContent = [count(data.operators.length, 'operator'), count(data.plans[state.plan].supernodes.length, 'supernode')].join(', ');
  for (const tab of document.querySelectorAll('[role=tab]')) {
    tab.addEventListener('click', () => set({ view: tab.dataset.view }));
    tab.addEventListener('keydown', (event) => {
      const by = { ArrowRight: 1, ArrowLeft: -1 }[event.key], tabs = [...document.querySelectorAll('[role=tab]')];
      if (!by) return;
      const next = tabs[(tabs.indexOf(tab) + by + tabs.length) % tabs.length];
      set({ view: next.dataset.view });
      next.focus();
    });
  }
  byId('search').addEventListener('input', () => { clearTimeout(searching); searching = setTimeout(search, 60); });
  byId('search').addEventListener('keydown', (event) => { if (event.key === 'Enter') byId('found').querySelector('button')?.click(); });
  document.addEventListener('click', (event) => { if (!event.target.closest('.search')) byId('found').hidden = true; });
  document.addEventListener('keydown', shortcuts);
  byId('keys').addEventListener('click', () => byId('help').showModal());
  dark.addEventListener('change', show);
  let wide = innerWidth, resizing = 0;
  addEventListener('resize', () => { clearTimeout(resizing); resizing = setTimeout(() => { if (innerWidth !== wide) { wide = innerWidth; show(); } }, 100); });
  addEventListener('beforeprint', () => { for (const more of document.querySelectorAll('#caveats details')) more.open = true; });
  addEventListener('hashchange', () => { recall(); show(); });
  document.addEventListener('dragover', (event) => event.preventDefault());
  document.addEventListener('drop', (event) => { event.preventDefault(); state.view = 'schedule'; takeTrace(event.dataTransfer.files[0]); });
  show();
}
begin();
requestAnimationFrame(() => setTimeout(() => { window.page.shown = performance.now(); }));
// For tests, and for who wants to ask more from the browser's console.
window.page = { data, state, select, set, choosePlan, moveTo, moveCut, moveSupernode, split: () => split(), pins: () => pinsOf(plan, split().stageOf), cutPlaces: () => cutPlaces(split().stageOf), stagesBehind, countSplit: (i) => countSplit(data.plans[i], stagesOf(data.plans[i])), simulate, idle: (n) => scheduled(split(), n).bubble, slots: (n) => scheduled(split(), n).slots, readTrace, takeTrace: (text) => { state.trace = readTrace(text); show(); }, model: () => modelBoxes(), lines: () => modelLines(), bytes, time, about: (id) => about(id), drawings: (width, height) => [pipelineDrawing(split(), { width, height, title: '' }), ...(plan.stages.length > 1 ? [cutDrawing(split(), width)] : []), gantt(scheduled(split(), 8), { rows: plan.stages.length, width, longest: scheduled(split(), 8).makespan, name: '' })], toggle: (path) => toggleModel(path) };
