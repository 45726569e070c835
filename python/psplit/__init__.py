"""Splits ONNX models into pipeline stages for several devices.

    import psplit

    model = psplit.open("model.onnx")
    plan = model.plan(stages=3, dims={"batch": 1})
    print(plan.headline, [stage.load_ns for stage in plan.stages])
    plan.split("parts")                  # proved to be the model before the directory appears

    psplit.merge("parts", "again.onnx", model)

Times are nanoseconds, sizes bytes. What fails raises psplit.Error. Calls release the interpreter's lock;
models and plans may be used by one thread at a time. Needs no other package.
"""
from __future__ import annotations

import dataclasses
import json
import operator
import os
from typing import Any, Callable, Dict, List, Mapping, Optional, Sequence, Tuple, TypeVar, Union

from . import _psplit

__all__ = [
    "Certificate", "Error", "Inlined", "Merged", "Model", "Plan", "Port", "Proof", "Stage", "Transfer", "merge", "open",
    "presets", "split", "verify", "version",
]

Path = Union[str, "os.PathLike[str]"]
_Value = TypeVar("_Value")

# What would help, by the hint's name, in the words of this module; {0} is the hint's first argument, {} all.
_HINTS = {
    "REPLACE": "replace=True allows that",
    "FOLLOW_SYMLINKS": "follow_symlinks=True allows that",
    "MAX_GRAPH_BYTES": "max_graph_bytes raises the limit",
    "DATA_DIRECTORY": "data_directory says where its external data is",
    "INLINE_KNOWN": "inline_if={{'{0}': '{1}'}} takes the branch that runs",
    "INLINE_ASSUMED": "inline_if={{'{0}': 'then'}} (or 'else') takes one branch, where it is known which one runs",
    "CONFIGURATION": "configuration chooses, ignore_annotations=True ignores them",
    "IGNORE_ANNOTATIONS": "ignore_annotations=True ignores them",
    "MORE_STAGES": "stages={0} or ignore_annotations=True",
    "TIED_DUPLICATE": "tied_weights='duplicate' allows that",
    "DIMS": "dims gives their sizes: {}",
    "MEASURED_DIMS": "these costs are of dims {}",
    "ALLOW_INVALID": "allow_invalid=True plans it anyway",
    "BOUNDARY_IO": "boundary='io' does without",
    "WEIGHTS_EXTERNAL": "weights='external' puts them beside the model",
    "REFERENCE_DIRECTORY": "another directory, or weights='external'",
    "TIME_LIMIT": "a larger time_limit may find one",
    "FEWER_STAGES": "a smaller number of stages may do",
    "PASSES": "docs/passes.md lists them",
    "COSTS_FILE": "docs/costs/measured.md says what a table of costs is",
    "EXPORT": "onnx-pipeline-train --export writes trained weights into the model",
}
# Of these, what says that a number of stages cannot all have work.
_TOO_MANY = ("FEWER_STAGES", "INLINE_KNOWN", "INLINE_ASSUMED")
_SUBJECTS = {
    "psplit_read_options.inline_ifs": "inline_if",
    "psplit_planner_options.pins": "pins",
    "psplit_planner_options.keep_together": "keep_together",
    "psplit_planner_options.states": "states",
    "psplit_planner_options.shapes": "shapes",
    "psplit_planner_options.dims": "dims",
    "psplit_planner_options.decode": "context",
    "psplit_planner_options.solver": "solver",
    "psplit_planner_run.text": "passes",
    "psplit_emit_options.weights": "weights",
    "psplit_emit_options.name_template": "name_template",
}


class Error(RuntimeError):
    """What the library says: `code` ("IO", "INVALID", "INFEASIBLE", "MISMATCH", ...), `message`, `hint` or None."""

    def __init__(self, code: str, message: str, subject: Optional[str] = None, hint: Optional[str] = None,
                 arguments: Sequence[str] = ()):
        self.code = code
        name = _SUBJECTS.get(subject or "")
        self.message = f"{name}: {message}" if name else message
        self._name = hint
        text = _HINTS.get(hint or "")
        self.hint: Optional[str] = None
        if text:
            # Curly brackets of a hint without arguments stay as they are written.
            padded = list(arguments) + [""] * 2
            self.hint = text.replace("{}", " ".join(arguments)).format(*padded)
        super().__init__(self.message + (f"; {self.hint}" if self.hint else ""))

    def __reduce__(self):  # exceptions that come from another process
        return (_restored, (self.code, self.message, self.hint))


