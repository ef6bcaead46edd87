#include "collimate/base/at.h"
#include "collimate/base/config.h"
#include "collimate/base/error.h"
#include "collimate/base/log.h"
#include "collimate/cli/generation.h"
#include "collimate/cli/rows_file.h"
#include "collimate/host/hub_download.h"
#include "collimate/recipe/records.h"
#include "collimate/recipe/run_inputs.h"
#include "collimate/rlhf/reward/reward_kinds.h"

namespace collimate::cli {
namespace {

using Json = nlohmann::ordered_json;

// Returns all that a line of the output depends on. Speculation changes no line, nor does a layout whose sums are added
// up as one device adds them.
Json command_of(const GenerateCall& call, const PromptRows& prompts, const nlohmann::json& rewards) {
  const text::Dataset& dataset = prompts.dataset();
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
  for (const auto& [name, choice] :
       {std::pair("long_rows", call.rows.long_rows.get()), {"bad_rows", call.rows.bad_rows.get()}})
    if (choice != rlhf::kStopAtRow) command[name] = choice;
  if (call.rows.any()) command["left_out"] = prompts.left_out();
  if (const int64_t parts = call.layout.sum_parts(); parts > 1) command["reduction_chunks"] = parts;
  for (const nlohmann::json& entry : rewards)
    if (const std::string file = rlhf::reward_file(entry); !file.empty())
      command["files"].update(recipe::file_input(file));
  return command;
}

// A RowWriter writes completions in order, in batches if they are judged.
class RowWriter {
 public:
  RowWriter(const GenerateCall& call, const CompletingModel& model, PromptRows& prompts, const nlohmann::json& rewards)
      : call_(call), model_(model), prompts_(prompts) {
    prompts.render(model.renderer(), model.positions(), call.max_tokens);
    rows_ = prompts.file_rows();
    file_.emplace(call.output, command_of(call, prompts, rewards));
    if (!rewards.is_null()) judges_.emplace(rewards);
  }

  int64_t written() const { return file_->lines(); }

  void take(const generate::Completion& completion) {
    constexpr size_t kTogether = 64;  // completions that are judged together: by default one call of a Python reward
    waiting_.push_back(completion);
    if (!judges_ || waiting_.size() >= kTogether) write();
  }

  void write() {
    const std::vector<std::optional<double>> rewards = judges_ ? judges_->score(samples()) : Rewards(waiting_.size());
    for (size_t i = 0; i < waiting_.size(); ++i) file_->append(line_of(waiting_[i], rewards[i]));
    waiting_.clear();
  }

  // Tries the rewards on the first rows; called before anything is drawn.
  void try_rewards() const {
    if (judges_) judges_->try_on("--data", prompts_.truths());
  }

  void finish() {
    write();
    if (judges_) judges_->warn_of_failures();
  }

 private:
  using Rewards = std::vector<std::optional<double>>;

  std::vector<rlhf::RewardSample> samples() const {
    std::vector<rlhf::RewardSample> samples;
    for (const generate::Completion& c : waiting_)
      samples.push_back(
          reward_sample(model_.tokenizer(), base::at(prompts_.ids(), c.prompt), c, prompts_.columns(c.prompt)));
    return samples;
  }

  std::string line_of(const generate::Completion& completion, std::optional<double> reward) const {
    Json line = recipe::kept_columns(base::at(rows_, completion.prompt));
    if (call_.samples > 1) line["sample"] = completion.sample;
    Json drawn = completion_json(call_, model_.tokenizer(), base::at(prompts_.ids(), completion.prompt), completion);
    if (!call_.log_probs) drawn.erase("token_ids");
    line.update(drawn);
    if (judges_) line["reward"] = reward ? Json(*reward) : Json();
    return line.dump(-1, ' ', false, Json::error_handler_t::replace);
  }

  const GenerateCall& call_;
  const CompletingModel& model_;
  const PromptRows& prompts_;
  std::vector<text::Row> rows_;
  std::optional<RowsFile> file_;
  std::optional<Judges> judges_;
  std::vector<generate::Completion> waiting_;  // not yet judged and written
};

}  // namespace

void generate_rows(const GenerateCall& call, PromptRows& prompts, const nlohmann::json& rewards) {
  CompletingModel model(call);
  RowWriter writer(call, model, prompts, rewards);
  const int64_t all = std::ssize(prompts.ids()) * call.samples, done = writer.written();
  if (done > 0) base::log_info("{}: {} of {} completions are there", call.output, done, all);
  if (done < all) {
    writer.try_rewards();
    generate::ServiceStats stats;
    model.complete(
        prompts.ids(), done, [&](const generate::Completion& c) { writer.take(c); }, stats);
    writer.finish();
  }
  log_left_out(prompts, all, call.output);
}

}  // namespace collimate::cli
