#pragma once

#include <vector>

#include "collimate/batch/batch.h"
#include "collimate/cluster/message.h"
#include "collimate/flow/weight_link.h"

namespace collimate::flow {

// Batches as a message's payload: between threads they are shared views, never copied.
class BatchPayload : public cluster::Payload {
 public:
  explicit BatchPayload(std::vector<Batch> batches) : batches_(std::move(batches)) {}
  nlohmann::json to_frames(std::vector<std::vector<std::byte>>& frames) const override;
  const std::vector<Batch>& batches() const { return batches_; }

 private:
  std::vector<Batch> batches_;
};

// Weights on their way between workers.
class WeightPayload : public cluster::Payload {
 public:
  explicit WeightPayload(WeightTransfer transfer) : transfer_(std::move(transfer)) {}
  nlohmann::json to_frames(std::vector<std::vector<std::byte>>& frames) const override;
  const WeightTransfer& transfer() const { return transfer_; }

 private:
  WeightTransfer transfer_;
};

// Takes what the message carries, from the object or from its frames. RunError when it carries something else.
std::vector<Batch> batches_of(const cluster::Message& message);
WeightTransfer transfer_of(const cluster::Message& message);

// A batch as one text (journal, checkpoints) and back.
std::string pack(const Batch& batch);
Batch unpack(std::string_view text);

}  // namespace collimate::flow
