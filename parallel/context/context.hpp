// Context parallelism: ranks divide the tokens of each sequence. Most layers process each token separately. So only
// attention and some expert routers (divided_sequences.cpp) communicate. Each scheme is one file, which defines how a rank
// combines its queries with the keys of other ranks.
//
//             sends, forward, per layer and rank         method
//   gather    2·h_kv·(s/c)·(c−1) elements                all keys and values are gathered, in the order of the tokens
//   ulysses   (2·h + 2·h_kv)·(s/c)·(c−1)/c               heads are exchanged for tokens; attention does not communicate
//   ring      the same as gather                         keys and values circulate; a rank never has all keys
//   ulysses-ring   (ulysses_ring.cpp)                    ulysses among the ranks of a host, ring from host to host
//
// Here c ranks divide s tokens evenly; h and h_kv are the widths of all query heads and of all key heads. A TokenCut
// (cut.hpp) is a partition of a sequence's tokens among the ranks. A scheme is constructed with a TokenCut, which gives the
// number of tokens of each rank in every sample. If Context::cuts is set, each sample of the micro-batch has its own
// partition, and cut_of (sequence_order.hpp) returns the partition of a sample.
#pragma once
#include <memory>

#include "layers/attention_scheme.hpp"
#include "parallel/context/axis_parts.hpp"
#include "parallel/layout/context_scheme.hpp"
#include "parallel/layout/cut.hpp"
#include "parallel/layout/layout_rules.hpp"
#include "parallel/mesh/mesh.hpp"

namespace chorale {

// Returns the reason why ranks on these hosts cannot use the scheme, or nullopt if they can. `hosts` states the host of each
// rank of the layout; if it is empty, all ranks are on one host.
MaybeMisfit misfit_on_hosts(const ContextOptions& options, const ModelShape& shape, const Layout& layout,
                            const std::vector<int>& hosts);
// Returns the options for a plan that is made before the hosts of the ranks are known. If options.inner is 0, it is replaced
// by the largest value that fits the layout.
ContextOptions before_hosts_are_known(ContextOptions options, const ModelShape& shape, const Layout& layout);
// Returns the scheme of this mesh; null if there are no context-parallel ranks. `cut` must outlive the scheme. Throws a
// usage error if the scheme does not support the ranks' placement on hosts.
std::unique_ptr<AttentionScheme> context_scheme_of(const Mesh& mesh, const ContextOptions& options, const ModelShape& shape,
                                                   const TokenCut& cut);
// Returns the parts (subgroups of the axis) within which ranks exchange heads under ulysses-ring. If `inner` is 0, or if
// each host has `inner` ranks, a part consists of the ranks of a host. Otherwise, a part consists of `inner` consecutive
// ranks.
AxisParts inner_parts(Axis& axis, std::int64_t inner);
// The number of ranks on each host. `hosts` states the host of each rank, numbered from 0; if it is empty, all ranks are on
// one host.
std::vector<std::int64_t> ranks_by_host(const std::vector<int>& hosts, std::int64_t ranks);

// Provides complete sequences to layers other than attention.
std::unique_ptr<SequenceRows> divided_sequences(Axis& axis, const TokenCut& cut);

// Constructors of the schemes. `cut` states how all ranks of the axis divide a sequence.
std::unique_ptr<AttentionScheme> gather_context(const AxisParts& whole, const TokenCut& cut);
std::unique_ptr<AttentionScheme> ulysses_context(const AxisParts& whole, const TokenCut& cut);
std::unique_ptr<AttentionScheme> ulysses_ring_context(const AxisParts& hosts, const TokenCut& cut);
// Runs a ring within each part. `cut` states how the ranks of a part divide a sequence. `cut` numbers the ranks by their
// indices in the part.
std::unique_ptr<AttentionScheme> ring_context(const AxisParts& rings, const TokenCut& cut);
// Runs Ulysses within each part. Between the two exchanges of heads, `attention` connects the ranks of different parts; a
// null `attention` means that there is only one part.
std::unique_ptr<AttentionScheme> ulysses_around(std::unique_ptr<AttentionScheme> attention, const AxisParts& parts,
                                                const TokenCut& cut);

}  // namespace chorale
