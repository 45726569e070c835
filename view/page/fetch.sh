#!/bin/sh
# Fetches what the HTML page is built with into view/page/node_modules, at pinned versions checked by
# their sha512. The next build takes it in; a build without it makes no HTML pages.
set -eu
cd "$(dirname "$0")"
cmp -s package-lock.json node_modules/.installed && exit 0
npm ci --silent --ignore-scripts --no-audit --no-fund
# npm's files are of 1985; the build takes in what is newer than it.
touch node_modules/cytoscape/dist/cytoscape.min.js node_modules/cytoscape/LICENSE
cp package-lock.json node_modules/.installed
