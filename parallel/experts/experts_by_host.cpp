// With dispatch by host, a token is sent at most once to each other host, even if several of its experts are on that host.
// One rank of that host, called the lane, forwards the token to the ranks that have its experts. Dispatch by host is useful
// if links between hosts are slower than links within a host and tokens often have several experts on one host.
//
//   source                     lane on the experts' host                 rank of the experts
//   x of its tokens ─ across ─▶ x of many sources' tokens ─┐
//   x of its own tokens, with experts on its own host ─────┴─ within ─▶ rows sorted by (local expert, source rank, token)
//
// Each source rank has one lane per host. If a source rank has index i on its own host, its lane has index i on the other
// host, modulo the number of ranks there. So the rows of a source rank arrive in token order, and the counts of all ranks
// determine the destination of each row. The only additional data are a list of experts for each token, sent once per
// forward pass. In the backward pass, the routing weights are sent together with dy, and the lane multiplies dy by these
// weights. The lane uses the same kernel and type as the source rank would, so results are bit-identical to a plain
// dispatch.
//
// Combine is the same as in ExpertParallel, because partial sums on the experts' host would round differently. With g hosts
// that have equally many experts, k experts per token and uniformly random routing, a token is sent to D(g) = g·(1 −
// C(E−E/g, k)/C(E, k)) hosts, including its own. Between hosts, a dispatch sends D(g)/k of the bytes of a plain dispatch. In
// addition, it sends k integers with each token.
#include "parallel/experts/experts.hpp"

#include <algorithm>
#include <span>

#include "layers/context.hpp"
#include "src/base/index.hpp"
#include "src/math/routing.hpp"
#include "src/math/slots.hpp"
#include "src/memory/on_host.hpp"

namespace chorale {

// The route of one micro-batch's tokens, from the view of one rank. In the three tables, each entry is a row index, or −1;
// take_rows (src/math/slots.hpp) takes such a table as its argument `places`.
struct WayByHost {
  RowsBetween across, within;
  std::vector<std::int32_t> leaving;  // [tokens, hosts]: the row of each of this rank's tokens, among the rows sent to other
                                      // hosts
  std::vector<std::int32_t> own;      // [tokens, k]: the row of each of this rank's tokens, among the rows that this rank
                                      // forwards
  std::vector<std::int32_t> landed;   // [rows from other hosts, k]: the row of each received token, among the rows that this
                                      // rank forwards
};

namespace {

std::int64_t leaving(const RowsBetween& rows, std::int64_t ranks, std::int64_t rank) {
  std::int64_t sum = 0;
  for (std::int64_t to = 0; to < ranks; ++to) sum += rows[index(rank * ranks + to)];
  return sum;
}

std::int64_t arriving(const RowsBetween& rows, std::int64_t ranks, std::int64_t rank) {
  std::int64_t sum = 0;
  for (std::int64_t from = 0; from < ranks; ++from) sum += rows[index(from * ranks + rank)];
  return sum;
}

class ExpertsByHost final : public ExpertParallel {
 public:
  ExpertsByHost(Axis& axis, bool overlaps, PlacesOfSources places)
      : ExpertParallel(axis, overlaps, std::move(places)), ranks_of_(index(number_of_hosts(axis.hosts()))) {
    const std::vector<int> hosts = hosts_among(axis.hosts());
    for (std::int64_t rank = 0; rank < axis.size(); ++rank) {
      host_of_.push_back(index(hosts.empty() ? 0 : hosts[index(rank)]));
      index_.push_back(ranks_of_[host_of(rank)].size());
      ranks_of_[host_of(rank)].push_back(rank);
    }
  }

