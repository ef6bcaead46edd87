#include "collimate/text/space_marks.h"

namespace collimate::text {

void divide_at_marks(std::string_view text, std::vector<Span>& words) {
  size_t begin = 0;
  bool after_mark = true;
  for (size_t at = 0; at < text.size();) {
    const bool mark = text.substr(at, kSpaceMark.size()) == kSpaceMark;
    if (mark && !after_mark) {
      words.push_back({begin, at});
      begin = at;
    }
    after_mark = mark;
    at += mark ? kSpaceMark.size() : 1;
  }
  if (begin < text.size()) words.push_back({begin, text.size()});
}

}  // namespace collimate::text
