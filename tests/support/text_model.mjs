// ONNX files from text (docs/text-form.md), by make_model, which the build makes.
import { spawnSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

const makeModel = process.env.PSPLIT_MAKE_MODEL
  ?? fileURLToPath(new URL('../../build-test/tests/support/make_model', import.meta.url));

// The bytes of the file that `text` says; a text without a header gets that of make_model.
export function modelBytes(text) {
  const ran = spawnSync(makeModel, ['-'], { input: text, maxBuffer: 2 ** 30 });
  if (ran.status === 0) return ran.stdout;
  throw new Error(`${makeModel}: ${ran.error ?? ran.stderr}${text.slice(0, 2000)}`);
}

export const writeModel = (text, file) => writeFileSync(file, modelBytes(text));
