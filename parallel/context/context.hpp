// Context parallelism: ranks divide the tokens of each sequence. Every layer but attention works on each token alone, so
// only attention communicates, and some routers of experts (divided_sequences.cpp). The schemes say how queries and keys
// meet; each is one file.
//
//             sends, forward, per layer and rank         what it is
//   gather    2·h_kv·(s/c)·(c−1) elements                all keys and values are gathered; a query meets them in order
//   ulysses   (2·h + 2·h_kv)·(s/c)·(c−1)/c               heads are exchanged for tokens; a rank attends alone
//   ring      the same as gather                         keys and values go round; a rank never has all of them at once
//   ulysses-ring   (ulysses_ring.cpp)                    ulysses among the ranks of a host, ring from host to host
//
// c ranks divide s tokens evenly; h and h_kv are the widths of all query heads and of all key heads. TokenCut (cut.hpp) says
// which tokens a rank has. The cuts that schemes are made with give the number of tokens of each rank in every sample. If
// Context::cuts is set, the samples of the micro-batch are cut one by one, and cut_of (sequence_order.hpp) gives the cut of
// each.
#pragma once
#include <memory>

#include "layers/attention_scheme.hpp"
#include "parallel/context/axis_parts.hpp"
#include "parallel/layout/context_scheme.hpp"
#include "parallel/layout/cut.hpp"
#include "parallel/layout/layout_rules.hpp"
#include "parallel/mesh/mesh.hpp"

namespace chorale {

// Why ranks on these hosts cannot use the scheme. `hosts`: of each rank of the layout; empty: one host has all.
MaybeMisfit misfit_on_hosts(const ContextOptions& options, const ModelShape& shape, const Layout& layout,
                            const std::vector<int>& hosts);
// The options for a plan that is made before the hosts of the ranks are known: the largest `inner` that fits replaces 0.
ContextOptions before_hosts_are_known(ContextOptions options, const ModelShape& shape, const Layout& layout);
// Empty without context-parallel ranks. `cut` must outlive the scheme. Throws a usage error if the hosts of the ranks do not
// suit the scheme.
std::unique_ptr<AttentionScheme> context_scheme_of(const Mesh& mesh, const ContextOptions& options, const ModelShape& shape,
                                                   const TokenCut& cut);
// The ranks that exchange heads under ulysses-ring: those of each host, if these are `inner` ranks or `inner` is 0, or else
// each `inner` ranks that follow each other.
AxisParts inner_parts(Axis& axis, std::int64_t inner);
// How many of these ranks are on each host. `hosts`: of each rank, numbered from 0; empty: one host.
std::vector<std::int64_t> ranks_by_host(const std::vector<int>& hosts, std::int64_t ranks);

// For layers other than attention.
std::unique_ptr<SequenceRows> divided_sequences(Axis& axis, const TokenCut& cut);

// The schemes. `cut` is among all ranks of the axis.
std::unique_ptr<AttentionScheme> gather_context(const AxisParts& whole, const TokenCut& cut);
std::unique_ptr<AttentionScheme> ulysses_context(const AxisParts& whole, const TokenCut& cut);
std::unique_ptr<AttentionScheme> ulysses_ring_context(const AxisParts& hosts, const TokenCut& cut);
// A ring in each part. `cut` is among the ranks of a part, by their indices.
std::unique_ptr<AttentionScheme> ring_context(const AxisParts& rings, const TokenCut& cut);
// Ulysses in each part. `attention`, in the middle, connects the ranks of different parts; empty: one part has all ranks.
std::unique_ptr<AttentionScheme> ulysses_around(std::unique_ptr<AttentionScheme> attention, const AxisParts& parts,
                                                const TokenCut& cut);

}  // namespace chorale
