#pragma once

#include <filesystem>
#include <string>

#include "collimate/base/metrics.h"
#include "collimate/batch/batch.h"
#include "collimate/flow/executor.h"
#include "collimate/recipe/page.h"
#include "collimate/text/tokenizer.h"

namespace collimate::recipe {

// Adds what the driver itself tells of an iteration's samples: rewards, lengths, tokens (verl's families).
void add_sample_metrics(const Batch& samples, double seconds, base::MetricsRecord& record);

// One line per sample, {"step", "uid", "prompt", "completion", "reward", "expected", …}, written at once.
void write_samples(const Batch& samples, const text::Tokenizer& tokenizer, int64_t step,
                   const std::filesystem::path& path);

}  // namespace collimate::recipe