def _restored(code: str, message: str, hint: Optional[str]) -> Error:
    error = Error(code, message)
    error.hint = hint
    return error


_psplit.set_error(Error)

Dim = Union[int, str, None]
"""A size, a symbol, or None where neither is known."""


@dataclasses.dataclass(frozen=True)
class Port:
    """An input or output of a stage's file: `name` there, `tensor` in the model, the stages (or "model") at the
    other end."""
    name: str
    tensor: str
    other: Tuple[Union[int, str], ...]


@dataclasses.dataclass(frozen=True)
class Stage:
    """What a device runs. `replicas` devices take turns, all of them in `devices`; `memory_bytes` is the sum of
    the other bytes; `layout_ns` is part of `compute_ns`."""
    index: int
    file: str
    device: str
    nodes: int
    supernodes: int
    duplicated_nodes: int
    weight_bytes: int
    peak_activation_bytes: Optional[int]
    buffer_bytes: Optional[int]
    workspace_bytes: int
    memory_bytes: Optional[int]
    compute_ns: Optional[int]
    recv_ns: Optional[int]
    send_ns: Optional[int]
    load_ns: Optional[int]
    layout_ns: Optional[int]
    inputs: Tuple[Port, ...]
    outputs: Tuple[Port, ...]
    optional_inputs: Tuple[Port, ...]
    state_bytes: Optional[int]
    replicas: int
    devices: Tuple[str, ...]
    backward_load_ns: Optional[int]


@dataclasses.dataclass(frozen=True)
class Transfer:
    """A tensor on its way from one stage to another."""
    tag: int
    tensor: str
    source: int
    target: int
    dtype: str
    shape: Optional[Tuple[Dim, ...]]
    bytes: Optional[int]


@dataclasses.dataclass(frozen=True)
class Inlined:
    """An If that was taken for one branch; `assumed`: inputs have to make `condition` so."""
    node: str
    branch: str
    condition: Optional[str]
    assumed: bool


@dataclasses.dataclass(frozen=True)
class Proof:
    """What a proof covered."""
    stages: int
    nodes: int
    duplicates: int
    transfers: int
    assumed: int
    weight_bytes: int
    trains: bool


@dataclasses.dataclass(frozen=True)
class Merged:
    """What was merged; `renamed` values had a name that another stage used, too."""
    stages: int
    nodes: int
    transfers: int
    copies: int
    renamed: int
    bytes: int
    data_bytes: int


def _choice(what: str, value: str, names: Sequence[str]) -> int:
    if value not in names:
        raise ValueError(f"{what} is one of {', '.join(map(repr, names))}, not {value!r}")
    return list(names).index(value)


@dataclasses.dataclass(frozen=True)
class Certificate:
    """A proof, for psplit-check-certificate.py, that no split of `problem` is faster than `bound_ns`: both as JSON
    (docs/certificates.md). Less than the plan's lower bound is proved where `bound_ns` is less."""
    problem: str
    certificate: str
    bound_ns: int

    def write(self, path: Path) -> None:
        """To `path`, and the problem to `path`.problem.json."""
        _psplit.write(os.fspath(path) + ".problem.json", self.problem)
        _psplit.write(os.fspath(path), self.certificate)


_WEIGHTS = ("auto", "inline", "external", "reference")
_BOUNDARIES = ("sendrecv", "io")
_ANNOTATIONS = ("onnx", "layer_ann", "olive")
_AS_MANY_AS_PAY = 0xFFFFFFFF
_MOST_STAGES = 1024  # that a memory limit alone is met with

# What a manifest leaves out where it is so.
_LEFT_OUT: Dict[str, Any] = {
    "overlap": False, "message_latency": "per_tensor", "bound": None, "latency_ns": None,
    "fill_drain_ns": None, "device_order": None, "bound_scope": None, "proof_scope": None,
    "single_device": None, "single_device_ns": None, "speed_up": None, "headline": None, "data_dependent": None,
    "measured_frac": 0.0, "total_compute_ns": None, "supernodes": None, "unknown_nodes": None, "dead_nodes": None,
    "given_up": None, "phases": [], "assumed_dims": {},
}


