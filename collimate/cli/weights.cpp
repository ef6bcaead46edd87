#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "collimate/base/error.h"
#include "collimate/cli/arguments.h"
#include "collimate/cli/weight_diff.h"

namespace collimate::cli {
namespace {

std::string line_of(const TensorDifference& one) {
  const std::string name = fmt::format("{} [{}]", one.name, fmt::join(one.sizes, ", "));
  if (!one.missing_in.empty()) return fmt::format("{}: not in {}, or of other sizes\n", name, one.missing_in);
  return fmt::format("{}: {} values differ, by at most {:.9g}; the first at {}: {:.9g} and {:.9g}\n", name,
                     one.differing, one.largest, place_of(*one.first, one.sizes), one.first_a, one.first_b);
}

// Returns the number as JSON, an infinite one as a text.
nlohmann::ordered_json number(double value) {
  return std::isfinite(value) ? nlohmann::ordered_json(value) : nlohmann::ordered_json(fmt::format("{}", value));
}

nlohmann::ordered_json json_of(const TensorDifference& one) {
  nlohmann::ordered_json json = {{"name", one.name}, {"sizes", one.sizes}};
  if (!one.missing_in.empty()) {
    json["missing_in"] = one.missing_in;
    return json;
  }
  json["largest"] = number(one.largest);
  json["differing"] = one.differing;
  if (one.first)
    json["first"] = {
        {"place", place_of(*one.first, one.sizes)}, {"a", number(one.first_a)}, {"b", number(one.first_b)}};
  return json;
}

// Prints how two model directories differ. Returns 0 if all tensors are equal, else 1.
int diff(const std::string& a, const std::string& b, bool json) {
  const std::vector<TensorDifference> all = weight_differences(a, b);
  const auto count = std::ranges::count_if(all, &TensorDifference::differs);
  if (json) {
    nlohmann::ordered_json tensors = nlohmann::ordered_json::array();
    for (const TensorDifference& one : all) tensors.push_back(json_of(one));
    print_json({{"tensors", tensors}, {"differing", count}});
  } else {
    for (const TensorDifference& one : all)
      if (one.differs()) fmt::print("{}", line_of(one));
    fmt::print("{} of {} tensors differ\n", count, all.size());
  }
  return count == 0 ? 0 : 1;
}

void list(const model::TensorDirectory& tensors) {
  for (const auto& [name, entry] : tensors.entries()) {
    const TensorSummary s = summary_of(*entry, name);
    fmt::print("{} {} [{}]: {:.6g} to {:.6g}, mean {:.6g}, norm {:.6g}{}\n", name, entry->dtype,
               fmt::join(shown_sizes(*entry), ", "), s.least, s.most, s.mean, s.norm,
               s.not_finite > 0 ? fmt::format(", {} not finite", s.not_finite) : "");
  }
}

void dump(const std::string& directory, const std::string& name, int64_t count) {
  const auto tensors = shown_tensors(directory);
  if (name.empty()) return list(*tensors);
  const model::TensorEntry* entry = tensors->find(name);
  if (entry == nullptr)
    throw base::InputError(base::expectation(directory, "a tensor " + name, "none",
                                             "collimate weights dump " + directory + ", which lists them"));
  const std::vector<float> values = first_values(*entry, name, count);
  for (size_t i = 0; i < values.size(); ++i)
    fmt::print("{} {:.9g}\n", place_of(static_cast<int64_t>(i), shown_sizes(*entry)), values[i]);
}

}  // namespace

int weights(const Arguments& arguments) {
  CLI::App app{"compares the weights of two model directories, or shows those of one", "weights"};
  std::string action;
  std::vector<std::string> words;
  int64_t count = 16;
  bool json = false;
  app.add_option("ACTION", action,
                 "diff A B: tensors that differ, by how much and where first; exit code 1 where any does. dump DIR: "
                 "type, sizes and range of each tensor; dump DIR NAME: values of one. Values of four or eight bits are "
                 "shown times their scales")
      ->required()
      ->check(CLI::IsMember({"diff", "dump"}));
  app.add_option("WORDS", words, "the model directories, or a directory and the name of a tensor")->required();
  app.add_option("-n", count, "how many values of a tensor are shown (16)")->check(at_least(1));
  app.add_flag("--json", json, "print one JSON document, of diff");
  if (!parse(app, arguments)) return 0;
  const bool compares = action == "diff";
  if (words.size() > 2 || (compares && words.size() != 2))
    throw base::InputError(base::expectation("weights " + action, compares ? "two model directories" : "DIR [NAME]",
                                             fmt::format("{} words", words.size())));
  if (compares) return diff(words[0], words[1], json);
  dump(words[0], words.size() == 2 ? words[1] : "", count);
  return 0;
}

}  // namespace collimate::cli
