#include <algorithm>

#include "parallel/context/context.hpp"

namespace chorale {

const std::vector<ContextScheme>& context_schemes() {
  static const std::vector<ContextScheme> rows{
      {"gather", gather_context, true},
      {"ulysses", ulysses_context, true},
      {"ring", ring_context, false},
  };
  return rows;
}

const ContextScheme& context_scheme_named(const std::string& name) {
  const auto row = std::ranges::find(context_schemes(), name, &ContextScheme::name);
  require(row != context_schemes().end(), "no scheme of context parallelism is called {}", name);
  return *row;
}

std::unique_ptr<AttentionScheme> context_scheme_of(const Mesh& mesh, const ContextOptions& options, const TokenCut& cut) {
  Axis& axis = mesh.context();
  if (axis.size() == 1) return nullptr;
  return context_scheme_named(options.scheme).make(axis, cut);
}

}  // namespace chorale
