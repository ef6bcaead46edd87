#pragma once

#include <CLI/CLI.hpp>

#include "collimate/cli/verbs.h"

namespace collimate::cli {

// Parses a verb's arguments. False when help was asked for and printed. InputError naming the verb for anything wrong.
bool parse(CLI::App& app, const Arguments& arguments);

}  // namespace collimate::cli
