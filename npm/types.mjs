// index.d.ts from the manifest's JSON Schema: node npm/types.mjs [--check]
//
// --check compares it with what is there (TAP).
import fs from "node:fs";
import path from "node:path";
import url from "node:url";

const here = path.dirname(url.fileURLToPath(import.meta.url));
const schema = JSON.parse(fs.readFileSync(path.join(here, "../docs/manifest.schema.json"), "utf8"));

const title = (name) => name.replace(/(^|_)([a-z])/g, (_, __, c) => c.toUpperCase());
const TYPES = { string: "string", integer: "number", number: "number", boolean: "boolean", null: "null" };

function object(s, indent) {
  const inner = indent + "  ";
  const lines = Object.entries(s.properties ?? {}).map(([key, value]) => {
    const about = value.description ? `${inner}/** ${value.description} */\n` : "";
    return `${about}${inner}${key}${(s.required ?? []).includes(key) ? "" : "?"}: ${type(value, inner)};\n`;
  });
  if (typeof s.additionalProperties === "object" && !lines.length)
    return `Record<string, ${type(s.additionalProperties, indent)}>`;
  return lines.length ? `{\n${lines.join("")}${indent}}` : "Record<string, unknown>";
}

function type(s, indent = "") {
  if (s.$ref) return title(s.$ref.split("/").pop());
  if ("const" in s) return JSON.stringify(s.const);
  if (s.enum) return s.enum.map((each) => JSON.stringify(each)).join(" | ");
  if (s.anyOf || s.oneOf) return [...new Set((s.anyOf ?? s.oneOf).map((each) => type(each, indent)))].join(" | ");
  const kinds = [s.type ?? []].flat().map((kind) => {
    if (kind === "object") return object(s, indent);
    if (kind === "array") return `Array<${s.items ? type(s.items, indent) : "unknown"}>`;
    return TYPES[kind];
  });
  return kinds.length ? kinds.join(" | ") : s.properties ? object(s, indent) : "unknown";
}

const parts = Object.entries(schema.$defs).map(([name, s]) => {
  const about = s.description ? `/** ${s.description} */\n` : "";
  return `${about}export type ${title(name)} = ${type(s)};\n`;
});
const text = `// Made from docs/manifest.schema.json by npm/types.mjs.
${parts.join("\n")}
/** pipeline.json: how stages make up a model. */
export interface Manifest ${object(schema, "")}

/** The path of a command of this package. */
export function command(name: string): string;
/** Becomes the command: same input, output and exit status. */
export function run(name: string, args: string[]): void;
/** Splits a model; options are those of the command, such as "-k", "4". */
export function split(model: string, directory: string, ...options: string[]): Promise<Manifest>;
/** The manifest that a split with these options would have; nothing is written. */
export function plan(model: string, ...options: string[]): Promise<Manifest>;
/** A number of stages; of one that no split has, infeasible tells why and the rest is missing. */
export interface Compared {
  n_stages: number;
  infeasible?: string;
  /** the bottleneck, or the latency */
  value_ns?: number;
  lower_bound_ns?: number;
  gap_frac?: number;
  proved_optimal?: boolean;
  /** among which plans lower_bound_ns holds */
  bound_scope?: string;
  /** among which plans; absent where nothing is proved */
  proof_scope?: string;
  /** over the best single device; null: only a run can tell */
  speed_up?: number | null;
  /** of the stage that needs most */
  memory_bytes?: number;
  transfer_bytes?: number;
  transfer_bytes_known?: boolean;
  bubble_frac?: number;
}
/** What each number of stages from least to most would give. */
export function compare(model: string, least: number, most: number, ...options: string[]): Promise<Array<Compared>>;
/** Proves that a split is the model; rejects where it is not. */
export function verify(directory: string, model: string, ...options: string[]): Promise<void>;
/** Reads the manifest of a split directory. */
export function readManifest(directory: string): Manifest;
`;

const file = path.join(here, "index.d.ts");
if (process.argv.includes("--check")) {
  const same = fs.existsSync(file) && fs.readFileSync(file, "utf8") === text;
  console.log(`1..1\n${same ? "" : "not "}ok 1 - index.d.ts is what the schema says; node npm/types.mjs writes it`);
} else {
  fs.writeFileSync(file, text);
}
