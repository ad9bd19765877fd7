#!/usr/bin/env bash
# Holds a GPU against the host: check.sh [DEVICE] [BUILD], by default cuda:0 and build/release.
# The references and the tests of replicas and of bfloat16 run on the device; the run of sixteen nodes
# twice on it, to the same bits, and once on the host, to losses that agree. Ends with 77, and says why,
# where there is no such device; with 1 where something does not agree.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
device=${1:-cuda:0}
built=${2:-$root/build/release}
program=$built/app/spes-sim tests=$built/tests/trainer_tests
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT

# run NAME OPTION...: prints the hash of the world.
run() {
  local name=$1
  shift
  "$program" "$root/scenarios/16node_internet.yaml" --set network.fidelity=ideal --output "$out/$name.h5" "$@" \
    >"$out/$name.txt" 2>"$out/$name.err" || {
    cat "$out/$name.err" >&2
    return 1
  }
  awk '$1 == "world" { print $2 }' "$out/$name.txt"
}

# losses NAME: held-out cross-entropy of each domain, from the summary.
losses() { awk '$1 == "Held-out" { on = 1; next } on && NF == 0 { exit } on { print $1, $2 }' "$out/$1.txt"; }

[[ -x $program && -x $tests ]] || {
  echo "check.sh: build first: $built has no spes-sim or no trainer_tests" >&2
  exit 1
}
if ! refusal=$("$program" "$root/scenarios/16node_internet.yaml" --devices "$device" --output "$out/probe.h5" \
  --set training.steps=1 --set network.fidelity=ideal 2>&1 >/dev/null); then
  [[ $refusal == "spes-sim: devices: "* ]] || {
    echo "check.sh: $refusal" >&2
    exit 1
  }
  echo "check.sh: skipped: ${refusal#spes-sim: }"
  exit 77
fi

status=0
SPES_TEST_DEVICE=$device "$tests" --gtest_brief=1 \
  --gtest_filter='Golden/*Device*:*ReplicasTest*Device*:ComputeType.*' || status=1

first=$(run first --devices "$device")
again=$(run again --devices "$device" --workers 1)
run host >"$out/host.hash"
if [[ -z $first || $first != "$again" ]]; then
  echo "check.sh: two runs on $device end in different worlds: $first and $again" >&2
  status=1
fi
paste <(losses host) <(losses first) | awk -v device="$device" '
  { d = $4 - $2; if (d < 0) d = -d
    printf "%s: cross-entropy %.4f on the host, %.4f on %s\n", $1, $2, $4, device
    if (d > 0.02) { print "check.sh: further apart than 0.02" > "/dev/stderr"; failed = 1 } }
  END { exit failed || NR == 0 }' || status=1
half=$(run half --devices "$device" --set training.compute_dtype=bfloat16) || status=1
echo "world on $device: $first; in bfloat16: $half"
losses half | sed 's/^/bfloat16: /'
grep 'training, waited for' "$out"/host.txt "$out"/first.txt "$out"/half.txt | sed "s|$out/||"
exit "$status"
