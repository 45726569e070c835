// Ranks that do not have the same split refuse to run:
//
//   node agree.mjs RUN SPLIT LAUNCHER
//
// The ranks get directories of their own by what the launchers tell them of their number. What differs is named,
// however far in the file, and where one has only what it needs they run.
import { chmodSync, cpSync, openSync, readFileSync, rmSync, truncateSync, writeFileSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { Runner } from './runner.mjs';

const [runner, splitter, launcher] = process.argv.slice(2);
const each = new Runner(runner, splitter, launcher);
const { tap, tmp } = each;
const { dir } = each.split('fan_out', { args: ['--weights', 'external'] });
const script = join(tmp, 'rank');
writeFileSync(script, `#!/bin/sh
exec ${runner} ${tmp}/rank\${PMI_RANK:-\${OMPI_COMM_WORLD_RANK}} "$@" \${PMI_RANK:+$(cat ${tmp}/args$PMI_RANK)} \
\${OMPI_COMM_WORLD_RANK:+$(cat ${tmp}/args$OMPI_COMM_WORLD_RANK)}
`);
chmodSync(script, 0o755);
const rank = (i) => join(tmp, `rank${i}`);
function reset() {
  for (let i = 0; i < each.ranks; i++) {
    rmSync(rank(i), { recursive: true, force: true });
    cpSync(dir, rank(i), { recursive: true });
    writeFileSync(join(tmp, `args${i}`), '');
  }
}
const start = () => {
  const [program, ...rest] = [...launcher.split(' '), `${each.ranks}`, script];
  return each.start(program, [...rest, '--random', '--dim', 'n=3', '-q']);
};
function runs(title) {
  const { status, stderr } = start();
  tap.ok(status === 0, title, `${status}\n${stderr}`);
  reset();
}
function refuses(title, pattern) {
  const { status, stderr } = start();
  tap.ok(status > 0 && stderr.split('\n').some((line) => /^error: /.test(line) && pattern.test(line)), title,
    `${status}\n${stderr}`);
  reset();
}
// Another byte, where the file stays a model: in a name that nobody reads.
function change(i, file, from, to) {
  const bytes = readFileSync(join(rank(i), file), 'latin1');
  tap.ok(bytes.includes(from), `${file} has ${from}`);
  writeFileSync(join(rank(i), file), bytes.replace(from, to), 'latin1');
}
reset();
runs('the same split');
for (let i = 0; i < each.ranks; i++) {
  for (let s = 0; s < each.ranks; s++) if (s !== i) rmSync(join(rank(i), `stage${s}.onnx`));
}
runs('each with its own stage alone');
change(2, 'pipeline.json', '"fan_out.onnx"', '"fan_uut.onnx"');
refuses('another manifest', /ranks 0 and 2 have different splits: .*pipeline\.json/);
change(1, 'stage2.onnx', 'n_y', 'n_z');
refuses('another stage', /ranks 0 and 1 have different splits: .*stage2\.onnx/);
writeFileSync(join(tmp, 'args1'), '-m 7');
refuses('other options', /ranks 0 and 1 were started with different options/);

// Large files: the length, the end, and what lies within in more than one place in a thousand.
const big = (i, bytes, at) => {
  const file = join(rank(i), 'stage1.onnx.data');
  writeFileSync(file, '');
  truncateSync(file, bytes);
  if (at === undefined) return;
  const fd = openSync(file, 'r+');
  writeSync(fd, Buffer.alloc(1 << 16, 1), 0, 1 << 16, at);
};
const BIG = 1 << 26;
for (let i = 0; i < each.ranks; i++) big(i, BIG);
runs('large weights that are the same');
for (let i = 0; i < each.ranks; i++) big(i, BIG + (i === 2 ? 1 : 0));
refuses('one byte more', /ranks 0 and 2 have different splits: .*stage1\.onnx/);
for (let i = 0; i < each.ranks; i++) big(i, BIG, i === 2 ? BIG / 3 : undefined);
refuses('other weights within', /ranks 0 and 2 have different splits: .*stage1\.onnx/);
tap.done();
