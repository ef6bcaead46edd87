// A ChatLearn YAML trains as the config that it comes to.
#include "tests/e2e/recipe_runs.h"

namespace collimate::test {
namespace {

class ChatLearnRuns : public RecipeRuns {
 protected:
  ChatLearnRuns() : RecipeRuns("chatlearn") {}
};

TEST_F(ChatLearnRuns, AYamlWithItsFilesTrainsAsOurConfig) {
  train("sft");
  const std::string start = output_ + "/model";
  write_text(scratch_ / "policy.yaml",
             fmt::format("load: {}\nmax_new_tokens: 6\nseq_length: 14\ntemperature: 0.9\ntop_k: -1\n", start));
  write_text(scratch_ / "trainer.yaml",
             fmt::format("load: {}\ntrainer_engine: grpo\nlr: 1.0e-3\nkl_coef: 0.1\n", start));
  const std::string theirs = fmt::format(R"(models:
  policy: {{model_config_file: policy.yaml, num_gpu: 2, tensor_model_parallel_size: 2}}
  reference: {{load: {0}, num_gpu: 1}}
  reward: {{num_cpu: 1}}
  policy_trainer: {{model_config_file: trainer.yaml, num_gpu: 2, trainable: True}}
runtime:
  colocation: ["policy,policy_trainer,reference"]
  num_episode: 2
  sample_per_episode: 16
  num_inference_per_prompt: 4
  train_global_batch_size: 8
  data_path: {1}
)",
                                         start, scratch_ / "problems.jsonl");
  const std::vector<std::string> sets = {"reward=[{rule: regex, pattern: \"^[0-4]\"}]", "run.seed=7"};
  train_text(theirs, scratch_ / "theirs", sets);
  const std::string ours = fmt::format(R"(recipe: grpo
preset: chatlearn-grpo
models: {{policy: {{path: {0}, reduction_chunks: 2}}, reference: {{path: {0}}}}}
data: {{train: {1}}}
algorithm: {{beta: 0.1}}
rollout: {{prompts_per_iteration: 4, samples_per_prompt: 4, prompt_tokens: 8, completion_tokens: 6, temperature: 0.9}}
train: {{learning_rate: 1.0e-3, samples_per_update: 8}}
run: {{iterations: 2, seed: 7}}
reward: [{{rule: regex, pattern: "^[0-4]"}}]
placement:
  version: 1
  devices: {{count: 2, kind: cpu}}
  groups:
    both: {{devices: [0, 1], models: [policy, policy_trainer]}}
    one: {{devices: [0], models: [reference]}}
  layouts: {{policy: {{generate: {{tp: 2}}}}}}
)",
                                       start, scratch_ / "problems.jsonl");
  train_text(ours, scratch_ / "ours");
  EXPECT_EQ(metrics_of(scratch_ / "theirs").size(), 2U);
  EXPECT_TRUE(model_bytes(scratch_ / "theirs") == model_bytes(scratch_ / "ours"));
}

}  // namespace
}  // namespace collimate::test
