// Models as Hugging Face keeps them: a folder with config.json and model.safetensors, or with shards and model.safetensors.index.json. The
// numbers are ours, under other names and in another order of columns:
//
//   GPT-2   c_attn      [h, 3h]    columns [q | k | v][head][d]        ours: [head][q | k | v][d]
//   Llama   q_proj …    [out, in]  one each, rows [head][d]            ours: [in, out], columns [group][queries q | k | v][d]
//           gate_proj … [f, h]     one each                            ours: [h, 2f], columns [unit][gate | up][f/units]
//
// Both directions go through one table; what is exported and imported again is the same bit for bit.
#pragma once
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "layers/shape.hpp"
#include "parallel/state/parts.hpp"
#include "src/record/safetensors.hpp"

namespace chorale {

// One of their tensors. Its column j is column columns[j] of ours; without `columns`, column j. If it is transposed, its row j is that column.
struct Renamed {
  std::string theirs, ours;
  Shape shape;       // of theirs
  Shape shape_ours;  // of ours
  bool transposed = false;
  std::vector<std::int64_t> columns = {};
};

std::vector<Renamed> names_of(const ModelShape& shape);  // a usage error for a shape that they have no model for

// Usage errors for families and options that we do not have.
ModelShape shape_of_config(const std::string& config_json, const std::string& path);
std::string config_of_shape(const ModelShape& shape, DType dtype);

using NamedTensors = std::map<std::string, Tensor>;

// Tensors by our names, in host memory; f32, f16 and bf16 are rounded to `dtype`. Makes the folder.
void export_folder(const std::filesystem::path& folder, const ModelShape& shape, const NamedTensors& tensors, DType dtype);

ModelShape shape_of_folder(const std::filesystem::path& folder);

// A folder whose files have been held against its configuration: every tensor is there, once, in its shape. The files are mapped, and
// nothing but headers is read until a part is asked for; reading one costs no memory beside the target.
class HuggingFaceModel {
 public:
  explicit HuggingFaceModel(const std::filesystem::path& folder);

  const ModelShape& shape() const { return shape_; }
  DType dtype(const std::string& ours) const;
  // The part of our tensor, in the type of the files. A shorter model may read the first rows of the table of positions.
  void read(const std::string& ours, const Shape& shape, const Part& part, std::span<std::byte> target) const;
  void forget(const std::string& ours) const;  // its pages need no memory until it is read again

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
  std::map<std::string, std::vector<Piece>> pieces_;  // of each of our tensors
};

struct ImportedModel {
  ModelShape shape;
  NamedTensors tensors;  // by our names, in the types of the files
};
ImportedModel whole_of(const HuggingFaceModel& model, Allocator& allocator);

}  // namespace chorale
