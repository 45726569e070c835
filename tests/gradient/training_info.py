#!/usr/bin/python3
"""training_info.py FILE DIR: what a file with a training_info says, as models that a runtime runs.

Holds FILE against onnx.checker, and puts the model's graph and the algorithm's together, as the
specification of TrainingInfoProto says it is executed. Initializers that are updated become inputs,
so that new values can be fed. Writes DIR/step.onnx (the combined graph), DIR/initialization.onnx,
DIR/first.onnx (no inputs; gives first values as the file has them) and prints the bindings as JSON.
"""
import json
import os
import sys

import onnx
from onnx import helper


def main(path, directory):
    model = onnx.load(path)
    known = all(o.version <= onnx.defs.onnx_opset_version() for o in model.opset_import)
    if known:
        onnx.checker.check_model(path)
    assert len(model.training_info) == 1, "one training_info"
    info = model.training_info[0]
    updates = {b.key: b.value for b in info.update_binding}
    firsts = {b.key: b.value for b in info.initialization_binding}
    graph, algorithm = model.graph, info.algorithm
    initializers = list(graph.initializer) + list(algorithm.initializer)
    by_name = {i.name: i for i in initializers}
    assert len(by_name) == len(initializers), "an initializer stands twice"
    assert set(updates) <= set(by_name), "an update is of no initializer"
    assert set(firsts) <= set(by_name), "an initialization is of no initializer"
    given = {o.name for o in algorithm.output}
    assert set(updates.values()) <= given, "an update is not an output of the algorithm"
    assert set(firsts.values()) <= {o.name for o in info.initialization.output}

    def typed(tensor):
        return helper.make_tensor_value_info(tensor.name, tensor.data_type, list(tensor.dims))

    step = helper.make_graph(
        list(graph.node) + list(algorithm.node), "step",
        list(graph.input) + list(algorithm.input) + [typed(by_name[name]) for name in updates],
        list(graph.output) + list(algorithm.output),
        [i for i in initializers if i.name not in updates])
    made = [o for node in step.node for o in node.output if o]
    names = made + [i.name for i in step.input] + [i.name for i in step.initializer]
    assert len(set(names)) == len(names), "a name stands twice"
    rest = dict(opset_imports=model.opset_import, ir_version=model.ir_version,
                functions=model.functions)
    models = {
        "step": step,
        "first": helper.make_graph([], "first", [], [typed(by_name[n]) for n in updates],
                                   [by_name[n] for n in updates]),
    }
    assert info.HasField("initialization") == bool(firsts), "an initialization of nothing"
    if firsts:
        models["initialization"] = info.initialization
    for name, part in models.items():
        whole = helper.make_model(part, **rest)
        if known:
            onnx.checker.check_model(whole, full_check=name != "first")
        onnx.save(whole, os.path.join(directory, name + ".onnx"))
    print(json.dumps({"checked": known, "updates": updates, "firsts": firsts,
                      "inputs": [i.name for i in graph.input],
                      "nodes": [len(graph.node), len(algorithm.node)],
                      "ops": sorted({n.op_type for n in graph.node})}))


if __name__ == "__main__":
    main(*sys.argv[1:])
