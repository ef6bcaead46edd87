#include "collimate/plan/inputs/machine.h"

#include <nlohmann/json.hpp>

#include "collimate/base/config_yaml.h"
#include "collimate/base/edit_distance.h"
#include "collimate/base/error.h"
#include "collimate/plan/inputs/lengths.h"

namespace collimate::plan {
namespace {

using base::ConfigNode;

constexpr const char* kExpected = "constants: {NAME: VALUE, …}, as collimate calibrate writes";

[[noreturn]] void throw_not_machine(const std::string& where, const ConfigNode& got) {
  throw base::InputError(base::expectation(where, kExpected, got.description()));
}

// Returns the line of a key where it is known, else the file.
std::string line_of(const ConfigNode& node, const std::string& where) {
  return node.where.empty() ? where : node.where;
}

double number_of(const ConfigNode& node, const ConstantInfo& info, const std::string& where) {
  const nlohmann::json value = node.kind == ConfigNode::Kind::kScalar ? base::to_json(node) : nlohmann::json();
  if (value.is_number())
    if (const double number = value.get<double>(); within_limits(info, number)) return number;
  throw base::InputError(base::expectation(where, info.name + ": " + limits_text(info), node.description()));
}

void read_lengths(const ConfigNode& node, const std::string& where, Machine& machine) {
  if (node.kind != ConfigNode::Kind::kMap)
    throw base::InputError(base::expectation(where, "lengths: {config, prompt, completion}", node.description()));
  for (size_t i = 0; i < node.keys.size(); ++i) {
    const std::string at = line_of(node.children[i], where);
    if (node.keys[i] == "config")
      machine.config = node.children[i].text;
    else if (node.keys[i] == "prompt")
      machine.prompt = node.children[i].text;
    else if (node.keys[i] == "completion")
      machine.completion = node.children[i].text;
    else
      base::throw_unknown_choice(at, node.keys[i], {"config", "prompt", "completion"});
  }
  if (machine.config.empty()) throw base::InputError(base::expectation(where, "lengths with their config", "none"));
  Lengths::parse(machine.prompt, where + ": lengths.prompt");
  Lengths::parse(machine.completion, where + ": lengths.completion");
}

}  // namespace

std::string machine_text(const Machine& machine, const std::vector<std::string>& comments) {
  std::string text;
  for (const std::string& line : comments) text += line.empty() ? "#\n" : "# " + line + "\n";
  text += "constants:\n";
  for (const auto& [info, value] : machine.constants)
    text += fmt::format("  {}: {:.6g}  # {}{}{}\n", info->name, value, info->unit, info->unit.empty() ? "" : ": ",
                        info->help);
  if (machine.config.empty()) return text;
  return text + fmt::format(
                    "lengths:  # of the rows that were run\n  config: \"{}\"\n  prompt: \"{}\"\n"
                    "  completion: \"{}\"\n",
                    machine.config, machine.prompt, machine.completion);
}

Machine parse_machine(const std::string& text, const std::string& where) {
  const ConfigNode root = base::parse_yaml(text, where);
  const ConfigNode* constants = root.kind == ConfigNode::Kind::kMap ? root.find("constants") : nullptr;
  Machine machine;
  for (size_t i = 0; i < root.keys.size(); ++i) {
    const ConfigNode& node = root.children[i];
    if (root.keys[i] == "lengths")
      read_lengths(node, line_of(node, where), machine);
    else if (root.keys[i] != "constants")
      base::throw_unknown_choice(line_of(node, where), root.keys[i], {"constants", "lengths"});
  }
  if (constants == nullptr) throw_not_machine(where, root);
  if (constants->kind != ConfigNode::Kind::kMap) throw_not_machine(line_of(*constants, where), *constants);
  for (size_t i = 0; i < constants->keys.size(); ++i) {
    const std::string at = line_of(constants->children[i], where);
    const ConstantInfo& info = constant_info(constants->keys[i], at);
    machine.constants.emplace_back(&info, number_of(constants->children[i], info, at));
  }
  return machine;
}

void apply(const Machine& machine, Constants& constants) {
  for (const auto& [info, value] : machine.constants) give(constants, *info, value);
}

}  // namespace collimate::plan
