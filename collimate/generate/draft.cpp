#include "collimate/generate/draft.h"

#include <algorithm>

namespace collimate::generate {
namespace {

int64_t shared_beginning(std::span<const int32_t> a, std::span<const int32_t> b) {
  return std::mismatch(a.begin(), a.end(), b.begin(), b.end()).first - a.begin();
}

}  // namespace

Draft::Draft(model::Model& model, tensor::Exec exec, DraftLimits limits, uint64_t run_seed)
    : model_(model),
      limits_(limits),
      pool_(limits.blocks),
      runner_(model, exec, pool_.size(), limits.kv_type, run_seed) {}

void Draft::propose(std::span<const Guess> guesses) {
  guessing_.clear();
  for (auto& [uid, shadow] : shadows_) shadow.original = nullptr;
  for (const Guess& guess : guesses) follow(guess);
  make_room();
  while (plan_next()) {
    const auto drawn = runner_.run(plan_);
    for (const Run& run : plan_.runs) run.sequence->computed += run.count;
    for (const DrawnFor& draw : drawn) {
      draw.sequence->ids.push_back(draw.drawn[0].token);
      draw.sequence->history.append(draw.drawn[0].token);
    }
  }
  for (Shadow* shadow : guessing_) {
    const auto begin = shadow->sequence.ids.begin() + shadow->original->length();
    const auto end =
        std::find_if(begin, shadow->sequence.ids.end(), [&](int32_t id) { return id >= limits_.vocabulary; });
    shadow->original->speculation.proposed.assign(begin, end);
  }
}

bool Draft::can_follow(const Sequence& original) const {
  const int64_t vocabulary = model_.shape().vocabulary;
  if (original.length() > model_.shape().positions()) return false;
  return vocabulary >= limits_.vocabulary ||
         std::all_of(original.ids.begin(), original.ids.end(), [&](int32_t id) { return id < vocabulary; });
}

// Makes the shadow a copy of the sequence. The keys and values of the beginning that both have in common stay.
void Draft::follow(const Guess& guess) {
  Sequence& original = *guess.sequence;
  original.speculation.proposed.clear();
  if (!can_follow(original)) return;
  Shadow& shadow = shadows_[original.uid];
  shadow.original = &original;
  shadow.left = std::min(guess.most, model_.shape().positions() - original.length() + 1);  // the last guess is not run
  Sequence& own = shadow.sequence;
  own.uid = original.uid;
  own.params = original.params;
  own.params.top_log_probs = 0;
  own.prompt_tokens = original.prompt_tokens;
  own.computed = std::min({own.computed, shared_beginning(own.ids, original.ids), original.length() - 1});
  own.ids = original.ids;
  own.history = original.history;
  own.trim_cache();
  guessing_.push_back(&shadow);
}

// Allocates blocks for all sequences that guess. If there are too few, the shadows of other sequences are dropped
// first; then a sequence that finds too few gives its blocks back and does not guess, so that others can.
void Draft::make_room() {
  const auto missing = [](const Shadow& shadow) {
    return blocks_for(shadow.sequence.length() + shadow.left - 1) - std::ssize(shadow.sequence.blocks);
  };
  int64_t needed = 0;
  for (const Shadow* shadow : guessing_) needed += missing(*shadow);
  if (needed > pool_.free()) std::erase_if(shadows_, [](const auto& one) { return one.second.original == nullptr; });
  std::erase_if(guessing_, [&](Shadow* shadow) {
    const bool fits = missing(*shadow) <= pool_.free();
    if (!fits) shadow->sequence.drop_cache();
    while (fits && missing(*shadow) > 0) shadow->sequence.blocks.push_back(pool_.allocate());
    return !fits;
  });
}

// Overwrites the plan with the runs of the next pass. Returns false when all guesses are made.
bool Draft::plan_next() {
  plan_.clear();
  int64_t room = limits_.batch_tokens;
  for (Shadow* shadow : guessing_) {
    Sequence& own = shadow->sequence;
    const int64_t count = std::min(own.pending(), room);
    if (shadow->left == 0 || count == 0) continue;
    const bool draws = count == own.pending();
    plan_.runs.push_back({&own, own.computed, count, draws});
    room -= count;
    shadow->left -= draws ? 1 : 0;
  }
  return !plan_.empty();
}

}  // namespace collimate::generate
