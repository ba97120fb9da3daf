// Connects the layers of this rank with the layers of other ranks. Each member belongs to one kind of parallelism, and does
// nothing if the layout does not use that kind. Layers use only the interfaces of these members (layers/context.hpp).
//
//   boundary    tensor parallelism     connects the ranks that share a layer
//   exchange    expert parallelism     connects the ranks that divide the experts
//   attention   context parallelism    in attention, connects the ranks that divide a sequence; null: no sequence is divided
//   sequences   context parallelism    connects the same ranks in other layers
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

  const TokenCut cut;  // how the context-parallel ranks divide a sequence's tokens
  std::unique_ptr<ShardBoundary> boundary;
  std::unique_ptr<ExpertExchange> exchange;
  std::unique_ptr<SequenceRows> sequences;
  std::unique_ptr<AttentionScheme> attention;
  AttentionWork attention_work = {};  // this rank's attention work since the start; measured only on the host, and only if
                                      // ranks divide sequences

  void put_into(RunContext& context) const {
    context.boundary = boundary.get();
    context.exchange = exchange.get();
    context.sequences = sequences.get();
    context.attention = attention.get();
  }
};

}  // namespace chorale
