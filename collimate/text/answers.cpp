#include "collimate/text/answers.h"

#include <algorithm>
#include <optional>
#include <span>
#include <string_view>

#include "collimate/base/error.h"
#include "collimate/text/chat_template.h"
#include "collimate/text/stand_in.h"

namespace collimate::text {
namespace {

size_t common_size(std::string_view a, std::string_view b) {
  return static_cast<size_t>(std::ranges::mismatch(a, b).in1 - a.begin());
}

size_t common_end_size(std::string_view a, std::string_view b) {
  const auto ends = std::mismatch(a.rbegin(), a.rend(), b.rbegin(), b.rend());
  return static_cast<size_t>(ends.first - a.rbegin());
}

bool has_special(const Tokenizer& tokenizer, std::string_view text) {
  return std::ranges::any_of(tokenizer.encode(text, {.continues = true}),
                             [&](int32_t id) { return tokenizer.is_special(id); });
}

// Returns the largest size, at most `size` bytes, at which a token of the text ends.
size_t whole_tokens(const Tokenizer& tokenizer, std::string_view text, size_t size) {
  const std::vector<int32_t> whole = tokenizer.encode(text, {.continues = true});
  for (; size > 0; --size) {
    std::vector<int32_t> ids = tokenizer.encode(text.substr(0, size), {.continues = true});
    const std::vector<int32_t> rest = tokenizer.encode(text.substr(size), {.continues = true});
    ids.insert(ids.end(), rest.begin(), rest.end());
    if (ids == whole) break;
  }
  return size;
}

// Returns the length of the text without the beginning of a tag at its end: <think> and <tool_call> have <t in common,
// and it belongs to each.
size_t without_open_tag(std::string_view text) {
  const size_t tag = text.find_last_of("<[");
  const bool open = tag != std::string_view::npos && text.find_first_of(">]", tag) == std::string_view::npos;
  return open ? tag : text.size();
}

// Returns the length of the special token that the text begins with, 0 where it begins with none.
size_t special_size(const Tokenizer& tokenizer, std::string_view text) {
  const std::vector<int32_t> ids = tokenizer.encode(text, {.continues = true});
  return !ids.empty() && tokenizer.is_special(ids.front()) ? tokenizer.token_bytes(ids.front()).size() : 0;
}

constexpr const char* kChangesBefore = "one in which what an answer says changes what stands before it";

[[noreturn]] void refuse(const std::string& got) {
  throw base::InputError(base::expectation("chat template", "a text in which each turn of the assistant has one place",
                                           got,
                                           "a template with {% generation %}, or training on the completion alone"));
}

Between split_at(const std::string& text, const std::string& word) {
  auto found = split_at_word(text, word);
  if (!found) refuse("one that writes an answer never or more than once");
  return std::move(*found);
}

// Replaces the arguments of the last call in a turn. The function that it calls stays, as results may be named by it.
void replace_call(Message& turn, const std::string& word) {
  turn.more["tool_calls"].back()["function"]["arguments"] = {{word, 0}};
}

class Finder {
 public:
  Finder(const ChatTemplate& chat, const Tokenizer& tokenizer, const Conversation& conversation, bool last_only)
      : chat_(chat),
        tokenizer_(tokenizer),
        conversation_(conversation),
        last_only_(last_only),
        whole_(chat.render(conversation, false)),
        word_(word_outside(whole_, "Xanswer")),
        former_(word_outside(whole_, "Yformer")) {}

  std::vector<Answer> find() {
    std::vector<Answer> answers;
    for (size_t turn = last_only_ ? conversation_.turns.size() - 1 : 0; turn < conversation_.turns.size(); ++turn)
      if (conversation_.turns[turn].role == "assistant") answers.push_back(at(turn));
    return answers;
  }

 private:
  Answer at(size_t turn) {
    const Between here = split_at(rendered(turn, conversation_.turns.size(), false), word_);
    const bool calls = conversation_.turns[turn].calls_tools();
    const size_t same = common_end_size(here.behind, whole_);
    const size_t replaced = here.behind.size() - same;  // bytes behind `word_` of a call's replaced arguments
    if (replaced > 0 && !calls) refuse("one in which what an answer says changes what stands after it");
    const size_t end = whole_.size() - same;
    const std::optional<size_t> opened = begin_of(turn, here.before, end);
    if (!opened && !(last_only_ && here.before == before(turn, false)))
      refuse("one that opens no earlier turn as its prompt does");
    const size_t begin = opened.value_or(here.before.size());
    if (begin < done_ || begin > end) refuse(kChangesBefore);
    const size_t mark = std::max(mark_size(turn, here.behind), replaced) - replaced;
    Answer answer{opened ? whole_.substr(done_, begin - done_) : before(turn, true), whole_.substr(begin, end - begin),
                  whole_.substr(end, mark), calls};
    done_ = end + mark;
    return answer;
  }

