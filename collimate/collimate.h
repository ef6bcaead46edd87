#pragma once

// All that a program or a plugin includes which adds parts of its own to Collimate (docs/how-to/own-flows.md): recipes
// and their modules, losses, advantages, rewards.
//
//   int main(int argc, char** argv) {              COLLIMATE_PLUGIN {
//     collimate::register_recipe(…);                 collimate::register_recipe(…);
//     collimate::register_module<Novelty>(…);        collimate::register_module<Novelty>(…);
//     collimate::register_losses(…);                 …
//     collimate::register_advantage(…);            }
//     collimate::register_reward(…);
//     return collimate::run_program(argc, argv);
//   }
//
// The program on the left is `collimate` with these parts: train, check, help, …. The shared library on the right adds
// them to any program that is told of it, by the key `plugins` of a config or by --plugin.
//
// What stands here stays from version to version, or the change log says what became of it; other headers that come
// with it may change. Tensors are libtorch's: a program includes the operations that it uses (<ATen/ops/exp.h>).
#include "collimate/batch/batch.h"
#include "collimate/batch/standard_keys.h"
#include "collimate/cli/program.h"
#include "collimate/flow/host_module.h"
#include "collimate/flow/module.h"
#include "collimate/graph/trace.h"
#include "collimate/recipe/deepspeed_chat.h"
#include "collimate/recipe/evaluation/graphs.h"
#include "collimate/recipe/list.h"
#include "collimate/recipe/page.h"
#include "collimate/recipe/plugin_form.h"
#include "collimate/recipe/registry.h"
#include "collimate/rlhf/advantage/group.h"
#include "collimate/rlhf/advantage/list.h"
#include "collimate/rlhf/loss/list.h"
#include "collimate/rlhf/reward/functions.h"
#include "collimate/rlhf/reward/rules.h"

namespace collimate {

using cli::run_program;
// A recipe is a page: handles of models, a traced graph, and a Plan of both.
using graph::Graph;
using graph::ModelHandle;
using graph::trace;
using graph::Value;
using recipe::AskedMeasure;
using recipe::completion_evaluation;
using recipe::Config;
using recipe::evaluations;
using recipe::MeasureKind;
using recipe::Page;
using recipe::Plan;
using recipe::RecipeEntry;
using recipe::register_recipe;
using recipe::rollout_plan;
using rlhf::RowKind;
// The training loop in a program of one's own, as DeepSpeed-Chat has it.
using recipe::DeepSpeedPPOTrainer;
using recipe::DeepSpeedRLHFEngine;
using recipe::PPOLosses;
// A module is a class with named functions over batches.
using base::StateReader;
using base::StateWriter;
using flow::CallInfo;
using flow::Context;
using flow::HostModule;
using flow::Metric;
using flow::Module;
using flow::Reduce;
using flow::Registry;
using flow::RetryableError;
using graph::FunctionSpec;
using graph::Granularity;
using graph::Kind;
using recipe::register_module;
using rlhf::AdvantageEntry;
using rlhf::AlgorithmOptions;
using rlhf::Loss;
using rlhf::LossContext;
using rlhf::LossEntry;
using rlhf::LossSetting;
using rlhf::RewardSample;
// These make a reward of a function of one sample, and advantages of one number for each sample.
using rlhf::function_reward;
using rlhf::register_advantage;
using rlhf::register_losses;
using rlhf::register_reward;
using rlhf::rewards_by_group;
using rlhf::with_row_advantages;

}  // namespace collimate