  ExpertRows here(const ExpertRows& home, const Routing& routing, Context& context) const override {
    const std::int64_t ranks = axis_.size(), me = axis_.rank(), each = home.experts / ranks, k = routing.places.dim(1);
    const std::int64_t tokens = routing.places.dim(0), hosts = std::ssize(ranks_of_);
    const std::vector<std::int32_t> experts = experts_of_tokens(me, routing, context);
    const auto host_of_expert = [&](std::int64_t expert) { return host_of(expert / each); };
    const std::vector<char> goes = hosts_of_tokens(experts, k, each);
    const std::int64_t most = most_leaves(home, routing, context);
    const std::vector<std::int64_t> all =
        of_all_ranks([&](std::int64_t source) { return numbers_of(source, home, routing, context); }, context);
    const std::size_t numbers = all.size() / index(ranks), counts = numbers - index(hosts);
    const auto of_rank = [&](std::int64_t rank) { return std::span(all).subspan(index(rank) * numbers, numbers); };
    ExpertRows here = rows_here(all, home.experts, most);
    const auto rows_of = [&](std::int64_t source, std::int64_t expert) {
      const auto of_leaves = of_rank(source).subspan(index(expert * most), index(most));
      return std::accumulate(of_leaves.begin(), of_leaves.end(), std::int64_t{0});
    };

    auto way = std::make_shared<WayByHost>();
    way->across.resize(index(ranks * ranks));
    way->within.resize(index(ranks * ranks));
    for (std::int64_t source = 0; source < ranks; ++source)
      for (std::size_t host = 0; host < ranks_of_.size(); ++host) {
        const std::int64_t through = lane(source, host);
        if (host != host_of(source)) way->across[index(source * ranks + through)] = of_rank(source)[counts + host];
        for (const std::int64_t to : ranks_of_[host])
          for (std::int64_t e = to * each; e < (to + 1) * each; ++e)
            way->within[index(through * ranks + to)] += rows_of(source, e);
      }

    // The rows that this rank sends to other hosts are sorted by (lane, token). A lane is the rank that receives the rows on
    // the other host.
    std::vector<std::size_t> order(index(hosts));
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::ranges::sort(order, {}, [&](std::size_t host) { return lane(me, host); });
    const Tensor sent = context.typed({leaving(way->across, ranks, me), k}, DType::i32, Category::workspace);
    const Tensor got = context.typed({arriving(way->across, ranks, me), k}, DType::i32, Category::workspace);
    const bool plans = sent.phantom();  // in a plan, the tables have no values
    if (!plans) {
      way->leaving.assign(index(tokens * hosts), -1);
      with_values<std::int32_t>(sent, Use::write, [&](auto lists) {
        std::int32_t row = 0;
        for (const std::size_t host : order)
          for (std::int64_t t = 0; host != host_of(me) && t < tokens; ++t) {
            if (!goes[index(t * hosts) + host]) continue;
            for (std::int64_t j = 0; j < k; ++j) {
              const std::int32_t expert = experts[index(t * k + j)];
              lists[index(row * k + j)] = expert >= 0 && host_of_expert(expert) == host ? expert : -1;
            }
            way->leaving[index(t * hosts) + host] = row++;
          }
      });
    }
    axis_.all_to_all(sent, got, way->across);
    if (!plans) {
      // The rows that this rank forwards within its host are sorted by (expert, source rank, token). Initially, `next` holds
      // the index of the first row of each (expert, source rank).
      const std::vector<std::int64_t> sources = sources_of(me);
      std::vector<std::int32_t> next(index(home.experts * ranks));
      std::int64_t first = 0;
      for (const std::int64_t to : ranks_of_[host_of(me)])
        for (std::int64_t e = to * each; e < (to + 1) * each; ++e)
          for (const std::int64_t source : sources) {
            next[index(e * ranks + source)] = static_cast<std::int32_t>(first);
            first += rows_of(source, e);
          }
      const auto place = [&](std::int32_t expert, std::int64_t source) {
        return expert >= 0 && host_of_expert(expert) == host_of(me) ? next[index(expert * ranks + source)]++ : -1;
      };
      for (const std::int32_t expert : experts) way->own.push_back(place(expert, me));
      with_values<std::int32_t>(got, Use::read, [&](auto lists) {
        std::size_t i = 0;
        for (std::int64_t source = 0; source < ranks; ++source)
          for (std::int64_t left = way->across[index(source * ranks + me)] * k; left > 0; --left)
            way->landed.push_back(place(lists[i++], source));
      });
    }
    here.way = std::move(way);
    return here;
  }

