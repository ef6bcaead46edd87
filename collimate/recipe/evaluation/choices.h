#pragma once

#include "collimate/batch/batch.h"
#include "collimate/recipe/option_names.h"
#include "collimate/rlhf/prompt/source.h"
#include "collimate/text/dataset.h"

// Questions with choices: rows with a prompt, `choices` (texts, or {"text": [...], "label": [...]} as ARC has them) and
// an answer: the number of a choice from 0 on, its label or letter, or its text.
namespace collimate::recipe {

bool has_choices(const text::Example& example);

// The choices of questions as rows, and the questions that were left out, whole: one without one of its choices would
// be another question.
struct ChoiceRows {
  Batch rows;
  text::LeftOut bad, too_long;
};

// A row for each choice of the first `examples` questions that are used (0: of all), those of a question together: uid,
// prompt_uid, ids, trainable (the choice's tokens, without an end of turn where the renderer adds none), prompt_tokens,
// and example: {"is_answer", "characters": of the choice's text}. Prompt and choice are joined as they stand. Of
// `options` it reads what may be left out (long_rows, bad_rows, max_tokens) and the words for that. InputError, with
// the row's place, for what may not: fewer than two choices, an empty one, an answer that is none of them, a choice
// that is too long; for turns that nothing marks; and where no question is left.
ChoiceRows choice_rows(const text::Dataset& dataset, const text::Renderer& renderer, const rlhf::SourceOptions& options,
                       int64_t examples, const OptionNames& names);

}  // namespace collimate::recipe
