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
import os
from typing import Any, Callable, Dict, List, Mapping, Optional, Sequence, Tuple, Union

from . import _psplit

__all__ = [
    "Error", "Inlined", "Merged", "Model", "Plan", "Port", "Proof", "Stage", "Transfer", "merge", "open",
    "presets", "split", "verify", "version",
]

Path = Union[str, "os.PathLike[str]"]

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
    "ALLOW_INVALID": "allow_invalid=True plans it all the same",
    "BOUNDARY_IO": "boundary='io' does without",
    "WEIGHTS_EXTERNAL": "weights='external' puts them beside the model",
    "REFERENCE_DIRECTORY": "another directory, or weights='external'",
}
_SUBJECTS = {
    "psplit_read_options.inline_ifs": "inline_if",
    "psplit_planner_options.pins": "pins",
    "psplit_planner_options.keep_together": "keep_together",
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
    index: int
    file: str
    device: str
    nodes: int
    supernodes: int
    duplicated_nodes: int
    weight_bytes: Optional[int]
    memory_bytes: Optional[int]
    compute_ns: Optional[int]
    recv_ns: Optional[int]
    send_ns: Optional[int]
    load_ns: Optional[int]
    inputs: Tuple[Port, ...]
    outputs: Tuple[Port, ...]


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


_WEIGHTS = ("auto", "inline", "external", "reference")
_BOUNDARIES = ("sendrecv", "io")


# What a manifest leaves out where it is so.
_LEFT_OUT = {"overlap": False, "message_latency": "per_tensor"}


class Plan:
    """Which node goes where, and how good that is. The fields of docs/manifest.md, `plan`, are attributes:
    `bottleneck_ns`, `lower_bound_ns`, `gap_frac`, `proved_optimal`, `speed_up`, `headline`, ..."""

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
              verify: bool = True, threads: int = 0, name_template: Optional[str] = None) -> Dict[str, Any]:
        """Writes the stages and pipeline.json to `directory`, which appears complete or not at all, and returns
        what pipeline.json says. `verify`: the files are proved to be the model first. `name_template`: of the stages'
        files, such as "{model}-{stage:02}.onnx"."""
        io = _choice("boundary", boundary, _BOUNDARIES) == 1
        self._handle.emit(os.fspath(directory), io, _choice("weights", weights, _WEIGHTS), replace, verify,
                          threads, name_template)
        with _open_text(os.path.join(os.fspath(directory), "pipeline.json")) as file:
            return json.load(file)


def _open_text(path: str):
    import io
    return io.open(path, encoding="utf-8")


def _port(row: Mapping[str, Any]) -> Port:
    other = row["from"] if "from" in row else row["to"]
    return Port(row["name"], row["tensor"], tuple(other) if isinstance(other, list) else (other,))


def _stage(row: Mapping[str, Any]) -> Stage:
    names = [field.name for field in dataclasses.fields(Stage) if field.name not in ("inputs", "outputs")]
    return Stage(**{name: row[name] for name in names}, inputs=tuple(map(_port, row["inputs"])),
                 outputs=tuple(map(_port, row["outputs"])))


def _transfer(row: Mapping[str, Any]) -> Transfer:
    shape = row["shape"]
    return Transfer(row["tag"], row["tensor"], row["from"], row["to"], row["dtype"],
                    None if shape is None else tuple(shape), row["bytes"])


def _devices(devices: Any) -> Tuple[Optional[str], Optional[str]]:
    """(a preset's name, the text of a devices file)"""
    if devices is None:
        return None, None
    if isinstance(devices, Mapping):
        return None, json.dumps(devices)
    if isinstance(devices, str) and devices in _psplit.presets():
        return devices, None
    with _open_text(os.fspath(devices)) as file:
        return None, file.read()


