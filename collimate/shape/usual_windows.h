#pragma once

#include <functional>
#include <vector>

#include "collimate/shape/fields.h"
#include "collimate/shape/model_shape.h"

namespace collimate::shape {

// These are the words of layer_types.
inline constexpr const char* kSliding = "sliding_attention";
inline constexpr const char* kFull = "full_attention";

using LayerRule = std::function<bool(int64_t layer)>;
inline bool every_layer(int64_t) { return true; }

// Reads sliding_window; 0 where it is null, `fallback` where it is missing.
int64_t read_window_or(const Fields& fields, int64_t fallback);
// Reads it for Qwen's models from the second on: 0 without use_sliding_window, and transformers' default of 4096 where
// it is missing.
int64_t read_qwen_window(const Fields& fields);
// Gives the blocks that the rule names a window of so many tokens, unless it would hold all positions; 0 gives none.
void set_windows(ModelShape& shape, int64_t window, const LayerRule& rule);
// Returns for each layer whether it has the window: as layer_types says or, where that is missing, as `by_default`
// does.
std::vector<bool> read_sliding(const Fields& fields, int64_t layers, const LayerRule& by_default);
// Gives the blocks of read_sliding a window as set_windows does, and returns which blocks these are. Throws InputError
// where `window` is 0 and layer_types asks for one.
std::vector<bool> read_windows(const Fields& fields, ModelShape& shape, int64_t window, const LayerRule& by_default);
// Has only the layers of read_sliding rotate their heads, and read a window of so many tokens. The other layers read
// all tokens and do not rotate.
void read_turning_windows(const Fields& fields, ModelShape& shape, int64_t window, const LayerRule& by_default);
// Reads two ropes, each from its object of rope_parameters, or else one rope as read_rope does. Returns the base of the
// layers with windows: `local` where the config has none, or that of all other layers where `local` is 0. The other
// layers follow the model's rope.
double read_two_ropes(const Fields& fields, ModelShape& shape, double theta, double local);
// Adds sliding_window and layer_types of a model in which exactly the layers with windows rotate their heads.
void add_turning_windows(const ModelShape& shape, nlohmann::json& config);
// Adds sliding_window: the window of the blocks that have one, or null.
void add_window_size(const ModelShape& shape, nlohmann::json& config);
// Adds max_window_layers, the number of blocks ahead of the first one with a window, and layer_types.
void add_window_layers(const ModelShape& shape, nlohmann::json& config);
// Adds sliding_window, which is the model's length where no block has a window, and layer_types of every block.
void add_all_layer_types(const ModelShape& shape, nlohmann::json& config);
// Adds layer_types where any block has a window.
void add_layer_types(const ModelShape& shape, nlohmann::json& config);

}  // namespace collimate::shape
