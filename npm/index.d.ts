// Made from docs/manifest.schema.json by npm/types.mjs.
export type Name = string;

export type Index = number;

export type Count = number;

/** null: not known */
export type Quantity = number | null;

export type Dtype = "float32" | "uint8" | "int8" | "uint16" | "int16" | "int32" | "int64" | "string" | "bool" | "float16" | "float64" | "uint32" | "uint64" | "complex64" | "complex128" | "bfloat16" | "float8e4m3fn" | "float8e4m3fnuz" | "float8e5m2" | "float8e5m2fnuz" | "float8e8m0" | "uint4" | "int4" | "uint2" | "int2" | "float4e2m1";

/** null: not known */
export type Type = Dtype | string | null;

/** null: rank not known */
export type Shape = Array<number | Name | null> | null;

export type Value = {
  name: Name;
  dtype: Type;
  shape: Shape;
};

export type Stage = {
  index: Index;
  /** stage0.onnx ..., or by --name-template */
  file: string;
  device: Name;
  /** devices that compute it, in turn */
  replicas?: number;
  /** these; `device` is the first */
  devices?: Array<Name>;
  /** of the model; boundary nodes not counted */
  nodes: Count;
  /** those of nodes that another stage owns */
  duplicated_nodes: Count;
  supernodes: Count;
  weight_bytes: Count;
  peak_activation_bytes: Quantity;
  /** received and sent tensors of the micro-batches that wait at the boundary */
  buffer_bytes: Quantity;
  /** kept by the device's runtime */
  workspace_bytes: Count;
  /** caches of keys and values, of all sequences in flight; left out where there is none */
  state_bytes?: Quantity;
  /** the sum of these, and with training of the stash of all micro-batches in flight */
  memory_bytes: Quantity;
  compute_ns: Quantity;
  recv_ns: Quantity;
  send_ns: Quantity;
  /** compute + receive + send, or with overlap the largest of them */
  load_ns: Quantity;
  /** of load_ns, what is backward; there where fill-drain is the objective */
  backward_load_ns?: Quantity;
  /** of compute_ns: what cuts cost in layouts */
  layout_ns: Quantity;
  inputs: Array<Input>;
  optional_inputs?: Array<Input>;
  outputs: Array<Output>;
};

export type Input = {
  /** graph input of the file */
  name: Name;
  /** value of the model */
  tensor: Name;
  from: "model" | Index;
};

export type Output = {
  /** graph output of the file */
  name: Name;
  /** value of the model */
  tensor: Name;
  to: Array<"model" | Index>;
};

export type Transfer = {
  tag: Index;
  tensor: Name;
  from: Index;
  to: Index;
  dtype: Dtype;
  shape: Shape;
  bytes: Quantity;
};

export type State = {
  output: Name;
  input: Name;
  /** stage that makes the output; null: it is an input or a weight */
  writer: Index | null;
  /** stage that reads the input, another one than the writer where several do; null: none */
  reader: Index | null;
  /** output and input have the same sizes: one buffer */
  shared_buffer: boolean;
  /** of the input, for one sequence */
  bytes: Quantity;
};

export type Inlined = {
  /** name of the If or of one of its outputs */
  node: Name;
  branch: "then" | "else";
  /** the value that chooses the branch */
  condition: Name;
  /** it is no constant: inputs have to make it true (then) or false (else) */
  assumed: boolean;
};

export type Duplicate = {
  /** position of the node in the model */
  index: Index;
  /** its name; empty where it has none */
  node: string;
  /** the stage that owns it */
  stage: Index;
  /** the other stages that compute it */
  also: Array<Index>;
};

export type BackwardDuplicate = {
  /** position of the node in the backward pass */
  index: Index;
  /** its name; empty where it has none */
  node: string;
  /** the stage that owns it */
  stage: Index;
  /** which of its files has it; absent: backward */
  file?: "weight_gradients";
  /** stages whose backward file has a copy */
  also: Array<Index>;
  /** stages whose weight_gradients file has one */
  also_weight_gradients?: Array<Index>;
};

