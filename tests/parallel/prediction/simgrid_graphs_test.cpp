// Writes collectives as graphs of messages, and the times that we predict for them. simgrid_test.py compares these times
// with SimGrid's times for the graphs. The graphs use none of the code that simulates calls (system_call.cpp).
//
//   GRAPHS=FOLDER build/tests_run "[.simgrid]"      FOLDER/NAME.graph for each case; FOLDER/times: "SECONDS NAME" for each
#include <fmt/os.h>

#include <cstdlib>
#include <set>

#include <chorale/algorithm.hpp>
#include "collectives/schedule/step_graph.hpp"
#include "parallel/prediction/system_call.hpp"
#include "src/base/index.hpp"
#include "tests/catch.hpp"
#include "tests/parallel/prediction/small_system.hpp"

namespace chorale::test {
namespace {

struct Case {
  Collective what;
  const char* algorithm;
  std::int64_t bytes;         // of the full vector
  std::vector<int> ranks_on;  // number of ranks on each host
  int switch_hosts = 0;
  double oversubscription = 1;
  double adapters = 4;  // of a host
};

System system_of(const Case& c) {
  System system = small_system();
  system.host = {.accelerators = 8, .link = 100e9, .latency = 2e-6};
  system.network = {.adapters = c.adapters, .adapter = 20e9, .latency = 7e-6};
  system.network.switch_hosts = c.switch_hosts;
  system.network.oversubscription = c.oversubscription;
  return system;
}

// The messages that must have arrived before a step is posted. A step without messages ends when it is posted.
class Dependences {
 public:
  Dependences(const StepGraph& graph, const std::vector<Message>& messages) : graph_(graph) {
    for (const Schedule& rank : graph.ranks()) of_step_.emplace_back(rank.steps.size());
    for (int m = 0; m < static_cast<int>(messages.size()); ++m) {
      const auto& [from, to, send, recv] = messages[index(m)];
      of_step_[index(from)][index(send)].insert(m);
      of_step_[index(to)][index(recv)].insert(m);
    }
  }
  void collect(int rank, int step, std::set<int>& found) const {
    for (const int earlier : graph_.ranks()[index(rank)].steps[index(step)].after) {
      const std::set<int>& own = of_step_[index(rank)][index(earlier)];
      found.insert(own.begin(), own.end());
      if (own.empty()) collect(rank, earlier, found);
    }
  }

