#include "collimate/generate/sampling_options.h"

#include <string_view>
#include <utility>

#include "collimate/base/error.h"
#include "collimate/base/read_file.h"
#include "collimate/text/utf8.h"

namespace collimate::generate {
namespace {

constexpr std::string_view kTemperature = "temperature", kMinTokens = "min_tokens";

// Makes the option of a row of kSamplingFields, in its place.
class OptionMaker {
 public:
  OptionMaker(base::Section* section, const SamplingField& field, SamplingOptions::Item& item)
      : section_(section), field_(field), item_(item) {}

  template <class T>
  void make(const SamplingNumber<T>& number, T standard) const {
    if (number.smallest == 0) return put_in_range(number, standard);
    put_in_range(number, standard,
                 base::satisfying(fmt::format("0 or at least {}", number.smallest),
                                  [number](T value) { return number.not_too_small(value); }));
  }
  void make(const SamplingMember<bool>&, bool standard) const { put(standard); }
  void make(const SamplingMember<LogitBias>&, const LogitBias&) const {
    put(nlohmann::json::object(),
        base::satisfying("a map of token ids to numbers between -100 and 100",
                         [](const nlohmann::json& value) { return parse_logit_bias(value).has_value(); }));
  }
  void make(const SamplingMember<std::vector<int32_t>>&, const std::vector<int32_t>& standard) const {
    put(std::vector<int64_t>(standard.begin(), standard.end()), base::between(int64_t{0}, kLargestTokenId));
  }
  void make(const SamplingMember<std::vector<std::string>>&, const std::vector<std::string>& standard) const {
    put(standard, base::not_empty(), base::satisfying("UTF-8", text::is_valid_utf8));
  }
  void make(const SamplingMember<std::string>&, const std::string& standard) const {
    if (field_.file)
      return put(base::JsonText{standard}, base::satisfying("UTF-8", [](const base::JsonText& value) {
                   return text::is_valid_utf8(value.text);
                 }));
    put(standard, base::satisfying("UTF-8", text::is_valid_utf8));
  }
  void make(const SamplingMember<uint64_t>&, uint64_t) const { COLLIMATE_CHECK(false, "{} as an option", field_.name); }

 private:
  template <class T, class... Checks>
  void put_in_range(const SamplingNumber<T>& number, T standard, const Checks&... checks) const {
    if (number.above && number.limited())
      return put(standard, base::above(number.low), base::at_most(number.high), checks...);
    if (number.above) return put(standard, base::above(number.low), checks...);
    if (number.limited()) return put(standard, base::between(number.low, number.high), checks...);
    put(standard, base::at_least(number.low), checks...);
  }
  template <class T, class... Checks>
  void put(T standard, const Checks&... checks) const {
    base::only_with read;
    if (field_.truncates) read.option = kTemperature;  // greedy draws do not read the option
    item_.emplace<base::Option<T>>(section_, field_.name, std::move(standard), field_.unit, field_.help, read,
                                   checks...);
  }

  base::Section* section_;
  const SamplingField& field_;
  SamplingOptions::Item& item_;
};

// A Taker copies the value of a row's option into the row's member.
class Taker {
 public:
  Taker(SamplingParams& params, const SamplingField& field, const SamplingOptions::Item& item)
      : params_(params), field_(field), item_(item) {}

  template <class T>
  void operator()(const SamplingNumber<T>& number) const {
    params_.*number.at = set<T>();
  }
  void operator()(const SamplingMember<bool>& member) const { params_.*member.at = set<bool>(); }
  void operator()(const SamplingMember<LogitBias>& member) const {
    params_.*member.at = parse_logit_bias(set<nlohmann::json>()).value();
  }
  void operator()(const SamplingMember<std::vector<int32_t>>& member) const {
    const std::vector<int64_t>& ids = set<std::vector<int64_t>>();
    (params_.*member.at).assign(ids.begin(), ids.end());
  }
  void operator()(const SamplingMember<std::vector<std::string>>& member) const {
    params_.*member.at = set<std::vector<std::string>>();
  }
  void operator()(const SamplingMember<std::string>& member) const {
    const std::string& text = field_.file ? set<base::JsonText>().text : set<std::string>();
    const size_t begin = text.find_first_not_of(" \t\r\n");
    const bool named = field_.file && begin != std::string::npos && text[begin] != '{';
    params_.*member.at = named ? base::read_file(text) : text;
  }
  void operator()(const SamplingMember<uint64_t>&) const {}  // no option

 private:
  template <class T>
  const T& set() const {
    return std::get<base::Option<T>>(item_).get();
  }

  SamplingParams& params_;
  const SamplingField& field_;
  const SamplingOptions::Item& item_;
};

// Returns the row of a temperature that may not be 0, as the trainer divides logits by it.
SamplingField for_training(SamplingField temperature) {
  auto& number = std::get<SamplingNumber<double>>(temperature.member);
  number.low = std::exchange(number.smallest, 0.0);
  temperature.help = "temperature of sampling, and of the log-probs that are trained";
  return temperature;
}

}  // namespace

SamplingOptions::SamplingOptions(double default_temperature, bool greedy) {
  SamplingParams defaults;
  defaults.temperature = default_temperature;
  for (size_t i = 0; i < items_.size(); ++i) {
    const bool trained = !greedy && kSamplingFields[i].name == kTemperature;
    const SamplingField field = trained ? for_training(kSamplingFields[i]) : kSamplingFields[i];
    if (field.help == nullptr) continue;
    const OptionMaker maker(this, field, items_[i]);
    std::visit([&](const auto& member) { maker.make(member, defaults.*member.at); }, field.member);
  }
}

SamplingParams SamplingOptions::values() const {
  SamplingParams params;
  for (size_t i = 0; i < items_.size(); ++i) {
    if (kSamplingFields[i].help != nullptr)
      std::visit(Taker(params, kSamplingFields[i], items_[i]), kSamplingFields[i].member);
  }
  return params;
}

SamplingParams SamplingOptions::params(int64_t max_tokens) const {
  SamplingParams params = values();
  params.max_tokens = max_tokens;
  if (params.min_tokens <= max_tokens) return params;
  std::string where(kMinTokens);
  for (size_t i = 0; i < items_.size(); ++i) {
    if (kSamplingFields[i].name != kMinTokens) continue;
    const std::string& set = std::get<base::Option<int64_t>>(items_[i]).where();
    if (!set.empty()) where = set;
  }
  throw base::InputError(
      base::expectation(where, fmt::format("min_tokens to be at most the {} tokens of a completion", max_tokens),
                        fmt::to_string(params.min_tokens)));
}

}  // namespace collimate::generate
