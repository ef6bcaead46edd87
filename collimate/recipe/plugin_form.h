#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "collimate/flow/host_module.h"
#include "collimate/recipe/list.h"
#include "collimate/rlhf/advantage/list.h"
#include "collimate/rlhf/loss/list.h"
#include "collimate/rlhf/reward/functions.h"

// A plugin is a shared library with parts of a user's own, which a config names in `plugins`. One of its sources has
//
//   COLLIMATE_PLUGIN { collimate::register_reward(…); collimate::register_recipe(…); }
//
// once. This code runs when the plugin is loaded.

namespace collimate::recipe {

// Returns a hash of the sizes of the types that a plugin and its program hand to each other. Both sides compute it as a
// constant of the headers that they were compiled with, and types of equal sizes have equal hashes.
constexpr uint64_t plugin_layout() {
  constexpr std::array<size_t, 16> kSizes = {sizeof(RecipeEntry),
                                             sizeof(Plan),
                                             sizeof(Page),
                                             sizeof(Config),
                                             sizeof(EvaluationPlan),
                                             sizeof(graph::Node),
                                             sizeof(graph::Graph),
                                             sizeof(graph::FunctionSpec),
                                             sizeof(flow::Context),
                                             sizeof(Batch),
                                             sizeof(flow::CallInfo),
                                             sizeof(flow::HostModule),
                                             sizeof(rlhf::LossSetting),
                                             sizeof(rlhf::Loss),
                                             sizeof(rlhf::LossContext),
                                             sizeof(rlhf::AdvantageEntry)};
  uint64_t hash = 14695981039346656037ULL;  // FNV-1a
  for (const size_t size : kSizes) hash = (hash ^ size) * 1099511628211ULL;
  return hash;
}

}  // namespace collimate::recipe

// Says what a plugin is built for: the version of the headers, and what decides how names and objects of the standard
// library look.
#define COLLIMATE_TEXT_OF(x) #x
#define COLLIMATE_AS_TEXT(x) COLLIMATE_TEXT_OF(x)
#define COLLIMATE_PLUGIN_BUILT_FOR \
  "collimate " COLLIMATE_VERSION   \
  " and the C++ ABI " COLLIMATE_AS_TEXT(__GXX_ABI_VERSION) "." COLLIMATE_AS_TEXT(_GLIBCXX_USE_CXX11_ABI)

// NOLINTNEXTLINE(bugprone-macro-parentheses)
#define COLLIMATE_PLUGIN                                                                           \
  extern "C" __attribute__((visibility("default"))) const char* collimate_plugin_built_for() {     \
    return COLLIMATE_PLUGIN_BUILT_FOR;                                                             \
  }                                                                                                \
  extern "C" __attribute__((visibility("default"))) unsigned long long collimate_plugin_layout() { \
    constexpr unsigned long long kLayout = ::collimate::recipe::plugin_layout();                   \
    return kLayout;                                                                                \
  }                                                                                                \
  extern "C" __attribute__((visibility("default"))) void collimate_plugin_register()
