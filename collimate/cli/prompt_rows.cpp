#include "collimate/cli/prompt_rows.h"

#include <algorithm>
#include <utility>

#include "collimate/base/error.h"
#include "collimate/base/log.h"
#include "collimate/recipe/arithmetic.h"

namespace collimate::cli {
namespace {

// Throws InputError for a row that has only a text and no prompt.
void require_prompt(const text::Example& example) {
  const auto* text = std::get_if<std::string>(&example.prompt);
  if (text == nullptr || !text->empty()) return;
  throw base::InputError(base::expectation(example.location.text(), "a prompt to complete", "a column 'text' alone",
                                           R"(JSON lines {"prompt": "..."})"));
}

}  // namespace

PromptRows::PromptRows(PromptFile file)
    : file_(std::move(file)),
      dataset_(text::Dataset::read({{.path = file_.path}}, recipe::bad_rows_of(file_.choices, file_.names))) {
  dataset_.for_each([](int64_t, const text::Example& example) { require_prompt(example); });
}

void PromptRows::render(const text::Renderer& renderer, int64_t positions, int64_t drawn) {
  rlhf::SourceOptions options;
  options.kind = rlhf::RowKind::kPrompt;
  options.judged = false;
  recipe::limit_rows(file_.choices, {positions, drawn}, file_.names, options);
  source_.emplace(dataset_, renderer, std::move(options));
  left_out_ = recipe::log_left_out(recipe::left_out_notes(file_.names.of("data"), dataset_, *source_, file_.names));
  ids_.clear();
  std::vector<int64_t> lengths;
  for (int64_t i = 0; i < source_->examples(); ++i) {
    ids_.push_back(source_->rendered(i).front().ids);
    lengths.push_back(std::ssize(ids_.back()));
  }
  recipe::warn_of_room(lengths, {positions, drawn}, file_.names);
}

std::vector<text::Row> PromptRows::file_rows() const {
  std::vector<text::Row> rows;
  int64_t next = 0;  // the prompt whose row is looked for; prompts are in the file's order
  const auto keep = [&](const text::RowLocation& location, text::Row&& row) {
    if (next == source_->examples() || location.text() != source_->place(next)) return;
    rows.push_back(std::move(row));
    ++next;
  };
  const text::BadRowSink pass_over = [](const std::string&) {};
  text::read_rows(file_.path, "auto", keep, file_.choices.drops_bad ? pass_over : text::BadRowSink());
  return rows;
}

recipe::TruthRows PromptRows::truths() const {
  recipe::TruthRows truths;
  for (int64_t i = 0; i < std::min(source_->examples(), recipe::kTriedRows); ++i)
    truths.add(source_->place(i), columns(i).value("prompt", ""), columns(i));
  return truths;
}

void log_left_out(const PromptRows& rows, int64_t completions, const std::string& heading) {
  if (rows.left_out().empty()) return;
  std::string text = fmt::format("{}: {} of {}", heading, recipe::counted(completions, "completion"),
                                 recipe::counted(std::ssize(rows.ids()), "prompt"));
  for (const recipe::LeftOutRows& kind : rows.left_out()) text += "; " + kind.short_text();
  base::log_info("{}", text);
}

}  // namespace collimate::cli
