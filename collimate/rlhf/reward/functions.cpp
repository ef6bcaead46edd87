#include "collimate/rlhf/reward/functions.h"

#include <map>
#include <mutex>

#include "collimate/base/error.h"

namespace collimate::rlhf {
namespace {

struct Registered {
  std::mutex mutex;
  std::map<std::string, MakeReward> by_name;
};

Registered& registered() {
  static Registered all;
  return all;
}

}  // namespace

void register_reward(const std::string& name, MakeReward make) {
  Registered& all = registered();
  const std::lock_guard lock(all.mutex);
  if (!all.by_name.try_emplace(name, std::move(make)).second)
    throw base::InputError(base::expectation("register_reward", "a name that is free", "\"" + name + "\" again"));
}

void unregister_reward(const std::string& name) {
  Registered& all = registered();
  const std::lock_guard lock(all.mutex);
  all.by_name.erase(name);
}

std::unique_ptr<Reward> registered_reward(const std::string& name, const nlohmann::json& entry) {
  Registered& all = registered();
  MakeReward make;
  {
    const std::lock_guard lock(all.mutex);
    const auto found = all.by_name.find(name);
    if (found != all.by_name.end()) {
      make = found->second;
    } else {
      std::string known;
      for (const auto& [other, ignored] : all.by_name) known += (known.empty() ? "" : ", ") + other;
      throw base::InputError(base::expectation("reward.function",
                                               known.empty() ? "a function that this program registers (it has none)"
                                                             : "one of the registered functions " + known,
                                               "\"" + name + "\"",
                                               "{python: FILE.py:" + name +
                                                   "} for a function in Python, a plugin that "
                                                   "registers it, or rlhf::register_reward in a program"));
    }
  }
  return make(entry);
}

}  // namespace collimate::rlhf
