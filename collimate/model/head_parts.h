#pragma once

#include <memory>

#include "collimate/model/model.h"
#include "collimate/model/tensor_ranks.h"
#include "collimate/tensor/ops/log_prob.h"

namespace collimate::model {

// Allocates in `result` what a request asks of listed tokens, and copies their ids there if the request has them.
void make_listed(const tensor::Exec& exec, const LogProbRequest& request, LogProbResult& result);

// Returns log-probs by a head of which each tensor rank has a part of the vocabulary, with the bits of one rank. The
// record keeps this part's logits in `logits` [rows, n], or none if it is null.
LogProbResult log_probs_of_parts(const tensor::Exec& exec, const TensorRanks& tensor, const tensor::LogProbHead& head,
                                 const LogProbRequest& request, std::shared_ptr<const tensor::Buffer> logits);

// Returns log-probs in the same way, with the request's `top_count` most likely tokens of each row.
LogProbResult most_likely_of_parts(const tensor::Exec& exec, const TensorRanks& tensor, const tensor::LogProbHead& head,
                                   const LogProbRequest& request, std::shared_ptr<const tensor::Buffer> logits);

}  // namespace collimate::model
