#pragma once

#include "collimate/batch/batch.h"
#include "collimate/recipe/option_names.h"
#include "collimate/rlhf/prompt/source.h"
#include "collimate/text/dataset.h"

// Questions with choices are rows with a prompt, `choices` (texts, or {"text": [...], "label": [...]} as ARC has them)
// and an answer, which is the number of a choice from 0 on, its label or letter, or its text.
namespace collimate::recipe {

bool has_choices(const text::Example& example);

// Holds the choices of questions as rows, and the questions that were left out. A question is left out whole, as
// without one of its choices it would be another question.
struct ChoiceRows {
  Batch rows;
  text::LeftOut bad, too_long;
};

// Makes a row for each choice of the questions. Rows of a question stand together, with uid, prompt_uid, ids, trainable
// (the choice's tokens, without an end of turn where the renderer adds none), prompt_tokens, and example: {"is_answer",
// "characters": of the choice's text}. Prompt and choice are joined as they stand. `options` says what may be left out
// (long_rows, bad_rows, max_tokens), and by which words messages call that. Throws InputError, with the row's place,
// for a question that may not be left out: it has fewer than two choices, an empty one, an answer that is none of them,
// or a choice that is too long. Throws InputError also for turns that nothing marks, and where no question is left.
ChoiceRows choice_rows(const text::Dataset& dataset, const text::Renderer& renderer, const rlhf::SourceOptions& options,
                       const OptionNames& names);

}  // namespace collimate::recipe
