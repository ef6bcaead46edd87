#include "collimate/text/vocabulary.h"

#include "collimate/base/error.h"

namespace collimate::text {
namespace {

constexpr int64_t kMostTokens = int64_t{1} << 24;

}  // namespace

void check_token_id(int64_t id, const std::string& token, const std::string& where) {
  if (id >= 0 && id < kMostTokens) return;
  throw base::InputError(
      base::expectation(where, fmt::format("an id below {} for '{}'", kMostTokens, token), fmt::to_string(id)));
}

void Vocabulary::add(const std::string& token, int64_t id, const std::string& where) {
  check_token_id(id, token, where);
  const auto place = static_cast<size_t>(id);
  if (place >= tokens_.size()) tokens_.resize(place + 1);
  // An empty token takes no place: ids without a text are free.
  if (!tokens_[place].empty())
    throw base::InputError(base::expectation(where, "an id of its own for each token",
                                             fmt::format("{} for both '{}' and '{}'", id, tokens_[place], token)));
  tokens_[place] = token;
  if (!ids_.emplace(token, static_cast<int32_t>(id)).second)
    throw base::InputError(
        base::expectation(where, "each token once", fmt::format("'{}' as {} and {}", token, *find(token), id)));
}

std::optional<int32_t> Vocabulary::find(std::string_view token) const {
  const auto found = ids_.find(token);
  if (found == ids_.end()) return std::nullopt;
  return found->second;
}

std::vector<int32_t> byte_fallback_ids(const Vocabulary& vocabulary) {
  std::vector<int32_t> ids;
  for (int byte = 0; byte < 256; ++byte) ids.push_back(vocabulary.find(fmt::format("<0x{:02X}>", byte)).value_or(-1));
  return ids;
}

}  // namespace collimate::text
