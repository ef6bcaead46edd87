#!/usr/bin/env bash
# make bench: what is measured on this machine, one after another. Each prints its own table.
#   bench/run.sh [kernels] [iteration] [phases] [engine] [peers] [sizes] [shapes] [decode] [scoring] [server] [export]
#                [quickstart] [real] [planner] [mutations] [tidy] [gpu]
# All but phases, engine and gpu when none is named. kernels: shares of the machine's limits, and beside ATen. iteration:
# FLOPs / peak / time of each phase at 15M; phases: at 260K, 15M and 110M. engine: decoding alone (bench/engine.sh).
# peers, sizes (GRPO at 260K and 110M), shapes (Qwen3, Gemma, a mixture), decode, scoring and server: beside TRL, a plain
# PyTorch loop, Hugging Face, llama.cpp and vLLM, where they are installed (the programs of bench/peers say how). export:
# whether transformers and PEFT read a saved model of each family and continue as we do. planner: predicted and measured
# seconds of an iteration, placement by placement. mutations: whether tests notice edits that break the source
# (tools/mutate.py). tidy: clang-tidy over all sources. gpu: the CUDA operations beside a copy on the device, and the
# planner beside plain PyTorch on it; needs a GPU, `tools/make.sh cuda` and a python3 with torch for it.
set -euo pipefail
cd "$(dirname "$0")/.."
bin=build/release/bin
parts=("$@")
all=(kernels iteration peers sizes shapes decode scoring server export quickstart real planner mutations tidy)
[ ${#parts[@]} -gt 0 ] || parts=("${all[@]}")
for part in "${parts[@]}"; do
  printf '== %s\n' "$part"
  case $part in
    kernels)
      "$bin/bench_kernels"
      for kernel in linear attention log_prob; do "$bin/bench_$kernel" "${REPEATS:-5}"; done
      ;;
    iteration) "$bin/bench_iteration" "${REPEATS:-5}" float32 bfloat16 ;;
    phases) "$bin/bench_iteration" "${REPEATS:-5}" 260k 15m 110m float32 bfloat16 ;;
    engine) bench/engine.sh ;;
    peers) python3 bench/peers/compare.py ;;
    sizes) python3 bench/peers/compare.py grpo-260k grpo-110m ;;
    shapes) python3 bench/peers/shapes.py ;;
    decode) python3 bench/peers/decode.py ;;
    scoring) python3 bench/peers/scoring.py ;;
    server) python3 bench/peers/server.py ;;
    export) python3 bench/peers/export.py ;;
    quickstart) "$bin/collimate" bench quickstart --output runs/bench/quickstart ;;
    real) bench/real/run.sh ;;
    planner) python3 bench/planner_reality.py ;;
    mutations) .venv/bin/python tools/mutate.py ;;
    tidy)
      tools/setup.sh check
      .venv/bin/python tools/check.py --only tidy
      ;;
    gpu)
      build/cuda/bin/bench_cuda "${REPEATS:-20}"
      python3 bench/planner_gpu.py measure runs/bench/gpu.json
      python3 bench/planner_gpu.py compare runs/bench/gpu.json
      ;;
    *)
      echo "[bench/run.sh] expected phases, engine, gpu, ${all[*]}, got $part" >&2
      exit 2
      ;;
  esac
done
