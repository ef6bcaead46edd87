#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>

namespace collimate::text::jinja {

// A statement or an operation costs kStepCost, an item that is looked at kItemCost, and a byte that is made or read 1.
inline constexpr size_t kStepCost = 100, kItemCost = 8;
inline constexpr int kMostLevels = 200;

// Bounds the time and memory of what a thread renders while it lives: 512 MiB of made and read bytes, where steps and
// items count as bytes too.
class Budget {
 public:
  Budget();
  ~Budget();
  Budget(const Budget&) = delete;
  Budget& operator=(const Budget&) = delete;

 private:
  size_t outer_;
};

// Takes `cost` from the thread's budget. Throws InputError where less is left; without a budget there is no limit.
void charge(size_t cost);
// Throws InputError where less than `count` times `each` is left. Takes nothing: what is made then is charged as a
// Value.
void expect_room(size_t count, size_t each);

// Counts one more level of calls and expressions in each other while it lives. Throws InputError for too many.
class Level {
 public:
  explicit Level(int& levels);
  ~Level() { --levels_; }
  Level(const Level&) = delete;
  Level& operator=(const Level&) = delete;

 private:
  int& levels_;
};

// Makes a text piece by piece, each of which is charged twice: growing may take as much again.
class Pieces {
 public:
  Pieces& operator<<(std::string_view piece) {
    charge(2 * piece.size());
    text_ += piece;
    return *this;
  }
  Pieces& operator<<(char c) { return *this << std::string_view(&c, 1); }
  bool empty() const { return text_.empty(); }
  std::string take() { return std::move(text_); }

 private:
  std::string text_;
};

}  // namespace collimate::text::jinja
