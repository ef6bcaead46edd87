#include <algorithm>

#include "collimate/base/config.h"
#include "collimate/base/error.h"
#include "collimate/cli/verbs.h"
#include "collimate/recipe/config.h"
#include "collimate/rlhf/reward/rules.h"

namespace collimate::cli {

const std::vector<Verb>& verbs() {
  static const std::vector<Verb> list = {
      {"train", "train what CONFIG.yaml says", train},
      {"check", "show the resolved config, batch arithmetic and data, and what is wrong with them", check},
      {"generate", "complete prompts with a model", generate},
      {"report", "write the HTML page of a run", report},
      {"bench", "quickstart and other measured runs", bench},
      {"worker", "join a run as a worker", worker},
      {"version", "print the versions: collimate, torch, compiler, processor", version},
      {"help", "this text; help TOPIC: a verb, a config key, reference or rewards", help}};
  return list;
}

namespace {

constexpr const char* kTopics =
    "\ncollimate help VERB or VERB --help lists a verb's options, collimate help KEY explains a config key or "
    "section,\n"
    "collimate help reference prints all keys as a Markdown page, collimate help rewards the rewards of a config.\n";

void print_verbs() {
  fmt::print("collimate VERB …\n\n");
  for (const Verb& verb : verbs()) fmt::print("  {:10} {}\n", verb.name, verb.summary);
  fmt::print("{}", kTopics);
}

void print_rewards() {
  fmt::print("reward: a list of\n");
  for (const auto& [name, make] : rlhf::rules()) fmt::print("  {{rule: {}}}\n", name);
  fmt::print(
      "  {{function: NAME}}           registered by a C++ program (rlhf::register_reward)\n"
      "  {{python: FILE.py:function}} score(prompts, completions, **columns) -> list[float | None]\n"
      "each with weight (1) and on_error (stop; drop, or a number).\n");
}

}  // namespace

int help(const Arguments& arguments) {
  const std::string topic = arguments.empty() ? "" : arguments[0];
  if (topic.empty() || topic == "--help" || topic == "-h") {
    print_verbs();
    return 0;
  }
  if (topic == "reference" || topic == "--reference") {
    fmt::print("{}", base::config_reference(recipe::Config()));
    return 0;
  }
  if (topic == "rewards") {
    print_rewards();
    return 0;
  }
  const std::string text = base::config_help(recipe::Config(), topic);
  const auto verb = std::find_if(verbs().begin(), verbs().end(), [&](const Verb& v) { return topic == v.name; });
  if (verb != verbs().end() && topic != "help") {
    const int code = verb->run({"--help"});
    if (!text.empty()) fmt::print("\nConfig keys of section {}:\n{}", topic, text);
    return code;
  }
  if (text.empty())
    throw base::InputError(base::expectation("collimate help", "a verb, a config key, reference or rewards",
                                             "\"" + topic + "\"", "collimate help"));
  fmt::print("{}", text);
  return 0;
}

}  // namespace collimate::cli
