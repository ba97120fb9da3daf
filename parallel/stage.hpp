// The part of the model that a rank has: its shard of the layers of its stage. The layers are grouped into pipeline chunks,
// and into units for buckets and ZeRO.
//
//   embedding │ block 0 │ … │ block L−1 │ norm, head          units; embedding and head stay with the first and last block
#pragma once
#include "parallel/mesh.hpp"
#include "parallel/reducer.hpp"  // for wrap_units

namespace chorale {

// Builds the whole model; a rank then keeps its stage. Empty: build_gpt, with each layer's width cut among the tensor ranks.
using BuildModel = std::function<Model(const ModelShape&, Remake, const Mesh&)>;

class Stage {
 public:
  Stage(const ModelShape& shape, Remake remake, const Mesh& mesh, const BuildModel& build = {});

  std::vector<Sequence>& chunks() { return chunks_; }
  // The units in the order of the forward pass, with the parameters that each introduces; every parameter is in one unit. A
  // tied embedding table gets its own unit; otherwise ZeRO-3 would gather the position table together with the head.
  const std::vector<std::vector<ParameterPointer>>& units() const { return units_; }
  std::vector<ParameterPointer> parameters() const;
  bool begins() const { return begins_; }                  // has the model's first part, which takes the tokens
  bool ends() const { return ends_; }                      // has the model's last part, which makes the logits
  std::int64_t last_chunk() const { return last_chunk_; }  // the chunk of that last part
  void wrap_units(Buckets& buckets);                       // wraps each unit in a ZeroUnit
  void each_site(const std::function<void(SumSite&)>& visit);

 private:
  std::vector<Sequence> chunks_;
  std::vector<std::vector<ParameterPointer>> units_, uses_;  // a unit may also use another unit's parameter
  bool begins_ = false, ends_ = false;
  std::int64_t last_chunk_ = 0;
};

Share share_of_width(const Mesh& mesh);

// The number of blocks in each part of the model, balanced by the flops of the layers.
std::vector<std::int64_t> blocks_of_parts(const ModelShape& shape, std::int64_t parts);

}  // namespace chorale
