#!/usr/bin/env node
"use strict";
require("../index.js").run("onnx-pipeline-split", process.argv.slice(2));
