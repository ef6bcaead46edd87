#include "collimate/report/html.h"

#include <fmt/format.h>

#include <cmath>

namespace collimate::report {

std::string escape(std::string_view text) {
  std::string out;
  out.reserve(text.size() + text.size() / 8);
  for (const char c : text) {
    const auto code = static_cast<unsigned char>(c);
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      case '\'':
        out += "&#39;";
        break;
      case '\n':
      case '\t':
        out += c;
        break;
      default:
        if (code < 0x20) {
          out += fmt::format("&#{};", 0x2400 + code);
        } else {
          out += c;
        }
    }
  }
  return out;
}

std::string short_number(double value, bool percent) {
  if (percent) return fmt::format("{:.3g} %", value * 100);
  const double size = std::fabs(value);
  if (size >= 1e9) return fmt::format("{:.3g}G", value * 1e-9);
  if (size >= 1e6) return fmt::format("{:.3g}M", value * 1e-6);
  if (size >= 1e4) return fmt::format("{:.3g}k", value * 1e-3);
  if (size >= 1000) return fmt::format("{:.0f}", value);
  return fmt::format("{:.3g}", value);
}

std::string duration(double seconds) {
  if (seconds < 1) return fmt::format("{:.3g} ms", seconds * 1000);
  if (seconds < 100) return fmt::format("{:.3g} s", seconds);
  const auto whole = static_cast<int64_t>(std::llround(seconds));
  if (whole < 3600) return fmt::format("{} min {:02} s", whole / 60, whole % 60);
  return fmt::format("{} h {:02} min", whole / 3600, whole / 60 % 60);
}

std::string byte_size(double bytes) {
  constexpr const char* kUnits[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  size_t unit = 0;
  for (; bytes >= 1024 && unit + 1 < std::size(kUnits); ++unit) bytes /= 1024;
  return fmt::format("{:.3g} {}", bytes, kUnits[unit]);
}

}  // namespace collimate::report
