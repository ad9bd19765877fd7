#!/usr/bin/env bash
# What the processes of a real run on this machine take.
#
#   results/tcp/memory.sh results/tcp/memory.yaml [BUILD] > results/tcp/memory.txt
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
scenario=${1:?which scenario?}
program=$(realpath "${2:-$root/build/release}/app/spes-sim")
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cp "$scenario" "$folder/s.yaml"
cd "$folder"
"$program" s.yaml --transport tcp --output run.h5 >run.txt 2>/dev/null &
coordinator=$!

# status FIELD PID: KiB; nothing once it has ended.
status() { awk -v field="$1:" '$1 == field {print $2}' "/proc/$2/status" 2>/dev/null || true; }
declare -A most=() resident=()
look() {
  local role=$1 now
  now=$(status RssAnon "$2")
  ((${now:-0} <= ${most[$role]:-0})) || most[$role]=$now
  now=$(status VmHWM "$2")
  ((${now:-0} <= ${resident[$role]:-0})) || resident[$role]=$now
}
while kill -0 "$coordinator" 2>/dev/null; do
  look coordinator "$coordinator"
  for node in $(pgrep -P "$coordinator" || true); do look "largest node" "$node"; done
  sleep 0.01
done
wait "$coordinator"
mib() { echo "$(($1 / 1024)) MiB"; }
echo "$(basename "$scenario"): world $(mib $(($(stat -c %s run.safetensors) / 1024)))"
for role in coordinator "largest node"; do
  echo "$role, at most: anonymous $(mib "${most[$role]}"), resident $(mib "${resident[$role]}")"
done
grep 'one node, predicted' run.txt
