#!/usr/bin/env bash
# make bench: what is measured on this machine, one after another. Each prints its own table; peers are run by
# ../shared/bench/peers/run.sh, interleaved by hand. `bench/run.sh kernels|quickstart|real` runs one part.
set -euo pipefail
cd "$(dirname "$0")/.."
bin=build/release/bin
parts=("$@")
[ ${#parts[@]} -gt 0 ] || parts=(kernels quickstart real)
for part in "${parts[@]}"; do
  printf '== %s\n' "$part"
  case $part in
    kernels) "$bin/bench_kernels" ;;
    quickstart) "$bin/collimate" bench quickstart --output runs/bench/quickstart ;;
    real) bench/real/run.sh ;;
    *)
      echo "[bench/run.sh] expected kernels, quickstart or real, got $part" >&2
      exit 2
      ;;
  esac
done
