#pragma once

#include <cstddef>
#include <string>
#include <vector>

// This file words the causes of failed waits equally for every back end.
namespace collimate::comm {

// Returns "[group NAME] rank 0 waited in WHAT for rank 1, 2". Without `missing` the ranks are named in `what`.
std::string waited(const std::string& group, int rank, const std::string& what, const std::vector<int>& missing);
// Returns "WAITED: no progress of any rank for 20 s (run.deadline_seconds)".
std::string expired(const std::string& waited, double deadline_seconds);
// Returns the error that ranks came to a collective with different sizes, in bytes.
std::string other_size(const std::string& group, size_t got, size_t expected);

}  // namespace collimate::comm
