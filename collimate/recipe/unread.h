#pragma once

#include <string>
#include <vector>

#include "collimate/recipe/page.h"

namespace collimate::recipe {

// InputError where the config gives an option another value than its default and nothing in the plan reads it:
// "[train.value_learning_rate] expected an option that recipe sft reads, which trains no value model, got 0.001; try
// …". With its default, as a resolved config has it, it may stand.
void refuse_unread(const Config& config, const Plan& plan);

// Reads nothing in the plan that option, with the values of others as they are? "data.train_on" of a recipe that draws
// its rows, "train.lr_minimum_ratio" beside a constant learning rate.
bool is_unread(const Config& config, const Plan& plan, const std::string& option);

// Names what is set about evaluations where there are none, each in the form of base/error.h. Not refused:
// data.eval=null switches evaluations off.
std::vector<std::string> idle_options(const Config& config);

}  // namespace collimate::recipe
