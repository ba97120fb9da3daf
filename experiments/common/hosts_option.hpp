// The option --hosts of commands that run without ranks. The option emulates several hosts for the ranks, and implies
// --ranks.
//
//   --hosts 2,3,1      n0: ranks 0-1, n1: ranks 2-4, n2: rank 5
#pragma once
#include <cstdint>
#include <string>

#include "src/base/options.hpp"
#include "src/base/topology.hpp"

namespace chorale {

inline constexpr std::int64_t most_ranks_shown = 256;

class HostsOption {
 public:
  void declare(Options& options, const std::string& about);
  // Sets `ranks`, the value of --ranks, to the number of ranks on all hosts. If --ranks was given, it must have this value.
  void resolve(std::int64_t& ranks);

  bool given() const { return !text_.empty(); }
  const Topology& topology() const { return topology_; }  // empty if --hosts was not given

 private:
  const Options* options_ = nullptr;
  std::string text_;
  Topology topology_;
};

}  // namespace chorale
