#pragma once

#include "collimate/shape/fields.h"
#include "collimate/shape/model_shape.h"

namespace collimate::shape {

// A family's numbers for keys that a config may leave out.
struct UsualDefaults {
  double theta = 1e4;  // of the rope
  int64_t positions = 2048;
  double epsilon = 1e-6;
  int64_t head_dim = 0;  // 0: each head has its part of the hidden size
  bool tied = false;     // the head is the embedding
};
// Most families' config.json says by these keys what a decoder is: sizes, heads, experts, latent attention, positions,
// biases. They are Llama's, and what later models added to them. InputError naming file and key.
ModelShape read_usual_shape(const Fields& fields, const std::string& family, const UsualDefaults& defaults = {});
// Does so for a family whose MLPs are gated by SiLU; with the rope.
ModelShape read_swiglu_shape(const Fields& fields, const std::string& family, const UsualDefaults& defaults = {});
// Sizes of a family that has other keys: the vocabulary, and blocks whose heads share the hidden size and have keys and
// values of their own. InputError as above, where the heads do not divide it, and where a config scales the RoPE, which
// none of these families does.
struct SizeKeys {
  const char* hidden;
  const char* layers;
  const char* heads;
};
inline constexpr SizeKeys kUsualSizes = {"hidden_size", "num_hidden_layers", "num_attention_heads"};
inline constexpr SizeKeys kGpt2Sizes = {"n_embd", "n_layer", "n_head"};
ModelShape read_sizes(const Fields& fields, const std::string& family, const SizeKeys& keys);
ModelShape read_sizes_alone(const Fields& fields, const std::string& family, const SizeKeys& keys);  // with any rope
void add_sizes(const ModelShape& shape, const SizeKeys& keys, nlohmann::json& config);
// Reads the base of the rope, `theta` where a config says none, and its scaling: in rope_scaling, as older configs have
// it, and in rope_parameters. InputError for kinds that do not run, and for layers with ropes of their own.
void read_rope(const Fields& fields, ModelShape& shape, double theta = 1e4, const char* theta_key = "rope_theta");
// Reads the same of one object of a config, if it is there.
void read_rope_object(const Fields& fields, const char* key, const Fields& config, ModelShape& shape);
// Reads which part of each head turns: as its rope says, else by that key. Behind head_dim.
void read_turned_part(const Fields& fields, const char* key, double fallback, Attention& attention);
double turned_part(const Attention& attention);  // as a config says it
// The activation of an MLP without a gate by its name in transformers, and the name that is written for one of these.
// InputError for other names.
Activation read_activation(const Fields& fields, const char* key, const char* fallback);
const char* activation_name(Activation activation);
// An MLP without a gate, with biases and an activation by the name under that key.
Mlp plain_mlp(const Fields& fields, int64_t intermediate, const char* key, const char* fallback);
// Such an MLP as GPT-2 and those after it say it: activation_function, and the width under `key`, by default four times
// that of the stream.
Mlp gpt2_mlp(const Fields& fields, const char* key, int64_t hidden, const char* activation);
void add_gpt2_mlp(const Mlp& mlp, const char* key, nlohmann::json& config);
// Has the model learn so many positions, by which nothing turns.
void set_learned_positions(ModelShape& shape, int64_t positions);
// Makes a block's norms layer norms with the epsilon under that key, and writes that in the place of an RMS norm's.
void read_layer_norm(const Fields& fields, const char* key, Block& block);
void add_layer_norm(const Block& block, const char* key, nlohmann::json& config);
// YaRN's factor of cosines and sines (Peng et al. 2023, 3.4), times `scale` where a config says so.
double yarn_magnitude(double factor, double scale);
// The object of that key; InputError where it is none.
Fields object_of(const Fields& fields, const char* key);
// The number that a config has where it is read as `real`: 1e-06, of which the nearest float is 9.99999997e-07.
double written_real(float real);
// Adds the keys of a dense decoder that read_usual_shape reads.
void add_usual_config(const ModelShape& shape, nlohmann::json& config);
void add_swiglu_config(const ModelShape& shape, nlohmann::json& config);  // and read_swiglu_shape

}  // namespace collimate::shape
