#include "collimate/base/error.h"
#include "collimate/model/forward_record.h"

namespace collimate::model {
namespace {

void check_batch(const TokenBatch& tokens) {
  COLLIMATE_CHECK(tokens.ids.size() == tokens.positions.size(), "{} ids, {} positions", tokens.ids.size(),
                  tokens.positions.size());
  COLLIMATE_CHECK(!tokens.starts.empty() && tokens.starts.front() == 0 &&
                      tokens.starts.back() == static_cast<int32_t>(tokens.ids.size()),
                  "starts must run from 0 to {} tokens", tokens.ids.size());
}

// Sequence i of a batch: its rows, and the checked position of its first token.
tensor::AttentionRun run_of(const TokenBatch& tokens, size_t i) {
  const int32_t first = tokens.starts[i], end = tokens.starts[i + 1];
  COLLIMATE_CHECK(first < end, "sequence {} is empty", i);
  const auto row = static_cast<size_t>(first);
  COLLIMATE_CHECK(tokens.positions[static_cast<size_t>(end) - 1] == tokens.positions[row] + (end - first - 1),
                  "positions of sequence {} do not ascend by one", i);
  return {first, end - first, tokens.positions[row], nullptr};
}

}  // namespace

TokenBatch pack_sequences(std::span<const std::span<const int32_t>> sequences) {
  TokenBatch batch;
  batch.starts.push_back(0);
  for (const auto& sequence : sequences) {
    batch.ids.insert(batch.ids.end(), sequence.begin(), sequence.end());
    for (size_t i = 0; i < sequence.size(); ++i) batch.positions.push_back(static_cast<int32_t>(i));
    batch.starts.push_back(static_cast<int32_t>(batch.ids.size()));
  }
  return batch;
}

Runs scratch_runs(const TokenBatch& tokens) {
  check_batch(tokens);
  Runs all;
  for (size_t i = 0; i + 1 < tokens.starts.size(); ++i) {
    const tensor::AttentionRun run = run_of(tokens, i);
    COLLIMATE_CHECK(run.first_position == 0, "sequence {} does not start at position 0", i);
    all.runs.push_back(run);
    all.documents.push_back({run.first_row, run.tokens});
    all.blocks += tensor::KvLayout::blocks_for(run.tokens);
    all.last_position = std::max(all.last_position, run.tokens - 1);
  }
  for (int64_t block = 0; block < all.blocks; ++block) all.identity.push_back(static_cast<int32_t>(block));
  int64_t next = 0;
  for (tensor::AttentionRun& run : all.runs) {
    run.blocks = all.identity.data() + next;
    next += tensor::KvLayout::blocks_for(run.tokens);
  }
  return all;
}

Runs cached_runs(const TokenBatch& tokens, std::span<const std::vector<int32_t>> tables) {
  check_batch(tokens);
  COLLIMATE_CHECK(tables.size() + 1 == tokens.starts.size(), "{} tables", tables.size());
  Runs all;
  for (size_t i = 0; i < tables.size(); ++i) {
    tensor::AttentionRun run = run_of(tokens, i);
    const int64_t end = run.first_position + run.tokens;
    COLLIMATE_CHECK(static_cast<int64_t>(tables[i].size()) >= tensor::KvLayout::blocks_for(end),
                    "sequence {} has {} blocks for {} tokens", i, tables[i].size(), end);
    run.blocks = tables[i].data();
    all.runs.push_back(run);
    all.last_position = std::max(all.last_position, end - 1);
  }
  return all;
}

}  // namespace collimate::model
