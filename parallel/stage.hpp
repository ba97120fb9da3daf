// The part of the model that a rank has: its shard of the layers of its stage, cut into the chunks of the pipeline and into the units that
// buckets and ZeRO go by.
//
//   embedding │ block 0 │ … │ block L−1 │ norm, head          units; the end pieces go with the first and the last block
#pragma once
#include "parallel/mesh.hpp"
#include "parallel/reducer.hpp"  // of ZeRO's units

namespace chorale {

// Makes the whole model, of which a rank keeps its stage. Without one it is build_gpt, cut among the ranks that share a layer's width.
using BuildModel = std::function<Model(const ModelShape&, Remake, const Mesh&)>;

class Stage {
 public:
  Stage(const ModelShape& shape, Remake remake, const Mesh& mesh, const BuildModel& build = {});

  std::vector<Sequence>& chunks() { return chunks_; }
  // Of every unit, in the order of the forward pass: the parameters that it brings, each once. A table that a tied head reads too stands
  // alone, or the head would have to gather the positions with it.
  const std::vector<std::vector<ParameterPointer>>& units() const { return units_; }
  std::vector<ParameterPointer> parameters() const;
  bool begins() const { return begins_; }  // with the model's first part: here tokens come in
  bool ends() const { return ends_; }      // with its last part: here are the logits, in the chunk of that number
  std::int64_t last_chunk() const { return last_chunk_; }
  void wrap_units(Buckets& buckets);  // as ZeRO's
  void each_site(const std::function<void(SumSite&)>& visit);

 private:
  std::vector<Sequence> chunks_;
  std::vector<std::vector<ParameterPointer>> units_, uses_;  // what a unit reads may be another's too
  bool begins_ = false, ends_ = false;
  std::int64_t last_chunk_ = 0;
};

Share share_of_width(const Mesh& mesh);

// How many blocks each part of the model has, in order, by the arithmetic of its layers.
std::vector<std::int64_t> blocks_of_parts(const ModelShape& shape, std::int64_t parts);

}  // namespace chorale
