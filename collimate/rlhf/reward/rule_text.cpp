#include "collimate/rlhf/reward/rule_text.h"

#include "collimate/base/error.h"

namespace collimate::rlhf {

std::string text_field(const RewardSample& sample, const std::string& field) {
  const auto found = sample.example.find(field);
  if (found == sample.example.end() || found->is_null())
    throw base::InputError(base::expectation("reward", "a column \"" + field + "\" in the row", "none",
                                             "a data set with a ground truth, or the option `field`"));
  return found->is_string() ? found->get<std::string>() : found->dump();
}

std::string_view stripped(std::string_view text) {
  const size_t begin = text.find_first_not_of(" \t\r\n");
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(" \t\r\n") - begin + 1);
}

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  if (text.empty()) return parts;
  for (size_t end = text.find(separator); end != std::string_view::npos; end = text.find(separator)) {
    parts.push_back(text.substr(0, end));
    text.remove_prefix(end + 1);
  }
  parts.push_back(text);
  return parts;
}

}  // namespace collimate::rlhf
