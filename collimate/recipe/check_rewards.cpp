#include "collimate/recipe/check_rewards.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <string_view>
#include <utility>

#include "collimate/base/error.h"
#include "collimate/base/log.h"
#include "collimate/base/named.h"
#include "collimate/recipe/check.h"
#include "collimate/rlhf/reward/reward.h"
#include "collimate/rlhf/reward/rule_text.h"

namespace collimate::recipe {
namespace {

// Returns the first rows of a data set as the samples that rewards will see.
TruthRows truths_of(const rlhf::RowSource& source, const text::Tokenizer& tokenizer, int64_t rows) {
  TruthRows truths;
  for (int64_t row = 0; row < std::min(rows, source.examples()); ++row) {
    const text::RenderedTokens prompt = source.rendered(row).front();
    truths.add(source.place(row),
               tokenizer.decode(std::span(prompt.ids).first(static_cast<size_t>(prompt.prompt_tokens))),
               source.example(row));
  }
  return truths;
}

constexpr std::string_view kWarning = "warning: ";
constexpr const char* kMending = "mending the reward, or the rows";  // where no row is judged, on_error leaves nothing
constexpr size_t kTogether = 5;  // samples of a trial: as many values as no function would return by itself
constexpr const char* kRemedy = "mending the reward, or on_error: drop, or a value, for it";

// Takes the remedy that an error has of its own away from its end and returns it, or returns `usual`.
std::string own_remedy(std::string& error, const std::string& usual) {
  constexpr std::string_view kTry = "; try ";
  const size_t own = error.rfind(kTry);
  if (own == std::string::npos) return usual;
  std::string remedy = error.substr(own + kTry.size());
  error.resize(own);
  return remedy;
}

// Returns the problem that a reward fails, with what it may read of a row. An error that has a remedy of its own keeps
// it.
std::string failure(const std::string& where, const std::string& expected, std::string got,
                    const rlhf::RewardSample& sample, std::string remedy) {
  remedy = own_remedy(got, remedy);
  std::vector<std::string> names;
  for (const auto& [name, value] : sample.example.items()) names.push_back(name);
  return base::expectation(where, expected, fmt::format("{}; the data has the columns {}", got, fmt::join(names, ", ")),
                           remedy);
}

// Has a reward judge samples. Where the user's function raises, what it tells first goes to `raised`.
std::vector<rlhf::RewardResult> score_quietly(const rlhf::RewardSpec& spec,
                                              const std::vector<rlhf::RewardSample>& samples, std::string& raised) {
  spec.reward->on_raise([&raised](const std::string& text) {
    if (raised.empty()) raised = text;
  });
  std::vector<rlhf::RewardResult> results = spec.reward->score(samples);
  spec.reward->on_raise({});
  return results;
}

// Asks a reward about a data set's rows, and adds to `found` how it judged them.
void ask(const std::string& key, const rlhf::RewardSpec& spec, const TruthRows& truths, RewardFindings& found) {
  const std::vector<rlhf::RewardSample>& samples = truths.samples;
  const std::vector<rlhf::RewardResult> results = spec.reward->score(samples);
  double sum = 0, count = 0, failed = 0;
  std::string first;
  for (size_t i = 0; i < results.size(); ++i) {
    if (results[i].value) {
      sum += *results[i].value;
      count += 1;
    } else if (!results[i].error.empty() && failed++ == 0) {
      first = fmt::format("{}: {}", truths.places[i], results[i].error);
    }
  }
  const std::string where = fmt::format("reward {} on {}", spec.name, key);
  if (failed > 0 && (count == 0 || spec.on_error.action == rlhf::OnError::Action::kStop))
    found.problems.push_back(failure(where, "rows that it can judge",
                                     fmt::format("{} of {} that fail; {}", failed, results.size(), first),
                                     samples.front(), count == 0 ? kMending : kRemedy));
  else if (failed > 0)
    found.lines.push_back(fmt::format("{}: {} of {} rows fail, and on_error decides what they count; {}", where, failed,
                                      results.size(), first));
  const bool texts = std::any_of(samples.begin(), samples.end(), [](const auto& s) { return !s.completion.empty(); });
  if (count > 0 && texts)
    found.lines.push_back(fmt::format("{}: the ground truth as completion gets {:.3g} on average", where, sum / count));
}

// Adds what a function raised, unless it has told the same of another sample.
void tell_once(const std::string& heading, const std::string& raised, RewardFindings& found) {
  const std::string trace = raised.substr(0, raised.find("\nprompt: "));
  const bool told = std::ranges::any_of(
      found.raised, [&](const std::string& text) { return text.find("\n" + trace) != std::string::npos; });
  if (!told) found.raised.push_back(heading + raised);
}

// Returns the problem that a reward gives nothing for any completion. It names the data's columns unless the function
// returned a wrong length or was too late, which has nothing to do with the rows.
std::string nothing_judged(const std::string& place, const rlhf::RewardSpec& spec, std::string error,
                           const rlhf::RewardSample& sample) {
  const std::string where = fmt::format("reward {} on {}", spec.name, place);
  if (error.find("the function returned None") != std::string::npos)
    return base::expectation(where, "a list with a reward for each completion", error,
                             "a return at the end of the function, with a list of as many numbers as there are "
                             "completions");
  if (rlhf::is_wrong_count(error))
    return base::expectation(where, "a list with a reward for each completion", error,
                             "returning as many numbers as there are completions");
  if (error.starts_with("http")) {
    const std::string remedy = own_remedy(error, "looking at what the server says, or whether it runs");
    return base::expectation(where, "a reward from its server", error, remedy);
  }
  if (error.find("no answer within") != std::string::npos)
    return base::expectation(where, "a reward in time", error,
                             "a larger timeout_seconds in its entry, or a faster function");
  if (error.find("process ended with") != std::string::npos)
    return base::expectation(where, "a reward", fmt::format("none: {}", error),
                             "a function that returns and does not end Python, as sys.exit does");
  return failure(where, "a reward", error, sample, kMending);
}

// Calls a reward of any kind once on a few completions, the data's own answer and some that a model might give, and
// shows what came. A failure is a problem only where every completion fails and on_error stops the run, as a run may
// never see a single such completion. Returns false where the reward gave "no judgement" of all of them.
bool try_out(const std::string& place, const rlhf::RewardSpec& spec, const rlhf::RewardSample& first,
             RewardFindings& found) {
  std::vector<rlhf::RewardSample> samples;
  for (const std::string& completion : {first.completion, std::string("I do not know."), std::string()}) {
    if (completion.empty() && samples.empty()) continue;  // no answer in the data
    samples.push_back(first);
    samples.back().completion = completion;
  }
  const size_t told = samples.size();
  while (spec.reward->judges_together() && samples.size() < kTogether)
    samples.push_back(samples.front());  // so that a function of fixed length shows
  std::vector<std::string> shown;
  std::string error, raised;
  const std::vector<rlhf::RewardResult> results = score_quietly(spec, samples, raised);
  bool judged = false, valued = false;
  for (size_t i = 0; i < results.size(); ++i) {
    const rlhf::RewardResult& result = results[i];
    if (error.empty()) error = result.error;
    if (i >= told) continue;
    judged = judged || result.value || result.error.empty();
    valued = valued || result.value || !result.error.empty();
    shown.push_back(fmt::format("{} gets {}", nlohmann::json(samples[i].completion).dump(),
                                result.value           ? fmt::format("{:.4g}{}", *result.value, result.note)
                                : result.error.empty() ? "no judgement"
                                                       : "the error " + result.error));
  }
  if (!judged && spec.reward->pure()) return true;  // ask() has said so
  if (!raised.empty()) tell_once(fmt::format("reward {} raised on {}:\n", spec.name, place), raised, found);
  if (!judged && spec.on_error.action == rlhf::OnError::Action::kStop) {
    if (found.failed.insert(spec.name + error).second)
      found.problems.push_back(nothing_judged(place, spec, error, first));
    return true;
  }
  found.lines.push_back(
      fmt::format("{}reward {} on {}: {}", error.empty() ? "" : kWarning, spec.name, place, fmt::join(shown, ", ")));
  return valued;
}

// Adds the problem that no reward judged any completion of the first rows, as a run would stop or drop all samples.
void tell_unjudged(const std::string& place, size_t rows, const std::vector<rlhf::RewardSpec>& specs,
                   RewardFindings& found) {
  found.problems.push_back(base::expectation(
      fmt::format("reward on {}", place),
      fmt::format("a reward of {} for some completion", fmt::join(base::names_of(specs), " or ")),
      rows == 1 ? "no judgement (None) of any" : fmt::format("no judgement (None) of any in the first {} rows", rows),
      "a number in its place, 0 where nothing is right"));
}

// Asks rewards about the samples of rows that have the ground truth as completion.
void try_all(const std::string& key, const std::vector<rlhf::RewardSpec>& specs, const TruthRows& truths,
             RewardFindings& found) {
  if (truths.samples.empty()) return;
  const size_t rows = std::min<size_t>(kTriedRows, truths.samples.size());  // the first may be such as none is about
  bool judged = false;
  for (size_t row = 0; !judged && row < rows; ++row) {
    const size_t told = found.lines.size();
    for (const rlhf::RewardSpec& spec : specs) {
      if (row == 0 && spec.reward->pure()) ask(key, spec, truths, found);
      judged = try_out(truths.places[row], spec, truths.samples[row], found) || judged;
    }
    if (row > 0 && !judged) found.lines.resize(told);  // the first row says how such rows are judged
  }
  if (!judged) tell_unjudged(truths.places.front(), rows, specs, found);
}

// Returns the rows that a list of rewards judges: their name in errors, and the data, null where it was not read.
std::pair<std::string, const rlhf::RowSource*> judged_data(const Plan& plan, const RunData& data,
                                                           const std::string& rewards) {
  for (size_t i = 0; i < plan.evaluations.size(); ++i) {
    if (plan.evaluations[i].judge != rewards) continue;
    if (i >= data.held_out.size()) return {plan.evaluations[i].asked.data_key, nullptr};
    return {data.held_out[i].key, data.held_out[i].source.get()};
  }
  return {"data.train", data.train.get()};
}

}  // namespace

void TruthRows::add(const std::string& place, std::string prompt, const nlohmann::json& example) {
  rlhf::RewardSample sample{
      .uid = static_cast<int64_t>(samples.size()) + 1, .prompt = std::move(prompt), .example = example};
  if (!example.value("ground_truth", nlohmann::json()).is_null())
    sample.completion = rlhf::text_field(sample, "ground_truth");
  samples.push_back(std::move(sample));
  places.push_back(place);
}

void refuse_rewards(const RewardFindings& found) {
  if (found.problems.empty()) return;
  for (const std::string& text : found.raised) base::log_warning("{}", text);
  refuse(found.problems);
}

void require_rewards(const std::string& key, const std::vector<rlhf::RewardSpec>& specs, const TruthRows& truths) {
  RewardFindings found;
  try_all(key, specs, truths, found);
  refuse_rewards(found);
  for (const std::string& line : found.lines)
    if (line.starts_with(kWarning)) base::log_warning("{}", line.substr(kWarning.size()));
}

void require_rewards(const std::string& key, const nlohmann::json& list, const TruthRows& truths) {
  require_rewards(key, rlhf::make_rewards(list), truths);
}

RewardFindings check_rewards(const Plan& plan, const RunData& data, int64_t rows) {
  RewardFindings found;
  std::map<std::string, std::vector<rlhf::RewardSpec>> made;  // training's and evaluation's are often the same list
  for (const std::string& name : plan.rewards) {
    const auto [key, source] = judged_data(plan, data, name);
    try {
      const nlohmann::json& list = plan.modules.at(name).parameters.at("rewards");
      const auto [entry, fresh] = made.try_emplace(list.dump());
      if (fresh) entry->second = rlhf::make_rewards(list);
      if (source == nullptr || entry->second.empty()) continue;  // what cannot be made has been told
      for (const rlhf::RewardSpec& spec : entry->second)
        for (int64_t row = 0; row < source->examples(); ++row) spec.reward->check_columns(source->example(row));
      try_all(key, entry->second, truths_of(*source, *data.tokenizer, rows), found);
    } catch (const base::Error& error) {
      const std::string message = error.what();
      if (std::ranges::find(found.problems, message) == found.problems.end()) found.problems.push_back(message);
    }
  }
  return found;
}

}  // namespace collimate::recipe
