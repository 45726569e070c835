#!/bin/sh
# Lays the stages beside this file out as a model repository of Triton Inference Server:
#   sh triton.sh REPOSITORY
set -eu
here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)
repository=${1:?usage: sh triton.sh REPOSITORY}

place() { # MODEL FILE < config.pbtxt; links where the file system allows it
  mkdir -p "$repository/$1/1"
  cat >"$repository/$1/config.pbtxt"
  for file in "$here/$2" "$here/$2.data"; do
    if [ -f "$file" ]; then
      ln -f "$file" "$repository/$1/1/" 2>/dev/null || cp -f "$file" "$repository/$1/1/"
    fi
  done
}

place m_stage0 stage0.onnx <<'END_OF_CONFIG'
name: "m_stage0"
backend: "onnxruntime"
default_model_filename: "stage0.onnx"
max_batch_size: 0
input [
  {
    name: "x"
    data_type: TYPE_FP32
    dims: [ -1, 8 ]
  }
]
output [
  {
    name: "a"
    data_type: TYPE_FP32
    dims: [ -1, 8 ]
  },
  {
    name: "b"
    data_type: TYPE_FP32
    dims: [ -1, 8 ]
  }
]
instance_group [ { count: 1 kind: KIND_GPU gpus: [ 1 ] } ]
END_OF_CONFIG

place m_stage1 stage1.onnx <<'END_OF_CONFIG'
name: "m_stage1"
backend: "onnxruntime"
default_model_filename: "stage1.onnx"
max_batch_size: 0
input [
  {
    name: "scale"
    data_type: TYPE_FP32
    dims: [ 1 ]
    reshape: { shape: [ ] }
  },
  {
    name: "a"
    data_type: TYPE_FP32
    dims: [ -1, 8 ]
  },
  {
    name: "b"
    data_type: TYPE_FP32
    dims: [ -1, 8 ]
  }
]
output [
  {
    name: "e"
    data_type: TYPE_FP32
    dims: [ -1, 8 ]
  }
]
instance_group [ { count: 1 kind: KIND_CPU } ]
END_OF_CONFIG

place m_stage2 stage2.onnx <<'END_OF_CONFIG'
name: "m_stage2"
backend: "onnxruntime"
default_model_filename: "stage2.onnx"
max_batch_size: 0
input [
  {
    name: "x"
    data_type: TYPE_FP32
    dims: [ -1, 8 ]
  },
  {
    name: "mask"
    data_type: TYPE_BOOL
    dims: [ -1 ]
  },
  {
    name: "e"
    data_type: TYPE_FP32
    dims: [ -1, 8 ]
  }
]
output [
  {
    name: "y"
    data_type: TYPE_FP32
    dims: [ -1, 8 ]
  }
]
instance_group [ { count: 1 kind: KIND_CPU } ]
END_OF_CONFIG

place m '' <<'END_OF_CONFIG'
name: "m"
platform: "ensemble"
max_batch_size: 0
input [
  {
    name: "x"
    data_type: TYPE_FP32
    dims: [ -1, 8 ]
  },
  {
    name: "mask"
    data_type: TYPE_BOOL
    dims: [ -1 ]
  },
  {
    name: "scale"
    data_type: TYPE_FP32
    dims: [ 1 ]
  }
]
output [
  {
    name: "a"
    data_type: TYPE_FP32
    dims: [ -1, 8 ]
  },
  {
    name: "y"
    data_type: TYPE_FP32
    dims: [ -1, 8 ]
  }
]
ensemble_scheduling {
  step [
    {
      model_name: "m_stage0"
      model_version: -1
      input_map { key: "x" value: "x" }
      output_map { key: "a" value: "a" }
      output_map { key: "b" value: "stage0:b" }
    },
    {
      model_name: "m_stage1"
      model_version: -1
      input_map { key: "scale" value: "scale" }
      input_map { key: "a" value: "a" }
      input_map { key: "b" value: "stage0:b" }
      output_map { key: "e" value: "stage1:e" }
    },
    {
      model_name: "m_stage2"
      model_version: -1
      input_map { key: "x" value: "x" }
      input_map { key: "mask" value: "mask" }
      input_map { key: "e" value: "stage1:e" }
      output_map { key: "y" value: "y" }
    }
  ]
}
END_OF_CONFIG
