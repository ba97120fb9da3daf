#include <algorithm>

#include "parallel/context/context.hpp"
#include "src/base/error.hpp"
#include "src/base/options.hpp"
#include "src/base/text.hpp"

namespace chorale {
namespace {

MaybeMisfit misfit_of_one_sequence(const ContextOptions& options, const ModelShape& shape, const Layout& layout,
                                   const std::vector<int>& hosts) {
  if (!options.scheme->has_levels) return {};
  if (MaybeMisfit misfit = misfit_of_cut(options, shape, layout)) return misfit;
  if (options.inner > 0) return misfit_of_heads(options, shape, layout);
  const std::vector<std::int64_t> counts = ranks_by_host(hosts, layout.context_ranks());
  if (std::ranges::adjacent_find(counts, std::ranges::not_equal_to{}) == counts.end())
    return misfit_of_heads({options.scheme, options.cut, counts.front()}, shape, layout);
  std::vector<std::string> words;
  for (const std::int64_t count : counts) words.push_back(std::to_string(count));
  return Misfit{
      "the hosts have unequal numbers of context ranks, so ulysses-ring has no ring of hosts",
      fmt::format("the {} ranks of a sequence are on hosts with {} of them", layout.context_ranks(), join(words, ", ")),
      "equal numbers on each host, another --order, --context-inner, or --context-scheme ring"};
}

}  // namespace

const std::vector<ContextScheme>& context_schemes() {
  static const std::vector<ContextScheme> rows{
      {"gather", gather_context, true},
      {"ulysses", ulysses_context, true, true},
      {"ring", ring_context, false},
      {"ulysses-ring", ulysses_ring_context, false, true, true},
  };
  return rows;
}

const ContextScheme& context_scheme_named(const std::string& name) {
  return row_named(context_schemes(), "scheme of context parallelism", name);
}

MaybeMisfit misfit_on_hosts(const ContextOptions& options, const ModelShape& shape, const Layout& layout,
                            const std::vector<int>& hosts) {
  const std::string axis = join(layout.axes->names_of(layout.axes->dividing(Divides::tokens)), "+");
  for (const RankGroup& group : groups_of(layout))
    if (group.name == axis)
      if (MaybeMisfit misfit = misfit_of_one_sequence(options, shape, layout, hosts_among(group.ranks, hosts)))
        return misfit;
  return {};
}

ContextOptions before_hosts_are_known(ContextOptions options, const ModelShape& shape, const Layout& layout) {
  if (options.scheme->has_levels && options.inner == 0) options.inner = fitting_inner(shape, layout).back();
  return options;
}

std::unique_ptr<AttentionScheme> context_scheme_of(const Mesh& mesh, const ContextOptions& options, const ModelShape& shape,
                                                   const TokenCut& cut) {
  Axis& axis = mesh.context();
  if (axis.size() == 1) return nullptr;
  if (const MaybeMisfit misfit = misfit_of_one_sequence(options, shape, mesh.layout(), axis.hosts()))
    usage_error(misfit->what, misfit->numbers, "try " + misfit->remedy);
  const ContextScheme& scheme = *options.scheme;
  return scheme.make(scheme.has_levels ? inner_parts(axis, options.inner) : AxisParts(axis), cut);
}

void ContextOptions::declare(Options& o) {
  const Option& how =
      o.add("context-scheme", context_schemes(), scheme,
            "how context ranks exchange keys and values; ulysses-ring: ulysses inside a host, ring across hosts");
  o.add("context-inner", inner,
        "ulysses-ring: how many ranks exchange heads for tokens, before keys go round among such groups; 0: those of a host")
      .range(0, 1e6)
      .only_with(how, "ulysses-ring");
  o.add("context-cut", token_cuts(), cut,
        "which tokens of a sequence each context rank has; balanced: by the work of packed documents (--document-mask), "
        "otherwise zigzag; auto: zigzag if there are enough blocks, else contiguous");
}

}  // namespace chorale