class Plan:
    """Which node goes where, and how good that is. The fields of docs/manifest.md, `plan`, are attributes:
    `bottleneck_ns`, `lower_bound_ns`, `gap_frac`, `proved_optimal`, `speed_up`, `headline`, ..."""

    objective: str
    overlap: bool
    solver: str
    bound: Optional[str]
    bottleneck_ns: Optional[int]
    latency_ns: Optional[int]
    fill_drain_ns: Optional[int]
    message_latency: str
    lower_bound_ns: Optional[int]
    gap_frac: Optional[float]
    proved_optimal: bool
    bound_scope: Optional[str]
    proof_scope: Optional[str]
    device_order: Optional[str]
    single_device: Optional[str]
    single_device_ns: Optional[int]
    speed_up: Optional[float]
    headline: Optional[str]
    data_dependent: Optional[Dict[str, Any]]
    cost_source: str
    measured_frac: float
    total_compute_ns: Optional[int]
    supernodes: Optional[int]
    unknown_nodes: Optional[int]
    dead_nodes: Optional[int]
    given_up: Optional[Dict[str, Any]]
    phases: List[Dict[str, Any]]
    assumed_dims: Dict[str, int]

    def __init__(self, handle: Any):
        self._handle = handle
        self.manifest: Dict[str, Any] = json.loads(handle.manifest(False, 0))
        self.stages: Tuple[Stage, ...] = tuple(_stage(row) for row in self.manifest["stages"])
        self.transfers: Tuple[Transfer, ...] = tuple(_transfer(row) for row in self.manifest["transfers"])

    def __getattr__(self, name: str) -> Any:
        try:
            return {**_LEFT_OUT, **self.__dict__["manifest"]["plan"]}[name]
        except KeyError:
            raise AttributeError(f"a plan has no {name!r}") from None

    def __dir__(self) -> List[str]:
        return sorted({*super().__dir__(), *_LEFT_OUT, *self.manifest["plan"]})

    def __repr__(self) -> str:
        return f"<psplit.Plan: {len(self.stages)} stages, {self.headline or 'no time passes'}>"

    def split(self, directory: Path, *, boundary: str = "sendrecv", weights: str = "auto", replace: bool = False,
              verify: bool = True, threads: int = 0, name_template: Optional[str] = None,
              no_sync: bool = False) -> Dict[str, Any]:
        """Writes the stages and pipeline.json to `directory`, which appears complete or not at all, and returns
        what pipeline.json says. `verify`: the files are proved to be the model first. `name_template`: of the stages'
        files, such as "{model}-{stage:02}.onnx". `no_sync`: the disk is not waited for."""
        io = _choice("boundary", boundary, _BOUNDARIES) == 1
        self._handle.emit(os.fspath(directory), io, _choice("weights", weights, _WEIGHTS), replace, verify,
                          threads, name_template, no_sync)
        with _open_text(os.path.join(os.fspath(directory), "pipeline.json")) as file:
            return json.load(file)

    def annotate(self, path: Path, form: str = "onnx", *, replace: bool = False) -> None:
        """Writes the model itself with the stages of its nodes added, as ONNX has fields for it, or as ONNX Runtime
        ("layer_ann") or Olive ("olive") read it: docs/inspect.md."""
        self._handle.annotate(os.fspath(path), _choice("form", form, _ANNOTATIONS), replace)

    def name_assignment(self) -> str:
        """The value of session.name_based_layer_assignment, by which ONNX Runtime runs the whole model on the providers
        that the devices file names for the stages."""
        return self._handle.name_assignment()

    def certificate(self) -> Certificate:
        """A proof of the lower bound that others can check. The plan has to be made with certify=True."""
        return Certificate(*self._handle.certificate())

    def page(self) -> str:
        """The plan as one HTML page in which cuts can be moved, as onnx-pipeline-inspect writes it."""
        return self._handle.page(self.manifest["model"])


def _open_text(path: str):
    import io
    return io.open(path, encoding="utf-8")


def _port(row: Mapping[str, Any]) -> Port:
    other = row["from"] if "from" in row else row["to"]
    return Port(row["name"], row["tensor"], tuple(other) if isinstance(other, list) else (other,))


_PORTS = ("inputs", "optional_inputs", "outputs")


