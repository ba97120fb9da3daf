// The options of context parallelism, and the facts about each scheme that a layout must know. Each scheme is a file of
// parallel/context/; schemes.cpp there fills in the table.
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
  bool exact;                  // gives the bits of one rank, so exact numerics can use it
  bool divides_heads = false;  // ranks exchange heads for tokens
  bool has_levels = false;     // takes inner_parts(); the others take the whole axis as one part
};
const std::vector<ContextScheme>& context_schemes();
const ContextScheme& context_scheme_named(const std::string& name);

struct ContextOptions {
  const ContextScheme* scheme = &context_schemes().front();  // gather
  const CutRow* cut = nullptr;  // null: auto, which is zigzag if the sequence has enough blocks, else contiguous
  std::int64_t inner = 0;       // of ulysses-ring: so many ranks exchange heads for tokens; 0: those of each host
  void declare(Options& options);
};

}  // namespace chorale
