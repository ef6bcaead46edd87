#include "collimate/comm/cause.h"

#include "collimate/base/error.h"

namespace collimate::comm {

std::string waited(const std::string& group, int rank, const std::string& what, const std::vector<int>& missing) {
  const std::string whom = missing.empty() ? "" : fmt::format(" for rank {}", fmt::join(missing, ", "));
  return fmt::format("[group {}] rank {} waited in {}{}", group, rank, what, whom);
}

std::string expired(const std::string& waited, double deadline_seconds) {
  return fmt::format("{}: no progress of any rank for {} s (run.deadline_seconds)", waited, deadline_seconds);
}

std::string other_size(const std::string& group, size_t got, size_t expected) {
  return base::expectation("group " + group, fmt::format("{} bytes from every rank", expected), std::to_string(got));
}

}  // namespace collimate::comm