def _stage(row: Mapping[str, Any]) -> Stage:
    full = {"state_bytes": None, "replicas": 1, "devices": [row["device"]], "optional_inputs": [],
            "backward_load_ns": None, **row}
    full["devices"] = tuple(full["devices"])
    names = [field.name for field in dataclasses.fields(Stage) if field.name not in _PORTS]
    return Stage(**{name: full[name] for name in names}, **{name: tuple(map(_port, full[name])) for name in _PORTS})


def _transfer(row: Mapping[str, Any]) -> Transfer:
    shape = row["shape"]
    return Transfer(row["tag"], row["tensor"], row["from"], row["to"], row["dtype"],
                    None if shape is None else tuple(shape), row["bytes"])


def _devices(devices: Any) -> Dict[str, str]:
    """A preset's name, or the text of a devices file."""
    if devices is None:
        return {}
    if isinstance(devices, Mapping):
        return {"devices": json.dumps(devices)}
    if isinstance(devices, str) and devices in _psplit.presets():
        return {"preset": devices}
    try:
        with _open_text(os.fspath(devices)) as file:
            return {"devices": file.read()}
    except FileNotFoundError as error:
        presets = "No such file, and no preset; presets are " + ", ".join(_psplit.presets())
        raise FileNotFoundError(error.errno, presets, os.fspath(devices)) from None


def _costs(costs: Any) -> List[Tuple[str, str]]:
    """Names and texts of tables of costs."""
    if costs is None:
        return []
    if isinstance(costs, (str, os.PathLike, Mapping)):
        costs = [costs]
    tables = []
    for each in costs:
        if isinstance(each, Mapping):
            tables.append(("costs", json.dumps(each)))
            continue
        with _open_text(os.fspath(each)) as file:
            tables.append((os.fspath(each), file.read()))
    return tables


def _given(**options: Any) -> Dict[str, Any]:
    return {name: value for name, value in options.items() if value is not None}


def _texts(texts: Optional[Sequence[str]]) -> List[str]:
    return [texts] if isinstance(texts, str) else list(texts or ())


def _pairs(mapping: Optional[Mapping[str, _Value]]) -> List[Tuple[str, _Value]]:
    return [] if mapping is None else list(mapping.items())


def _most(what: str, value: Union[int, str]) -> int:
    if value == "auto" and what != "proposals":
        return _AS_MANY_AS_PAY
    if isinstance(value, str) or operator.index(value) < 1:
        raise ValueError(f"{what} is a number from 1{'' if what == 'proposals' else ', or %r' % 'auto'}, not {value!r}")
    return operator.index(value)


def _within(what: str, value: float, most: float) -> float:
    if not 0 <= value <= most:
        raise ValueError(f"{what} is {f'from 0 to {most}' if most < float('inf') else 'at least 0'}, not {value!r}")
    return float(value)


def _passes(passes: Optional[str], keep_blocks: bool) -> Optional[str]:
    if not keep_blocks:
        return passes
    if passes is not None:
        raise ValueError("keep_blocks is for the default passes; passes can name 'blocks'")
    before, coarsen, behind = _psplit.default_passes().partition("coarsen")
    return f"{before}blocks,{coarsen}{behind}"


def _working_points(context: Optional[int], batch: int, prefill: Optional[Tuple[int, float]]) -> Dict[str, Any]:
    if context is None:
        if prefill is not None or batch != 1:
            raise ValueError("batch and prefill say more of context, which is missing")
        return {}
    if operator.index(context) < 0 or operator.index(batch) < 1:
        raise ValueError("context is at least 0, batch at least 1")
    points: Dict[str, Any] = {"decode": (context, 1, batch)}
    if prefill is not None:
        tokens, part = prefill
        if operator.index(tokens) < 1 or not 0 < part < 1:
            raise ValueError("prefill is (tokens, part of all steps), the part above 0 and below 1")
        points.update(prefill=(0, tokens, batch), prefill_frac=part)
    return points


