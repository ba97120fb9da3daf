// The facts that a layout must know about each scheme of context parallelism. Each scheme is a file in
// parallel/context/, and schemes.cpp there fills in the table.
#pragma once
#include <cstdint>
#include <memory>
#include <vector>

#include <chorale/training.hpp>

namespace chorale {

class AttentionScheme;  // layers/attention_scheme.hpp
class AxisParts;        // parallel/context/axis_parts.hpp
class TokenCut;         // cut.hpp

struct ContextScheme {
  const char* name;
  std::unique_ptr<AttentionScheme> (*make)(const AxisParts& parts, const TokenCut& cut);
  bool exact;                  // bit-identical to a run on one rank, so exact numerics can use it
  bool divides_heads = false;  // ranks exchange heads for tokens
  bool has_levels = false;     // divides the axis by inner_parts(); other schemes treat the axis as one part
};
const std::vector<ContextScheme>& context_schemes();

}  // namespace chorale
