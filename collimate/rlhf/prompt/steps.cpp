#include "collimate/rlhf/prompt/steps.h"

#include "collimate/base/error.h"
#include "collimate/text/tokenizer.h"

namespace collimate::rlhf {

text::RenderedTokens render_steps(const text::Example& example, const text::Renderer& renderer,
                                  const std::string& separator, const std::string& other) {
  const std::string place = example.location.text();
  if (example.steps.empty())
    throw base::InputError(base::expectation(
        place, "a row with \"completions\", a list of steps, and \"labels\", true or false for each", other));
  text::RenderedTokens row{.ids = renderer.prompt_tokens(example.prompt)};
  row.prompt_tokens = std::ssize(row.ids);
  row.trainable.assign(row.ids.size(), 0);
  for (const text::LabelledStep& step : example.steps) {
    const size_t before = row.ids.size();
    for (const std::string& part : {step.text, separator}) {
      const std::vector<int32_t> ids = renderer.tokenizer().encode(part, {.continues = true});
      row.ids.insert(row.ids.end(), ids.begin(), ids.end());
    }
    if (row.ids.size() == before)
      throw base::InputError(base::expectation(place, "a token that ends each step", "none", "data.step_separator"));
    row.trainable.resize(row.ids.size(), 0);
    row.trainable.back() = 1;
  }
  return row;
}

std::vector<uint8_t> marks_of(const std::vector<text::LabelledStep>& steps) {
  std::vector<uint8_t> right;
  for (const text::LabelledStep& step : steps) right.push_back(step.right ? 1 : 0);
  return right;
}

}  // namespace collimate::rlhf
