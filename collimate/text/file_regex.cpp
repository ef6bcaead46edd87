#include "collimate/text/file_regex.h"

#include <string_view>

#include "collimate/base/error.h"

namespace collimate::text {
namespace {

// Writes the members of inner classes among those of the class around them. At the border of an inner class "-" and "]"
// are members, as in Oniguruma, and get a backslash to remain so.
class ClassFlattener {
 public:
  ClassFlattener(std::string_view pattern, const std::string& where) : pattern_(pattern), where_(where) {}

  std::string flattened() {
    while (at_ < pattern_.size()) step();
    return std::move(out_);
  }

 private:
  void step() {
    const std::string_view rest = pattern_.substr(at_);
    if (rest.starts_with('\\')) return take(2, rest.substr(0, 2));
    if (depth_ > 0 && named_class(rest) > 0) return take(named_class(rest), rest.substr(0, named_class(rest)));
    if (rest.starts_with('[')) return open(rest);
    if (depth_ == 0) return take(1, rest.substr(0, 1));
    if (rest.starts_with(']')) return close();
    if (rest.starts_with("&&")) refuse("intersections of classes (&&)", "(?![…]) before the class");
    if (rest.starts_with("-[") && named_class(rest.substr(1)) == 0) refuse("ranges that end in a class (-[)", "\\-");
    const bool at_border = at_border_ || (depth_ > 1 && rest.starts_with("-]"));
    take(1, at_border && rest[0] == '-' ? "\\-" : rest.substr(0, 1));
  }

  void open(std::string_view rest) {
    const size_t size = class_opening(rest);
    const bool ends_by_itself = rest[size - 1] == ']';
    if (depth_ > 0 && rest.starts_with("[^"))
      refuse("classes with ^ inside of classes ([^…])", "the class and the other as alternatives");
    take(size, depth_ == 0 ? rest.substr(0, size) : ends_by_itself ? "\\]" : "");
    at_border_ = depth_++ > 0 && !ends_by_itself;
  }

  void close() {
    --depth_;
    take(1, depth_ == 0 ? "]" : "");
    at_border_ = depth_ > 0;
  }

  void take(size_t bytes, std::string_view written) {
    out_ += written;
    at_ += bytes;
    at_border_ = false;
  }

  [[noreturn]] void refuse(const std::string& what, const std::string& remedy) const {
    throw base::InputError(base::expectation(where_, "a pattern without " + what, std::string(pattern_),
                                             remedy + ", or the model's tiktoken.model alone"));
  }

  std::string_view pattern_;
  const std::string& where_;
  std::string out_;
  size_t at_ = 0;
  int depth_ = 0;           // of classes around `at_`
  bool at_border_ = false;  // an inner class begins or ends right before `at_`
};

}  // namespace

Regex read_file_regex(const nlohmann::json& pattern, const std::string& where) {
  const std::string text = pattern.at("Regex");
  return Regex(ClassFlattener(text, where).flattened(), where);
}

}  // namespace collimate::text
