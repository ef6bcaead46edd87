#!/usr/bin/env bash
# make bench: what is measured on this machine, one after another. Each prints its own table.
#   bench/run.sh [kernels] [iteration] [peers] [decode] [quickstart] [real] [planner]     all when none is named
# iteration: FLOPs / peak / time of each phase; peers and decode: beside TRL, a plain PyTorch loop and
# engines for generation, where they are installed (bench/peers/compare.py and decode.py say how). planner: predicted
# and measured seconds of an iteration, placement by placement.
set -euo pipefail
cd "$(dirname "$0")/.."
bin=build/release/bin
parts=("$@")
[ ${#parts[@]} -gt 0 ] || parts=(kernels iteration peers decode quickstart real planner)
for part in "${parts[@]}"; do
  printf '== %s\n' "$part"
  case $part in
    kernels) "$bin/bench_kernels" ;;
    iteration)
      "$bin/bench_iteration" "${REPEATS:-5}" float32
      "$bin/bench_iteration" "${REPEATS:-5}" bfloat16
      ;;
    peers) python3 bench/peers/compare.py ;;
    decode) python3 bench/peers/decode.py ;;
    quickstart) "$bin/collimate" bench quickstart --output runs/bench/quickstart ;;
    real) bench/real/run.sh ;;
    planner) python3 bench/planner_reality.py ;;
    *)
      echo "[bench/run.sh] expected kernels, iteration, peers, decode, quickstart, real or planner, got $part" >&2
      exit 2
      ;;
  esac
done
