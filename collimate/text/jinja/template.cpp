#include "collimate/text/jinja/template.h"

#include <utility>

#include "collimate/text/jinja/evaluator.h"
#include "collimate/text/jinja/search.h"

namespace collimate::text::jinja {

struct Template::Impl {
  Node body;
};

Template::Template(const std::string& source) : impl_(std::make_unique<const Impl>(Impl{parse(source)})) {}
Template::Template(Template&& other) noexcept = default;
Template::~Template() = default;

bool Template::reads(const std::string& variable) const { return jinja::reads(impl_->body, variable); }
bool Template::mentions(const std::string& word) const { return jinja::mentions(impl_->body, word); }
bool Template::marks() const { return jinja::marks(impl_->body); }

MarkedText Template::render_marked(const nlohmann::ordered_json& variables) const {
  Scope root;
  for (const auto& [name, variable] : variables.items()) root.variables[name] = from_json(variable);
  const Budget budget;
  return Evaluator(root).run(impl_->body);
}

}  // namespace collimate::text::jinja
