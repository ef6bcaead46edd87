#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "collimate/shape/fields.h"
#include "collimate/shape/model_shape.h"

namespace collimate::shape {

// ModuleNames are what a family's files call the parts of a decoder: names of modules, to which ".weight" and ".bias"
// are added; those of a block behind `block` and its number. A layer of several pieces has one name for each, or one
// for all of them in that order.
struct ModuleNames {
  std::string embedding;
  std::string embedding_norm = {};
  std::string positions = {};                     // of learned ones
  std::string project_in = {}, project_out = {};  // of a table with a width of its own
  std::string block;                              // "model.layers."
  std::string attention_norm;
  std::vector<std::string> query_key_value;
  std::string query_norm, key_norm;                                              // of heads
  std::string sinks = {};                                                        // of attention, whole
  std::string query = {}, query_down = {}, query_down_norm = {}, query_up = {};  // of latent attention, as the next
  std::string key_value_down = {}, key_value_down_norm = {}, key_value_up = {};
  std::string attention_output;
  std::string mlp_norm;
  std::string attention_norm_beside = {}, mlp_norm_beside = {};  // of parallel halves that have one each; "": as above
  std::string behind_attention = {}, behind_mlp = {};            // norms of blocks that have them around their halves
  std::vector<std::string> up;                                   // gate and up of a gated MLP
  std::string down;
  std::string router;   // of a mixture
  std::string experts;  // "mlp.experts."; the names in an expert come behind it and its number
  std::vector<std::string> expert_up;
  std::string expert_down;
  // Files have one tensor for each matrix of all experts of a block, under these whole names, and behind them "_bias".
  std::string stacked_up = {}, stacked_down = {};
  bool stacked_transposed = false;   // [experts, in, out]
  bool stacked_interleaved = false;  // each row of the gate has that of up beside it
  std::vector<std::string> shared_up;
  std::string shared_down;
  std::string shared_gate;
  std::string final_norm;
  std::string head = "lm_head";
  bool transposed = false;   // linear layers of blocks are [in, out] in the files
  bool interleaved = false;  // one query_key_value holds each head's query, key and value side by side
  bool grouped = false;      // or the query heads of each key-value head, its key and its value
  bool paired = false;       // channels of queries and keys turn with their neighbours in the files
};

// Names that several families share: GPT-2's, BLOOM's, and Llama's.
ModuleNames gpt2_names();
ModuleNames bloom_names();
ModuleNames llama_names();
// Such names of files in which channels turn with their neighbours.
ModuleNames paired(ModuleNames names);

// A model family as its files have it: all that is to be said of one, in one file of family/.
struct Family {
  std::string name;                  // model_type of config.json
  std::string language_model_class;  // of "architectures"
  std::string score_class;
  // Reads all but head and token ids; InputError for what the family cannot be.
  ModelShape (*parse)(const Fields& fields, const std::string& family);
  // Adds the keys that parse reads.
  void (*add_config)(const ModelShape& shape, nlohmann::json& config);
  ModuleNames names;
  // The family's config.json has Llama's keys, so that a planner may read of it what does not run here.
  bool has_usual_keys = false;
  // Other types that config.json may name: its models are read, and saved, as those of `name`.
  std::vector<std::string> other_types = {};
};

// A family whose classes in transformers are `classes`ForCausalLM and `classes`ForSequenceClassification.
Family family_of(const char* name, const std::string& classes, decltype(Family::parse) parse,
                 decltype(Family::add_config) add_config, const ModuleNames& names);
Family with_usual_keys(Family family);

// Returns all families by name.
const std::vector<Family>& families();
// Also by another type of a family. InputError naming `where`, the known ones and, of a published decoder, the part
// that is missing.
const Family& find_family(const std::string& name, const std::string& where);

}  // namespace collimate::shape
