// The part of the model that a rank has: its shard of the layers of its stage, cut into the chunks of the pipeline and into the units that
// buckets and ZeRO go by.
//
//   embedding │ block 0 │ … │ block L−1 │ norm, head          units; the end pieces go with the first and the last block
#pragma once
#include "parallel/mesh.hpp"
#include "parallel/reducer.hpp"

namespace chorale {

class Stage {
 public:
  Stage(const ModelShape& shape, Remake remake, const Mesh& mesh);

  std::vector<Sequence>& chunks() { return chunks_; }
  // Of every unit, in the order of the forward pass: the parameters that it brings, each once. A table that a tied head reads too stands
  // alone, or the head would have to gather the positions with it.
  const std::vector<std::vector<ParameterPointer>>& units() const { return units_; }
  std::vector<ParameterPointer> parameters() const;
  bool tied_apart() const { return tied_apart_; }       // the table is on the first and the last stage
  void wrap_units(Buckets& buckets, const Mesh& mesh);  // as ZeRO's
  void each_site(const std::function<void(Site&)>& visit);

 private:
  std::vector<Sequence> chunks_;
  std::vector<std::vector<ParameterPointer>> units_, uses_;  // what a unit reads may be another's too
  bool tied_apart_ = false;
};

// How many blocks each part of the model has, in order, by the arithmetic of its layers.
std::vector<std::int64_t> blocks_of_parts(const ModelShape& shape, std::int64_t parts);

}  // namespace chorale
