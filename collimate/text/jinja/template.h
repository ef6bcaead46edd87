#pragma once

#include <memory>
#include <nlohmann/json.hpp>
#include <string>

namespace collimate::text::jinja {

// A template of the language that Hugging Face's chat templates use: Jinja2 with trim_blocks and lstrip_blocks, loops
// that break and continue, and {% generation %}. It reads nothing but its variables, changes nothing but its
// namespaces, and ends: steps, levels and what it writes are bounded. Immutable; may be used by several threads.
class Template {
 public:
  // InputError naming the line of what is not of the language.
  explicit Template(const std::string& source);
  ~Template();
  // `variables`: a JSON object. InputError naming the line of what goes wrong, as raise_exception does.
  std::string render(const nlohmann::ordered_json& variables) const;

 private:
  struct Impl;
  std::unique_ptr<const Impl> impl_;
};

}  // namespace collimate::text::jinja
