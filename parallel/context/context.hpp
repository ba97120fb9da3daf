// Context parallelism: ranks divide the tokens of each sequence. Every layer but attention works on each token alone. So
// only attention communicates, and so do some expert routers (divided_sequences.cpp). Each scheme is one file. It defines
// how queries and keys come together.
//
//             sends, forward, per layer and rank         method
//   gather    2·h_kv·(s/c)·(c−1) elements                all keys and values are gathered, in the order of the tokens
//   ulysses   (2·h + 2·h_kv)·(s/c)·(c−1)/c               heads are exchanged for tokens; a rank attends alone
//   ring      the same as gather                         keys and values circulate; a rank never has all of them at once
//   ulysses-ring   (ulysses_ring.cpp)                    ulysses among the ranks of a host, ring from host to host
//
// Here c ranks divide s tokens evenly; h and h_kv are the widths of all query heads and of all key heads. TokenCut (cut.hpp)
// states which tokens a rank has. A scheme is constructed with a cut that gives the number of tokens of each rank in every
// sample. If Context::cuts is set, the samples of the micro-batch are cut one by one, and cut_of (sequence_order.hpp)
// returns the cut of each sample.
#pragma once
#include <memory>

#include "layers/attention_scheme.hpp"
#include "parallel/context/axis_parts.hpp"
#include "parallel/layout/context_scheme.hpp"
#include "parallel/layout/cut.hpp"
#include "parallel/layout/layout_rules.hpp"
#include "parallel/mesh/mesh.hpp"

namespace chorale {

// Why ranks on these hosts cannot use the scheme. `hosts`: the host of each rank of the layout; empty: all are on one host.
MaybeMisfit misfit_on_hosts(const ContextOptions& options, const ModelShape& shape, const Layout& layout,
                            const std::vector<int>& hosts);
// The options for a plan that is made before the hosts of the ranks are known: the largest `inner` that fits replaces 0.
ContextOptions before_hosts_are_known(ContextOptions options, const ModelShape& shape, const Layout& layout);
// The scheme of this mesh; null if there are no context-parallel ranks. `cut` must outlive the scheme. Throws a usage error
// if the ranks' hosts do not suit the scheme.
std::unique_ptr<AttentionScheme> context_scheme_of(const Mesh& mesh, const ContextOptions& options, const ModelShape& shape,
                                                   const TokenCut& cut);
// The parts whose ranks exchange heads under ulysses-ring. If `inner` is 0, or if each host has `inner` ranks, a part is the
// ranks of a host. Otherwise, a part is `inner` consecutive ranks.
AxisParts inner_parts(Axis& axis, std::int64_t inner);
// The number of ranks on each host. `hosts`: the host of each rank, numbered from 0; empty: all are on one host.
std::vector<std::int64_t> ranks_by_host(const std::vector<int>& hosts, std::int64_t ranks);

// Provides whole sequences to layers other than attention.
std::unique_ptr<SequenceRows> divided_sequences(Axis& axis, const TokenCut& cut);

// The schemes. `cut` divides a sequence among all ranks of the axis.
std::unique_ptr<AttentionScheme> gather_context(const AxisParts& whole, const TokenCut& cut);
std::unique_ptr<AttentionScheme> ulysses_context(const AxisParts& whole, const TokenCut& cut);
std::unique_ptr<AttentionScheme> ulysses_ring_context(const AxisParts& hosts, const TokenCut& cut);
// A ring in each part. `cut` divides a sequence among the ranks of a part, by their indices.
std::unique_ptr<AttentionScheme> ring_context(const AxisParts& rings, const TokenCut& cut);
// Ulysses in each part. `attention` runs in the middle and connects the ranks of different parts; empty: there is one part.
std::unique_ptr<AttentionScheme> ulysses_around(std::unique_ptr<AttentionScheme> attention, const AxisParts& parts,
                                                const TokenCut& cut);

}  // namespace chorale
