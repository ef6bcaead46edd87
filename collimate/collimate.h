#pragma once

// All that a program includes which adds a loss, an advantage or a reward of its own to Collimate (docs/install.md has
// the whole of one):
//
//   int main(int argc, char** argv) {
//     collimate::register_losses(…);      // algorithm.loss_type may name them,
//     collimate::register_advantage(…);   // algorithm.advantage this,
//     collimate::register_reward(…);      // {function: NAME} of `reward` this
//     return collimate::run_program(argc, argv);   // and this is `collimate`: train, check, help, …
//   }
//
// What stands here stays from version to version, or the change log says what became of it; other headers that come
// with it may change. Tensors are libtorch's: a program includes the operations that it uses (<ATen/ops/exp.h>).
#include "collimate/batch/batch.h"
#include "collimate/batch/standard_keys.h"
#include "collimate/cli/program.h"
#include "collimate/rlhf/advantage/group.h"
#include "collimate/rlhf/advantage/list.h"
#include "collimate/rlhf/loss/list.h"
#include "collimate/rlhf/reward/functions.h"
#include "collimate/rlhf/reward/rules.h"

namespace collimate {

using cli::run_program;
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
