#!/usr/bin/env bash
# make bench: what is measured on this machine, one after another. Each prints its own table.
#   bench/run.sh [kernels] [iteration] [peers] [quickstart] [real]     all when none is named
# iteration: FLOPs / peak / time of each phase; peers: beside TRL and a plain PyTorch loop, where they are installed
# (bench/peers/compare.py says how).
set -euo pipefail
cd "$(dirname "$0")/.."
bin=build/release/bin
parts=("$@")
[ ${#parts[@]} -gt 0 ] || parts=(kernels iteration peers quickstart real)
for part in "${parts[@]}"; do
  printf '== %s\n' "$part"
  case $part in
    kernels) "$bin/bench_kernels" ;;
    iteration)
      "$bin/bench_iteration" "${REPEATS:-5}" float32
      "$bin/bench_iteration" "${REPEATS:-5}" bfloat16
      ;;
    peers) python3 bench/peers/compare.py ;;
    quickstart) "$bin/collimate" bench quickstart --output runs/bench/quickstart ;;
    real) bench/real/run.sh ;;
    *)
      echo "[bench/run.sh] expected kernels, iteration, peers, quickstart or real, got $part" >&2
      exit 2
      ;;
  esac
done
