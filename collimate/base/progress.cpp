#include "collimate/base/progress.h"

#include <unistd.h>

#include <algorithm>
#include <cmath>

#include "collimate/base/characters.h"
#include "collimate/base/deadline.h"
#include "collimate/base/terminal.h"

namespace collimate::base {
namespace {

constexpr int kBarColumns = 20;

std::string bar(double fraction, int width) {
  const int full = static_cast<int>(std::lround(std::clamp(fraction, 0.0, 1.0) * width));
  std::string out;
  for (int i = 0; i < width; ++i) out += i < full ? "\u2588" : "\u2591";
  return out;
}

// Cuts a text to `columns` characters (UTF-8 code points), so that a line with a bar never wraps.
std::string cut_to_columns(const std::string& text, int columns) {
  size_t end = 0;
  for (; end < text.size() && columns >= 0; ++end)
    if (begins_character(text[end]) && columns-- == 0) break;
  return text.substr(0, end);
}

// Returns "  2.1 s/it  ETA 34 s", "" before the first step, and no ETA after the last.
std::string pace_text(const ProgressState& state) {
  const int64_t fresh = state.done - state.first;
  if (fresh <= 0) return "";
  const double pace = state.elapsed_seconds / static_cast<double>(fresh);
  std::string out = fmt::format("  {:.3g} s/it", pace);
  if (state.done < state.total)
    out += fmt::format("  ETA {}", format_duration(pace * static_cast<double>(state.total - state.done)));
  return out;
}

}  // namespace

std::string format_duration(double seconds) {
  const auto whole = static_cast<int64_t>(std::lround(std::clamp(seconds, 0.0, 1e9)));
  if (whole < 60) return fmt::format("{} s", whole);
  if (whole < 3600) return fmt::format("{}:{:02}", whole / 60, whole % 60);
  return fmt::format("{}:{:02}:{:02}", whole / 3600, whole / 60 % 60, whole % 60);
}

std::string progress_text(const ProgressState& state, std::string_view details, int bar_columns) {
  std::string out = state.label;
  const double fraction = state.total > 0 ? static_cast<double>(state.done) / static_cast<double>(state.total) : 0;
  if (bar_columns > 0) out += "  " + bar(fraction, bar_columns);
  out += fmt::format("  {}/{}", state.done, state.total);
  const size_t end = std::min(details.find("  "), details.size());
  if (!details.empty()) out += fmt::format("  {}", details.substr(0, end));
  return out + pace_text(state) + std::string(details.substr(end));
}

std::string terminal_progress_text(const ProgressState& state, std::string_view details, int columns) {
  const std::string_view first = details.substr(0, std::min(details.find("  "), details.size()));
  const int room = columns - static_cast<int>(characters_in(progress_text(state, first, 0))) - 2;
  const int bar_columns = room < kBarColumns / 4 ? 0 : std::min(room, kBarColumns);
  return cut_to_columns(progress_text(state, details, bar_columns), columns);
}

Progress::Progress(std::string label, int64_t total, int64_t first, int64_t every)
    : state_{std::move(label), first, total, first, 0},
      first_(first),
      every_(every),
      start_seconds_(now_seconds()),
      terminal_(every > 0 && ::isatty(STDERR_FILENO) == 1) {}

Progress::~Progress() {
  if (terminal_) log().progress_line("", true);
}

void Progress::update(int64_t done, std::string_view details) {
  if (every_ == 0) return;
  state_.done = done;
  state_.elapsed_seconds = now_seconds() - start_seconds_;
  const bool stays = done % every_ == 0 || done == first_ + 1 || done == state_.total;
  if (stays) log().show(progress_text(state_, details, 0));
  if (terminal_)
    log().progress_line(terminal_progress_text(state_, details, terminal_columns(STDERR_FILENO, 80) - 1), true);
  if (state_.first == first_) {
    state_.first = done;
    start_seconds_ = now_seconds();
  }
}

}  // namespace collimate::base