 private:
  const StepGraph& graph_;
  std::vector<std::vector<std::set<int>>> of_step_;
};

void write_platform(const Case& c, const std::vector<int>& hosts, fmt::ostream& out) {
  const System system = system_of(c);
  const auto add = [&](const char* name, int number, double rate) {
    out.print("link {0}{1}-out {2}\nlink {0}{1}-in {2}\n", name, number, rate);
  };
  out.print("hosts {}\n", hosts.size());
  for (int rank = 0; rank < std::ssize(hosts); ++rank) add("rank", rank, system.host.link);
  for (int host = 0; host < std::ssize(c.ranks_on); ++host) {
    add("host", host, 20e9 * std::max(1.0, c.adapters * c.ranks_on[index(host)] / 8));
    if (c.switch_hosts > 0 && host % c.switch_hosts == 0)
      add("switch", host / c.switch_hosts, c.switch_hosts * c.adapters * 20e9 / c.oversubscription);
  }
  for (int from = 0; from < std::ssize(hosts); ++from)
    for (int to = 0; to < std::ssize(hosts); ++to) {
      if (from == to) continue;
      const int a = hosts[index(from)], b = hosts[index(to)];
      out.print("route {} {} {} rank{}-out rank{}-in", from, to, a == b ? 2e-6 : 7e-6, from, to);
      if (a != b) out.print(" host{}-out host{}-in", a, b);
      if (c.switch_hosts > 0 && a / c.switch_hosts != b / c.switch_hosts)
        out.print(" switch{}-out switch{}-in", a / c.switch_hosts, b / c.switch_hosts);
      out.print("\n");
    }
}

void write(const Case& c, const std::string& folder, fmt::ostream& times) {
  std::vector<int> hosts;
  for (int host = 0; host < std::ssize(c.ranks_on); ++host) hosts.insert(hosts.end(), index(c.ranks_on[index(host)]), host);
  const int size = static_cast<int>(hosts.size());
  const Problem problem = Problem::even(c.what, c.bytes / 4, size, 0, false, hosts_among(hosts));
  const Algorithm* algorithm = find_algorithm(c.what, c.algorithm);
  REQUIRE((algorithm && fits(*algorithm, problem)));
  const std::vector<Schedule> ranks = plan_all_ranks(*algorithm, problem);
  const StepGraph graph(ranks);
  const std::vector<Message> messages = graph.messages();
  const Dependences dependences(graph, messages);

  const char* const hosts_word = c.ranks_on.size() == 1 ? "host" : "hosts";
  std::string name = fmt::format("{} {}, {} B, {} ranks on {} {}", name_of(c.what), c.algorithm, c.bytes, size,
                                 c.ranks_on.size(), hosts_word);
  if (std::set(c.ranks_on.begin(), c.ranks_on.end()).size() > 1) name += " of unequal size";
  if (c.switch_hosts > 0) name += fmt::format(", {} hosts per switch, {} : 1", c.switch_hosts, c.oversubscription);
  fmt::ostream out = fmt::output_file(fmt::format("{}/{}.graph", folder, name));
  write_platform(c, hosts, out);
  for (const auto& [from, to, send, recv] : messages) {
    std::set<int> after;
    dependences.collect(from, send, after);
    dependences.collect(to, recv, after);
    out.print("message {} {} {}", from, to, 4 * ranks[index(from)].steps[index(send)].src[0].count);
    for (const int before : after) out.print(" {}", before);
    out.print("\n");
  }
  times.print("{:.9g} {}\n", seconds_of_call(ranks, hosts, 4, system_of(c)), name);
}

std::vector<Case> all_cases() {
  using enum Collective;
  const std::vector<int> uneven{1, 3, 8, 4}, two(2, 8), four(4, 8), eight(8, 8), small(8, 2);
  return {
      // one host: latency, then bandwidth
      {all_reduce, "ring", 4096, {8}},
      {all_reduce, "ring", 64 << 20, {8}},
      {all_reduce, "recursive_doubling", 1 << 20, {4}},
      {broadcast, "binomial_tree", 16 << 20, {7}},
      {broadcast, "direct", 16 << 20, {8}},
      // several hosts
      {all_reduce, "ring", 16384, two},
      {all_reduce, "recursive_doubling", 65536, four},
      {all_reduce, "double_binary_tree", 64 << 20, four},
      {all_reduce, "hierarchical", 256 << 20, eight},
      {all_gather, "bruck", 24 << 20, {8, 8, 8}},
      {reduce_scatter, "circulant", 64 << 20, four},
      {all_to_all, "pairwise", 32 << 20, four},
      {all_to_all, "hierarchical", 32 << 20, four},
      {gather, "binomial_tree", 32 << 20, four},
      // links that messages share unevenly, so that max-min fairness decides
      {all_to_all, "direct", 32 << 20, uneven},
      {all_to_all, "direct", 64 << 10, uneven},
      {all_reduce, "direct", 64 << 20, uneven},
      {broadcast, "double_tree", 64 << 20, uneven},
      {scatter, "direct", 64 << 20, uneven, 0, 1, 1},
      {broadcast, "scatter_all_gather", 64 << 20, uneven, 0, 1, 1},
      // leaf switches
      {all_to_all, "direct", 64 << 20, eight, 4, 2},
      {all_to_all, "pairwise", 32 << 20, four, 2, 4},
      {all_to_all, "bruck", 32 << 20, small, 4, 4},
      {all_reduce, "recursive_doubling", 64 << 20, small, 4, 2},
      {all_reduce, "rabenseifner", 64 << 20, eight, 3, 4},
      {all_gather, "direct", 32 << 20, uneven, 2, 4},
  };
}

}  // namespace

TEST_CASE("writes graphs of messages for SimGrid", "[.simgrid]") {
  const char* const folder = std::getenv("GRAPHS");
  REQUIRE(folder != nullptr);
  fmt::ostream times = fmt::output_file(fmt::format("{}/times", folder));
  for (const Case& c : all_cases()) write(c, folder, times);
}

}  // namespace chorale::test
