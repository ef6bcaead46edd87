#pragma once

#include <memory>

#include "collimate/model/model.h"
#include "collimate/model/tensor_ranks.h"
#include "collimate/tensor/ops/log_prob.h"

namespace collimate::model {

// Makes room for what a request asks of listed tokens, and puts their ids there if it has them.
void make_listed(const tensor::Exec& exec, const LogProbRequest& request, LogProbResult& result);

// Log-probs by a head of which each tensor rank has a part of the vocabulary, with one rank's bits; a record has the
// part's logits, in `logits` [rows, n] or, with null, nowhere.
LogProbResult log_probs_of_parts(const tensor::Exec& exec, const TensorRanks& tensor, const tensor::LogProbHead& head,
                                 const LogProbRequest& request, std::shared_ptr<const tensor::Buffer> logits);

}  // namespace collimate::model