  // Returns where a turn's header ends. The prompt for that turn ends with the whole header, or, where the prompt goes
  // on, as with an open <think>, with as much of it as both have in common, which then has to name the turn by a
  // special token. Returns nothing without one: where an answer has no header at all (verl's separator stands in the
  // prompt alone), its prompt stands in the header's place, if no other turn is trained.
  std::optional<size_t> begin_of(size_t turn, const std::string& before, size_t end) const {
    const std::string opening = after_former(turn, rendered(turn, turn, true));
    const std::string header =
        after_former(turn, split_at(rendered(turn, conversation_.turns.size(), false, true), word_).before);
    if (!before.ends_with(header)) refuse("one in which an answer's header changes with the message before");
    const size_t start = before.size() - header.size();
    if (start > end || whole_.compare(0, start, before, 0, start) != 0) refuse(kChangesBefore);
    const std::string_view turn_text = std::string_view(whole_).substr(start, end - start);
    if (turn_text.starts_with(opening)) return start + opening.size();
    const size_t same = std::min(common_size(opening, header), common_size(opening, turn_text));
    const size_t size = whole_tokens(tokenizer_, turn_text, without_open_tag(turn_text.substr(0, same)));
    if (!has_special(tokenizer_, turn_text.substr(0, size))) return std::nullopt;
    return start + size;
  }

  // Returns the length of the mark that ends a turn: of the text that stands behind the turn also where it is the last
  // one, else of the special token right behind it that ends a turn elsewhere, as <|end|> and <|return|> do.
  size_t mark_size(size_t turn, const std::string& behind) const {
    if (turn + 1 == conversation_.turns.size()) return behind.size();
    const std::string closed = split_at(rendered(turn, turn + 1, false), word_).behind;
    const size_t size = whole_tokens(tokenizer_, behind, common_size(closed, behind));
    if (size > 0) return size;
    const size_t special = special_size(tokenizer_, behind);
    const auto& stops = tokenizer_.info().stop_ids;
    const auto is_stop = [&] { return std::ranges::count(stops, tokenizer_.encode(behind.substr(0, special))[0]) > 0; };
    return special > 0 && (special_size(tokenizer_, closed) > 0 || is_stop()) ? special : 0;
  }

  // Renders the first `turns` turns with `word_` in the place of what `turn` says or calls a tool with. With `prompt`
  // or `former`, `former_` stands in the place of the content of the turn before it.
  std::string rendered(size_t turn, size_t turns, bool prompt, bool former = false) const {
    Messages messages(conversation_.turns.begin(), conversation_.turns.begin() + static_cast<std::ptrdiff_t>(turns));
    if (turn < turns) {
      if (messages[turn].calls_tools())
        replace_call(messages[turn], word_);
      else
        messages[turn].content = word_;
    }
    if ((former || prompt) && turn > 0) messages[turn - 1].content = former_;
    return chat_.render_turns(messages, conversation_.inputs, prompt);
  }

  // Returns the text of the turns before `turn`.
  std::string before(size_t turn, bool prompt) const {
    return chat_.render_turns(std::span(conversation_.turns).first(turn), conversation_.inputs, prompt);
  }

  std::string after_former(size_t turn, const std::string& text) const {
    return turn == 0 ? text : split_at(text, former_).behind;
  }

  const ChatTemplate& chat_;
  const Tokenizer& tokenizer_;
  const Conversation& conversation_;
  const bool last_only_;
  const std::string whole_;
  const std::string word_, former_;
  size_t done_ = 0;
};

}  // namespace

std::vector<Answer> find_answers(const ChatTemplate& chat, const Tokenizer& tokenizer, const Conversation& conversation,
                                 bool last_only) {
  return Finder(chat, tokenizer, conversation, last_only).find();
}

}  // namespace collimate::text
