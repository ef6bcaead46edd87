#include "collimate/text/splitter.h"

#include <algorithm>
#include <memory>

#include "collimate/text/characters.h"
#include "collimate/text/component.h"
#include "collimate/text/utf8.h"

namespace collimate::text {
namespace {

struct Part {
  Span span;
  bool match;
};

// Finds the matches and the gaps between them, in order; with `invert` gaps count as matches and matches as gaps.
// `find(from, match)` gives the next match. An empty match parts the text where it stands.
template <class Find>
void find_parts(std::string_view text, bool invert, Find find, std::vector<Part>& parts) {
  parts.clear();
  size_t at = 0;
  for_each_match(text, find, [&](Span match) {
    if (match.begin > at) parts.push_back({{at, match.begin}, invert});
    parts.push_back({match, !invert});
    at = match.end;
  });
  if (at < text.size()) parts.push_back({{at, text.size()}, invert});
}

bool joins_previous(Behavior behavior, const Part* previous, const Part& part) {
  if (previous == nullptr) return false;
  switch (behavior) {
    case Behavior::kMergedWithPrevious:
      return part.match && !previous->match;
    case Behavior::kMergedWithNext:
      return previous->match && !part.match;
    case Behavior::kContiguous:
      return part.match == previous->match;
    default:
      return false;
  }
}

void append_parts(const std::vector<Part>& parts, Behavior behavior, size_t begin, std::vector<Span>& out) {
  const Part* previous = nullptr;
  const size_t first = out.size();
  for (const Part& part : parts) {
    if (behavior == Behavior::kRemoved && part.match) continue;
    if (joins_previous(behavior, previous, part)) {
      out.back().end = begin + part.span.end;
    } else {
      out.push_back({begin + part.span.begin, begin + part.span.end});
    }
    previous = &part;
  }
  out.erase(std::remove_if(out.begin() + static_cast<std::ptrdiff_t>(first), out.end(),
                           [](const Span& span) { return span.size() == 0; }),
            out.end());
}

// Makes a splitter at what `find(text, from, match)` finds in `see(text)`, which is of the same length as the text.
template <class Find, class See = std::identity>
Splitter splitter_at(Find find, Behavior behavior, bool invert, See see = {}) {
  return [find, behavior, invert, see](std::string_view text, Span piece, std::vector<Span>& out) {
    static thread_local std::vector<Part> parts;
    const std::string_view inside = see(text.substr(piece.begin, piece.size()));
    find_parts(
        inside, invert, [&](size_t from, Span& match) { return find(inside, from, match); }, parts);
    append_parts(parts, behavior, piece.begin, out);
  };
}

}  // namespace

Behavior parse_behavior(const std::string& name, const std::string& where) {
  if (name == "Removed") return Behavior::kRemoved;
  if (name == "Isolated") return Behavior::kIsolated;
  if (name == "MergedWithPrevious") return Behavior::kMergedWithPrevious;
  if (name == "MergedWithNext") return Behavior::kMergedWithNext;
  if (name == "Contiguous") return Behavior::kContiguous;
  unknown_component(where, "split behavior", name, "Removed, Isolated, MergedWithPrevious, MergedWithNext, Contiguous");
}

Splitter regex_splitter(Regex pattern, Behavior behavior, bool invert) {
  const auto regex = std::make_shared<const Regex>(std::move(pattern));
  return splitter_at(
      [regex](std::string_view text, size_t from, Span& match) { return regex->find(text, from, match); }, behavior,
      invert,
      [](std::string_view text) {
        static thread_local std::string buffer;
        return with_stand_ins(text, buffer);
      });
}

Splitter text_splitter(const std::string& text, Behavior behavior, bool invert) {
  return splitter_at(
      [text](std::string_view inside, size_t from, Span& match) {
        const size_t at = inside.find(text, from);
        match = {at, at + text.size()};
        return at != std::string_view::npos;
      },
      behavior, invert);
}

Splitter character_splitter(std::function<bool(uint32_t)> matches, Behavior behavior) {
  return splitter_at(
      [matches](std::string_view text, size_t from, Span& match) {
        while (from < text.size()) {
          const Character character = character_at(text, from);
          match = {from, from + character.size};
          if (matches(character.code_point)) return true;
          from += character.size;
        }
        return false;
      },
      behavior, false);
}

Splitter run_splitter(std::function<int(uint32_t)> number) {
  return [number](std::string_view text, Span piece, std::vector<Span>& out) {
    int before = -1;
    for (size_t at = piece.begin; at < piece.end;) {
      const Character character = character_at(text, at);
      const int now = number(character.code_point);
      if (now >= 0 && now == before) out.back().end += character.size;
      if (now >= 0 && now != before) out.push_back({at, at + character.size});
      before = now;
      at += character.size;
    }
  };
}

Splitter script_splitter() {
  return [](std::string_view text, Span piece, std::vector<Span>& out) {
    const size_t first = out.size();
    const bool keeps_front = piece.begin > 0 && previous_character(text, piece.begin) == piece.begin;
    int before = -1;
    for (size_t at = piece.begin; at < piece.end;) {
      const Character character = character_at(text, at);
      const int script = script_of(character.code_point);
      const bool changes = script >= 0 && script != before;
      if (changes || (keeps_front && out.size() == first)) {
        out.push_back({at, at + character.size});
      } else if (out.size() > first) {
        out.back().end += character.size;
      }
      if (changes) before = script;
      at += character.size;
    }
  };
}

Splitter length_splitter(size_t characters) {
  return [characters](std::string_view text, Span piece, std::vector<Span>& out) {
    size_t count = 0;
    for (size_t at = piece.begin; at < piece.end; ++count) {
      const size_t size = character_at(text, at).size;
      if (count % characters == 0) out.push_back({at, at});
      out.back().end += size;
      at += size;
    }
  };
}

}  // namespace collimate::text
