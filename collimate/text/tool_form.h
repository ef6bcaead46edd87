#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "collimate/text/conversation.h"
#include "collimate/text/jinja/template.h"
#include "collimate/text/tool_calls.h"

namespace collimate::text {

enum class EmptyContent { kAbsent, kNull, kText };

// Says how a template takes an assistant's calls of tools. Some write arguments as JSON and need an object, others join
// texts. An empty content beside calls is left out, as transformers leaves it out, unless the template then writes no
// call.
struct ToolForm {
  bool arguments_as_text = false;
  EmptyContent empty_content = EmptyContent::kAbsent;
  CallForm calls = CallForm::kUnknown;
};

// Finds the form by what the template writes for one call. Returns the first form whose call can be read again, else
// the first that is written at all, else that of most templates.
ToolForm tool_form_of(const jinja::Template& chat, const nlohmann::ordered_json& variables);

// Returns a message as the template gets it.
nlohmann::ordered_json message_json(const Message& message, const ToolForm& form);

}  // namespace collimate::text
