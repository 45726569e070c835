// Where tests find what is not theirs: real models and the library of ONNX Runtime.
import { accessSync, constants, existsSync, statfsSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { skipAll } from './tap.mjs';

export const cache = process.env.PSPLIT_MODEL_CACHE
  || fileURLToPath(new URL('../../.cache/models', import.meta.url));
export const library = fileURLToPath(new URL(
  `node_modules/onnxruntime-node/bin/napi-v6/linux/${process.arch}/libonnxruntime.so.1`,
  import.meta.url));

// For many small files: in memory, where a machine has some to spare; a disk is waited for at the end of each.
export const smallFiles = (() => {
  try {
    accessSync('/dev/shm', constants.W_OK);
    const { bsize, bavail } = statfsSync('/dev/shm');
    return bsize * bavail >= 2 ** 29 ? '/dev/shm' : tmpdir();
  } catch {
    return tmpdir();
  }
})();

// The file of a model; where the cache does not have it, everything is skipped.
export function cachedModel(name) {
  const file = join(cache, `${name}.onnx`);
  if (!existsSync(file)) skipAll(`the model cache has no ${name}.onnx; tests/models/fetch.sh fills it`);
  return file;
}
