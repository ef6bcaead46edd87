#include "collimate/serve/form.h"

#include <algorithm>
#include <iterator>

#include "collimate/serve/field.h"
#include "collimate/text/regex.h"

namespace collimate::serve {
namespace {

using nlohmann::ordered_json;

constexpr const char* kAnyObject = R"({"type":"object"})";

// Sets the form of the answer. Throws ApiError 400 for a second one.
void set_form(std::string& member, std::string text, const std::string& name, generate::SamplingParams& sampling) {
  if (!sampling.regex.empty() || !sampling.json_schema.empty())
    wrong(name, "one form of the answer", ordered_json("another"));
  member = std::move(text);
}

void read_schema(const ordered_json& value, const std::string& name, generate::SamplingParams& sampling) {
  if (!value.is_object() && !value.is_string()) wrong(name, "a JSON schema, an object or its text", value);
  set_form(sampling.json_schema, value.is_string() ? value.get<std::string>() : value.dump(), name, sampling);
  if (sampling.json_schema.empty()) wrong(name, "a JSON schema", value);
}

void read_regex(const ordered_json& value, const std::string& name, generate::SamplingParams& sampling) {
  if (!value.is_string() || value.get_ref<const std::string&>().empty())
    wrong(name, "a regular expression that is not empty", value);
  set_form(sampling.regex, value.get<std::string>(), name, sampling);
}

void read_choice(const ordered_json& value, const std::string& name, generate::SamplingParams& sampling) {
  std::string any_of;
  if (value.is_array()) {
    for (const ordered_json& text : value) {
      if (!text.is_string()) wrong(name, "a list of texts", value);
      any_of += (any_of.empty() ? "(?:" : "|") + text::regex_escape(text.get<std::string>());
    }
  }
  if (any_of.empty()) wrong(name, "a list of texts, not empty", value);
  set_form(sampling.regex, any_of + ")", name, sampling);
}

void read_json_object(const ordered_json& value, const std::string& name, generate::SamplingParams& sampling) {
  if (!value.is_boolean()) wrong(name, "true or false", value);
  if (value.get<bool>()) set_form(sampling.json_schema, kAnyObject, name, sampling);
}

void read_response_format(const ordered_json& value, const std::string& name, generate::SamplingParams& sampling) {
  const ordered_json type = value.is_object() ? value.value("type", ordered_json()) : ordered_json();
  if (type == "text") return;
  if (type == "json_object") return set_form(sampling.json_schema, kAnyObject, name, sampling);
  const ordered_json named = value.is_object() ? value.value("json_schema", ordered_json()) : ordered_json();
  if (type != "json_schema" || !named.is_object() || !named.contains("schema"))
    wrong(name, R"({"type": "text"}, "json_object", or "json_schema" with json_schema: {"name", "schema"})", value);
  read_schema(named.at("schema"), name + ".json_schema.schema", sampling);
}

void read_structured_outputs(const ordered_json& value, const std::string& name, generate::SamplingParams& sampling);

struct FormField {
  const char* name;
  void (*read)(const ordered_json& value, const std::string& name, generate::SamplingParams& sampling);
};
constexpr FormField kFormFields[] = {
    {"response_format", read_response_format},
    {"structured_outputs", read_structured_outputs},
    {"guided_json", read_schema},
    {"guided_regex", read_regex},
    {"guided_choice", read_choice},
};
constexpr FormField kStructuredOutputs[] = {
    {"json", read_schema}, {"regex", read_regex}, {"choice", read_choice}, {"json_object", read_json_object}};

template <class List>
const FormField* find_form(const List& list, const std::string& name) {
  const auto found = std::ranges::find_if(list, [&](const FormField& field) { return name == field.name; });
  return found == std::end(list) ? nullptr : found;
}

void read_structured_outputs(const ordered_json& value, const std::string& name, generate::SamplingParams& sampling) {
  if (!value.is_object()) wrong(name, "an object", value);
  for (const auto& [key, part] : value.items()) {
    if (part.is_null() || part == false) continue;
    const FormField* form = find_form(kStructuredOutputs, key);
    if (form == nullptr) wrong(name, "json, regex, choice or json_object", value);
    form->read(part, name + "." + key, sampling);
  }
}

}  // namespace

bool is_form_field(const std::string& name) { return find_form(kFormFields, name) != nullptr; }

bool has_form(const nlohmann::json& fields) {
  return std::ranges::any_of(kFormFields, [&](const FormField& field) { return fields.contains(field.name); });
}

void read_form(const ordered_json& fields, generate::SamplingParams& sampling) {
  for (const auto& [name, value] : fields.items()) {
    const FormField* form = find_form(kFormFields, name);
    if (form != nullptr && !value.is_null()) form->read(value, name, sampling);
  }
}

}  // namespace collimate::serve
