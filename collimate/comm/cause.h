#pragma once

#include <cstddef>
#include <string>
#include <vector>

// Causes of failed waits, in the words of every back end.
namespace collimate::comm {

// "[group NAME] rank 0 waited in WHAT for rank 1, 2"; without `missing` the ranks are in `what`.
std::string waited(const std::string& group, int rank, const std::string& what, const std::vector<int>& missing);
// "WAITED: no progress of any rank for 20 s (run.deadline_seconds)".
std::string expired(const std::string& waited, double deadline_seconds);
// Says that ranks came to a collective with sizes that differ.
std::string other_size(const std::string& group, size_t got, size_t expected);

}  // namespace collimate::comm
