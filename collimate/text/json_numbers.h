#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

namespace collimate::text {

struct ChangedNumber {
  std::string key;            // of the object's member that holds the number
  std::string written, kept;  // as the text has it, and as it would be written after reading
};

// Returns the first number of well-formed JSON that reading would change where that matters. It may be an integer
// beyond 64 bits, which becomes another number, or, in a ground truth (ground_truth, answer, solution, label), which is
// compared as text, a fraction that would be written in another way, such as 1.10. Takes time linear in the text.
std::optional<ChangedNumber> find_changed_number(std::string_view json);

// Parses JSON that templates write out again, as base::parse_ordered_json does. Throws InputError also for a whole
// number beyond 64 bits.
nlohmann::ordered_json parse_exact_json(std::string_view text, const std::string& where, int64_t first_line = 0);

}  // namespace collimate::text
