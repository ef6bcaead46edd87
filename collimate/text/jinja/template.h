#pragma once

#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

namespace collimate::text::jinja {

// A text and, in bytes of it, where {% generation %} stands around a part of it: [begin, end), in order. A part inside
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
  // InputError naming the line of what is not of the language.
  explicit Template(const std::string& source);
  Template(Template&& other) noexcept;
  ~Template();
  // `variables`: a JSON object. InputError naming the line of what goes wrong, as raise_exception does.
  std::string render(const nlohmann::ordered_json& variables) const { return render_marked(variables).text; }
  MarkedText render_marked(const nlohmann::ordered_json& variables) const;
  // As in search.h.
  bool reads(const std::string& variable) const;
  bool mentions(const std::string& word) const;
  bool marks() const;

 private:
  struct Impl;
  std::unique_ptr<const Impl> impl_;
};

}  // namespace collimate::text::jinja
