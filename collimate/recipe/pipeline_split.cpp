#include "collimate/recipe/pipeline_split.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <numeric>
#include <utility>

#include "collimate/base/at.h"
#include "collimate/base/error.h"
#include "collimate/base/json.h"
#include "collimate/base/philox.h"
#include "collimate/flow/checkpoint.h"
#include "collimate/host/atomic_file.h"
#include "collimate/recipe/pipeline.h"
#include "collimate/recipe/run_directory.h"
#include "collimate/recipe/run_files.h"
#include "collimate/text/messages_json.h"

namespace collimate::recipe {
namespace {

namespace fs = std::filesystem;
using base::expectation;
using base::InputError;
using nlohmann::ordered_json;

constexpr const char* kSplitFile = "split.json";

// Returns the answer as a list of one message where the prompt has messages, and as its text otherwise.
ordered_json answer_json(const text::Example& example, const text::Message& answer) {
  if (text::turns_of(example.prompt) == nullptr) return answer.content;
  return ordered_json::array({text::message_json(answer)});
}

// Returns the columns of a row that are its prompt.
ordered_json prompt_columns(const text::Example& example) {
  ordered_json row;
  const auto* conversation = std::get_if<text::Conversation>(&example.prompt);
  if (conversation == nullptr) {
    std::visit(
        [&](const auto& prompt) {
          if constexpr (!std::is_same_v<std::decay_t<decltype(prompt)>, text::Conversation>) row["prompt"] = prompt;
        },
        example.prompt);
    return row;
  }
  row["prompt"] = ordered_json::array();
  for (const text::Message& turn : conversation->turns) row["prompt"].push_back(text::message_json(turn));
  if (!conversation->inputs.tools.is_null()) row["tools"] = conversation->inputs.tools;
  if (!conversation->inputs.variables.is_null()) row["chat_template_kwargs"] = conversation->inputs.variables;
  return row;
}

// Returns a row as the step reads it. Columns of the data's own go with pairs (margins) and prompts (rewards).
ordered_json row_of(const text::Example& example, size_t step) {
  ordered_json row = prompt_columns(example);
  if (step == 0) {
    row["completion"] = answer_json(example, *example.chosen);
    return row;
  }
  if (step == 1) {
    row["chosen"] = answer_json(example, *example.chosen);
    row["rejected"] = answer_json(example, *example.rejected);
  } else if (!example.ground_truth.is_null()) {
    row["ground_truth"] = example.ground_truth;
  }
  for (const auto& [name, value] : example.extra.items()) row[name] = value;
  return row;
}

// Returns "seed: 1 -> 2" for each value that differs.
std::vector<std::string> differences_of(const nlohmann::json& kept, const nlohmann::json& wanted) {
  const nlohmann::json before = kept.flatten(), now = wanted.flatten();
  nlohmann::json all = before;
  all.update(now);
  std::vector<std::string> found;
  for (const auto& item : all.items()) {
    const auto value = [&](const nlohmann::json& values) {
      return values.contains(item.key()) ? values.at(item.key()).dump() : "nothing";
    };
    if (value(before) != value(now))
      found.push_back(fmt::format("{}: {} -> {}", config_key(item.key()), value(before), value(now)));
  }
  return found;
}

// Has the JSON the form that make() writes?
bool is_kept_split(const nlohmann::json& kept) {
  const auto is_list = [&](const char* pointer) {
    const nlohmann::json::json_pointer at(pointer);
    return kept.contains(at) && kept.at(at).is_array();
  };
  if (!is_list("/request/data") || !is_list("/parts") || kept.at("parts").size() != kPipelineSteps) return false;
  return std::ranges::all_of(kept.at("request").at("data"),
                             [](const auto& source) { return source.is_object() && source.contains("file"); }) &&
         std::ranges::all_of(kept.at("parts"), [](const auto& part) {
           return part.is_object() && part.contains("file") && part.contains("rows") &&
                  part.at("rows").is_number_integer();
         });
}

}  // namespace

StepShares split_shares(const std::string& text, const std::string& where) {
  StepShares shares{};
  size_t count = 0;
  bool good = true;
  const char *at = text.data(), *const end = at + text.size();
  while (good && at <= end && count < shares.size()) {
    const auto [after, error] = std::from_chars(at, end, shares.at(count));
    good = error == std::errc() && shares.at(count) >= 0 && std::isfinite(shares.at(count));
    ++count;
    good = good && (count == shares.size() ? after == end : after != end && *after == ',');
    at = after + 1;
  }
  const double sum = std::accumulate(shares.begin(), shares.end(), 0.0);
  if (!good || count != shares.size() || !(sum > 0) || !std::isfinite(sum))
    throw InputError(expectation(where,
                                 "three numbers, the shares of SFT, reward model and PPO, of which one is above 0",
                                 "\"" + text + "\"", "2,4,4"));
  for (double& share : shares) share /= sum;
  return shares;
}

std::vector<size_t> split_rows(int64_t rows, const StepShares& shares, uint64_t seed) {
  constexpr uint32_t kPurpose = 0x3917;
  std::vector<std::pair<uint64_t, int64_t>> lots;
  for (int64_t row = 0; row < rows; ++row)
    lots.emplace_back(base::random_bits(seed, kPurpose, static_cast<uint64_t>(row), 0), row);
  std::ranges::sort(lots);
  std::vector<size_t> steps(static_cast<size_t>(rows), kPipelineSteps - 1);
  double share = 0;
  int64_t begin = 0;
  for (size_t step = 0; step + 1 < kPipelineSteps; ++step) {
    share += shares.at(step);
    const int64_t end = std::min(rows, static_cast<int64_t>(std::llround(share * static_cast<double>(rows))));
    for (; begin < end; ++begin) base::at(steps, base::at(lots, begin).second) = step;
  }
  return steps;
}

PipelineSplit::PipelineSplit(const SplitRequest& request, fs::path directory, bool may_change)
    : directory_(std::move(directory)) {
  const nlohmann::json wanted = described(request);
  if (!take_kept(wanted, may_change)) make(request, wanted);
}

std::string PipelineSplit::file(size_t step) const {
  return (directory_ / fmt::format("{}.jsonl", pipeline_steps().at(step).folder)).string();
}

std::string PipelineSplit::text() const {
  std::vector<std::string> parts;
  for (size_t step = 0; step < kPipelineSteps; ++step)
    parts.push_back(fmt::format("{} for {}", rows_.at(step), pipeline_steps().at(step).folder));
  return fmt::format("split: {} rows, {} ({})", std::accumulate(rows_.begin(), rows_.end(), int64_t{0}),
                     fmt::join(parts, ", "), directory_.string());
}

// Describes a request with what its files hold now. A file that is gone is null.
nlohmann::json PipelineSplit::described(const SplitRequest& request) const {
  nlohmann::json sources = nlohmann::json::array();
  for (const text::DataSource& source : request.sources)
    sources.push_back(
        {{"path", source.path},
         {"format", source.format},
         {"columns", source.columns},
         {"file", fs::is_regular_file(source.path) ? flow::measure_file(source.path) : nlohmann::json()}});
  return {{"seed", request.seed},
          {"data_split", request.shares},
          {"bad_rows", request.drop_bad_rows ? "drop" : "stop"},
          {"data", std::move(sources)}};
}

bool PipelineSplit::take_kept(const nlohmann::json& wanted, bool may_change) {
  const fs::path path = directory_ / kSplitFile;
  if (!fs::exists(path)) return false;
  const nlohmann::json kept = base::parse_json(host::read_file(path), path.string(), 1);
  if (!is_kept_split(kept))
    throw InputError(expectation(path.string(), "what a pipeline writes of its split: {request, rows, parts}",
                                 "JSON of another form", "restoring the file, or another --output"));
  nlohmann::json before = kept.at("request"), now = wanted;
  for (size_t i = 0; i < std::min(before.at("data").size(), now.at("data").size()); ++i)
    if (now["data"][i]["file"].is_null()) now["data"][i]["file"] = before["data"][i]["file"];
  const std::vector<std::string> changed = differences_of(before, now);
  if (!changed.empty() && may_change) return false;
  if (!changed.empty())
    throw InputError(expectation("--output", "a new directory or a pipeline of the same split",
                                 fmt::format("{} of another ({})", directory_.string(), fmt::join(changed, "; ")),
                                 "the values that it began with, or another --output"));
  for (size_t step = 0; step < kPipelineSteps; ++step) {
    const nlohmann::json& part = kept.at("parts").at(step);
    rows_.at(step) = part.at("rows");
    const bool there = fs::is_regular_file(file(step));
    if (there && flow::measure_file(file(step)) == part.at("file")) continue;
    if (may_change) return false;
    throw InputError(expectation(file(step), "the rows that the pipeline began with", there ? "others" : "no such file",
                                 "restoring the file, or another --output"));
  }
  return true;
}

void PipelineSplit::make(const SplitRequest& request, nlohmann::json wanted) {
  const StepShares shares = split_shares(request.shares, "data_split");
  const text::Dataset data =
      text::Dataset::read(request.sources, {.drop = request.drop_bad_rows, .remedy = "bad_rows: drop"});
  for (const char* part : {"chosen", "rejected"}) data.require(part, "a pipeline");
  const std::vector<size_t> steps = split_rows(data.size(), shares, request.seed);
  host::ensure_directory(directory_);
  nlohmann::json parts = nlohmann::json::array();
  for (size_t step = 0; step < kPipelineSteps; ++step) {
    rows_.at(step) = std::ranges::count(steps, step);
    if (rows_.at(step) == 0)
      throw InputError(expectation(
          "data_split", "at least one row for each step",
          fmt::format("{} of {} rows: none for {}", request.shares, data.size(), pipeline_steps().at(step).folder),
          "more rows, or other shares"));
  }
  for (size_t step = 0; step < kPipelineSteps; ++step) {
    host::AtomicFile out(file(step));
    data.for_each([&](int64_t row, const text::Example& example) {
      if (base::at(steps, row) == step)
        out.write(row_of(example, step).dump(-1, ' ', false, ordered_json::error_handler_t::replace) + "\n");
    });
    out.commit();
    parts.push_back({{"rows", rows_.at(step)}, {"file", flow::measure_file(file(step))}});
  }
  const nlohmann::json kept = {{"request", std::move(wanted)}, {"rows", data.size()}, {"parts", std::move(parts)}};
  host::write_file_atomically(directory_ / kSplitFile, kept.dump(2) + "\n");
}

}  // namespace collimate::recipe
