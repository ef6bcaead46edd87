#include "collimate/rlhf/types/algorithm.h"

namespace collimate::rlhf {
namespace {

// Returns a check for one of `names`, or for anything if there are none.
template <class T>
base::Check<T> one_of_or_any(const std::vector<std::string>& names) {
  if (names.empty()) return {"a name", [](const T&) { return true; }};
  return base::one_of(names);
}

}  // namespace

AlgorithmOptions::AlgorithmOptions(const std::vector<std::string>& losses, const std::vector<std::string>& advantages)
    : loss_type(this, "loss_type", {}, "",
                "variant of the recipe's loss, or a list of variants that are added; empty takes the recipe's own",
                one_of_or_any<std::vector<std::string>>(losses)),
      advantage(this, "advantage", std::nullopt, "", "how rewards become advantages; null takes the recipe's own",
                one_of_or_any<std::optional<std::string>>(advantages)) {}

}  // namespace collimate::rlhf
