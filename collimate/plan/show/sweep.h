#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "collimate/plan/search/search.h"
#include "collimate/plan/show/columns.h"

namespace collimate::plan {

// A variant is the same request with another value of one thing.
struct Variant {
  std::string label;  // "64"
  Request request;
  SearchResult result;
};

// Searches the request with each value of one thing: `devices=32,64` (in all; every kind keeps its share),
// `gpu=A100-80,H100-80` (in place of every kind) or `staleness=0,1,4` (bounds, as the request's). A price that is given
// holds for its own kind of device. Throws InputError naming the part.
std::vector<Variant> sweep(const Request& request, const std::string& text);
// Writes a row for each variant: form, seconds, tokens per second, cost of a run, and speed-up over the first one that
// fits, or why nothing fits. Lines are as those of plan_text.h.
std::string sweep_text(const std::vector<Variant>& variants, int64_t iterations, int columns = kTextColumns);
nlohmann::ordered_json sweep_json(const std::vector<Variant>& variants, int64_t iterations);

}  // namespace collimate::plan
