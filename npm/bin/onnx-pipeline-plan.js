#!/usr/bin/env node
"use strict";
require("../index.js").run("onnx-pipeline-plan", process.argv.slice(2));