  Tensor dispatch(const Tensor& x, const Tensor* weights, const Tensor& places, const ExpertRows&, const ExpertRows& here,
                  Context& context) const override {
    const WayByHost& way = *here.way;
    const std::int64_t ranks = axis_.size(), me = axis_.rank(), k = places.dim(1);
    const std::int64_t leaves = leaving(way.across, ranks, me), lands = arriving(way.across, ranks, me);
    const auto table = [&](const std::vector<std::int32_t>& values, std::int64_t rows, std::int64_t columns) {
      const Tensor tensor = context.typed({rows, columns}, DType::i32, Category::workspace);
      if (!tensor.phantom())
        with_values<std::int32_t>(tensor, Use::write, [&](auto to) { std::ranges::copy(values, to.begin()); });
      return tensor;
    };
    const Tensor leave = table(way.leaving, x.dim(0), std::ssize(ranks_of_));
    const auto start_across = [&](const Tensor& rows, const Tensor& landed) {
      const Tensor sent = like(rows, leaves, context);
      take_rows(rows, nullptr, leave, sent, context.queue);
      return axis_.start_all_to_all(sent, landed, way.across);
    };
    const Tensor landed = like(x, lands, context), landed_weights = weights ? like(*weights, lands, context) : Tensor();
    Axis::Pending tokens = start_across(x, landed), their_weights;
    if (weights) their_weights = start_across(*weights, landed_weights);

    const Tensor spread = like(x, leaving(way.within, ranks, me), context), arrived = like(x, here.all(), context);
    take_rows(x, weights, table(way.own, x.dim(0), k), spread, context.queue);
    tokens.wait();
    their_weights.wait();
    take_rows(landed, weights ? &landed_weights : nullptr, table(way.landed, lands, k), spread, context.queue);
    axis_.all_to_all(spread, arrived, way.within);

    std::vector<Block> order;
    for (const std::int64_t from : ranks_of_[host_of(me)])
      for (std::int64_t expert = 0; expert < here.experts; ++expert)
        for (const std::int64_t source : sources_of(from)) order.push_back({source, expert});
    return sorted(arrived, here, order, context);
  }

 private:
  // The experts [tokens, k] of a rank's tokens; −1 for a dropped choice. The experts of other ranks' tokens are known only
  // in a plan.
  std::vector<std::int32_t> experts_of_tokens(std::int64_t source, const Routing& routing, const Context& context) const {
    std::vector<std::int32_t> experts;
    if (routing.places.phantom()) {  // every sequence has the same choices
      const std::vector<std::int32_t> of_one = planned_choices(source, routing);
      for (std::int64_t sample = 0; sample < routing.places.dim(0) / context.tokens.tokens; ++sample)
        experts.insert(experts.end(), of_one.begin(), of_one.end());
      return experts;
    }
    with_values<std::int32_t>(routing.chosen, Use::read, [&](auto chosen) { experts.assign(chosen.begin(), chosen.end()); });
    with_values<std::int32_t>(routing.places, Use::read, [&](auto places) {
      for (std::size_t i = 0; i < experts.size(); ++i)
        if (places[i] < 0) experts[i] = -1;
    });
    return experts;
  }

  // Returns a table [tokens, hosts] that states whether the host has any of the token's k experts. `each` is the number of
  // experts per rank.
  std::vector<char> hosts_of_tokens(const std::vector<std::int32_t>& experts, std::int64_t k, std::int64_t each) const {
    const std::size_t hosts = ranks_of_.size();
    std::vector<char> goes(experts.size() / index(k) * hosts, 0);
    for (std::size_t i = 0; i < experts.size(); ++i)
      if (experts[i] >= 0) goes[i / index(k) * hosts + host_of(experts[i] / each)] = 1;
    return goes;
  }

  // The integers that a rank sends to all other ranks: its row counts and, for each host, the number of its tokens that have
  // experts on the host.
  std::vector<std::int64_t> numbers_of(std::int64_t source, const ExpertRows& home, const Routing& routing,
                                       const Context& context) const {
    std::vector<std::int64_t> numbers = padded_counts_of(source, home, routing, context), going(ranks_of_.size());
    const std::vector<char> goes =
        hosts_of_tokens(experts_of_tokens(source, routing, context), routing.places.dim(1), home.experts / axis_.size());
    for (std::size_t i = 0; i < goes.size(); ++i) going[i % going.size()] += goes[i];
    numbers.insert(numbers.end(), going.begin(), going.end());
    return numbers;
  }

  std::size_t host_of(std::int64_t rank) const { return host_of_[static_cast<std::size_t>(rank)]; }

  // Returns `source` if `host` is its own host.
  std::int64_t lane(std::int64_t source, std::size_t host) const {
    const std::vector<std::int64_t>& there = ranks_of_[host];
    return host == host_of(source) ? source : there[index_[index(source)] % there.size()];
  }

  // Source ranks whose lane is this rank, including this rank itself.
  std::vector<std::int64_t> sources_of(std::int64_t rank) const {
    std::vector<std::int64_t> sources;
    for (std::int64_t source = 0; source < axis_.size(); ++source)
      if (lane(source, host_of(rank)) == rank) sources.push_back(source);
    return sources;
  }

  std::vector<std::size_t> host_of_, index_;         // for each rank: its host, and its index on that host
  std::vector<std::vector<std::int64_t>> ranks_of_;  // the ranks of each host
};

}  // namespace

std::unique_ptr<ExpertParallel> experts_by_host(Axis& axis, bool overlaps, PlacesOfSources places) {
  return std::make_unique<ExpertsByHost>(axis, overlaps, std::move(places));
}

}  // namespace chorale
