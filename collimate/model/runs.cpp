#include "collimate/model/runs.h"

#include <utility>

#include "collimate/base/at.h"
#include "collimate/base/error.h"

namespace collimate::model {
namespace {

void check_batch(const TokenBatch& tokens) {
  COLLIMATE_CHECK(tokens.ids.size() == tokens.positions.size(), "{} ids, {} positions", tokens.ids.size(),
                  tokens.positions.size());
  COLLIMATE_CHECK(!tokens.starts.empty() && tokens.starts.front() == 0 &&
                      tokens.starts.back() == static_cast<int32_t>(tokens.ids.size()),
                  "starts must run from 0 to {} tokens", tokens.ids.size());
}

// Returns the run of sequence i of a batch, with places counted from position `origin`. Checks that the sequence is not
// empty and its positions ascend by one.
tensor::AttentionRun run_of(const TokenBatch& tokens, size_t i, int32_t origin) {
  const int32_t first = tokens.starts[i], end = tokens.starts[i + 1];
  COLLIMATE_CHECK(first < end, "sequence {} is empty", i);
  const int32_t position = base::at(tokens.positions, first);
  COLLIMATE_CHECK(base::at(tokens.positions, end - 1) == position + (end - first - 1),
                  "positions of sequence {} do not ascend by one", i);
  return {first, end - first, position - origin, nullptr};
}

// Returns the run as one that goes on where the whole sequence `of` ends. The block that `of` fills only in part
// becomes a block of the run's own.
tensor::AttentionRun continuation_of(tensor::AttentionRun run, const tensor::AttentionRun& of) {
  COLLIMATE_CHECK(of.first_position == 0 && run.first_position == of.tokens,
                  "a sequence at position {} continues one of {} tokens from {}", run.first_position, of.tokens,
                  of.first_position);
  run.tail = of.tokens % tensor::KvLayout::kBlockTokens;
  run.tail_row = of.first_row + of.tokens - run.tail;
  return run;
}

// Replaces the runs and documents of a whole batch by this rank's pieces, and moves the whole runs to `appended`.
void cut_runs(const ContextCut& cut, Runs& all) {
  std::vector<tensor::AttentionRun> runs;
  std::vector<tensor::Document> documents;
  int64_t row = 0;
  for (const TokenPiece& piece : cut.pieces()) {
    const tensor::AttentionRun& run = base::at(all.runs, piece.sequence);
    const int64_t ahead = piece.first - run.first_row;
    runs.push_back({row, piece.tokens, run.first_position + ahead, run.blocks});
    documents.push_back(base::at(all.documents, piece.sequence));
    documents.back().tokens = ahead + piece.tokens;
    documents.back().queries = {row, piece.tokens};
    row += piece.tokens;
  }
  all.appended = std::exchange(all.runs, std::move(runs));
  all.documents = std::move(documents);
}

}  // namespace

Runs scratch_runs(const TokenBatch& tokens) {
  check_batch(tokens);
  Runs all;
  std::vector<int64_t> tables;  // where each run's table begins in all.tables
  for (size_t i = 0; i + 1 < tokens.starts.size(); ++i) {
    const int32_t of = tokens.continued.empty() ? -1 : tokens.continued[i];
    const size_t whole = of < 0 ? i : static_cast<size_t>(of);
    const int32_t origin = base::at(tokens.positions, tokens.starts[whole]);
    const tensor::AttentionRun own = run_of(tokens, i, origin);
    all.runs.push_back(of < 0 ? own : continuation_of(own, all.runs[whole]));
    const tensor::AttentionRun& run = all.runs.back();
    const int64_t end = run.first_position + run.tokens;
    all.documents.push_back(
        {run.first_row, run.tokens, run.first_position, of < 0 ? 0 : base::at(all.runs, of).first_row});
    tables.push_back(static_cast<int64_t>(all.tables.size()));
    const int64_t shared = (run.first_position - run.tail) / tensor::KvLayout::kBlockTokens;
    for (int64_t block = 0; block < shared; ++block)
      all.tables.push_back(base::at(all.tables, base::at(tables, of) + block));
    for (int64_t block = shared; block < tensor::KvLayout::blocks_for(end); ++block)
      all.tables.push_back(static_cast<int32_t>(all.blocks++));
    all.last_position = std::max(all.last_position, origin + end - 1);
  }
  for (size_t i = 0; i < all.runs.size(); ++i) all.runs[i].blocks = all.tables.data() + tables[i];
  all.cut = tokens.cut;
  if (all.cut != nullptr && all.cut->ranks().kind == shape::ContextKind::kGather) cut_runs(*all.cut, all);
  return all;
}

Runs cached_runs(const TokenBatch& tokens, std::span<const std::vector<int32_t>> tables) {
  check_batch(tokens);
  COLLIMATE_CHECK(tables.size() + 1 == tokens.starts.size(), "{} tables", tables.size());
  Runs all;
  for (size_t i = 0; i < tables.size(); ++i) {
    tensor::AttentionRun run = run_of(tokens, i, 0);
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
