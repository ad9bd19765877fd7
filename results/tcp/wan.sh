#!/usr/bin/env bash
# The transfers of wan.yaml, simulated and real, node by node. As root; wants python3-h5py.
#
#   results/tcp/wan.sh [BUILD] > results/tcp/wan.txt
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
program=${1:-$here/../../build/release}/app/spes-sim
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cp "$here/wan.yaml" "$folder/s.yaml"
program=$(realpath "$program")
cd "$folder"
"$program" s.yaml --quiet --output sim.h5
"$program" keys keys --host 10.77.0.5 >/dev/null
cat > go.sh <<'SH'
if [ "$SPES_HOST" = coordinator ]; then
  exec "$0" s.yaml --quiet --output wan.h5 --set transport.keys=keys --serve "$SPES_ADDRESS:4711"
fi
exec "$0" s.yaml --quiet --set transport.keys=keys --set output.journal="j$SPES_HOST" \
  --join "$SPES_COORDINATOR:4711" --node "$SPES_HOST"
SH
"$program" wan s.yaml --halt-on-failure -- sh -c '. ./go.sh' "$program" 2>&1 | tail -1
python3 - <<'PY'
import h5py

a, b = (h5py.File(name + ".h5", "r", swmr=True) for name in ("sim", "wan"))
print("same world:", a.attrs["world_hash"] == b.attrs["world_hash"])
slowest = {}  # [round]
print("node  round   up: packet  real   ratio   down: packet  real   ratio")
for x in a["node_rounds"][:]:
    y = next(r for r in b["node_rounds"][:] if (r["node"], r["round"]) == (x["node"], x["round"]))
    if x["round"] == a["rounds"].shape[0]:
        continue  # nothing is sent back after the last one
    slowest.setdefault(x["round"], []).append((x["up_s"], x["down_s"], y["up_s"], y["down_s"]))
    print(f"{x['node']:4d} {x['round']:6d} {x['up_s']:12.3f} {y['up_s']:6.3f} {y['up_s'] / x['up_s']:7.3f}"
          f" {x['down_s']:13.3f} {y['down_s']:6.3f} {y['down_s'] / x['down_s']:7.3f}")
for number, rows in slowest.items():
    up, down, real_up, real_down = map(max, zip(*rows))
    print(f"round {number}: slowest up + slowest down: packet {up + down:.3f}  real {real_up + real_down:.3f}"
          f"  ratio {(real_up + real_down) / (up + down):.3f}")
PY
