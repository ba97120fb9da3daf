// Imports and exports models in the Hugging Face format. The format is a folder with config.json and either
// model.safetensors or several shards and model.safetensors.index.json. Values are the same as in Chorale; names and the
// order of columns differ. In the source files of this folder, "theirs" denotes a tensor in the Hugging Face format, and
// "ours" denotes a Chorale tensor:
//
//   GPT-2   c_attn      [h, 3h]    columns [q | k | v][head][d]        ours: [head][q | k | v][d]
//   Llama   q_proj …    [out, in]  one tensor each, rows [head][d]     ours: [in, out], columns [group][queries | k | v][d]
//           gate_proj … [f, h]     one tensor each                     ours: [h, 2f], columns [unit][gate | up][f/units]
//   experts w1, w2, w3 (Mixtral) or gate_proj, up_proj, down_proj (Qwen3-MoE) per expert, like an MLP of Llama
//           gate_up_proj [E, 2f, h], down_proj [E, h, f]: all experts joined, as newer transformers can write; import only
//
// Qwen3 is Llama with norms of queries and keys (ModelShape::qk_norm).
//
// Export and import use the same table of names. A model that is exported and imported again is bit-identical.
#pragma once
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include <chorale/model.hpp>
#include "parallel/state/parts.hpp"
#include "src/record/safetensors.hpp"

namespace chorale {

// The mapping from a tensor in the files (theirs) to a Chorale tensor (ours). Column j of their tensor is column columns[j]
// of our tensor, or column j if `columns` is empty. If `transposed` is true, row j of their tensor is that column of our
// tensor.
struct Renamed {
  std::string theirs, ours;
  Shape shape;       // the shape of their tensor
  Shape shape_ours;  // the shape of our tensor
  bool transposed = false;
  std::vector<std::int64_t> columns = {};
  // A model's files can instead store this tensor as a part of the larger tensor `name`. The part begins at element `first`.
  // If `name` is empty, there is no such larger tensor.
  struct Joined {
    std::string name;
    Shape shape;
    std::int64_t first = 0;
  } joined = {};
};

std::vector<Renamed> names_of(const ModelShape& shape);  // throws a usage error if Hugging Face has no such model

// Returns "gpt2", "llama", "qwen3", "mixtral" or "qwen3_moe". Throws a usage error if Hugging Face has no such model.
std::string model_type_of(const ModelShape& shape);

// Throws a usage error if Chorale does not support the model family or an option of the configuration.
ModelShape shape_of_config(const std::string& config_json, const std::string& path);
std::string config_of_shape(const ModelShape& shape, DType dtype);

using NamedTensors = std::map<std::string, Tensor>;

// Creates the folder and exports a model to the folder. The keys of `tensors` are Chorale's names, and the tensors are in
// host memory. Values are rounded to `dtype`.
void export_folder(const std::filesystem::path& folder, const ModelShape& shape, const NamedTensors& tensors, DType dtype);

ModelShape shape_of_folder(const std::filesystem::path& folder);

// A folder whose files have been checked against its configuration: every tensor exists once and has the expected shape.
// The files are mapped into memory. Until read() asks for a part, only the headers of the files are read. read() allocates
// nothing.
class HuggingFaceModel {
 public:
  explicit HuggingFaceModel(const std::filesystem::path& folder);

  const ModelShape& shape() const { return shape_; }
  DType dtype(const std::string& ours) const;
  // Reads a part of the tensor with Chorale's name `ours`, in the type of the files. A model with shorter sequences can read
  // only the first rows of the position table.
  void read(const std::string& ours, const Shape& shape, const Part& part, std::span<std::byte> target) const;
  void forget(const std::string& ours) const;  // lets the operating system drop the tensor's mapped pages from memory

 private:
  struct Piece {
    Renamed name;
    const safetensors::File* file;
    const safetensors::Entry* entry;
    std::int64_t first;  // the part begins at this element of the entry
  };
  const std::vector<Piece>& pieces(const std::string& ours) const;

  std::filesystem::path folder_;
  ModelShape shape_;
  std::vector<safetensors::File> files_;
  std::map<std::string, std::vector<Piece>> pieces_;  // the key is Chorale's name of the tensor
};

struct ImportedModel {
  ModelShape shape;
  NamedTensors tensors;  // the keys are Chorale's names; types are as in the files
};
ImportedModel whole_of(const HuggingFaceModel& model, Allocator& allocator);

}  // namespace chorale
