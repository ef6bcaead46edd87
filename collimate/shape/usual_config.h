#pragma once

#include "collimate/shape/fields.h"
#include "collimate/shape/model_shape.h"

namespace collimate::shape {

// UsualDefaults are a family's values for keys that a config may leave out.
struct UsualDefaults {
  double theta = 1e4;  // base of the rope
  int64_t positions = 2048;
  double epsilon = 1e-6;
  int64_t head_dim = 0;  // 0: hidden size / heads
  bool tied = false;     // the head is the embedding
};
// Reads a decoder from the keys that most families' config.json has: sizes, heads, experts, latent attention, positions
// and biases. These are Llama's keys, and those that later models added. Throws InputError, which names file and key.
ModelShape read_usual_shape(const Fields& fields, const std::string& family, const UsualDefaults& defaults = {});
// Does so, rope included, for a family whose MLPs are gated by SiLU. Throws InputError for another hidden_act.
ModelShape read_swiglu_shape(const Fields& fields, const std::string& family, const UsualDefaults& defaults = {});
// SizeKeys name the keys of sizes in a family that has other ones. read_sizes() reads the vocabulary, and blocks whose
// heads share the hidden size and each have keys and values of their own. Throws InputError as above, where the heads
// do not divide the hidden size, and for a config that scales the RoPE, which none of these families does.
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
// Reads the base of the rope, which is `theta` where a config has none, and its scaling, from rope_parameters and, as
// older configs have it, from rope_scaling. Throws InputError for kinds of scaling that do not run, and for layers with
// ropes of their own.
void read_rope(const Fields& fields, ModelShape& shape, double theta = 1e4, const char* theta_key = "rope_theta");
// Reads base and scaling from one object of a config, if it is there.
void read_rope_object(const Fields& fields, const char* key, const Fields& config, ModelShape& shape);
// Reads which part of each head is rotated, as the config's rope says, else from that key. head_dim must be set before.
void read_turned_part(const Fields& fields, const char* key, double fallback, Attention& attention);
double turned_part(const Attention& attention);  // as a fraction, as configs have it
// read_activation() reads the activation of an MLP without a gate by its name in transformers, and throws InputError
// for other names; activation_name() returns the name that is written for it.
Activation read_activation(const Fields& fields, const char* key, const char* fallback);
const char* activation_name(Activation activation);
// Returns an MLP without a gate, with biases, and with the activation that is named under that key.
Mlp plain_mlp(const Fields& fields, int64_t intermediate, const char* key, const char* fallback);
// Reads such an MLP from the keys of GPT-2 and its successors: activation_function, and the width under `key`, by
// default four times that of the stream.
Mlp gpt2_mlp(const Fields& fields, const char* key, int64_t hidden, const char* activation);
void add_gpt2_mlp(const Mlp& mlp, const char* key, nlohmann::json& config);
// Has the model learn so many positions; then its heads are not rotated.
void set_learned_positions(ModelShape& shape, int64_t positions);
// read_layer_norm() makes a block's norms layer norms with the epsilon under that key; add_layer_norm() writes that key
// in place of an RMS norm's.
void read_layer_norm(const Fields& fields, const char* key, Block& block);
void add_layer_norm(const Block& block, const char* key, nlohmann::json& config);
// Returns YaRN's factor of cosines and sines (Peng et al. 2023, 3.4): 0.1 * scale * log(factor) + 1, or 1 where factor
// is at most 1.
double yarn_magnitude(double factor, double scale);
// Returns the object under that key. Throws InputError where it is not an object.
Fields object_of(const Fields& fields, const char* key);
// Returns the number that a config has where it is read as `real`: 1e-06, not its nearest float 9.99999997e-07.
double written_real(float real);
// Adds the keys of a dense decoder that read_usual_shape reads.
void add_usual_config(const ModelShape& shape, nlohmann::json& config);
void add_swiglu_config(const ModelShape& shape, nlohmann::json& config);  // those of read_swiglu_shape too

}  // namespace collimate::shape
