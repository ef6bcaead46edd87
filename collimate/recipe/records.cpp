#include "collimate/recipe/records.h"

#include <algorithm>
#include <optional>

#include "collimate/batch/standard_keys.h"
#include "collimate/generate/service.h"
#include "collimate/host/atomic_file.h"
#include "collimate/rlhf/modules/reward.h"
#include "collimate/rlhf/types/model_answer.h"

namespace collimate::recipe {
namespace {

// These names stand beside the columns of a row that was completed.
constexpr const char* kSampleColumns[] = {"sample",   "completion",   "token_ids", "finish",
                                          "logprobs", "top_logprobs", "reward"};

void add_spread(const std::string& family, const std::vector<double>& values, base::MetricsRecord& record) {
  if (values.empty()) return;
  double sum = 0;
  for (double v : values) sum += v;
  record.set(family + "/mean", sum / static_cast<double>(values.size()));
  record.set(family + "/max", *std::max_element(values.begin(), values.end()));
  record.set(family + "/min", *std::min_element(values.begin(), values.end()));
}

// Returns the oldest and the newest weights that drew the sample's tokens; nothing where the rows do not say.
std::optional<std::pair<int64_t, int64_t>> versions_of(const Batch& rows, int64_t r) {
  if (!rows.has(batch::kWeightsVersion.name)) return std::nullopt;
  std::optional<std::pair<int64_t, int64_t>> found;
  const auto trainable = rows.row(batch::kTrainable, r);
  const auto versions = rows.row(batch::kWeightsVersion, r);
  for (size_t t = 0; t < trainable.size(); ++t) {
    if (trainable[t] == 0) continue;
    if (!found) found = {versions[t], versions[t]};
    found = {std::min<int64_t>(found->first, versions[t]), std::max<int64_t>(found->second, versions[t])};
  }
  return found;
}

std::optional<std::string> model_answer(const Batch& rows, int64_t r, const text::Tokenizer& tokenizer) {
  if (!rows.has(rlhf::kModelAnswer.name) || rows.get(rlhf::kAsked, r) == 0) return std::nullopt;
  return rlhf::decoded_sample({}, rows.row(rlhf::kModelAnswer, r), tokenizer).completion;
}

void write_lines(const std::vector<nlohmann::ordered_json>& rows, const std::filesystem::path& path) {
  std::string lines;
  for (const nlohmann::ordered_json& row : rows)
    lines += row.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
  std::filesystem::create_directories(path.parent_path());
  host::write_file_atomically(path, lines);
}

}  // namespace

std::string expected_of(const nlohmann::json& example) {
  const nlohmann::json truth = example.value("ground_truth", nlohmann::json());
  if (truth.is_null()) return "";
  return truth.is_string() ? truth.get<std::string>() : truth.dump();
}

void add_sample_metrics(const Batch& samples, double seconds, base::MetricsRecord& record) {
  std::vector<double> rewards, lengths, prompts;
  double tokens = 0, clipped = 0;
  for (int64_t r = 0; r < samples.rows(); ++r) {
    const auto total = static_cast<double>(samples.length(batch::kIds.name, r));
    const auto prompt = static_cast<double>(samples.get(batch::kPromptTokens, r));
    rewards.push_back(samples.get(batch::kReward, r));
    lengths.push_back(total - prompt);
    prompts.push_back(prompt);
    tokens += total;
    clipped += generate::cut_off(static_cast<generate::Finish>(samples.get(batch::kFinish, r))) ? 1 : 0;
  }
  add_spread("critic/rewards", rewards, record);
  add_spread("response_length", lengths, record);
  if (samples.rows() > 0) record.set("response_length/clip_ratio", clipped / static_cast<double>(samples.rows()));
  add_spread("prompt_length", prompts, record);
  record.set("perf/total_num_tokens", tokens);
  record.set("perf/throughput", tokens / std::max(seconds, 1e-9));
}

void write_samples(const Batch& samples, const text::Tokenizer& tokenizer, int64_t step,
                   const std::filesystem::path& path) {
  std::vector<nlohmann::ordered_json> lines;
  const std::vector<rlhf::RewardSample> decoded = rlhf::decode_samples(samples, tokenizer);
  for (size_t i = 0; i < decoded.size(); ++i) {
    const auto row = static_cast<int64_t>(i);
    nlohmann::ordered_json line = {
        {"step", step},
        {"uid", decoded[i].uid},
        {"prompt", decoded[i].prompt},
        {"completion", decoded[i].completion},
        {"reward", samples.get(batch::kReward, row)},
        {"finish", generate::finish_reason(generate::Finish{samples.get(batch::kFinish, row)})}};
    if (const auto versions = versions_of(samples, row))
      line["weights_version"] = versions->first == versions->second
                                    ? nlohmann::ordered_json(versions->first)
                                    : nlohmann::ordered_json{versions->first, versions->second};
    const std::string expected = expected_of(decoded[i].example);
    if (!expected.empty()) line["expected"] = expected;
    lines.push_back(std::move(line));
  }
  write_lines(lines, path);
}

void write_measured(const Batch& rows, const RowNumber& number, bool pairs, const text::Tokenizer& tokenizer,
                    int64_t step, const std::filesystem::path& path) {
  std::vector<nlohmann::ordered_json> lines;
  const std::vector<rlhf::RewardSample> decoded = rlhf::decode_samples(rows, tokenizer);
  for (size_t i = 0; i < decoded.size(); ++i) {
    const double value = number.of(rows, static_cast<int64_t>(i));
    const bool rejected = pairs && i % 2 == 1;
    if (!rejected)
      lines.push_back(
          {{"step", step}, {"uid", decoded[i].uid}, {"prompt", decoded[i].prompt}, {"measure", number.name}});
    const std::string name = !pairs ? "target" : rejected ? "rejected" : "chosen";
    lines.back()[name] = decoded[i].completion;
    lines.back()[pairs ? name + "_value" : "value"] = value;
    if (const auto answer = model_answer(rows, static_cast<int64_t>(i), tokenizer))
      lines.back()["model_answer"] = *answer;
  }
  write_lines(lines, path);
}

nlohmann::ordered_json kept_columns(const nlohmann::json& row) {
  nlohmann::ordered_json line = nlohmann::ordered_json::object();
  for (const auto& [name, value] : row.items()) {
    const bool taken = std::ranges::find(kSampleColumns, name) != std::end(kSampleColumns);
    line[taken ? "data_" + name : name] = value;
  }
  return line;
}

}  // namespace collimate::recipe
