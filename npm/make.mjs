// The npm package of builds: node npm/make.mjs BUILD[:ROOT]... [-o DIRECTORY]
//
// Puts the commands, libpsplit and those libraries that they need and a system need not have beside
// index.js in DIRECTORY/package (default: BUILD/npm), strips them, and packs that, with their licences where Debian keeps them. A BUILD is for linux-x64 or
// linux-arm64, which its commands tell; of what is compiled for another machine, ROOT is where the libraries of
// that machine are. package.json names the machines there are builds for.
import { execFileSync } from "node:child_process";
import fs from "node:fs";
import path from "node:path";
import url from "node:url";

const root = path.join(path.dirname(url.fileURLToPath(import.meta.url)), "..");
const builds = [];
let given;
for (const args = process.argv.slice(2); args.length;) {
  const arg = args.shift();
  if (arg === "-o") given = args.shift();
  else builds.push(arg.split(":"));
}
if (!builds.length || process.argv.at(-1) === "-o") {
  console.error("usage: node npm/make.mjs BUILD[:ROOT]... [-o DIRECTORY]");
  process.exit(2);
}
const output = path.resolve(given ?? path.join(builds[0][0], "npm")), into = path.join(output, "package");
const BUNDLED = /^lib(psplit(-run)?|protobuf-c|jansson|omp5?|iomp5|gomp)\.so/;
const TOOLS = ["split", "inspect", "verify", "merge", "plan"].map((name) => `onnx-pipeline-${name}`);
const MACHINES = { 62: ["x64", "x86_64-linux-gnu"], 183: ["arm64", "aarch64-linux-gnu"] }; // of ELF headers

fs.rmSync(into, { recursive: true, force: true });
fs.mkdirSync(into, { recursive: true });
for (const name of ["package.json", "index.js", "index.d.ts", "bin"])
  fs.cpSync(path.join(root, "npm", name), path.join(into, name), { recursive: true });
for (const name of ["README.md", "LICENSE"]) fs.copyFileSync(path.join(root, name), path.join(into, name));

const reads = (file) => execFileSync("readelf", ["-dW", file], { encoding: "utf8", env: { ...process.env, LC_ALL: "C" } });
const neededBy = (file) => [...reads(file).matchAll(/\(NEEDED\).*\[(.*)\]/g)].map(([, name]) => name);

/* Strips for any machine, where LLVM's is there. */
function put(from, to, own) {
  fs.copyFileSync(from, to);
  fs.chmodSync(to, 0o755);
  for (const strip of [...(own ? ["strip"] : []), "llvm-strip", "llvm-strip-14"]) {
    try {
      execFileSync(strip, ["--strip-unneeded", to], { stdio: "ignore" });
      return;
    } catch { /* the next one */ }
  }
}

/* Debian's copyright file of the package that owns a library; undefined: it is of none. */
function licenceOf(file, sysroot = "/") {
  const admin = `--admindir=${path.join(sysroot, "var/lib/dpkg")}`;
  for (const each of [file, fs.realpathSync(file)]) {
    const name = path.join("/", path.relative(sysroot, each));
    for (const listed of [name, path.join("/usr", name), name.replace(/^\/usr/, "")]) {
      try {
        const owner = execFileSync("dpkg", [admin, "-S", listed], { encoding: "utf8", stdio: ["ignore", "pipe", "ignore"] });
        const text = path.join(sysroot, "usr/share/doc", owner.split(":")[0], "copyright");
        if (fs.existsSync(text)) return text;
      } catch { /* the next name */ }
    }
  }
}

const machines = [];
for (const [build, sysroot] of builds) {
  const machine = MACHINES[fs.readFileSync(path.join(build, "tools", TOOLS[0])).readUInt16LE(18)];
  if (!machine) throw new Error(`${build} is for a machine that packages are not made for`);
  const [arch, triple] = machine, folder = path.join(into, `linux-${arch}`);
  const own = arch === process.arch && !sysroot;
  for (const name of ["bin", "lib"]) fs.mkdirSync(path.join(folder, name), { recursive: true });
  const found = own ? new Map([...execFileSync("ldd", [path.join(build, "tools", TOOLS[0])], { encoding: "utf8" })
    .matchAll(/^\s*(\S+) => (\/\S+)/gm)].map(([, name, where]) => [name, where])) : new Map();
  const where = (name) => found.get(name) ?? [build, ...["usr/lib", "lib"].map((each) => path.join(sysroot ?? "/", each, triple))]
    .map((each) => path.join(each, name)).find((each) => fs.existsSync(each));
  const wanted = [];
  for (const tool of TOOLS) {
    const file = path.join(build, "tools", tool);
    wanted.push(...neededBy(file));
    put(file, path.join(folder, "bin", tool), own);
  }
  for (const done = new Set(); wanted.length;) {
    const name = wanted.pop();
    if (done.has(name) || !BUNDLED.test(name)) continue;
    done.add(name);
    const from = where(name);
    if (!from) throw new Error(`${build}: there is no ${name}${sysroot ? ` in ${sysroot}` : ""}`);
    wanted.push(...neededBy(from));
    put(from, path.join(folder, "lib", name), own);
    const licence = name.startsWith("libpsplit") ? undefined : licenceOf(from, sysroot);
    if (licence) fs.copyFileSync(licence, path.join(folder, "lib", `${name}.LICENSE`));
  }
  machines.push(arch);
}
const about = JSON.parse(fs.readFileSync(path.join(into, "package.json"), "utf8"));
about.cpu = machines;
about.files = about.files.flatMap((name) => name === "linux-x64" ? machines.map((arch) => `linux-${arch}`) : [name]);
fs.writeFileSync(path.join(into, "package.json"), JSON.stringify(about, null, 2) + "\n");
execFileSync("npm", ["pack", "--silent", "--pack-destination", output, into], { stdio: "inherit" });
