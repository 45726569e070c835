// The npm package of a build: node npm/make.mjs BUILD [-o DIRECTORY]
//
// Puts the commands, libpsplit and those libraries that it needs and a system need not have beside
// index.js in DIRECTORY/package (default: BUILD/npm), strips them, and packs that. For linux-x64 alone.
import { execFileSync } from "node:child_process";
import fs from "node:fs";
import path from "node:path";
import url from "node:url";

const root = path.join(path.dirname(url.fileURLToPath(import.meta.url)), "..");
const [build, dash, given] = process.argv.slice(2);
if (!build || (dash && dash !== "-o")) {
  console.error("usage: node npm/make.mjs BUILD [-o DIRECTORY]");
  process.exit(2);
}
const output = path.resolve(given ?? path.join(build, "npm")), into = path.join(output, "package");
const folder = path.join(into, `${process.platform}-${process.arch}`);
const BUNDLED = /^lib(psplit(-run)?|protobuf-c|jansson|omp5?|iomp5)\.so/;
const TOOLS = ["split", "inspect", "verify", "merge", "plan"].map((name) => `onnx-pipeline-${name}`);

fs.rmSync(into, { recursive: true, force: true });
for (const name of ["bin", "lib"]) fs.mkdirSync(path.join(folder, name), { recursive: true });
for (const name of ["package.json", "index.js", "index.d.ts", "bin"])
  fs.cpSync(path.join(root, "npm", name), path.join(into, name), { recursive: true });
for (const name of ["README.md", "LICENSE"]) fs.copyFileSync(path.join(root, name), path.join(into, name));

function put(from, to) {
  fs.copyFileSync(from, to);
  fs.chmodSync(to, 0o755);
  execFileSync("strip", ["--strip-unneeded", to]);
}

for (const tool of TOOLS) {
  const file = path.join(build, "tools", tool);
  put(file, path.join(folder, "bin", tool));
  for (const [, name, where] of execFileSync("ldd", [file], { encoding: "utf8" }).matchAll(/^\s*(\S+) => (\/\S+)/gm))
    if (BUNDLED.test(name) && !fs.existsSync(path.join(folder, "lib", name)))
      put(where, path.join(folder, "lib", name));
}
execFileSync("npm", ["pack", "--silent", "--pack-destination", output, into], { stdio: "inherit" });
