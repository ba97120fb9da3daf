// The properties of each context-parallel scheme that the rules of layouts depend on. Each scheme is a file in
// parallel/context/, and schemes.cpp there fills in the table.
#pragma once
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
  bool exact;                  // true if results are bit-identical to a run on one rank, so exact numerics can use the
                               // scheme
  bool divides_heads = false;  // ranks exchange heads for tokens
  bool has_levels = false;     // true if inner_parts() divides the axis into parts; otherwise the axis is one part
};
const std::vector<ContextScheme>& context_schemes();

}  // namespace chorale
