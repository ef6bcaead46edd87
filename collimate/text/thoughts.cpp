#include "collimate/text/thoughts.h"

#include <string_view>

#include "collimate/base/stripped.h"

namespace collimate::text {

std::string thoughts_of(const Message& answer) {
  constexpr std::string_view kOpen = "<think>", kClose = "</think>";
  if (answer.more.is_object() && answer.more.contains("reasoning_content"))
    return std::string(base::stripped(answer.more.at("reasoning_content").get_ref<const std::string&>()));
  const size_t close = answer.content.find(kClose);
  if (close == std::string::npos) return "";
  const std::string_view before = std::string_view(answer.content).substr(0, close);
  const size_t open = before.rfind(kOpen);
  return std::string(base::stripped(open == std::string_view::npos ? before : before.substr(open + kOpen.size())));
}

}  // namespace collimate::text