/** null: there is nothing to do */
export type Part = {
  file: Name;
  nodes?: Count;
  inputs: Array<{
    name: Name;
    from: "model" | "weights" | "stash" | "again" | "loss" | "before" | Index;
  }>;
  /** inputs of the model that the file has a default for */
  optional_inputs?: Array<{
    name: Name;
    from: "model";
  }>;
  outputs: Array<{
    name: Name;
    to: Array<"model" | "update" | "backward" | Index>;
  }>;
} | null;

export type Training = {
  loss: {
    tensor: Name;
    stage: Index;
    /** what all gradients are multiplied by: an input */
    gradient: Name;
  };
  /** what the model was differentiated by, besides its weights */
  options: {
    loss: string | null;
    loss_output: string | null;
    batch_norm: "as-is" | "train" | "frozen";
    dropout: "as-is" | "train" | "frozen";
  };
  duplicates?: Array<BackwardDuplicate>;
  weight_form: "default" | "input";
  optimizer: string | null;
  recompute: "none" | "heavy" | "all";
  weights: Array<{
    name: Name;
    dtype: Dtype;
    shape: Shape;
    /** that read it */
    stages: Array<Index>;
    /** the stage that updates it */
    owner: number | null;
    /** null: the loss does not depend on it */
    gradient: string | null;
    /** the input that its gradient is added to */
    before: string | null;
    /** of a running mean or variance, which is no weight: the output of its owner that takes its place after each micro-batch */
    next?: Name;
    /** the rest of its gradient, which nodes give that read it elsewhere: the update adds all */
    more?: Array<{
      gradient: Name;
      before: Name;
    }>;
  }>;
  /** inputs of the model that are filled with what random operators draw */
  masks: Array<{
    /** the position of the entry; numbers are drawn by it */
    number: Index;
    /** of the input of the stage's files, which list it, too */
    name: Name;
    /** of the input of the model */
    tensor: Name;
    /** that reads it */
    stage: Index;
    /** the operator, by name or as #POSITION (OPERATOR) */
    node: Name;
    kind: "keep" | "uniform" | "normal";
    /** what is dropped of all; of keep alone */
    ratio?: number;
    /** bool of keep, float32 of the others */
    dtype: "bool" | "float32";
    shape: Array<number | string | Array<Array<number | string>>>;
  }>;
  input_gradients?: Array<{
    name: Name;
    /** null: the loss does not depend on it */
    gradient: string | null;
  }>;
  stages: Array<{
    index: Index;
    forward_ns?: Quantity;
    again_ns?: Quantity;
    backward_ns?: Quantity;
    /** of backward_ns */
    weight_gradients_ns?: Quantity;
    /** kept of each micro-batch in flight */
    stash_bytes?: Quantity;
    /** that the stage's forward file takes besides its inputs */
    weights: Array<Name>;
    first_weights: {
      file: Name;
    } | null;
    stash: Array<{
      /** an output of the forward file, or an input */
      name: Name;
      /** an input of what comes after */
      tensor: Name;
      dtype: Dtype;
      shape: Shape;
    }>;
    again: Part;
    backward: Part;
    /** what of the backward pass nothing waits for; there with --weight-gradients apart */
    weight_gradients?: Part;
    update: {
      file: Name;
      /** float64 input */
      lr: Name;
      /** float64 input that gradients are multiplied by */
      scale: Name;
      /** int64 input, from 1; absent where the method does not count */
      step?: Name;
      kept: Array<{
        name: Name;
        /** the output that takes its place */
        new: Name;
        weight: Name;
        /** zero at first; else it is the weight itself */
        state: boolean;
      }>;
    } | null;
  }>;
  transfers: Array<{
    tag: Index;
    tensor: Name;
    from: Index;
    to: Index;
    dtype: Dtype;
    shape: Shape;
  }>;
};

