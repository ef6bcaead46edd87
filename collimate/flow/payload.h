#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "collimate/batch/batch.h"
#include "collimate/cluster/message.h"
#include "collimate/flow/weight_link.h"

namespace collimate::flow {

// These turn a batch into one text (for journal and checkpoints) and back.
std::string pack(const Batch& batch);
Batch unpack(std::string_view text);

}  // namespace collimate::flow

// These types are sent as frames between processes. Between threads batches are shared views and weights one object, so
// nothing is copied.
namespace collimate::cluster {

template <>
struct FrameForm<batch::Batch> {
  static nlohmann::json write(const batch::Batch& batch, std::vector<Bytes>& frames);
  static batch::Batch read(const nlohmann::json& description, const NextFrame& next);
};

template <>
struct FrameForm<std::vector<batch::Batch>> {
  static nlohmann::json write(const std::vector<batch::Batch>& batches, std::vector<Bytes>& frames);
  static std::vector<batch::Batch> read(const nlohmann::json& description, const NextFrame& next);
};

template <>
struct FrameForm<std::shared_ptr<const flow::WeightBucket>> {
  static nlohmann::json write(const std::shared_ptr<const flow::WeightBucket>& bucket, std::vector<Bytes>& frames);
  static std::shared_ptr<const flow::WeightBucket> read(const nlohmann::json& description, const NextFrame& next);
};

}  // namespace collimate::cluster
