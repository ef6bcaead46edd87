#pragma once

#include <cmath>
#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "collimate/base/config.h"
#include "collimate/base/option.h"

namespace collimate::rlhf {

// Every entry of a config's `reward:` list has these keys.
struct RewardSection : base::Section {
  COLLIMATE_OPTION(double, weight, 1.0, "", "factor of this reward in the sum of all");
  COLLIMATE_OPTION(
      nlohmann::json, on_error, "stop", "",
      "what happens when the reward of a sample fails: stop ends the run, drop leaves the sample out, a number becomes "
      "its reward; if every reward gave None, the strictest of the list (stop, then drop, then the lowest number)",
      base::satisfying("stop, drop or a finite number", [](const nlohmann::json& value) {
        return value == "stop" || value == "drop" || (value.is_number() && std::isfinite(value.get<double>()));
      }));
};

// A rule's entry has these keys; each rule adds its own.
struct RuleSection : RewardSection {
  COLLIMATE_OPTION(std::string, rule, "", "", "its name");
};

// An entry that may give other results when it is asked again has these keys.
struct JournaledSection : RewardSection {
  COLLIMATE_OPTION(bool, deterministic, false, "",
                   "true: it gives the same when it is asked again, so that a resumed run asks again; false: its "
                   "results are kept in the journal");
};

// A C++ function's entry has these keys; the function reads its own beside them.
struct FunctionSection : JournaledSection {
  COLLIMATE_OPTION(std::string, function, "", "", "its name", base::not_empty());
};

// An entry whose code in Python runs in a process of its own has these keys.
struct PythonCodeSection : JournaledSection {
  COLLIMATE_OPTION(double, start_timeout_seconds, 60.0, "seconds", "time limit for importing the file",
                   base::above(0.0));
  COLLIMATE_OPTION(std::string, interpreter, "", "",
                   "the Python program that runs it; by default $COLLIMATE_PYTHON, else python3");
  COLLIMATE_OPTION(std::string, sandbox, kNamespaces, "",
                   "namespaces: it runs as another user, without network, sees few files and changes none, and the "
                   "keys below say what more it may; none: it may do all that you may",
                   base::one_of({kNamespaces, kNoSandbox}), base::outside_hash{});
  COLLIMATE_OPTION(bool, network, false, "", "it may use the network of this machine", base::outside_hash{});
  COLLIMATE_OPTION(std::vector<std::string>, environment, {}, "", "names of variables that it may read",
                   base::outside_hash{});
  COLLIMATE_OPTION(std::vector<std::string>, readable, {}, "",
                   "files and directories that it may read, beside those around its file and the current directory",
                   base::outside_hash{});
  COLLIMATE_OPTION(double, memory_gib, 4.0, "GiB", "most memory of its processes together", base::above(0.01),
                   base::outside_hash{});
  COLLIMATE_OPTION(int64_t, processes, 256, "", "most processes and threads at one time", base::at_least(int64_t{1}),
                   base::outside_hash{});
  COLLIMATE_OPTION(int64_t, cpu_seconds, 60, "seconds",
                   "most processor time of each process that it starts; its own time is limited by timeout_seconds",
                   base::at_least(int64_t{1}), base::outside_hash{});

  static constexpr const char* kNamespaces = "namespaces";
  static constexpr const char* kNoSandbox = "none";
  // Throws InputError for a key that gives rights in the sandbox when there is no sandbox.
  void section_demands(const std::string& path) const override;
};

struct PythonSection : PythonCodeSection {
  COLLIMATE_OPTION(std::string, python, "", "", "FILE.py or FILE.py:function", base::not_empty());
  COLLIMATE_OPTION(double, timeout_seconds, 5.0, "seconds",
                   "time limit for one sample; samples that take longer together are asked one by one",
                   base::above(0.0));
  COLLIMATE_OPTION(int64_t, batch_samples, 64, "samples", "most samples that one call gets",
                   base::at_least(int64_t{1}));
};

// An entry of an environment has these keys: it answers each turn of the policy, and so has a part in the rollouts.
struct GymSection : PythonCodeSection {
  COLLIMATE_OPTION(std::string, gym, "", "", "FILE.py or FILE.py:Class", base::not_empty());
  COLLIMATE_OPTION(int64_t, max_turns, 8, "turns", "most turns of the policy in one sample; it is cut off there",
                   base::at_least(int64_t{1}));
  COLLIMATE_OPTION(std::optional<int64_t>, turn_tokens, std::nullopt, "tokens",
                   "the longest turn, which ends there; null: as long as the completion may be, which all turns and "
                   "observations share",
                   base::at_least(int64_t{1}));
  COLLIMATE_OPTION(std::string, role, "user", "", "the role of observations in the model's chat template",
                   base::one_of({"user", "tool"}));
  COLLIMATE_OPTION(double, timeout_seconds, 10.0, "seconds", "time limit for one step of the environment",
                   base::above(0.0));
  COLLIMATE_OPTION(int64_t, workers, 1, "processes",
                   "processes that share the samples; raise it where steps take longer than a token",
                   base::between(int64_t{1}, int64_t{64}), base::outside_hash{});
};

template <class S>
std::unique_ptr<base::Section> section_of() {
  return std::make_unique<S>();
}

// Reads an entry into its section. Throws InputError for unknown keys and wrong values.
template <class Section>
Section read_entry(const nlohmann::json& entry) {
  Section section;
  base::apply(base::from_json(entry, "reward"), "reward", section);
  return section;
}

}  // namespace collimate::rlhf
