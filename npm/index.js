"use strict";
/* The commands, built for this system, and what they write. Types: index.d.ts. */
const { execFile, spawnSync } = require("node:child_process");
const fs = require("node:fs");
const path = require("node:path");

const folder = path.join(__dirname, `${process.platform}-${process.arch}`);

/** The path of a command of this package. */
function command(name) {
  const file = path.join(folder, "bin", name);
  if (!fs.existsSync(file))
    throw new Error(`${name} is not built for ${process.platform}-${process.arch}`);
  return file;
}

/* Of libraries that stand in the package. */
function environment() {
  const before = process.env.LD_LIBRARY_PATH;
  return { ...process.env, LD_LIBRARY_PATH: path.join(folder, "lib") + (before ? ":" + before : "") };
}

/** Becomes the command: same input, output and exit status. */
function run(name, args) {
  const done = spawnSync(command(name), args, { stdio: "inherit", env: environment() });
  if (done.error) throw done.error;
  if (done.signal) process.kill(process.pid, done.signal);
  process.exitCode = done.status ?? 70;
}

function call(name, args) {
  return new Promise((resolve, reject) => {
    execFile(command(name), args, { maxBuffer: 1 << 30, env: environment() }, (error, stdout, stderr) => {
      if (!error) return resolve({ stdout, stderr });
      const line = stderr.split("\n").find((each) => each.startsWith("error: "));
      reject(Object.assign(new Error(line ? line.slice(7) : error.message), { status: error.code, stderr }));
    });
  });
}

/** Reads the manifest of a split directory. */
function readManifest(directory) {
  const manifest = JSON.parse(fs.readFileSync(path.join(directory, "pipeline.json"), "utf8"));
  if (manifest.format !== "onnx-pipeline-split" || manifest.version !== 1)
    throw new Error(`${directory}: not a split that this version reads`);
  return manifest;
}

/** Splits a model; options are those of the command. */
async function split(model, directory, ...options) {
  if (options.includes("--plan-only"))
    throw new Error("with --plan-only there is no directory: plan(model, ...options) tells what it would hold");
  await call("onnx-pipeline-split", [model, "-o", directory, "--quiet", ...options]);
  return readManifest(directory);
}

const told = async (...args) =>
  JSON.parse((await call("onnx-pipeline-split", [...args, "--plan-only", "--json", "--quiet"])).stdout);

/** The manifest that a split with these options would have. */
const plan = (model, ...options) => told(model, ...options);

/** What each number of stages would give. */
const compare = (model, least, most, ...options) => told(model, "-k", `${least}..${most}`, ...options);

/** Proves that a split is the model; throws where it is not. */
async function verify(directory, model, ...options) {
  await call("onnx-pipeline-verify", [directory, "--model", model, "--quiet", ...options]);
}

module.exports = { command, run, split, plan, compare, verify, readManifest };
