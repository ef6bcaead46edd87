#include "collimate/base/at.h"
#include "collimate/base/config.h"
#include "collimate/base/error.h"
#include "collimate/base/log.h"
#include "collimate/cli/generation.h"
#include "collimate/cli/rows_file.h"
#include "collimate/host/hub_download.h"
#include "collimate/recipe/check_rewards.h"
#include "collimate/recipe/records.h"
#include "collimate/recipe/run_inputs.h"
#include "collimate/rlhf/prompt/source.h"
#include "collimate/rlhf/reward/python_reward.h"

namespace collimate::cli {
namespace {

using Json = nlohmann::ordered_json;

// All that a line depends on. Guessing tokens ahead changes none, nor do devices that add up as one.
Json command_of(const GenerateCall& call, const text::Dataset& dataset, const nlohmann::json& rewards) {
  nlohmann::json sampling = base::to_json(call.sampling.section_value());
  for (const char* changes_nothing : {"speculation", "speculation_tokens", "draft_model", "measure_int8"})
    sampling.erase(changes_nothing);
  Json command = {{"model", call.model},
                  {"data", call.data},
                  {"n", call.samples},
                  {"max_tokens", call.max_tokens},
                  {"seed", call.seed},
                  {"sampling", std::move(sampling)},
                  {"logprobs", call.log_probs},
                  {"top_logprobs", call.top_log_probs},
                  {"reward", rewards},
                  {"rows", {{"count", dataset.size()}, {"fingerprint", fmt::format("{:016x}", dataset.fingerprint())}}},
                  {"files", recipe::model_inputs(host::model_directory(call.model, call.download))}};
  if (const int64_t parts = call.layout.sum_parts(); parts > 1) command["reduction_chunks"] = parts;
  for (const nlohmann::json& entry : rewards)
    if (entry.contains("python"))
      command["files"].update(recipe::file_input(rlhf::python_function(entry.at("python")).file));
  return command;
}

// Writes completions in order, those that wait for their rewards together.
class RowWriter {
 public:
  RowWriter(const GenerateCall& call, const CompletingModel& model, const text::Dataset& dataset,
            const nlohmann::json& rewards)
      : call_(call), model_(model), dataset_(dataset) {
    text::read_rows(call.data, "auto",
                    [&](const text::RowLocation&, text::Row&& row) { rows_.push_back(std::move(row)); });
    check_turns(dataset_, model.renderer());
    for (const text::Prompt& prompt : prompts_of(dataset_)) prompts_.push_back(model.renderer().prompt_tokens(prompt));
    file_.emplace(call.output, command_of(call, dataset_, rewards));
    if (!rewards.is_null()) judges_.emplace(rewards);
  }

  const std::vector<std::vector<int32_t>>& prompts() const { return prompts_; }
  int64_t written() const { return file_->lines(); }

  void take(const generate::Completion& completion) {
    constexpr size_t kTogether = 64;  // one call of a Python function by default
    waiting_.push_back(completion);
    if (!judges_ || waiting_.size() >= kTogether) write();
  }

  void write() {
    const std::vector<std::optional<double>> rewards = judges_ ? judges_->score(samples()) : Rewards(waiting_.size());
    for (size_t i = 0; i < waiting_.size(); ++i) file_->append(line_of(waiting_[i], rewards[i]));
    waiting_.clear();
  }

  // Before anything is drawn.
  void try_rewards() const {
    if (!judges_) return;
    std::vector<nlohmann::json> rows;
    for (const text::Example& example : dataset_.examples()) {
      if (std::ssize(rows) == recipe::kTriedRows) break;
      rows.push_back(rlhf::example_json(example, model_.renderer().prompt_text(example.prompt)));
    }
    judges_->try_on("--data", rows);
  }

  void finish() {
    write();
    if (judges_) judges_->warn_of_failures();
  }

 private:
  using Rewards = std::vector<std::optional<double>>;

  std::vector<rlhf::RewardSample> samples() const {
    std::vector<rlhf::RewardSample> samples;
    for (const generate::Completion& c : waiting_) {
      const text::Example& example = dataset_.example(c.prompt);
      samples.push_back(reward_sample(model_.tokenizer(), base::at(prompts_, c.prompt), c,
                                      rlhf::example_json(example, model_.renderer().prompt_text(example.prompt))));
    }
    return samples;
  }

  std::string line_of(const generate::Completion& completion, std::optional<double> reward) const {
    Json line = recipe::kept_columns(base::at(rows_, completion.prompt));
    if (call_.samples > 1) line["sample"] = completion.sample;
    Json drawn = completion_json(call_, model_.tokenizer(), base::at(prompts_, completion.prompt), completion);
    if (!call_.log_probs) drawn.erase("token_ids");
    line.update(drawn);
    if (judges_) line["reward"] = reward ? Json(*reward) : Json();
    return line.dump(-1, ' ', false, Json::error_handler_t::replace);
  }

  const GenerateCall& call_;
  const CompletingModel& model_;
  const text::Dataset& dataset_;
  std::vector<text::Row> rows_;
  std::vector<std::vector<int32_t>> prompts_;
  std::optional<RowsFile> file_;
  std::optional<Judges> judges_;
  std::vector<generate::Completion> waiting_;  // for their rewards
};

}  // namespace

void generate_rows(const GenerateCall& call, const text::Dataset& dataset, const nlohmann::json& rewards) {
  CompletingModel model(call);
  RowWriter writer(call, model, dataset, rewards);
  const int64_t all = static_cast<int64_t>(writer.prompts().size()) * call.samples, done = writer.written();
  if (done > 0) base::log_info("{}: {} of {} completions are there", call.output, done, all);
  if (done >= all) return;
  writer.try_rewards();
  generate::ServiceStats stats;
  model.complete(
      writer.prompts(), done, [&](const generate::Completion& c) { writer.take(c); }, stats);
  writer.finish();
}

}  // namespace collimate::cli
