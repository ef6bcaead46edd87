#include "collimate/serve/channel.h"

#include <algorithm>
#include <utility>

#include "collimate/base/at.h"
#include "collimate/base/error.h"

namespace collimate::serve {

Channel::Channel(int64_t choices, std::optional<int64_t> capacity_tokens)
    : capacity_(capacity_tokens), dropped_(static_cast<size_t>(choices), 0) {}

void Channel::accept(std::vector<generate::PromptLogProbs> prompt_log_probs) {
  const std::lock_guard lock(mutex_);
  prompt_log_probs_ = std::move(prompt_log_probs);
  accepted_ = true;
  changed_.notify_all();
}

bool Channel::push(int64_t choice, const generate::Emission& emission) {
  const std::lock_guard lock(mutex_);
  if (cause_) return false;
  if (base::at(dropped_, choice)) return true;
  tokens_ += static_cast<int64_t>(emission.tokens.size());
  if (capacity_ && tokens_ > *capacity_) {
    cause_ = std::make_exception_ptr(base::RunError(
        base::expectation("serve", fmt::format("a client that leaves at most {} tokens unread", *capacity_),
                          "more of them", "reading faster, or a larger buffer_tokens")));
    pieces_.clear();
    changed_.notify_all();
    return false;
  }
  auto piece = std::find_if(pieces_.begin(), pieces_.end(), [&](const Piece& p) { return p.choice == choice; });
  if (piece == pieces_.end()) piece = pieces_.insert(pieces_.end(), Piece{.choice = choice});
  piece->tokens.insert(piece->tokens.end(), emission.tokens.begin(), emission.tokens.end());
  piece->log_probs.insert(piece->log_probs.end(), emission.log_probs.begin(), emission.log_probs.end());
  piece->top_log_probs.insert(piece->top_log_probs.end(), emission.top_log_probs.begin(), emission.top_log_probs.end());
  piece->finish = emission.finish;
  changed_.notify_all();
  return true;
}

void Channel::fail(std::exception_ptr cause) {
  const std::lock_guard lock(mutex_);
  if (!cause_) cause_ = std::move(cause);
  changed_.notify_all();
}

bool Channel::wanted(int64_t choice) const {
  const std::lock_guard lock(mutex_);
  return !cause_ && !base::at(dropped_, choice);
}

bool Channel::wait_accepted(const base::Deadline& deadline) {
  std::unique_lock lock(mutex_);
  const bool in_time = base::wait_until(changed_, lock, deadline, [&] { return accepted_ || cause_; });
  if (cause_) std::rethrow_exception(cause_);
  return in_time;
}

std::vector<Piece> Channel::take(const base::Deadline& deadline) {
  std::unique_lock lock(mutex_);
  base::wait_until(changed_, lock, deadline, [&] { return !pieces_.empty() || cause_; });
  if (pieces_.empty() && cause_) std::rethrow_exception(cause_);
  tokens_ = 0;
  return std::exchange(pieces_, {});
}

void Channel::drop(int64_t choice) {
  const std::lock_guard lock(mutex_);
  base::at(dropped_, choice) = 1;
  const auto piece = std::ranges::find(pieces_, choice, &Piece::choice);
  if (piece == pieces_.end()) return;
  tokens_ -= std::ssize(piece->tokens);
  pieces_.erase(piece);
}

void Channel::drop_all() {
  const std::lock_guard lock(mutex_);
  std::fill(dropped_.begin(), dropped_.end(), 1);
  pieces_.clear();
  tokens_ = 0;
}

}  // namespace collimate::serve
