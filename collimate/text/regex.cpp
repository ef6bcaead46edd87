#define PCRE2_CODE_UNIT_WIDTH 8
#include "collimate/text/regex.h"

#include <pcre2.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "collimate/base/error.h"

namespace collimate::text {
namespace {

constexpr const char* kUnicodeSpaces = "\\x09-\\x0d\\x{85}\\p{Z}";
// One search takes at most so many steps. A pattern that tries without end is at this limit in a tenth of a second.
constexpr uint32_t kMostSteps = 10'000'000;
constexpr uint32_t kMostHeapKib = 64 * 1024;  // of the interpreter, where there is no just-in-time compiler
constexpr size_t kMostJitStackBytes = 16 * 1024 * 1024;

// Writes out `\s`, inside and outside of brackets, and `\S`, outside of brackets, as explicit sets.
std::string spell_out_spaces(const std::string& pattern) {
  std::string out;
  bool in_class = false;
  for (size_t i = 0; i < pattern.size(); ++i) {
    const char c = pattern[i];
    if (c == '\\' && i + 1 < pattern.size()) {
      const char next = pattern[++i];
      if (next == 's') {
        out += in_class ? kUnicodeSpaces : std::string("[") + kUnicodeSpaces + "]";
      } else if (next == 'S' && !in_class) {
        out += std::string("[^") + kUnicodeSpaces + "]";
      } else {
        out += c;
        out += next;
      }
      continue;
    }
    const std::string_view rest = std::string_view(pattern).substr(i);
    size_t taken = 1;
    if (c == '[') taken = in_class ? std::max<size_t>(1, named_class(rest)) : class_opening(rest);
    in_class = c == '[' || (in_class && c != ']');
    out += rest.substr(0, taken);
    i += taken - 1;
  }
  return out;
}

std::string pcre_message(int code) {
  std::array<PCRE2_UCHAR, 256> buffer{};
  pcre2_get_error_message(code, buffer.data(), buffer.size());
  return reinterpret_cast<const char*>(buffer.data());
}

// Holds the match data and the just-in-time compiler's stack of one thread.
struct ThreadState {
  pcre2_match_data* data = pcre2_match_data_create(16, nullptr);
  pcre2_match_context* context = pcre2_match_context_create(nullptr);
  pcre2_jit_stack* stack = pcre2_jit_stack_create(64 * 1024, kMostJitStackBytes, nullptr);
  ThreadState() {
    pcre2_jit_stack_assign(context, nullptr, stack);
    pcre2_set_match_limit(context, kMostSteps);
    pcre2_set_heap_limit(context, kMostHeapKib);
  }
  ~ThreadState() {
    pcre2_jit_stack_free(stack);
    pcre2_match_context_free(context);
    pcre2_match_data_free(data);
  }
};

}  // namespace

struct Regex::Impl {
  std::string pattern;
  pcre2_code* code = nullptr;
  ~Impl() { pcre2_code_free(code); }

  // Returns why the pattern does not compile and at which part of it, or "".
  std::string compile() {
    const std::string spelled = spell_out_spaces(pattern);
    int error = 0;
    PCRE2_SIZE offset = 0;
    code = pcre2_compile(reinterpret_cast<PCRE2_SPTR>(spelled.data()), spelled.size(), PCRE2_UTF | PCRE2_UCP, &error,
                         &offset, nullptr);
    if (code != nullptr) return "";
    const std::string place = offset < spelled.size() ? fmt::format("'{}'", spelled.substr(offset)) : "its end";
    return fmt::format("{}, at {}", pcre_message(error), place);
  }
};

std::string Regex::problem(const std::string& pattern) { return Impl{.pattern = pattern}.compile(); }

Regex::Regex(const std::string& pattern, const std::string& where) : impl_(std::make_unique<Impl>()) {
  impl_->pattern = pattern;
  if (const std::string why = impl_->compile(); !why.empty())
    throw base::InputError(
        base::expectation(where, "a pattern that PCRE2 compiles", fmt::format("'{}' ({})", pattern, why)));
  pcre2_jit_compile(impl_->code, PCRE2_JIT_COMPLETE);  // without a JIT, pcre2_match interprets
}

Regex::~Regex() = default;
Regex::Regex(Regex&&) noexcept = default;
Regex& Regex::operator=(Regex&&) noexcept = default;

bool Regex::find(std::string_view text, size_t from, Span& match) const {
  static thread_local ThreadState state;
  const int rc = pcre2_match(impl_->code, reinterpret_cast<PCRE2_SPTR>(text.data()), text.size(), from,
                             PCRE2_NO_UTF_CHECK, state.data, state.context);
  if (rc == PCRE2_ERROR_NOMATCH) return false;
  if (rc < 0) {
    throw base::RunError(
        fmt::format("[regex] '{}' gave up on a text of {} bytes: {}", impl_->pattern, text.size(), pcre_message(rc)));
  }
  const PCRE2_SIZE* bounds = pcre2_get_ovector_pointer(state.data);
  match = {bounds[0], bounds[1]};
  return true;
}

size_t class_opening(std::string_view text) {
  size_t size = 1;
  if (text.substr(size, 1) == "^") ++size;
  return text.substr(size, 1) == "]" ? size + 1 : size;
}

size_t named_class(std::string_view text) {
  if (!text.starts_with("[:")) return 0;
  const size_t end = text.find(":]");
  return end == std::string_view::npos ? 0 : end + 2;
}

std::string regex_escape(std::string_view literal) {
  std::string out;
  for (const char c : literal) {
    if (std::strchr("\\^$.[]|()?*+{}-#/", c) != nullptr && c != '\0') out += '\\';
    out += c;
  }
  return out;
}

}  // namespace collimate::text
