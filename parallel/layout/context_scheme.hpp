// The options of context parallelism, and the facts that a layout must know about each scheme. Each scheme is a file in
// parallel/context/, and parallel/context/schemes.cpp fills in the table.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace chorale {

class Options;
class AttentionScheme;  // layers/attention_scheme.hpp
class AxisParts;        // parallel/context/axis_parts.hpp
class TokenCut;         // cut.hpp
struct CutRow;

struct ContextScheme {
  const char* name;
  std::unique_ptr<AttentionScheme> (*make)(const AxisParts& parts, const TokenCut& cut);
  bool exact;                  // bit-identical to a run on one rank, so exact numerics can use it
  bool divides_heads = false;  // ranks exchange heads for tokens
  bool has_levels = false;     // divides the axis by inner_parts(); other schemes treat the axis as one part
};
const std::vector<ContextScheme>& context_schemes();
const ContextScheme& context_scheme_named(const std::string& name);

struct ContextOptions {
  const ContextScheme* scheme = &context_schemes().front();  // gather
  const CutRow* cut = nullptr;  // null: auto, which means zigzag if the sequence has enough blocks, else contiguous
  std::int64_t inner = 0;  // for ulysses-ring: number of ranks that exchange heads for tokens; 0: the ranks of each host
  void declare(Options& options);
};

}  // namespace chorale
