// Context parallelism: ranks divide the tokens of each sequence. Every layer but attention works on each token alone, so
// only attention communicates, and some routers of experts (divided_sequences.cpp). The schemes say how queries and keys
// meet; each is one file.
//
//             sends, forward, per layer and rank         what it is
//   gather    2·h_kv·(s/c)·(c−1) elements                all keys and values are gathered; a query meets them in order
//   ulysses   (2·h + 2·h_kv)·(s/c)·(c−1)/c               heads are exchanged for tokens; a rank attends alone
//   ring      the same as gather                         keys and values go round; a rank never has all of them at once
//
// c ranks divide s tokens evenly; h and h_kv are the widths of all query heads and of all key heads. TokenCut (cut.hpp) says
// which tokens a rank has.
#pragma once
#include <memory>

#include "layers/attention_scheme.hpp"
#include "parallel/axis.hpp"
#include "parallel/context/cut.hpp"
#include "parallel/mesh.hpp"

namespace chorale {

struct ContextScheme {
  const char* name;
  std::unique_ptr<AttentionScheme> (*make)(Axis& axis, const TokenCut& cut);
  bool exact;  // gives the bits of one rank, so exact numerics can use it
};
const std::vector<ContextScheme>& context_schemes();
const ContextScheme& context_scheme_named(const std::string& name);

// Empty without context-parallel ranks. `cut` must outlive the scheme.
std::unique_ptr<AttentionScheme> context_scheme_of(const Mesh& mesh, const ContextOptions& options, const TokenCut& cut);

// For layers other than attention.
std::unique_ptr<SequenceRows> divided_sequences(Axis& axis, const TokenCut& cut);

// The schemes.
std::unique_ptr<AttentionScheme> gather_context(Axis& axis, const TokenCut& cut);
std::unique_ptr<AttentionScheme> ulysses_context(Axis& axis, const TokenCut& cut);
std::unique_ptr<AttentionScheme> ring_context(Axis& axis, const TokenCut& cut);

}  // namespace chorale
