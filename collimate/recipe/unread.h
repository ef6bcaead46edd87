#pragma once

#include <string>
#include <vector>

#include "collimate/recipe/page.h"

namespace collimate::recipe {

// Throws InputError where the config gives an option another value than its default and nothing in the plan reads it:
// "[train.value_learning_rate] expected an option that recipe sft reads, which trains no value model, got 0.001; try
// …". An option may stand with its default, as in a resolved config.
void refuse_unread(const Config& config, const Plan& plan);

// Returns whether nothing in the plan reads that option, with the values of others as they are: "data.train_on" of a
// recipe that draws its rows, "train.lr_minimum_ratio" beside a constant learning rate.
bool is_unread(const Config& config, const Plan& plan, const std::string& option);

// Returns whether the option says nothing of the run at its default: nothing reads it, or it concerns few runs, such as
// "tp" or "train.offload".
bool says_nothing(const Config& config, const Plan& plan, const std::string& option);

// Returns a text in the form of base/error.h for each option that is set about evaluations where there are none. These
// are not refused, as data.eval=null switches evaluations off.
std::vector<std::string> idle_options(const Config& config);

}  // namespace collimate::recipe
