// Makes all decisions about a call before any data are sent: whether the call works in place, which algorithm the call runs,
// and how many bytes this rank sends. Communicators (route.cpp) and the axes of a plan (mesh/pretended_axis.cpp) share this
// code, so a plan has exactly the algorithms and bytes of a run.
//
//   Call ── key_of ──▶ Key ── problem_of ──▶ Problem ── decide ──▶ Decision {choice, algorithm, bytes sent}
//
// Every rank makes the same decision independently, because the decision depends only on data that are equal on all ranks.
#pragma once
#include <map>
#include <span>
#include <vector>

#include <chorale/algorithm.hpp>
#include <chorale/communicator.hpp>
#include "collectives/choice/selection.hpp"

namespace chorale {

// Calls with equal keys share one plan.
struct Key {
  Collective what;
  DType dtype;
  Redop op;
  bool in_place;
  int root;
  bool on_device;        // whether the call's buffers are on a device
  bool is_ours = false;  // whether the communicator itself makes this call, as in split(), and ignores requested algorithms
  std::int64_t count = 0;
  std::vector<std::int64_t> counts = {};  // the call's counts, followed by `taken`
  bool operator==(const Key&) const = default;
  auto operator<=>(const Key&) const = default;
};

// Whether `call`, a Call or a Key, is an all_to_all in which each rank passes the sizes of its own blocks. The sizes can
// change from call to call, for example when tokens are routed to experts.
bool is_uneven_exchange(const auto& call) { return call.what == Collective::all_to_all && !call.counts.empty(); }

// `is_one_vector`: whether input and output are the same vector, or one of the two is this rank's block within the other.
Key key_of(const Call& call, int size, bool is_one_vector);
bool is_one_vector(const Call& call, int rank, int size);  // compares buffer addresses

// `counts` is key.counts, with one exception. If the transport needs the plans of all ranks, the counts in the key of an
// uneven all_to_all form a matrix with one row per rank. In this case, `counts` is the row of `rank`. `hosts`: the host of
// each rank (Problem::hosts).
Problem problem_of(const Key& key, Counts counts, int rank, int size, const std::vector<int>& hosts);

// The names that a user can request: auto, native, and the algorithms of all collectives or of some, each name once.
std::vector<std::string> algorithm_names();
std::vector<std::string> algorithm_names(std::span<const Collective> of);

using RequestedAlgorithms = std::map<Collective, Choice>;  // the user's requests, by collective
// Requests this algorithm for all collectives that have an algorithm of this name. If no collective has such an algorithm,
// throws a usage error.
RequestedAlgorithms requested_everywhere(const std::string& algorithm);

// The backend and the preferences of a group. The call, the backend and the preferences determine the decision.
struct Preferences {
  std::string backend;
  const Selector& selector;
  const RequestedAlgorithms& asked;
};

struct Decision {
  Choice choice;
  const Algorithm* algorithm = nullptr;  // null for "native", the collective of the backend's library
  std::int64_t bytes_sent = -1;          // bytes that this rank sends, or −1 if unknown
  std::int64_t bytes_crossing = -1;      // the part of bytes_sent that goes to other hosts
};

// If the problem of some rank r is not problem.at(r), `everybodys` holds the problems of all ranks. Otherwise `everybodys`
// is empty. Throws if the algorithm does not fit the problem of every rank.
Decision decide(const Key& key, const Problem& problem, std::span<const Problem> everybodys, const Preferences& preferences);

std::string words_for(const Key& key, const Choice& choice);  // "all_reduce of 16 f32, sum, ring, in place"

}  // namespace chorale
