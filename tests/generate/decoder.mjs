// Small decoders as text, and a loop that generates with the whole model, sharing nothing with the library.
//
// `plain`: attention over past... and present..., as optimum exports it: position_ids, attention_mask.
// `gqa`: com.microsoft GroupQueryAttention with rotary embedding, as ONNX Runtime's model builder exports it.
// Of so many layers and so wide.
const HEADS = 2, VOCAB = 61, CONTEXT = 64;

const norm = (x, y, w) => `${y}_m = ReduceMean <axes = [-1]> (${x}) ${y}_c = Sub (${x}, ${y}_m) ${y}_s = Mul (${y}_c, ${y}_c)
  ${y}_v = ReduceMean <axes = [-1]> (${y}_s) ${y}_e = Add (${y}_v, eps) ${y}_d = Sqrt (${y}_e) ${y}_n = Div (${y}_c, ${y}_d) ${y} = Mul (${y}_n, ${w})`;

function mlp(l, x, y) {
  return `${norm(x, `h${l}`, `g2_${l}`)}
  u${l} = MatMul (h${l}, wu_${l}) t${l} = Tanh (u${l}) o${l} = MatMul (t${l}, wd_${l}) ${y} = Add (${x}, o${l})`;
}

function weights(layers, D, more) {
  const list = [`float[${VOCAB},${D}] emb = random(1)`, `float[${D},${VOCAB}] head = random(2)`, 'float[1] eps = {0.00001}', ...more];
  for (let l = 0; l < layers; l++) {
    let seed = 10 * l + 10;
    for (const name of ['wq', 'wk', 'wv', 'wo']) list.push(`float[${D},${D}] ${name}_${l} = random(${seed++})`);
    list.push(`float[${D},${4 * D}] wu_${l} = random(${seed++})`, `float[${4 * D},${D}] wd_${l} = random(${seed++})`);
    list.push(`float[${D}] g1_${l} = random(${seed++})`, `float[${D}] g2_${l} = random(${seed++})`);
  }
  return list.join(', ');
}

const pasts = (layers, f) => Array.from({ length: layers }, (_, l) => ['key', 'value'].map((kind) => f(l, kind))).flat();

function plain(layers, D = 32) {
  const HEAD = D / HEADS;
  const body = [`e0 = Gather (emb, input_ids) p0 = Gather (pos, position_ids) x0 = Add (e0, p0)
  keep = Cast <to = 1> (attention_mask) drop = Sub (one, keep) far = Mul (drop, low) far4 = Unsqueeze (far, mid)
  ms = Shape (attention_mask) tot = Gather (ms, i1) at = Range (i0, tot, i1) asking = Unsqueeze (position_ids, last)
  later = Greater (at, asking) laterf = Cast <to = 1> (later) lateri = Mul (laterf, low) later4 = Unsqueeze (lateri, head1)
  bias = Add (far4, later4)`];
  for (let l = 0; l < layers; l++) {
    const part = (w, out) => `${out}m = MatMul (n${l}, ${w}_${l}) ${out}r = Reshape (${out}m, split) ${out} = Transpose <perm = [0, 2, 1, 3]> (${out}r)`;
    body.push(`${norm(`x${l}`, `n${l}`, `g1_${l}`)}
  ${part('wq', `q${l}`)} ${part('wk', `k${l}`)} ${part('wv', `v${l}`)}
  "present.${l}.key" = Concat <axis = 2> ("past_key_values.${l}.key", k${l})
  "present.${l}.value" = Concat <axis = 2> ("past_key_values.${l}.value", v${l})
  kt${l} = Transpose <perm = [0, 1, 3, 2]> ("present.${l}.key") s${l} = MatMul (q${l}, kt${l}) sc${l} = Mul (s${l}, scale)
  sb${l} = Add (sc${l}, bias) a${l} = Softmax <axis = -1> (sb${l}) c${l} = MatMul (a${l}, "present.${l}.value")
  ct${l} = Transpose <perm = [0, 2, 1, 3]> (c${l}) cr${l} = Reshape (ct${l}, join) co${l} = MatMul (cr${l}, wo_${l})
  y${l} = Add (x${l}, co${l})
  ${mlp(l, `y${l}`, `x${l + 1}`)}`);
  }
  return `<ir_version: 8, opset_import: [{version: 17}]>
decoder (int64[b,s] input_ids, int64[b,t] attention_mask, int64[b,s] position_ids, ${
    pasts(layers, (l, kind) => `float[b,${HEADS},p,${HEAD}] "past_key_values.${l}.${kind}"`).join(', ')})
  => (float[b,s,${VOCAB}] logits, ${pasts(layers, (l, kind) => `float[b,${HEADS},t,${HEAD}] "present.${l}.${kind}"`).join(', ')})
<${weights(layers, D, [`float[${CONTEXT},${D}] pos = random(3)`, 'float[1] one = {1}', 'float[1] low = {-10000}', 'float[1] scale = {0.25}',
    'int64 i0 = {0}', 'int64 i1 = {1}', 'int64[2] mid = {1, 2}', 'int64[1] last = {2}', 'int64[1] head1 = {1}',
    `int64[4] split = {0, 0, ${HEADS}, ${HEAD}}`, `int64[3] join = {0, 0, ${D}}`])}> {
  ${body.join('\n  ')}
  logits = MatMul (x${layers}, head)
}`;
}