class Model:
    """An open model: its structure, not its weights. psplit.open() makes them."""

    def __init__(self, handle: Any):
        self._handle = handle

    @property
    def inlined(self) -> Tuple[Inlined, ...]:
        return tuple(Inlined(*row) for row in self._handle.inlined())

    def plan(self, stages: Optional[int] = None, *, devices: Any = None, dims: Optional[Mapping[str, int]] = None,
             shapes: Optional[Mapping[str, Sequence[int]]] = None, context: Optional[int] = None, batch: int = 1,
             prefill: Optional[Tuple[int, float]] = None, sequences: Optional[int] = None, costs: Any = None,
             depth: int = 2, pins: Optional[Mapping[str, int]] = None, device_order: str = "chosen",
             segments: Union[int, str] = 1, replicas: Union[int, str] = 1, overlap: bool = False,
             max_bytes_per_stage: Optional[int] = None, ignore_annotations: bool = False,
             configuration: Optional[str] = None, keep_together: Optional[Sequence[str]] = None, tied_weights: str = "auto",
             keep_blocks: bool = False, slack: float = 2.0, message_latency: str = "per_pair",
             states: Optional[Mapping[str, str]] = None, no_state: bool = False, objective: str = "throughput",
             solver: Optional[str] = None, policy: Optional[Path] = None, proposals: int = 8,
             time_limit: Optional[float] = None, seed: int = 1, threads: int = 0, passes: Optional[str] = None,
             allow_invalid: bool = False, certify: bool = False, inline_weights: bool = False,
             log: Optional[Callable[[str, str], Any]] = None) -> Plan:
        """Finds where to cut.

        stages        how many; None: one for each of `devices`, or as few as `max_bytes_per_stage` allows
        devices       a preset's name (psplit.presets()), the path of a devices file, or its content
        dims          sizes of symbolic dimensions, for costs alone: {"batch": 1}
        shapes        sizes of inputs: {"x": (1, 3, 224, 224)}
        context       of a decoder: a step behind so many tokens of `batch` sequences; prefill=(512, 0.2): of all
                      steps a fifth are prompts of 512 tokens; `sequences` hold their state at a time
        costs         paths or contents of tables of measured costs; a later one overrides
        pins          {"pattern": stage} for names of nodes
        device_order  "chosen", or "given": stage i on device i
        segments      a device may run so many parts of the model; "auto": as many as pay
        replicas      a stage may have so many devices, which take turns; "auto": as many as pay
        overlap       stages send and receive while they compute
        keep_blocks   blocks that repeat, such as layers, stay whole
        slack         percent of the best bottleneck that may be given up for fewer crossing tensors
        message_latency  "per_pair": a link's latency counts once for all that a stage sends another; or "per_tensor"
        states        {output: input} that takes it in the next run, besides those found by name, unless no_state
        objective     "throughput" (the slowest stage) or "latency"; fill-drain is of training, which is the command's
        policy        a learned policy's file, which is asked for so many `proposals`
        time_limit    seconds by the clock; None: work worth about 10 seconds, with the same plan each time
        certify       Plan.certificate() is wanted
        inline_weights  the stages will be written with weights="inline", which runtimes need more memory for
        log           is called with ("note" | "warning" | "progress", line)
        The rest is as in docs/manual.md.
        """
        options: Dict[str, Any] = {
            "n_stages": 0 if stages is None else operator.index(stages),
            "dims": [(name, operator.index(size)) for name, size in _pairs(dims)],
            "shapes": [(name, tuple(map(operator.index, sizes))) for name, sizes in _pairs(shapes)],
            "states": _pairs(states), "no_states": no_state, "costs": _costs(costs), "queue_depth": depth,
            "pins": [f"{pattern}={operator.index(stage)}" for pattern, stage in _pairs(pins)],
            "device_order": _choice("device_order", device_order, ("chosen", "given")),
            "max_segments": _most("segments", segments), "max_replicas": _most("replicas", replicas),
            "overlap": overlap, "ignore_annotations": ignore_annotations, "keep_together": _texts(keep_together),
            "tied_weights": _choice("tied_weights", tied_weights, ("auto", "duplicate", "together")),
            "slack_frac": _within("slack", slack, 100) / 100,
            "message_latency": _choice("message_latency", message_latency, ("per_pair", "per_tensor")),
            "objective": _choice("objective", objective, ("throughput", "latency")), "seed": seed,
            "n_threads": threads, "allow_invalid": allow_invalid, "certify": certify,
            "inline_weights": inline_weights,
            **_given(configuration=configuration, solver=solver, n_sequences=sequences,
                     max_stage_bytes=max_bytes_per_stage, passes=_passes(passes, keep_blocks)),
            **_devices(devices), **_working_points(context, batch, prefill),
        }
        if policy is not None:
            options["policy"] = (os.fspath(policy), _most("proposals", proposals))
        elif solver is not None and solver.startswith("drlpp"):
            raise ValueError(f"solver {solver!r} needs a policy")
        if time_limit is not None:
            options.update(time_limit_s=_within("time_limit", time_limit, float("inf")), limit_by_work=False)
        if stages is not None and stages < 1:
            raise ValueError("stages is at least 1")
        if stages is None and "devices" not in options:
            if max_bytes_per_stage is None:
                raise ValueError("stages is needed without a devices file")
            return self._fewest(options, log)
        return Plan(self._handle.plan(options, log))

    def _fewest(self, options: Dict[str, Any], log: Optional[Callable[[str, str], Any]]) -> Plan:
        """More stages need no more memory each, or hardly: doubled until they fit or are too many, then halved."""
        low, high = 0, _MOST_STAGES + 1  # low do not fit; high do, or cannot all have work
        best, why = None, None
        while high - low > 1:
            n = (low + high) // 2 if high <= _MOST_STAGES else 2 * low or 1
            if n > _MOST_STAGES:
                break
            try:
                best, high = self._handle.plan({**options, "n_stages": n}, log), n
            except Error as error:
                if error.code != "INFEASIBLE":
                    raise
                if n > 1 and error._name in _TOO_MANY:
                    high = n
                else:
                    low, why = n, error
        if best is None:
            assert why is not None
            raise why
        return Plan(best)


