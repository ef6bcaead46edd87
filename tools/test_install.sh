#!/usr/bin/env bash
# Tests `make install`: examples/own_parts and own_flow, copied to where nothing of this checkout is near, are built
# against the installation by find_package(Collimate). The first trains by its own loss, advantage and reward, the second
# by its own recipe and module, as a plugin of the installed program and as a program. So does a flow in Python. A third
# one has the training loop itself (examples/deepspeed_chat).
# The last line is "N passed, N failed, N skipped".
set -euo pipefail
cd "$(dirname "$0")/.."
work=$(mktemp -d "${TMPDIR:-/tmp}/collimate-install.XXXXXX")
trap 'rm -rf "$work"' EXIT
passed=0
step() {
  local name=$1
  shift
  if ! "$@" >"$work/log" 2>&1; then
    printf 'FAILED %s: %s\n' "$name" "$*"
    tail -n 40 "$work/log"
    printf '%s passed, 1 failed, 0 skipped\n' "$passed"
    exit 1
  fi
  printf 'ok %s\n' "$name"
  passed=$((passed + 1))
}

step "make install" tools/make.sh install "$work/installed"
for file in share/bash-completion/completions/collimate share/zsh/site-functions/_collimate \
  share/fish/vendor_completions.d/collimate.fish share/man/man1/collimate.1 share/doc/collimate/LICENSES/README; do
  step "$file" test -s "$work/installed/$file"
done
cp -r examples/own_parts "$work/own"
cp -r examples/own_flow "$work/flow"
cp -r examples/deepspeed_chat "$work/loop"
cp examples/grpo_flow.py "$work/flow"
cd "$work/own"
step "find_package" cmake -S . -B build -DCMAKE_PREFIX_PATH="$work/installed" -DCMAKE_BUILD_TYPE=Release
step "the program of the example" cmake --build build
step "its own loss in the list" bash -c "build/own_parts help losses | grep '  reinforce'"
step "a model and problems" build/own_parts bench quickstart --single --reduced --sft-iterations 1 --grpo-iterations 1 --output task
step "a run by its own parts" build/own_parts train ascending.yaml --output run \
  --set models.policy.path=task/task/start --set data.train=task/task/problems.jsonl
step "the metric of its own loss" grep 'reinforce/log_prob' run/metrics.jsonl
task=(--set "models.policy.path=$work/own/task/task/start" --set "data.train=$work/own/task/task/problems.jsonl")
cd "$work/flow"
step "a plugin's project" cmake -S . -B build -DCMAKE_PREFIX_PATH="$work/installed" -DCMAKE_BUILD_TYPE=Release
step "a plugin, and its parts in a program" cmake --build build
installed="$work/installed/bin/collimate"
step "the plugin's recipe in help" bash -c "'$installed' --plugin build/own_flow.so help recipes | grep '^novelty'"
step "a run by a plugin" "$installed" train novelty.yaml --output run "${task[@]}"
step "the metric of its module" grep 'novelty/answers' run/metrics.jsonl
step "in processes" "$installed" train novelty.yaml --output apart "${task[@]}" --set cluster=local-processes
step "the same model" cmp run/model/model.safetensors apart/model/model.safetensors
step "as a program" build/own_flow train novelty.yaml --output program "${task[@]}" --set plugins=[]
step "the same model again" cmp run/model/model.safetensors program/model/model.safetensors
step "a flow in Python" "$installed" train novelty.yaml --output python "${task[@]}" --set plugins=grpo_flow.py \
  --set recipe=my_grpo --set options=null
cd "$work/loop"
step "a loop's project" cmake -S . -B build -DCMAKE_PREFIX_PATH="$work/installed" -DCMAKE_BUILD_TYPE=Release
step "a program with DeepSpeed-Chat's loop" cmake --build build
python3 - "$work/own/task/task/problems.jsonl" >pairs.jsonl <<'END'
import json, sys
for line in list(open(sys.argv[1]))[:16]:
    row = json.loads(line)
    print(json.dumps({"prompt": row["prompt"], "chosen": row["ground_truth"], "rejected": row["ground_truth"][:1]}))
END
fine_tuned="$work/own/task/sft/model"
printf 'recipe: reward\nmodels: {policy: %s}\ndata: {train: pairs.jsonl}\nrun: {iterations: 1}\ntrain: {samples_per_update: 8}\n' \
  "$fine_tuned" >reward.yaml
step "a reward model" "$installed" train reward.yaml --output reward
step "a run of that loop" bash -c \
  "build/train_rlhf '$fine_tuned' reward/model '$work/own/task/task/problems.jsonl' 2 4 out | grep 'iteration 2: actor loss'"
step "its actor" "$installed" generate out/actor --data "$work/own/task/task/problems.jsonl" --output answers.jsonl --max-tokens 4
cd "$work/own"
mv "$work/installed/lib/collimate"/libfmt.so* "$work"
step "a library that is missing is named" bash -c \
  "cmake -S . -B other -DCMAKE_PREFIX_PATH='$work/installed' >other.log 2>&1; grep 'expected libfmt.so' other.log"
printf '%s passed, 0 failed, 0 skipped\n' "$passed"