function gqa(layers, D = 32) {
  const HEAD = D / HEADS;
  const body = [`x0 = Gather (emb, input_ids)
  counted = ReduceSum <keepdims = 0> (attention_mask, axis1) less = Sub (counted, one64) seqlens = Cast <to = 6> (less)
  ms = Shape (attention_mask) tot = Gather (ms, i1) total = Cast <to = 6> (tot)`];
  for (let l = 0; l < layers; l++) {
    body.push(`${norm(`x${l}`, `n${l}`, `g1_${l}`)}
  q${l} = MatMul (n${l}, wq_${l}) k${l} = MatMul (n${l}, wk_${l}) v${l} = MatMul (n${l}, wv_${l})
  a${l}, "present.${l}.key", "present.${l}.value" = com.microsoft.GroupQueryAttention <num_heads = ${HEADS}, kv_num_heads = ${HEADS}, do_rotary = 1>
    (q${l}, k${l}, v${l}, "past_key_values.${l}.key", "past_key_values.${l}.value", seqlens, total, cos, sin)
  co${l} = MatMul (a${l}, wo_${l}) y${l} = Add (x${l}, co${l})
  ${mlp(l, `y${l}`, `x${l + 1}`)}`);
  }
  return `<ir_version: 8, opset_import: [{version: 17}, {domain: "com.microsoft", version: 1}]>
decoder (int64[b,s] input_ids, int64[b,t] attention_mask, ${
    pasts(layers, (l, kind) => `float[b,${HEADS},p,${HEAD}] "past_key_values.${l}.${kind}"`).join(', ')})
  => (float[b,s,${VOCAB}] logits, ${pasts(layers, (l, kind) => `float[b,${HEADS},t,${HEAD}] "present.${l}.${kind}"`).join(', ')})
<${weights(layers, D, [`float[${CONTEXT},${HEAD / 2}] cos = random(3)`, `float[${CONTEXT},${HEAD / 2}] sin = random(4)`,
    'int64[1] axis1 = {1}', 'int64[1] one64 = {1}', 'int64 i1 = {1}'])}> {
  ${body.join('\n  ')}
  logits = MatMul (x${layers}, head)
}`;
}

// Nodes with names of their layer, as exporters give them, so that --pin can say where a layer is to be.
function named(layer, text) {
  let n = 0;
  return text.replace(/(^|\s)([\w"./]+(?:, [\w"./]+)*) = (\w+) (?=[<(])/g, (_, before, outputs, op) =>
    `${before}["/layers.${layer}/${op}_${n++}"] ${outputs} = ${op} `);
}

// An encoder and its decoder as two models, as optimum exports them: decoder_model, which reads the prompt and makes the
// encoder's keys and values, and decoder_with_past_model, which takes these as they are.
export const FEATURES = 8;

export function encoder(D = 32) {
  return `<ir_version: 8, opset_import: [{version: 17}]>
encoder (float[b,f,${FEATURES}] features) => (float[b,f,${D}] last_hidden_state, float[b,f,${D}] first_hidden_state)
<float[${FEATURES},${D}] w0 = random(5), float[${D},${D}] w1 = random(6), float[${D},${D}] w2 = random(7)> {
  a = MatMul (features, w0) first_hidden_state = Tanh (a) c = MatMul (first_hidden_state, w1) d = Tanh (c) e = MatMul (d, w2) last_hidden_state = Tanh (e)
}`;
}

