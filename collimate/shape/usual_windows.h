#pragma once

#include <functional>
#include <vector>

#include "collimate/shape/fields.h"
#include "collimate/shape/model_shape.h"

namespace collimate::shape {

// Words of layer_types.
inline constexpr const char* kSliding = "sliding_attention";
inline constexpr const char* kFull = "full_attention";

using LayerRule = std::function<bool(int64_t layer)>;
inline bool every_layer(int64_t) { return true; }

// sliding_window; 0 where it is null.
int64_t read_window_or(const Fields& fields, int64_t fallback);
// Reads it of Qwen's models from the second on: 0 without use_sliding_window, and transformers' default where none is
// said.
int64_t read_qwen_window(const Fields& fields);
// Gives the blocks that the rule names a window of so many tokens, unless it holds all positions; 0 gives none.
void set_windows(ModelShape& shape, int64_t window, const LayerRule& rule);
// By layer, whether it has the window: as layer_types says, and where there is none `by_default`.
std::vector<bool> read_sliding(const Fields& fields, int64_t layers, const LayerRule& by_default);
// Gives the blocks of read_sliding a window as set_windows does, and returns which these are; with 0, InputError where
// layer_types asks for one.
std::vector<bool> read_windows(const Fields& fields, ModelShape& shape, int64_t window, const LayerRule& by_default);
// Has the layers of read_sliding alone turn, and read a window of so many tokens; others read all, and do not turn.
void read_turning_windows(const Fields& fields, ModelShape& shape, int64_t window, const LayerRule& by_default);
// Reads two ropes, each in its object of rope_parameters, or as read_rope does; returns the base of layers with
// windows, which is `local` where none is said, or with 0 that of all others. These turn as the model's rope says.
double read_two_ropes(const Fields& fields, ModelShape& shape, double theta, double local);
// Adds sliding_window and layer_types of a model whose layers with windows are those that turn.
void add_turning_windows(const ModelShape& shape, nlohmann::json& config);
// Adds sliding_window: that of the blocks that have one, or null.
void add_window_size(const ModelShape& shape, nlohmann::json& config);
// Adds max_window_layers, which tells how many blocks lie ahead of the first that has a window, and layer_types.
void add_window_layers(const ModelShape& shape, nlohmann::json& config);
// Adds sliding_window, the model's length where none has one, and layer_types of every block.
void add_all_layer_types(const ModelShape& shape, nlohmann::json& config);
// Adds layer_types where a block has a window.
void add_layer_types(const ModelShape& shape, nlohmann::json& config);

}  // namespace collimate::shape