def open(model: Union[Path, bytes, bytearray], *, name: Optional[str] = None,
         data_directory: Optional[Path] = None, follow_symlinks: bool = False, max_graph_bytes: int = 0,
         inline_if: Optional[Mapping[str, str]] = None) -> Model:
    """Opens a model: a path, or the bytes of one, as torch.onnx.export writes to an io.BytesIO.

    name            of a model from bytes, for messages
    data_directory  of external data; None: beside the file
    inline_if       {"If's name or output": "then" or "else"}: Ifs to be taken for one branch, in order
    """
    path = data = None
    if isinstance(model, (bytes, bytearray)):
        data = bytes(model)
    else:
        path = os.fspath(model)
    branches = [_choice("a branch", branch, ("else", "then")) == 1 for _, branch in _pairs(inline_if)]
    directory = None if data_directory is None else os.fspath(data_directory)
    return Model(_psplit.open(path, data, name, directory, follow_symlinks, False, max_graph_bytes,
                              [name for name, _ in _pairs(inline_if)], branches))


def split(model: Union[Path, bytes, Model], directory: Path, stages: Optional[int] = None, *,
          boundary: str = "sendrecv", weights: str = "auto", replace: bool = False, verify: bool = True,
          name_template: Optional[str] = None, **options: Any) -> Plan:
    """Opens, plans and splits in one call; `options` are those of Model.plan()."""
    opened = model if isinstance(model, Model) else open(model)
    plan = opened.plan(stages, **{"inline_weights": weights == "inline", **options})
    plan.split(directory, boundary=boundary, weights=weights, replace=replace, verify=verify,
               name_template=name_template)
    return plan


def verify(path: Path, model: Union[Path, Model], *, threads: int = 0) -> Proof:
    """Proves that the stages in a directory, or one file, are the model. Raises Error with code "MISMATCH" and
    the first difference."""
    opened = model if isinstance(model, Model) else open(model)
    place = os.fspath(path)
    return Proof(*_psplit.verify(place, opened._handle, os.path.isfile(place), threads))


def merge(directory: Path, path: Path, model: Union[Path, Model, None] = None, *, weights: str = "auto",
          replace: bool = False) -> Merged:
    """Puts stages together again as one model, also after other tools have changed some. `model`, the one that was
    split, gives what --boundary io has no place for."""
    opened = model if model is None or isinstance(model, Model) else open(model)
    return Merged(*_psplit.merge(os.fspath(directory), os.fspath(path), _choice("weights", weights, _WEIGHTS),
                                 replace, opened._handle if opened else None))


def presets() -> Dict[str, str]:
    """Devices that are known by name, and what they stand for."""
    return _psplit.presets()


def version() -> str:
    """Of the library."""
    return _psplit.version()
