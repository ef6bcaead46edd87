#!/bin/sh
# The archive must do this on a Debian 12 of base packages and python3: archive_steps.sh DIRECTORY PLUGINS
# DIRECTORY is the extracted archive, wherever it lies; PLUGINS has own_flow.so and grpo_flow.py. A line for each step;
# exit code 1 at the first that fails.
set -eu
collimate=$1/bin/collimate
plugins=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
step() {
  name=$1
  shift
  "$@" >log 2>&1 || { echo "FAILED $name: $*"; cat log; exit 1; }
  echo "ok $name"
}
says() { # TEXT in the output of the last step
  grep -q "$1" log || { echo "FAILED: expected '$1', got"; cat log; exit 1; }
}

step "the version" "$collimate" version
says '^collimate '
step "the quickstart, reduced" "$collimate" bench quickstart --single --reduced --output quickstart
says 'held-out accuracy'

step "structured output" "$collimate" generate quickstart/sft/model --prompt 7 --max-tokens 9 --regex '[0-4]{3}'
says '^[0-4][0-4][0-4]$'

cat >reward.py <<'PYTHON'
def score(prompts, completions, **columns):
    return [float(c == a) for c, a in zip(completions, columns["ground_truth"])]
PYTHON
# Inside a chroot or a container the kernel may allow no namespaces, which the sandbox of rewards is made of.
cat >own.yaml <<'YAML'
recipe: grpo
models: {policy: quickstart/sft/model}
data: {train: quickstart/task/problems.jsonl}
reward: [{python: "reward.py:score", sandbox: none}]
rollout: {prompts_per_iteration: 4, samples_per_prompt: 4, prompt_tokens: 8, completion_tokens: 8}
run: {iterations: 2, seed: 1}
YAML
step "a reward in Python" "$collimate" train own.yaml --output own
[ -s own/model/model.safetensors ] || { echo "FAILED: expected own/model/model.safetensors, got none"; exit 1; }

step "a plugin" "$collimate" train own.yaml --output plugin --set recipe=novelty --plugin "$plugins/own_flow.so"
grep -q novelty/answers plugin/metrics.jsonl || { echo "FAILED: expected novelty/answers, got no such metric"; exit 1; }
step "a flow in Python" "$collimate" train own.yaml --output flow --set recipe=my_grpo --plugin "$plugins/grpo_flow.py"
cmp flow/model/model.safetensors own/model/model.safetensors || { echo "FAILED: expected the model of grpo"; exit 1; }

echo "not Parquet" >rows.parquet
if "$collimate" check own.yaml --set data.train=rows.parquet >log 2>&1; then
  echo "FAILED: a broken Parquet file was taken"
  exit 1
fi
says 'a Parquet file that can be read'
echo "ok the Parquet reader is there"
