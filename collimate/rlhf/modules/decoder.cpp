#include "collimate/rlhf/modules/decoder.h"

#include "collimate/base/philox.h"

namespace collimate::rlhf {
namespace {

std::shared_ptr<model::Weights> open_weights(const DecoderOptions& options, uint64_t seed, tensor::Exec exec) {
  const model::WeightsOptions weights = weights_options(options);
  if (!options.from_scratch) return model::load_huggingface(options.path, options.head, weights, exec);
  auto fresh = std::make_shared<model::Weights>(decoder_shape(options), weights, exec);
  fresh->initialize(base::mix(seed, base::stable_hash("weights")), static_cast<float>(options.initializer_std.get()));
  return fresh;
}

}  // namespace

shape::ModelShape decoder_shape(const DecoderOptions& options) {
  shape::ModelShape shape = shape::read_model_shape(options.path);
  if (options.head == std::string("score")) shape.head = shape::Head::kScore;
  if (options.head == std::string("value")) shape.head = shape::Head::kValue;
  return shape;
}

model::WeightsOptions weights_options(const DecoderOptions& options) {
  return {
      .trained = options.trained, .compute = tensor::compute_type_of(options.compute.get()), .tag = options.weights};
}

std::shared_ptr<Decoder> open_decoder(flow::Context& context, const DecoderOptions& options) {
  return context.shared<Decoder>("decoder:" + options.weights.get(), [&] {
    auto decoder = std::make_shared<Decoder>();
    decoder->exec = {context.pool};
    decoder->weights = open_weights(options, context.seed, decoder->exec);
    decoder->model = std::make_unique<model::Model>(decoder->weights, decoder->exec);
    return decoder;
  });
}

std::vector<std::span<float>> DecoderPort::segments() {
  std::vector<std::span<float>> spans;
  for (int s = 0; s < decoder_->weights->segments(); ++s) spans.push_back(decoder_->weights->master(s));
  return spans;
}

void DecoderPort::updated(uint64_t version) { decoder_->weights->commit(version); }

}  // namespace collimate::rlhf
