#!/usr/bin/env node
"use strict";
require("../index.js").run("onnx-pipeline-verify", process.argv.slice(2));
