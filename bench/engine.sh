#!/usr/bin/env bash
# The engine alone, a line of JSON each (bench/decode_bench.cpp says what is in it): start and memory, int8 weights,
# guesses ahead in text that repeats itself, samples that share a prompt, and 64 requests of log-normal lengths.
#   bench/engine.sh [MODEL_DIRECTORY ...]    15m and 110m of the peers' models when none is named
# REPEATS: of each (3). PEERS: where the peers' setup.sh has put the models.
set -euo pipefail
cd "$(dirname "$0")/.."
decode=build/release/bin/bench_decode
repeats=${REPEATS:-3}
models=("$@")
if [ ${#models[@]} -eq 0 ]; then
  peers=${PEERS:-$HOME/.cache/collimate-peers}
  models=("$peers/models/15m" "$peers/models/110m")
fi
for model in "${models[@]}"; do
  if [ ! -f "$model/config.json" ]; then
    echo "[bench/engine.sh] expected a model's directory, got $model; try setup.sh trl of the peers' scripts" >&2
    exit 2
  fi
  for compute in float32 bfloat16 int8; do
    printf -- '-- %s %s\n' "$(basename "$model")" "$compute"
    "$decode" "$model" "$compute" "$repeats" 1 8 64
  done
  printf -- '-- %s, 8 samples of each prompt\n' "$(basename "$model")"
  "$decode" "$model" bfloat16 "$repeats" 8 64 --samples 8
  printf -- '-- %s, guesses ahead\n' "$(basename "$model")"
  "$decode" "$model" bfloat16 "$repeats" 1 8 --period 16 --speculation 8
  "$decode" "$model" bfloat16 "$repeats" 1 8 --speculation 8
  printf -- '-- %s, long tail\n' "$(basename "$model")"
  "$decode" "$model" bfloat16 "$repeats" --long-tail 16
done