export function encodedDecoder(layers, first, D = 32) {
  const HEAD = D / HEADS;
  const part = (from, w, out) => `${w}m = MatMul (${from}, ${w}) ${w}r = Reshape (${w}m, split) ${out} = Transpose <perm = [0, 2, 1, 3]> (${w}r)`;
  const attend = (a, l, key, value, bias) => `${a}t${l} = Transpose <perm = [0, 1, 3, 2]> ("${key}") ${a}s${l} = MatMul (${a}q${l}, ${a}t${l}) ${a}c${l} = Mul (${a}s${l}, scale)
  ${bias ? `${a}b${l} = Add (${a}c${l}, bias) ${a}a${l} = Softmax <axis = -1> (${a}b${l})` : `${a}a${l} = Softmax <axis = -1> (${a}c${l})`}
  ${a}v${l} = MatMul (${a}a${l}, "${value}") ${a}w${l} = Transpose <perm = [0, 2, 1, 3]> (${a}v${l}) ${a}j${l} = Reshape (${a}w${l}, join) ${a}o${l} = MatMul (${a}j${l}, ${a}wo_${l})`;
  const body = ['x0 = Gather (emb, input_ids)'];
  if (first) {
    body.push(`is = Shape (input_ids) n = Gather (is, i1) at = Range (i0, n, i1) asking = Unsqueeze (at, row) later = Greater (at, asking)
  laterf = Cast <to = 1> (later) bias = Mul (laterf, low)`);
  }
  for (let l = 0; l < layers; l++) {
    const name = (kind, what) => `${first || kind === 'decoder' ? 'present' : 'past_key_values'}.${l}.${kind}.${what}`;
    const keys = ['key', 'value'].map((what) => (first ? part(`n${l}`, `sw${what[0]}_${l}`, `"present.${l}.decoder.${what}"`)
      : `${part(`n${l}`, `sw${what[0]}_${l}`, `s${what}${l}`)} "present.${l}.decoder.${what}" = Concat <axis = 2> ("past_key_values.${l}.decoder.${what}", s${what}${l})`));
    const cross = first ? ['key', 'value'].map((what) => part('encoder_hidden_states', `cw${what[0]}_${l}`, `"present.${l}.encoder.${what}"`)) : [];
    body.push(named(l, `${norm(`x${l}`, `n${l}`, `g1_${l}`)} ${part(`n${l}`, `swq_${l}`, `sq${l}`)} ${keys.join(' ')}
  ${attend('s', l, name('decoder', 'key'), name('decoder', 'value'), first)} y${l} = Add (x${l}, so${l})
  ${norm(`y${l}`, `m${l}`, `g3_${l}`)} ${part(`m${l}`, `cwq_${l}`, `cq${l}`)} ${cross.join(' ')}
  ${attend('c', l, name('encoder', 'key'), name('encoder', 'value'), false)} z${l} = Add (y${l}, co${l})
  ${mlp(l, `z${l}`, `x${l + 1}`)}`));
  }
  const states = (prefix, kinds, p) => Array.from({ length: layers }, (_, l) => kinds.flatMap((kind) => ['key', 'value'].map((what) =>
    `float[b,${HEADS},${kind === 'encoder' ? 'f' : p},${HEAD}] "${prefix}.${l}.${kind}.${what}"`))).flat();
  const list = [`float[${VOCAB},${D}] emb = random(1)`, `float[${D},${VOCAB}] head = random(2)`, 'float[1] eps = {0.00001}', 'float[1] scale = {0.25}',
    `int64[4] split = {0, -1, ${HEADS}, ${HEAD}}`, `int64[3] join = {0, 0, ${D}}`];
  if (first) list.push('float[1] low = {-10000}', 'int64 i0 = {0}', 'int64 i1 = {1}', 'int64[1] row = {1}');
  for (let l = 0; l < layers; l++) {
    let seed = 40 * l + 10;
    for (const name of ['swq', 'swk', 'swv', 'swo', 'cwq', 'cwk', 'cwv', 'cwo']) {
      seed++;
      if (first || !['cwk', 'cwv'].includes(name)) list.push(`float[${D},${D}] ${name}_${l} = random(${seed})`);
    }
    list.push(`float[${D},${4 * D}] wu_${l} = random(${seed + 1})`, `float[${4 * D},${D}] wd_${l} = random(${seed + 2})`);
    list.push(`float[${D}] g1_${l} = random(${seed + 3})`, `float[${D}] g2_${l} = random(${seed + 4})`, `float[${D}] g3_${l} = random(${seed + 5})`);
  }
  const inputs = first ? [`float[b,f,${D}] encoder_hidden_states`] : states('past_key_values', ['decoder', 'encoder'], 'p');
  return `<ir_version: 8, opset_import: [{version: 17}]>
decoder (int64[b,s] input_ids, ${inputs.join(', ')}) => (float[b,s,${VOCAB}] logits, ${
    states('present', first ? ['decoder', 'encoder'] : ['decoder'], 't').join(', ')})
<${list.join(', ')}> {
  ${body.join('\n  ')}
  logits = MatMul (x${layers}, head)
}`;
}

export const decoders = { plain, gqa };
