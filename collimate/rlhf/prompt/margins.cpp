#include "collimate/rlhf/prompt/margins.h"

#include <cmath>
#include <limits>
#include <utility>

#include "collimate/base/error.h"
#include "collimate/rlhf/types/loss.h"

namespace collimate::rlhf {
namespace {

std::string margin_place(const text::Example& example) {
  return fmt::format("{} column {}", example.location.text(), kMargin.name);
}

// Returns a margin that is not null.
float margin_of(const nlohmann::json& value, const std::string& where) {
  const nlohmann::json number = value.is_string()  // in a table of texts
                                    ? nlohmann::json::parse(value.get<std::string>(), nullptr, false)
                                    : value;
  if (!number.is_number()) throw base::InputError(base::expectation(where, "a number", value.dump()));
  const auto margin = number.get<double>();
  if (!(std::abs(margin) <= std::numeric_limits<float>::max()))
    throw base::InputError(base::expectation(where, "a finite number of float's range", fmt::to_string(margin)));
  return static_cast<float>(margin);
}

}  // namespace

void Margins::add(const text::Example& example) {
  const bool good = missing_.empty() && problem_.empty();
  values_.push_back(0.F);
  const auto found = example.extra.find(kMargin.name);
  if (found == example.extra.end() || found->is_null()) {
    if (good) missing_ = margin_place(example);
    return;
  }
  if (first_.empty()) first_ = example.location.text();
  try {
    values_.back() = margin_of(*found, margin_place(example));
  } catch (const base::InputError& error) {
    if (good) problem_ = error.what();
  }
}

std::vector<float> Margins::finish() {
  if (first_.empty()) return {};
  if (!problem_.empty()) throw base::InputError(problem_);
  if (!missing_.empty())
    throw base::InputError(base::expectation(missing_, fmt::format("a number, as {} has one", first_), "none",
                                             "a margin in every row, or in none"));
  return std::move(values_);
}

}  // namespace collimate::rlhf