def _costs(costs: Any) -> Tuple[List[str], List[str]]:
    """Names and texts of tables of costs."""
    if costs is None:
        return [], []
    if isinstance(costs, (str, os.PathLike, Mapping)):
        costs = [costs]
    names, texts = [], []
    for each in costs:
        if isinstance(each, Mapping):
            names.append("costs")
            texts.append(json.dumps(each))
            continue
        names.append(os.fspath(each))
        with _open_text(os.fspath(each)) as file:
            texts.append(file.read())
    return names, texts


class Model:
    """An open model: its structure, not its weights. psplit.open() makes them."""

    def __init__(self, handle: Any):
        self._handle = handle

    @property
    def inlined(self) -> Tuple[Inlined, ...]:
        return tuple(Inlined(*row) for row in self._handle.inlined())

    def plan(self, stages: Optional[int] = None, *, devices: Any = None, dims: Mapping[str, int] = {},
             costs: Any = None, pins: Mapping[str, int] = {}, keep_together: Sequence[str] = (),
             tied_weights: str = "auto", depth: int = 2, objective: str = "throughput",
             solver: Optional[str] = None, time_limit: Optional[float] = None, seed: int = 1, threads: int = 0,
             passes: Optional[str] = None, ignore_annotations: bool = False,
             configuration: Optional[str] = None, allow_invalid: bool = False, device_order: str = "chosen",
             overlap: bool = False, message_latency: str = "per_tensor",
             log: Optional[Callable[[str, str], Any]] = None) -> Plan:
        """Finds where to cut.

        stages        how many; None: one for each of `devices`
        devices       a preset's name (psplit.presets()), the path of a devices file, or its content
        dims          sizes of symbolic dimensions, for costs alone: {"batch": 1}
        costs         paths or contents of tables of measured costs; a later one overrides
        pins          {"pattern": stage} for names of nodes
        objective     "throughput" (the slowest stage) or "latency"
        time_limit    seconds by the clock; None: work worth about 10 seconds, with the same plan each time
        device_order  "chosen", or "given": stage i on device i
        overlap       stages send and receive while they compute
        message_latency  "per_tensor", or "per_pair": a link's latency counts once for all that a stage sends another
        log           is called with ("note" | "warning" | "progress", line)
        The rest is as in docs/manual.md.
        """
        preset, text = _devices(devices)
        names, texts = _costs(costs)
        if stages is None and text is None:
            raise ValueError("stages is needed without a devices file")
        if stages is not None and stages < 1:
            raise ValueError("stages is at least 1")
        return Plan(self._handle.plan(
            stages or 0, preset, text, [f"{name}={int(value)}" for name, value in dims.items()], names, texts,
            [f"{pattern}={int(stage)}" for pattern, stage in pins.items()], list(keep_together),
            _choice("tied_weights", tied_weights, ("auto", "duplicate", "together")), depth,
            _choice("objective", objective, ("throughput", "latency")) == 1, solver,
            -1.0 if time_limit is None else float(time_limit), seed, threads, passes, ignore_annotations,
            configuration, allow_invalid, _choice("device_order", device_order, ("chosen", "given")) == 1, overlap,
            _choice("message_latency", message_latency, ("per_tensor", "per_pair")) == 1, log))


def open(model: Union[Path, bytes, bytearray], *, name: Optional[str] = None,
         data_directory: Optional[Path] = None, follow_symlinks: bool = False, max_graph_bytes: int = 0,
         inline_if: Mapping[str, str] = {}) -> Model:
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
    branches = [_choice("a branch", branch, ("else", "then")) == 1 for branch in inline_if.values()]
    directory = None if data_directory is None else os.fspath(data_directory)
    return Model(_psplit.open(path, data, name, directory, follow_symlinks, False, max_graph_bytes,
                              list(inline_if), branches))


def split(model: Union[Path, bytes, Model], directory: Path, stages: Optional[int] = None, *,
          boundary: str = "sendrecv", weights: str = "auto", replace: bool = False, verify: bool = True,
          name_template: Optional[str] = None, **options: Any) -> Plan:
    """Opens, plans and splits in one call; `options` are those of Model.plan()."""
    opened = model if isinstance(model, Model) else open(model)
    plan = opened.plan(stages, **options)
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
