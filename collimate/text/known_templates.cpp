#include "collimate/text/known_templates.h"

#include <string_view>
#include <utility>
#include <vector>

#include "collimate/base/error.h"
#include "collimate/text/jinja_outline.h"

namespace collimate::text {
namespace {

struct KnownTemplate {
  TemplateForm form;
  std::string jinja;
};

constexpr std::string_view kSystemHole = "{system}";  // in a literal: any default system message
constexpr std::string_view kAnything = "%anything";   // as a statement: whatever stands in this branch

const std::string kEachMessage = "{% for message in messages %}";
const std::string kChatMlTurn =
    "{{ '<|im_start|>' + message['role'] + '\\n' + message['content'] + '<|im_end|>' + '\\n' }}";
const std::string kDefaultSystem = "{{ '<|im_start|>system\\n{system}<|im_end|>\\n' }}";
const std::string kChatMlPrompt = "{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}";

// Branches that are never rendered are left open: no tools are given, and rows with tool_calls are refused.
std::string chatml_with_tools() {
  return "{% if tools %}{% anything %}{% else %}{% if messages[0]['role'] == 'system' %}"
         "{{ '<|im_start|>system\\n' + messages[0]['content'] + '<|im_end|>\\n' }}{% else %}" +
         kDefaultSystem + "{% endif %}{% endif %}" + kEachMessage +
         "{% if (message.role == 'user') or (message.role == 'system' and not loop.first) or "
         "(message.role == 'assistant' and not message.tool_calls) %}" +
         kChatMlTurn +
         "{% elif message.role == 'assistant' %}{% anything %}{% elif message.role == 'tool' %}{% anything %}"
         "{% endif %}{% endfor %}" +
         kChatMlPrompt;
}

std::vector<KnownTemplate> chatml_templates() {
  const std::string turns = kChatMlTurn + "{% endfor %}" + kChatMlPrompt;
  return {
      {TemplateForm::kChatMl, kEachMessage + turns},
      {TemplateForm::kChatMl,
       "{% if not add_generation_prompt is defined %}{% set add_generation_prompt = false %}{% endif %}" +
           kEachMessage + turns},
      {TemplateForm::kChatMl, kEachMessage + "{% if loop.first and messages[0]['role'] != 'system' %}" +
                                  kDefaultSystem + "{% endif %}" + turns},
      {TemplateForm::kChatMlWithTools, chatml_with_tools()},
  };
}

std::vector<KnownTemplate> other_templates() {
  const std::string contents = kEachMessage + "{{ message['content'] }}{% endfor %}";
  const std::string separator = "{% if add_generation_prompt %}{{ sep_token }}{% endif %}";
  const std::string with_role = "{% set role = message['role'] %}{{ message['content'] }}{% endfor %}" + separator;
  return {
      {TemplateForm::kContents, contents},
      {TemplateForm::kSeparator, contents + separator},
      {TemplateForm::kSeparator, kEachMessage + with_role},
      {TemplateForm::kSeparator,
       "{% if messages[0]['role'] == 'system' %}{{ raise_exception('System role not supported') }}{% endif %}" +
           kEachMessage +
           "{% if (message['role'] == 'user') != (loop.index0 % 2 == 0) %}{{ raise_exception('Conversation roles must "
           "alternate user/assistant/user/assistant/...') }}{% endif %}" +
           with_role},
      {TemplateForm::kUserBot,
       kEachMessage + "{% if message['role'] == 'user' %}{{ 'User: ' + message['content'] + '\\n' }}"
                      "{% elif message['role'] == 'assistant' %}{{ 'Bot: ' + message['content'] + eos_token + '\\n' }}"
                      "{% endif %}{% endfor %}{% if add_generation_prompt %}{{ 'Bot:' }}{% endif %}"},
  };
}

std::vector<KnownTemplate> known_templates() {
  std::vector<KnownTemplate> known = chatml_templates();
  for (KnownTemplate& other : other_templates()) known.push_back(std::move(other));
  return known;
}

bool begins(const std::string& entry, std::string_view word) {
  return entry.starts_with(word) &&
         (entry.size() == word.size() || entry[word.size()] == ' ' || entry[word.size()] == '(');
}

// End of the branch that `at` stands in: its else, elif or end.
size_t branch_end(const JinjaOutline& given, size_t at) {
  for (int depth = 0; at < given.size(); ++at) {
    const std::string& entry = given[at];
    const bool end = entry == "%endif" || entry == "%endfor";
    if (depth == 0 && (end || entry == "%else" || begins(entry, "%elif"))) return at;
    if (begins(entry, "%if") || begins(entry, "%for")) ++depth;
    if (end) --depth;
  }
  return at;
}

// Are the entries the same? What stands in the hole must be a text, the same in every hole.
bool same_entry(const std::string& known, const std::string& given, std::string& system) {
  const size_t hole = known.find(kSystemHole);
  if (hole == std::string::npos) return known == given;
  const std::string before = known.substr(0, hole), after = known.substr(hole + kSystemHole.size());
  if (given.size() <= before.size() + after.size()) return false;
  if (!given.starts_with(before) || !given.ends_with(after)) return false;
  const std::string text = given.substr(before.size(), given.size() - before.size() - after.size());
  if (text.find(kExpressionMark) != std::string::npos || (!system.empty() && text != system)) return false;
  system = text;
  return true;
}

bool same_outline(const JinjaOutline& known, const JinjaOutline& given, std::string& system) {
  size_t at = 0;
  for (const std::string& entry : known) {
    if (entry == kAnything) {
      at = branch_end(given, at);
    } else if (at >= given.size() || !same_entry(entry, given[at++], system)) {
      return false;
    }
  }
  return at == given.size();
}

}  // namespace

std::optional<RecognisedTemplate> recognise_template(const std::string& jinja) {
  const std::optional<JinjaOutline> given = jinja_outline(jinja);
  if (!given) return std::nullopt;
  for (const KnownTemplate& known : known_templates()) {
    const std::optional<JinjaOutline> outline = jinja_outline(known.jinja);
    COLLIMATE_CHECK(outline.has_value(), "{}", known.jinja);
    RecognisedTemplate found{known.form, ""};
    if (same_outline(*outline, *given, found.default_system)) return found;
  }
  return std::nullopt;
}

std::string jinja_of(TemplateForm form) {
  for (KnownTemplate& known : known_templates())
    if (known.form == form) return std::move(known.jinja);
  COLLIMATE_CHECK(false, "a form without a template");
}

}  // namespace collimate::text
