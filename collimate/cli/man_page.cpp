#include <fmt/chrono.h>

#include <algorithm>
#include <ctime>
#include <nlohmann/json.hpp>

#include "collimate/cli/commands.h"
#include "collimate/recipe/summary.h"
#include "collimate/text/utf8.h"

namespace collimate::cli {
namespace {

// Escapes a text for roff: no character acts as a command, and those beyond ASCII are written by their code point.
std::string roff(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const size_t bytes = std::max<size_t>(text::utf8_length(text), 1);
    if (bytes > 1)
      out += fmt::format("\\[u{:04X}]", text::utf8_code_point(text));
    else if (text[0] == '\\')
      out += "\\e";
    else if (text[0] == '-')
      out += "\\-";
    else
      out += text[0];
    text.remove_prefix(bytes);
  }
  return out.starts_with('.') || out.starts_with('\'') ? "\\&" + out : out;
}

std::string entry(const std::string& term, const std::string& text) {
  return fmt::format(".TP\n\\fB{}\\fR\n{}\n", roff(term), roff(text));
}

std::string section_of(const Command& command) {
  std::string title = "collimate " + command.words;
  for (const CommandOption& argument : command.arguments)
    title += argument.required ? " " + argument.name : " [" + argument.name + "]";
  std::string text = fmt::format(".SS \"{}\"\n{}\n", roff(title), roff(command.summary));
  for (const CommandOption& argument : command.arguments) text += entry(argument.name, argument.help);
  for (const CommandOption& option : command.options)
    text += entry(option.name + (option.valued ? " VALUE" : ""), option.help);
  return text;
}

constexpr const char* kEnd = R"(.SH "EXIT STATUS"
0 done, 1 failed, 2 wrong input (nothing was changed), 3 stopped before its end after saving, 4 stopped by a guard,
5 done, but the loss has diverged.
.SH ENVIRONMENT
.TP
.B COLLIMATE_ISA
avx2, avx512, avx512_bf16 or amx chooses the instructions; the bits stay.
.TP
.B OMP_NUM_THREADS
How many threads compute; as many as there are cores where it is not set. The key run.threads wins.
.TP
.B COLLIMATE_PYTHON
The interpreter of rewards in Python; python3 where it is not set.
.TP
.B COLLIMATE_PYTHON_PATH
The directory with the package collimate of the Python reward worker, in the place of the installed one.
)";

}  // namespace

std::string man_page(const std::vector<Command>& commands) {
  std::string text = fmt::format(
      ".TH COLLIMATE 1 \"{:%Y-%m-%d}\" \"Collimate {}\" \"User Commands\"\n.SH NAME\ncollimate \\- align language "
      "models\n"
      ".SH SYNOPSIS\n.B collimate\n.I VERB\n[\\fIARGUMENT\\fR ...]\n.SH DESCRIPTION\n"
      "Collimate aligns language models: supervised fine\\-tuning, reward models, DPO, GRPO and PPO. What a run does "
      "is\n"
      "written in a YAML file, whose keys are explained by\n.BR \"collimate help\" .\n.SH VERBS\n",
      fmt::gmtime(std::time(nullptr)), recipe::versions().at("collimate").get<std::string>());
  for (const Command& command : commands) text += section_of(command);
  return text + kEnd;
}

}  // namespace collimate::cli
