#pragma once

#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

namespace collimate::text::jinja {

// A text, and the ranges of its bytes, [begin, end) and in order, around which {% generation %} stands. A part inside
// of a macro or of another captured text has no place of its own and is left out.
struct MarkedText {
  std::string text;
  std::vector<std::pair<size_t, size_t>> marked;
};

// A template of the language that Hugging Face's chat templates use: Jinja2 with trim_blocks and lstrip_blocks, loops
// that break and continue, and {% generation %}. It reads nothing but its variables, changes nothing but its
// namespaces, and ends: see budget.h. Immutable; may be used by several threads.
class Template {
 public:
  // Throws InputError, which names the line, for what is not of the language.
  explicit Template(const std::string& source);
  Template(Template&& other) noexcept;
  ~Template();
  // Renders the template with `variables`, a JSON object. Throws InputError, which names the line of what goes wrong,
  // also for raise_exception.
  std::string render(const nlohmann::ordered_json& variables) const { return render_marked(variables).text; }
  MarkedText render_marked(const nlohmann::ordered_json& variables) const;
  // search.h describes these three.
  bool reads(const std::string& variable) const;
  bool mentions(const std::string& word) const;
  bool marks() const;

 private:
  struct Impl;
  std::unique_ptr<const Impl> impl_;
};

}  // namespace collimate::text::jinja
