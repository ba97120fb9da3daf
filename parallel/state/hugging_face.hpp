// Models in Hugging Face's format: a folder with config.json and model.safetensors, or with shards and
// model.safetensors.index.json. The values are the same as ours, with other names and another order of columns:
//
//   GPT-2   c_attn      [h, 3h]    columns [q | k | v][head][d]        ours: [head][q | k | v][d]
//   Llama   q_proj …    [out, in]  one each, rows [head][d]            ours: [in, out], columns [group][queries | k | v][d]
//           gate_proj … [f, h]     one each                            ours: [h, 2f], columns [unit][gate | up][f/units]
//
// Both directions use one table. An exported and re-imported model is the same bit for bit.
#pragma once
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "layers/shape.hpp"
#include "parallel/state/parts.hpp"
#include "src/record/safetensors.hpp"

namespace chorale {

// One of their tensors. Its column j is column columns[j] of our tensor; if `columns` is empty, column j. If `transposed`,
// its row j is that column.
struct Renamed {
  std::string theirs, ours;
  Shape shape;       // of their tensor
  Shape shape_ours;  // of our tensor
  bool transposed = false;
  std::vector<std::int64_t> columns = {};
};

std::vector<Renamed> names_of(const ModelShape& shape);  // a usage error if Hugging Face has no such model

// Usage errors for families and options that this program does not support.
ModelShape shape_of_config(const std::string& config_json, const std::string& path);
std::string config_of_shape(const ModelShape& shape, DType dtype);

using NamedTensors = std::map<std::string, Tensor>;

// Exports tensors in host memory, by our names, and creates the folder. Values are rounded to `dtype`.
void export_folder(const std::filesystem::path& folder, const ModelShape& shape, const NamedTensors& tensors, DType dtype);

ModelShape shape_of_folder(const std::filesystem::path& folder);

// A folder whose files have been checked against its configuration: every tensor exists once, in its shape. The files are
// mapped, and only headers are read until a part is requested. Reading a part needs no memory besides the target.
class HuggingFaceModel {
 public:
  explicit HuggingFaceModel(const std::filesystem::path& folder);

  const ModelShape& shape() const { return shape_; }
  DType dtype(const std::string& ours) const;
  // Reads a part of our tensor, in the type of the files. A model with shorter sequences may read the first rows of the
  // position table.
  void read(const std::string& ours, const Shape& shape, const Part& part, std::span<std::byte> target) const;
  void forget(const std::string& ours) const;  // frees its mapped pages until it is read again

 private:
  struct Piece {
    Renamed name;
    const safetensors::File* file;
    const safetensors::Entry* entry;
  };
  const std::vector<Piece>& pieces(const std::string& ours) const;

  std::filesystem::path folder_;
  ModelShape shape_;
  std::vector<safetensors::File> files_;
  std::map<std::string, std::vector<Piece>> pieces_;  // by the name of our tensor
};

struct ImportedModel {
  ModelShape shape;
  NamedTensors tensors;  // by our names, in the types of the files
};
ImportedModel whole_of(const HuggingFaceModel& model, Allocator& allocator);

}  // namespace chorale
