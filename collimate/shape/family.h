#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "collimate/shape/fields.h"
#include "collimate/shape/model_shape.h"

namespace collimate::shape {

// ModuleNames are the names that a family's files give to the parts of a decoder: names of modules, to which ".weight"
// and ".bias" are added. Names of a block's parts come behind `block` and the block's number. A layer of several pieces
// has one name for each piece, or a single name for all of them in that order.
struct ModuleNames {
  std::string embedding;
  std::string embedding_norm = {};
  std::string positions = {};                     // the table of learned positions
  std::string project_in = {}, project_out = {};  // where the embedding has a width of its own
  std::string block;                              // "model.layers."
  std::string attention_norm;
  std::vector<std::string> query_key_value;
  std::string query_norm, key_norm;                                              // norms of heads
  std::string sinks = {};                                                        // attention sinks: the whole name
  std::string query = {}, query_down = {}, query_down_norm = {}, query_up = {};  // latent attention, as the next line
  std::string key_value_down = {}, key_value_down_norm = {}, key_value_up = {};
  std::string attention_output;
  std::string mlp_norm;
  std::string attention_norm_beside = {}, mlp_norm_beside = {};  // parallel halves with a norm each; "": as above
  std::string behind_attention = {}, behind_mlp = {};            // second norms of blocks with NormPlace::kAround
  std::vector<std::string> up;                                   // gate and up of a gated MLP, or up alone
  std::string down;
  std::string router;   // router of a mixture
  std::string experts;  // "mlp.experts."; behind it come an expert's number and the names inside an expert
  std::vector<std::string> expert_up;
  std::string expert_down;
  // Where these are given, files have one tensor per matrix for all experts of a block, under these whole names; a bias
  // has "_bias" behind them.
  std::string stacked_up = {}, stacked_down = {};
  bool stacked_transposed = false;   // [experts, in, out]
  bool stacked_interleaved = false;  // each row of the gate is followed by that of up
  std::vector<std::string> shared_up;
  std::string shared_down;
  std::string shared_gate;
  std::string final_norm;
  std::string head = "lm_head";
  bool transposed = false;   // linear layers of blocks are [in, out] in files
  bool interleaved = false;  // one query_key_value holds each head's query, key and value side by side
  bool grouped = false;      // one holds, for each key-value head, its query heads, key and value
  bool paired = false;       // in files the two channels that rotate together are neighbours
};

// Return names that several families share: GPT-2's, BLOOM's and Llama's.
ModuleNames gpt2_names();
ModuleNames bloom_names();
ModuleNames llama_names();
// Returns the names, for files in which channels that rotate together are neighbours.
ModuleNames paired(ModuleNames names);

// A Family describes a model family by its files. One file of family/ says all of it.
struct Family {
  std::string name;                  // model_type in config.json
  std::string language_model_class;  // in "architectures"
  std::string score_class;
  // Reads everything but the head and token ids. Throws InputError for configs that the family cannot be.
  ModelShape (*parse)(const Fields& fields, const std::string& family);
  // Adds the keys that parse reads.
  void (*add_config)(const ModelShape& shape, nlohmann::json& config);
  ModuleNames names;
  // The family's config.json has Llama's keys, so that a planner can also read configs that do not run here.
  bool has_usual_keys = false;
  // Other model_types of config.json: such models are read, and saved, as models of `name`.
  std::vector<std::string> other_types = {};
};

// Returns a family whose classes in transformers are `classes`ForCausalLM and `classes`ForSequenceClassification.
Family family_of(const char* name, const std::string& classes, decltype(Family::parse) parse,
                 decltype(Family::add_config) add_config, const ModuleNames& names);
Family with_usual_keys(Family family);

// Returns all families, sorted by name.
const std::vector<Family>& families();
// Returns the family with that name, or with it among its other types. Throws InputError, which names `where`, the
// known families and, for a published decoder that does not run here, the parts that it lacks.
const Family& find_family(const std::string& name, const std::string& where);

}  // namespace collimate::shape
