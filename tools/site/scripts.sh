#!/bin/sh
# scripts.sh FOLDER: fetch the scripts of the site from their npm packages, which npm verifies.
set -eu
mkdir -p "$1"
cd "$1"
npm pack --silent mermaid@11.17.2 iframe-worker@1.0.4 >/dev/null
tar -xOzf mermaid-11.17.2.tgz package/dist/mermaid.min.js >mermaid.min.js
tar -xOzf iframe-worker-1.0.4.tgz package/shim/index.js >iframe-worker.js
rm mermaid-11.17.2.tgz iframe-worker-1.0.4.tgz
