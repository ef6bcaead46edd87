#!/bin/sh
# Runs on real models and data, each a command with its config: digit completion from random weights (arith), stories
# with a Python reward (mentions), and pairs -> reward model -> PPO and DPO (pairs).
#
#   bench/real/run.sh [--reduced] [arith] [mentions] [pairs]       all three when none is named
#
# Environment: COLLIMATE the program (default: build/release/bin/collimate), COLLIMATE_SHARED the test data (default:
# ../shared), COLLIMATE_RUNS where runs go (default: runs/real). --reduced: a smoke test, each part below a minute: few
# updates, so at the full rate from the first on.
set -eu
cd "$(dirname "$0")/../.."
export COLLIMATE="${COLLIMATE:-$PWD/build/release/bin/collimate}"
export COLLIMATE_SHARED="${COLLIMATE_SHARED:-$PWD/../shared}"
runs="${COLLIMATE_RUNS:-runs/real}"
export COLLIMATE_REAL="$runs/data"
export COLLIMATE_REWARD_MODEL="$runs/stories-reward-model/model"
reduced=no
parts=
for word in "$@"; do
  case "$word" in
    --reduced) reduced=yes ;;
    arith | mentions | pairs) parts="$parts $word" ;;
    *) echo "[bench/real/run.sh] expected --reduced, arith, mentions or pairs, got \"$word\"" >&2; exit 2 ;;
  esac
done
models="$COLLIMATE_SHARED/data/models"
[ -d "$models" ] || { echo "[bench/real/run.sh] expected $models, got nothing; try COLLIMATE_SHARED=DIR" >&2; exit 2; }

# train NAME OVERRIDES-WHEN-REDUCED…: configs/NAME.yaml into $runs/NAME, afresh; prints held-out quality before and
# after. $also: more overrides, $suffix: of the directory's name.
also=
suffix=
train() {
  name="$1"
  shift
  [ "$reduced" = yes ] || set --
  for set in "$@"; do
    shift
    set -- "$@" --set "$set"
  done
  out="$runs/$name$suffix"
  rm -rf "${out:?}"
  for set in $also; do set -- "$@" --set "$set"; done
  "$COLLIMATE" train "configs/$name.yaml" --output "$out" --resume never "$@"
  python3 bench/real/summary.py "$out"
}

# Three seeds, each with the iterations of ten minutes on two slow cores and with those of thirty.
arith() {
  small="run.save_every=0 train.warmup_updates=0 evaluation.examples=16"
  small="$small rollout.prompts_per_iteration=8 rollout.samples_per_prompt=8"
  if [ "$reduced" = yes ]; then
    train verl-arith $small run.iterations=3
    return
  fi
  for seed in 1 2 3; do
    also="run.seed=$seed" suffix="-seed-$seed"
    train verl-arith
    also="run.seed=$seed run.iterations=4000" suffix="-seed-$seed-thirty-minutes"
    train verl-arith
  done
  also='' suffix=''
}

mentions() {
  train stories-reward run.iterations=2 run.save_every=0 train.warmup_updates=0 evaluation.examples=8 \
    rollout.prompts_per_iteration=4 rollout.samples_per_prompt=4 rollout.completion_tokens=64
}

pairs() {
  stories=3000
  held_out=500
  tokens=256
  [ "$reduced" = yes ] && stories=60 && held_out=16 && tokens=96
  "$COLLIMATE" generate "$COLLIMATE_REAL/stories" --prompt "" --n "$stories" --max-tokens "$tokens" --seed 1 --json \
    > "$COLLIMATE_REAL/stories.json"
  python3 bench/real/make_pairs.py "$COLLIMATE_REAL/stories.json" "$COLLIMATE_REAL/pairs.jsonl" \
    "$COLLIMATE_REAL/pairs_held_out.jsonl" --held-out "$held_out"
  python3 bench/real/make_pairs.py "$COLLIMATE_REAL/stories.json" "$COLLIMATE_REAL/marked.jsonl" \
    "$COLLIMATE_REAL/marked_held_out.jsonl" --held-out "$held_out" --marked
  small="run.iterations=4 run.save_every=0 train.warmup_updates=0 train.samples_per_update=16"
  train stories-reward-model $small
  train stories-ppo $small run.iterations=2 evaluation.examples=8 rollout.prompts_per_iteration=8 \
    rollout.samples_per_prompt=2 rollout.completion_tokens=48
  train stories-dpo $small
  train stories-kto $small
}

python3 bench/real/prepare.py "$COLLIMATE_REAL"
for part in ${parts:-arith mentions pairs}; do "$part"; done
