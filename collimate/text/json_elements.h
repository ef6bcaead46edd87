#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>

namespace collimate::text {

// Calls `element(begin, end)` with the byte range of each element of the JSON array that `content` holds, so that every
// element can be parsed, and placed in the file, by itself. Throws InputError naming `path` and the line when the
// brackets do not fit or something follows the array.
void for_each_element(const std::string& path, std::string_view content,
                      const std::function<void(size_t begin, size_t end)>& element);

}  // namespace collimate::text
