#include "collimate/base/html.h"

#include <fmt/format.h>

namespace collimate::base {

std::string html_escape(std::string_view text) {
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

std::string_view html_palette() {
  return R"css(
:root { color-scheme:light dark; --paper:#ffffff; --panel:#f6f7f9; --line:#dde1e7; --ink:#1b2330; --soft:#5b6675;
  --good:#0a7d4f; --bad:#b3261e; --on:#ffffff; --c0:#1f5fd0; --c1:#b34f08; --c2:#087a54; --c3:#8b3fc4; --c4:#b0226b;
  --c5:#5e6b7a; --c6:#7e6607; --c7:#0a7489; }
@media (prefers-color-scheme: dark) {
  :root { --paper:#12161c; --panel:#1a2029; --line:#2e3743; --ink:#e4e9f0; --soft:#9aa7b6; --good:#4fcf96; --bad:#ff8a80;
    --on:#12161c; --c0:#7cacff; --c1:#ff9f5a; --c2:#4fd6a2; --c3:#c79bff; --c4:#ff86bd; --c5:#a9b5c3; --c6:#e0c34a;
    --c7:#5fd0e6; }
}
)css";
}

}  // namespace collimate::base
