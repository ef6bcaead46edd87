#include "collimate/cli/prompt_rows.h"

#include <algorithm>
#include <utility>

#include "collimate/base/error.h"
#include "collimate/recipe/left_out.h"

namespace collimate::cli {
namespace {

// Rows of text alone have no prompt.
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
  for (const text::Example& example : dataset_.examples()) require_prompt(example);
}

void PromptRows::render(const text::Renderer& renderer, int64_t positions, int64_t drawn) {
  rlhf::SourceOptions options{.kind = rlhf::RowKind::kPrompt, .judged = false};
  recipe::limit_rows(file_.choices, {positions, drawn}, file_.names, options);
  source_.emplace(dataset_, renderer, std::move(options));
  recipe::log_left_out(recipe::left_out_notes(file_.names.of("data"), dataset_, *source_, file_.names));
  ids_.clear();
  for (int64_t i = 0; i < source_->examples(); ++i) ids_.push_back(source_->rendered(i).front().ids);
}

std::vector<text::Row> PromptRows::file_rows() const {
  std::vector<text::Row> rows;
  int64_t next = 0;  // prompt that is looked for: they are in the file's order
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

}  // namespace collimate::cli
