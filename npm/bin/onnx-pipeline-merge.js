#!/usr/bin/env node
"use strict";
require("../index.js").run("onnx-pipeline-merge", process.argv.slice(2));
