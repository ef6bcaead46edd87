#include "tests/golden/variant.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <regex>

#include "collimate/rlhf/loss/list.h"
#include "tests/golden/place.h"

namespace collimate::golden {
namespace {

// The words are what a name says, piece by piece.
struct Words {
  std::vector<std::string> losses;
  json options = json::object();
  std::vector<std::string> others;
};

bool is_option(const std::string& name) {
  json one = json::object();
  one[name] = nullptr;
  return unread_options(one).empty();
}

// "beta0.5", "ld_alpha_0.3", a divergence; or a word that says nothing here.
void read_word(const std::string& word, Words& words) {
  static const std::map<std::string, std::string> kDivergences = {
      {"js", "js_divergence"},       {"js_divergence", "js_divergence"},
      {"alpha", "alpha_divergence"}, {"alpha_divergence", "alpha_divergence"},
      {"forward_kl", "forward_kl"},  {"reverse_kl", "reverse_kl"}};
  static const std::regex kValue("([A-Za-z_]*[A-Za-z])[_=]?(-?[0-9]+(?:\\.[0-9]+)?(?:e-?[0-9]+)?)");
  std::smatch parts;
  if (std::regex_match(word, parts, kValue) && is_option(parts[1])) {
    words.options[parts[1].str()] = std::stod(parts[2].str());
  } else if (const auto found = kDivergences.find(word); found != kDivergences.end()) {
    words.options["f_divergence_type"] = found->second;
  } else if (const size_t equals = word.find('='); equals != std::string::npos) {
    const json value = json::parse(word.substr(equals + 1), nullptr, false);
    words.options[word.substr(0, equals)] = value.is_discarded() ? json(word.substr(equals + 1)) : value;
  } else {
    words.others.push_back(word);
  }
}

// A loss, a loss and a word ("grpo_delta1.5"), or a word.
void read_piece(const std::string& piece, const std::vector<std::string>& losses, Words& words) {
  std::string longest;
  for (const std::string& loss : losses)
    if ((piece == loss || piece.starts_with(loss + "_")) && loss.size() > longest.size()) longest = loss;
  if (!longest.empty()) words.losses.push_back(longest);
  if (piece == longest) return;
  read_word(longest.empty() ? piece : piece.substr(longest.size() + 1), words);
}

Words words_of(const std::string& name, const std::string& trainer) {
  const std::vector<std::string> losses = rlhf::loss_types(trainer == "dpo" ? "pairs" : "rollouts");
  Words words;
  for (size_t begin = 0; begin < name.size();) {
    const size_t end = std::min(name.find_first_of("|+, ", begin), name.size());
    if (end > begin) read_piece(name.substr(begin, end - begin), losses, words);
    begin = end + 1;
  }
  return words;
}

// How many other words the options may stand for: those that differ from TRL's defaults and that the name does not say.
size_t words_in(const json& over, const Words& words) {
  size_t count = 0;
  for (const auto& [name, value] : over.items()) {
    const bool named = words.options.contains(name) || (name == "loss_type" && !words.losses.empty());
    const bool usual = value.is_null() || (name == "use_bias_correction_kl" && value == true) ||
                       (name == "f_divergence_type" && value == "reverse_kl");
    count += !named && !usual;
  }
  return count;
}

void refuse_unknown(const std::string& trainer, const json& over, const Options& options) {
  std::vector<std::string> names = unread_options(over);
  for (const char* name : {"model", "ref", "pad"})  // of the file
    if (over.contains(name)) names.emplace_back(name);
  if (!names.empty())
    throw UnknownKind(fmt::format("option {}", fmt::join(names, ", ")), is_required(trainer, options));
}

}  // namespace

Options variant_options(const std::string& trainer, const std::string& name, const json& variant, const json& hyper) {
  json over = object_or_empty(variant, "over");
  Words words = words_of(name, trainer);
  const bool without_loss = words.losses.empty() && !has_loss_type(over) && !has_loss_type(hyper);
  if (without_loss && !words.others.empty()) {
    words.losses = {words.others[0]};
    words.others.erase(words.others.begin());
  }
  const bool explained = words.others.size() <= words_in(over, words);
  if (!over.contains("loss_type") && !words.losses.empty()) over["loss_type"] = words.losses;
  for (const auto& [key, value] : words.options.items())
    if (!over.contains(key)) over[key] = value;
  // The divergence of `hyper` is that of the last variant made.
  if (trainer == "dpo" && !over.contains("f_divergence_type")) over["f_divergence_type"] = "reverse_kl";
  const Options options(hyper, over);
  refuse_unknown(trainer, over, options);
  if (!explained)
    throw UnknownKind(fmt::format("a variant whose options do not say what {} is", fmt::join(words.others, ", ")),
                      is_required(trainer, options));
  return options;
}

}  // namespace collimate::golden
