#include "experiments/plan/hosts.hpp"

#include <fmt/format.h>

#include <utility>

#include "collectives/backends/backends.hpp"
#include "experiments/train/team.hpp"
#include "parallel/context/context.hpp"
#include "parallel/mesh/placement.hpp"
#include "parallel/plan/order.hpp"
#include "src/base/error.hpp"

namespace chorale::plan {
namespace {

struct HostBytes {
  std::int64_t bytes = 0, crossing = 0;  // −1: unknown

  void add(const HostBytes& more) {
    bytes = bytes < 0 || more.bytes < 0 ? -1 : bytes + more.bytes;
    crossing = crossing < 0 || more.crossing < 0 ? -1 : crossing + more.crossing;
  }
};
using SentByAxis = std::map<std::pair<std::int64_t, std::string>, HostBytes>;  // the key is a pair of stage and axis

SentByAxis sent_in_step(const PlanRequest& request) {
  SentByAxis sent;
  for (int rank = 0; rank < request.layout.ranks(); ++rank)
    for (const auto& [axis, account] : plan_rank(request, rank).axes)
      for (const Account::Entry& entry : account.entries)
        if (entry.calls > 0) sent[{stage_of(request.layout, rank), axis}].add({entry.bytes, entry.crossing});
  return sent;
}

}  // namespace

Hosts::Hosts(Topology topology)
    : topology_(std::move(topology)),
      nearest_(best_backend(false, joins_here)),
      widest_(topology_.hosts() == 1 ? nearest_ : best_backend(false, [](const Backend& row) {
        return !row.one_host && joins_here(row);
      })) {}

std::string Hosts::place(PlanRequest& request) const {
  auto [choice, why] = train::placed({request.layout, request.backends, request.algorithms}, request.options, topology_);
  request.layout = std::move(choice.layout);
  request.backends = chosen_backends(std::move(choice.backends), request.layout, topology_, nearest_, widest_);
  request.hosts = topology_.host_of;
  return why;
}

void Hosts::require_suited(const PlanRequest& request) const {
  require_reach(request.layout, request.backends, topology_);
  const TrainingOptions& o = request.options;
  if (const auto misfit = misfit_on_hosts(o.context, o.shape, request.layout, request.hosts))
    usage_error(misfit->what, misfit->numbers, "try " + misfit->remedy);
}

bool Hosts::suit(const PlanRequest& request) const {
  return why_not_on(topology_, request.layout, request.backends, request.options).empty();
}

std::string Hosts::assumed() const {
  const std::string which =
      nearest_ == widest_ ? nearest_ : fmt::format("{} for axes within a host, {} for others", nearest_, widest_);
  return fmt::format("backend {}, if all hosts are like this one (--backend)", which);
}

void Hosts::add_traffic(Document& document, const PlanRequest& request, const Wording& as) const {
  TextTable table({"stage", "axis", as.plain() ? "sent_bytes" : "bytes", as.column("across hosts", "bytes")});
  HostBytes all;
  for (const auto& [key, sent] : sent_in_step(request)) {
    table.add({std::to_string(key.first), key.second, as.bytes(sent.bytes), as.bytes(sent.crossing)});
    all.add(sent);
  }
  if (table.rows() == 0) return;
  document.words(fmt::format("\nsent in a step by all ranks of a stage; {} of {} cross hosts ({})\n", as.bytes(all.crossing),
                             as.bytes(all.bytes), topology_.text()));
  document.table("across_hosts", table);
}

}  // namespace chorale::plan
