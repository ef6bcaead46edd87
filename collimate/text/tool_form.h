#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "collimate/text/conversation.h"
#include "collimate/text/jinja/template.h"
#include "collimate/text/tool_calls.h"

namespace collimate::text {

enum class EmptyContent { kAbsent, kNull, kText };

// How a template takes an assistant's calls of tools. Some write arguments as JSON and need an object, others join
// texts. A content beside calls that says nothing is left out as transformers leaves it out, unless that writes no
// call.
struct ToolForm {
  bool arguments_as_text = false;
  EmptyContent empty_content = EmptyContent::kAbsent;
  CallForm calls = CallForm::kUnknown;
};

// Found by what the template makes of one call, that which can be read if there is one; that of most templates where it
// makes nothing of any form.
ToolForm tool_form_of(const jinja::Template& chat, const nlohmann::ordered_json& variables);

// A message as the template gets it.
nlohmann::ordered_json message_json(const Message& message, const ToolForm& form);

}  // namespace collimate::text
