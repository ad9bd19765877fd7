#!/usr/bin/env bash
# Goodput of uploads against iperf3's in the same run: over loopback without TLS, and over a link of
# 1 Gbit/s between two network namespaces with TLS. As root; wants iperf3, iproute2 and a built tree.
#
#   results/tcp/goodput.sh [BUILD] > results/tcp/goodput.txt
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
build=${1:-$root/build/release}
goodput=$build/tests/goodput/spes_tcp_goodput
folder=$(mktemp -d)
a=goodput-a b=goodput-b
clean() {
  ip netns del $a 2>/dev/null || true
  ip netns del $b 2>/dev/null || true
  rm -rf "$folder"
}
trap clean EXIT

# iperf PREFIX-A PREFIX-B ADDRESS: received Mbit/s.
iperf() {
  $2 iperf3 -s -1 -p 5301 >/dev/null &
  sleep 0.5
  $1 iperf3 -c "$3" -p 5301 -n 2000M -C cubic -f m | awk '/receiver/ {print "iperf3: " $7 " Mbit/s"}'
  wait
}

echo "loopback, no TLS; the first upload goes into memory that nothing has touched yet"
"$goodput" serve 127.0.0.1:4801 2000 2>/dev/null &
sleep 0.5
"$goodput" send 127.0.0.1:4801 2000 6 1
wait
for _ in 1 2 3; do iperf "" "" 127.0.0.1; done

ip netns add $a
ip netns add $b
ip link add goodput0 netns $a type veth peer name goodput0 netns $b
for n in $a $b; do
  ip -n $n link set lo up
  ip -n $n link set goodput0 up
done
ip -n $a address add 10.78.0.1/24 dev goodput0
ip -n $b address add 10.78.0.2/24 dev goodput0
tc -n $a qdisc add dev goodput0 root tbf rate 1gbit burst 256kb latency 50ms
"$build/app/spes-sim" keys "$folder/keys" --host 10.78.0.2 >/dev/null

echo "1 Gbit/s (tbf), TLS 1.3"
ip netns exec $b "$goodput" serve 10.78.0.2:4801 2000 "$folder/keys" 2>/dev/null &
sleep 0.5
ip netns exec $a "$goodput" send 10.78.0.2:4801 2000 2 1 "$folder/keys"
wait
iperf "ip netns exec $a" "ip netns exec $b" 10.78.0.2