export type Plan = {
  objective: "throughput" | "latency" | "fill-drain";
  /** stages send and receive while they compute: load_ns is the largest of the three; absent where it is their sum */
  overlap?: true;
  solver: Name;
  /** what proves lower_bound_ns */
  bound?: string;
  bottleneck_ns: Quantity;
  /** of one input by itself through all stages */
  latency_ns?: Quantity;
  /** the largest forward load of a stage and the largest backward load of one, added up; there where fill-drain is the objective */
  fill_drain_ns?: Quantity;
  /** a link's latency counts once for all that one stage sends another; absent: for each tensor */
  message_latency?: "per_pair";
  /** of bottleneck_ns, or where that is the objective of latency_ns or fill_drain_ns */
  lower_bound_ns: Quantity;
  gap_frac: number | null;
  /** never with data_dependent */
  proved_optimal: boolean;
  /** among which plans, of these costs, none is below lower_bound_ns, in the words of proof_scope */
  bound_scope?: string;
  /** proved_optimal: among which plans, of these costs: "among plans without copies that send directly, for this order of devices", or "among all plans"; absent where nothing is proved */
  proof_scope?: string;
  /** given: bound and proof are for the devices in the order they were given; chosen: for all orders; alike: no order of them is better than another */
  device_order?: "alike" | "chosen" | "given";
  /** the fastest device for the whole model of those that can hold it; null: none can */
  single_device?: string | null;
  /** of the whole model on it */
  single_device_ns?: Quantity;
  /** single_device_ns over what the objective makes small; null: cannot be told */
  speed_up?: number | null;
  /** the speed-up and what it rests on, or why there is none, as a line to show; null where no time passes */
  headline?: string | null;
  /** what only a run can tell, where it withholds the speed-up and the proof; absent where it does not */
  data_dependent?: {
    /** nodes whose time depends on it and that no costs file has measured */
    nodes: Count;
    /** their part of all nodes' time, as counted */
    time_frac: number;
    /** the same if a run finds 1000 times as much */
    time_frac_1000x: number;
    /** the heaviest of them, by name or, without one, as #POSITION (OPERATOR) */
    node: string | null;
    /** transfers whose bytes depend on it */
    transfers: Count;
    /** of the largest of them, as counted */
    tensor: string | null;
  };
  cost_source: "analytic" | "measured" | "given";
  /** part of all nodes' time that costs files speak of; absent where it is none */
  measured_frac?: number;
  total_compute_ns?: Quantity;
  supernodes?: Count;
  unknown_nodes?: Count;
  dead_nodes?: Count;
  /** what fewer transfers cost, within the slack that was allowed */
  given_up?: {
    best_bottleneck_ns: Count;
    best_transfers: Count;
    /** no split is faster than that */
    best_proved: boolean;
    /** among which; absent where it is not proved */
    best_proof_scope?: string;
  };
  /** kinds of steps that the plan is for: times and bytes elsewhere are means over them */
  phases?: Array<{
    name: "decode" | "prefill";
    past: Count;
    tokens: number;
    batch: number;
    step_frac: number;
    bottleneck_ns: Count;
    /** by stage, without layouts */
    load_ns: Array<Count>;
  }>;
  /** symbols that nobody fixed, and the size that costs were computed with; x[0]: dimension 0 of input x, which has no name */
  assumed_dims?: Record<string, Count>;
};

/** pipeline.json: how stages make up a model. */
export interface Manifest {
  format: "onnx-pipeline-split";
  version: 1;
  producer: string;
  /** base name of the model file */
  model: string;
  /** Ifs that were taken for one branch, in order */
  inlined?: Array<Inlined>;
  boundary: "sendrecv" | "io";
  inputs: Array<Value>;
  /** inputs with a default: an initializer of the same name */
  optional_inputs?: Array<Value>;
  outputs: Array<Value>;
  stages: Array<Stage>;
  transfers: Array<Transfer>;
  /** outputs that the next run takes as inputs */
  state?: Array<State>;
  duplicates?: Array<Duplicate>;
  plan: Plan;
  training?: Training;
  /** other files of the directory that belong to the split */
  files?: Array<string>;
}

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
