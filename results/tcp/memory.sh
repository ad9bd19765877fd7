#!/usr/bin/env bash
# The memory of a coordinator with the sixteen nodes of memory.yaml on this machine.
#
#   results/tcp/memory.sh [BUILD] > results/tcp/memory.txt
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
program=$(realpath "${1:-$here/../../build/release}/app/spes-sim")
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cp "$here/memory.yaml" "$folder/s.yaml"
cd "$folder"
"$program" s.yaml --transport tcp --quiet --output run.h5 >/dev/null &
pid=$!
most=0
while anonymous=$(awk '/RssAnon/ {print $2}' "/proc/$pid/status" 2>/dev/null) && [[ $anonymous ]]; do
  ((anonymous <= most)) || most=$anonymous
  resident=$(awk '/VmHWM/ {print $2}' "/proc/$pid/status" 2>/dev/null) || true
  [[ ! $resident ]] || highest=$resident
  sleep 0.01
done
wait "$pid"
world=$(stat -c %s run.safetensors)
mib() { echo "$(($1 / 1024)) MiB"; }
echo "world: $(mib $((world / 1024))); two worlds and two uploads: $(mib $((4 * world / 1024)))"
echo "anonymous memory of the coordinator, at most: $(mib "$most")"
echo "resident memory, libraries and mapped files included, at most: $(mib "$highest")"
