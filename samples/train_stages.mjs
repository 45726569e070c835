// Trains the stages of `onnx-pipeline-split MODEL -k K -o DIR --training --loss LOSS --trained-weights input`
// in stock ONNX Runtime (npm install onnxruntime-node), by pipeline.json alone, on numbers that it makes up:
//   node train_stages.mjs DIR [--steps 20] [--micro-batches 4] [--lr 0.001] [--seed 0] [--below INTEGERS=N]... [SYMBOL=SIZE]...
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { basename, join } from 'node:path';
import { parseArgs } from 'node:util';
import { drawMasks } from './draws.mjs';
const views = { float32: Float32Array, float64: Float64Array, int64: BigInt64Array, int32: Int32Array };
const count = (dims) => dims.reduce((product, size) => product * size, 1);
const table = (list, row) => Object.fromEntries(list.map(row));
const partsOf = ({ name, gradient, before, more = [] }) => [{ gradient, before }, ...more].map((part) => ({ ...part, name })); // of its gradient
export class Stages {
  static async open(dir, ort, options = {}, seed = 0) {
    const manifest = JSON.parse(readFileSync(join(dir, 'pipeline.json'))), { training } = manifest;
    const self = Object.assign(new Stages(), { ort, manifest, training, weights: {}, sums: {}, steps: 0, seed, stages: [] });
    for (const stage of manifest.stages) {
      const { first_weights: first, again, backward, weight_gradients: rest, update, ...its } = training.stages[stage.index], sessions = {};
      for (const [role, part] of Object.entries({ first, forward: stage, again, backward, rest, update }))
        if (part) sessions[role] = await ort.InferenceSession.create(join(dir, part.file), options);
      if (first) Object.assign(self.weights, await sessions.first.run({}));
      self.stages.push({ ...stage, ...its, again, backward, rest, update, sessions });
    }
    self.parts = training.weights.flatMap(partsOf), self.sums = self.zeros(self.parts.map(({ before, name }) => [before, name]));
    const kept = self.stages.flatMap(({ update }) => update?.kept ?? []).filter(({ state }) => state);
    self.kept = { ...self.weights, ...self.zeros(kept.map(({ name, weight }) => [name, weight])) };
    return self;
  }
  zeros(names) { // of the shapes of weights
    const make = ({ type, dims }) => new this.ort.Tensor(type, new views[type](count(dims)), dims);
    return table(names, ([name, weight]) => [name, make(this.weights[weight])]);
  }
  // One micro-batch forward, `at` of its step: its outputs, and what backward() needs of it.
  async forward(given, at = 0) {
    const data = { ...given, ...drawMasks(this.manifest, given, this.ort, this.seed, this.steps, at) }, batch = { data, sent: [], stash: [], outputs: {}, gradients: {} };
    for (const stage of this.stages) {
      const feeds = table(stage.weights, (name) => [name, this.weights[name]]);
      for (const { name, tensor, from } of stage.inputs) feeds[name] = (from === 'model' ? data : batch.sent[from])[tensor];
      const got = await stage.sessions.forward.run(feeds);
      for (const { name, next } of this.training.weights) if (next && got[next]) this.weights[name] = this.kept[name] = got[next];
      batch.sent.push(table(stage.outputs, ({ name, tensor }) => [tensor, got[name]]));
      batch.stash.push(table(stage.stash, ({ name, tensor }) => [tensor, got[name] ?? feeds[name]]));
      for (const { name, tensor, to } of stage.outputs) if (to.includes('model')) batch.outputs[tensor] = got[name];
    }
    return batch;
  }
  // Adds its gradients to the sums; the loss counts `scale` times: 1/M for the mean of M.
  async backward(batch, scale) {
    const { loss, input_gradients: inputs = [] } = this.training, { type, dims } = batch.outputs[loss.tensor];
    const { parts } = this, sent = [], lossGradient = { [loss.gradient]: new this.ort.Tensor(type, views[type].of(scale), dims) };
    for (const stage of this.stages.filter((each) => each.backward ?? each.rest).reverse()) {
      const got = sent[stage.index] = {}, from = { ...sent, stash: batch.stash[stage.index], weights: this.weights, model: batch.data, before: this.sums, loss: lossGradient };
      const run = (role) => stage.sessions[role].run(table(stage[role].inputs, ({ name, from: where }) => [name, from[where][name]]));
      if (stage.again) from.again = await run('again');
      for (const role of ['backward', 'rest']) if (stage[role]) Object.assign(got, await run(role));
      for (const { gradient, before } of parts) if (got[gradient]) this.sums[before] = got[gradient];
      for (const { gradient } of inputs) if (got[gradient]) batch.gradients[gradient] = got[gradient];
    }
  }
  // Moves the weights by the sums, which start again from 0.
  async update(lr, scale = 1) {
    const scalar = (type, value) => new this.ort.Tensor(type, views[type].of(value), []);
    const gradients = table(this.parts, ({ gradient, before }) => [gradient, this.sums[before]]), step = BigInt(++this.steps);
    for (const { update, sessions } of this.stages.filter((each) => each.update)) {
      const all = { ...this.kept, ...gradients, [update.lr]: scalar('float64', lr), [update.scale]: scalar('float64', scale), [update.step]: scalar('int64', step) };
      const got = await sessions.update.run(table(sessions.update.inputNames, (name) => [name, all[name]]));
      for (const kept of update.kept) this.kept[kept.name] = got[kept.new];
    }
    for (const name of Object.keys(this.weights)) this.weights[name] = this.kept[name];
    this.sums = this.zeros(this.parts.map(({ before, name }) => [before, name]));
  }
}

async function main() {
  const { values, positionals: [dir, ...symbols] } = parseArgs({ allowPositionals: true, options: {
    steps: { type: 'string' }, 'micro-batches': { type: 'string' }, lr: { type: 'string' }, seed: { type: 'string' }, below: { type: 'string', multiple: true } } });
  const [sizes, below] = [symbols, values.below ?? []].map((list) => table(list, (each) => each.split('=')));
  const ort = createRequire(join(process.cwd(), 'index.js'))('onnxruntime-node');
  // Higher levels of ONNX Runtime 1.30 fuse as if weights were constants, and may crash.
  const stages = await Stages.open(dir, ort, { graphOptimizationLevel: 'basic' }, values.seed);
  const inputs = stages.manifest.inputs.filter(({ name }) => !stages.training.masks.some(({ tensor }) => tensor === name));
  let state = 1;
  const random = () => (state = (state * 48271) % 2147483647) / 2147483647;
  const batches = Array.from({ length: Number(values['micro-batches'] ?? 4) }, () => table(inputs, ({ name, dtype, shape }) => {
    const dims = shape.map((size) => Number(sizes[size] ?? size)), whole = () => Math.floor(random() * (below[name] ?? 2));
    const draw = { int64: () => BigInt(whole()), int32: whole }[dtype] ?? (() => 2 * random() - 1);
    return [name, new ort.Tensor(dtype, views[dtype].from({ length: count(dims) }, draw), dims)];
  }));
  for (let step = 0, loss = 0; step < Number(values.steps ?? 20); step++, loss = 0) {
    for (const [at, data] of batches.entries()) {
      const batch = await stages.forward(data, at);
      loss += Number(batch.outputs[stages.training.loss.tensor].data[0]) / batches.length;
      await stages.backward(batch, 1 / batches.length);
    }
    await stages.update(Number(values.lr ?? 0.001));
    console.log(`step ${step}: loss ${loss.toFixed(6)}`);
  }
}
if (basename(process.argv[1]) === 'train_stages.mjs') await main();
