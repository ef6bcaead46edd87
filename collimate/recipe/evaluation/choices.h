#pragma once

#include "collimate/batch/batch.h"
#include "collimate/recipe/option_names.h"
#include "collimate/text/dataset.h"

// Questions with choices: rows with a prompt, `choices` (texts, or {"text": [...], "label": [...]} as ARC has them) and
// an answer: the number of a choice from 0 on, its label or letter, or its text.
namespace collimate::recipe {

bool has_choices(const text::Example& example);

// A row for each choice of the first `examples` questions (0: of all), those of a question together: uid, prompt_uid,
// ids, trainable (the choice's tokens, without an end of turn where the renderer adds none), prompt_tokens, and
// example:
// {"is_answer", "characters": of the choice's text}. Prompt and choice are joined as they stand. InputError, with the
// row's place, for fewer than two choices, an empty one, an answer that is none of them, and turns that nothing marks.
Batch choice_rows(const text::Dataset& dataset, const text::Renderer& renderer, int64_t examples,
                  const OptionNames& names);

}  // namespace collimate::recipe
