#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

namespace collimate::text {

struct ChangedNumber {
  std::string key;            // of the object's member that it stands in
  std::string written, kept;  // as the text has it, and as it would be written after it was read
};

// The first number of well-formed JSON that reading would change where that matters: an integer beyond 64 bits, which
// becomes another number, and, in ground truths (ground_truth, answer, solution, label), which are compared as text, a
// fraction written in another way than it would be again, as 1.10. Time linear in the text.
std::optional<ChangedNumber> find_changed_number(std::string_view json);

// base::parse_ordered_json for what templates write out again. InputError also for a whole number beyond 64 bits.
nlohmann::ordered_json parse_exact_json(std::string_view text, const std::string& where, int64_t first_line = 0);

}  // namespace collimate::text
