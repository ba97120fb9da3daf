#include <algorithm>

#include "parallel/context/context.hpp"
#include "parallel/layout_rules.hpp"
#include "src/base/error.hpp"

namespace chorale {

const std::vector<ContextScheme>& context_schemes() {
  static const std::vector<ContextScheme> rows{
      {"gather", gather_context, true},
      {"ulysses", ulysses_context, true},
      {"ring", ring_context, false},
      {"ulysses-ring", ulysses_ring_context, false, true},
  };
  return rows;
}

const ContextScheme& context_scheme_named(const std::string& name) {
  const auto row = std::ranges::find(context_schemes(), name, &ContextScheme::name);
  require(row != context_schemes().end(), "no scheme of context parallelism is called {}", name);
  return *row;
}

std::unique_ptr<AttentionScheme> context_scheme_of(const Mesh& mesh, const ContextOptions& options, const ModelShape& shape,
                                                   const TokenCut& cut) {
  Axis& axis = mesh.context();
  if (axis.size() == 1) return nullptr;
  const ContextScheme& scheme = context_scheme_named(options.scheme);
  if (!scheme.has_levels) return scheme.make(axis, cut);
  const AxisParts parts = inner_parts(axis, options.inner);
  if (const MaybeMisfit misfit = misfit_of_heads({options.scheme, options.cut, parts.size()}, shape, mesh.layout()))
    usage_error(misfit->what, misfit->numbers, "try " + misfit->remedy);
  return scheme.make(parts, cut);
}

}  // namespace chorale
