// How the layers of this rank meet those of other ranks. Each part belongs to one kind of parallelism; without that kind it
// does nothing. Layers know only these interfaces (layers/context.hpp).
//
//   boundary    tensor parallelism     the ranks that share a layer
//   exchange    expert parallelism     the ranks that divide the experts
//   attention   context parallelism    the ranks that divide a sequence, in attention; null: sequences are whole
//   sequences   context parallelism    the same ranks, in other layers
#pragma once
#include <memory>

#include "layers/attention_work.hpp"
#include "layers/context.hpp"
#include "layers/router_balance.hpp"
#include "parallel/context/context.hpp"
#include "parallel/experts/experts.hpp"

namespace chorale {

struct TrainingOptions;

struct Connections {
  Connections(const TrainingOptions& options, const Mesh& mesh);
  Connections(const Connections&) = delete;

  const TokenCut cut;  // of a sequence's tokens among the context-parallel ranks
  std::unique_ptr<ShardBoundary> boundary;
  std::unique_ptr<ExpertExchange> exchange;
  std::unique_ptr<SequenceRows> sequences;
  std::unique_ptr<AttentionScheme> attention;
  AttentionWork attention_work = {};  // if ranks divide sequences, since the start

  void put_into(RunContext& context) const {
    context.boundary = boundary.get();
    context.exchange = exchange.get();
    context.sequences = sequences.get();
    context.attention = attention.get();
  }
};

}  // namespace chorale
