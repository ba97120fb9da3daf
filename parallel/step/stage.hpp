// The part of the model on one rank. A rank holds a shard of each layer of its pipeline stage. The layers are grouped into
// pipeline chunks, and into units for buckets and ZeRO. The embedding is in the same chunk as the first block. The head is
// in the same chunk as the last block.
//
//   units:   embedding │ block 0 │ … │ block L−1 │ norm, head
#pragma once
#include <chorale/training.hpp>
#include "layers/gpt.hpp"
#include "parallel/mesh/mesh.hpp"
#include "parallel/step/reducer.hpp"  // for wrap_units

namespace chorale {

class Stage {
 public:
  Stage(const ModelShape& shape, Recompute recompute, const Mesh& mesh, const BuildModel& build = {});

  std::vector<Sequence>& chunks() { return chunks_; }
  // The parameters of each unit, in the order of the forward pass. Every parameter is in exactly one unit. A tied embedding
  // table gets its own unit; otherwise ZeRO-3 would gather the position table together with the head.
  const std::vector<std::vector<ParameterPointer>>& units() const { return units_; }
  std::vector<ParameterPointer> parameters() const;
  bool begins() const { return begins_; }                  // whether this stage has the model's first part: the embedding
  bool ends() const { return ends_; }                      // whether this stage has the model's last part: the head
  std::int64_t last_chunk() const { return last_chunk_; }  // index of the head's chunk within its stage
  void wrap_units(Buckets& buckets);                       // wraps each unit (reducer.hpp)
  void each_site(const std::function<void(SumSite&)>& visit);

 private:
  std::vector<Sequence> chunks_;
  std::vector<std::vector<ParameterPointer>> units_, uses_;  // uses_: units_, plus parameters that a unit shares with other
                                                             // units
  bool begins_ = false, ends_ = false;
  std::int64_t last_chunk_ = 0;
};

Sharding width_sharding(const Mesh& mesh);
Sharding expert_sharding(const Mesh& mesh);

// Returns the number of blocks in each part of the model. The numbers balance the flops of the parts. With
// ModelShape::equal_parts, all parts have equally many blocks.
std::vector<std::int64_t> blocks_of_parts(const ModelShape& shape, std::int64_t parts);

}  // namespace chorale
