#!/usr/bin/env node
"use strict";
require("../index.js").run("onnx-pipeline-inspect", process.argv.slice(2));
