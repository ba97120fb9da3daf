// The phases of hierarchical algorithms. Hierarchical algorithms are for links that are fast within a host and slow between
// hosts. The vector is split into one segment per host and lane (lanes.hpp). Each segment is owned by the rank that owns the
// lane on the segment's host.
//
//   hosts 0 0 1 1    sum_within       rank 0 sums lane 0 of ranks 0 and 1, rank 1 sums lane 1        direct reduce-scatter
//                    sum_between      ranks 0 and 2 exchange lane 0; each has its segment's sum      circulant
//                    gather_between   ranks 0 and 2 get all of lane 0, ranks 1 and 3 get all of lane 1   circulant
//                    gather_within    every rank has both lanes                                      direct all-gather
//
// A remote segment is a segment that another host owns. In sum_between, a host sends each remote segment exactly once. In
// gather_between, a host receives each remote segment exactly once. No algorithm can send less data between hosts. A host
// must send its sum of each remote segment, and must receive the result of each remote segment.
#pragma once
#include <vector>

#include <chorale/schedule.hpp>
#include "collectives/schedule/lanes.hpp"

namespace chorale {

class Hierarchy {
 public:
  // `whole`: the range in which this rank keeps the complete vector. `s` must outlive this object.
  Hierarchy(Schedule& s, Range whole);

  void sum_within(Range from);          // `from`: this rank's vector of addends
  void sum_between();                   // among the hosts that own segments
  void gather_between();                // among the hosts that own segments
  void gather_within(int except = -1);  // rank `except` receives nothing, because it already has the complete vector

  // In a collective with a root, all hosts except the root's host own segments. The lane owners on the root's host relay
  // data between the root and the other hosts.
  void scatter_within(int root);  // the root sends each lane to the lane's owner on the root's host
  void send_pieces(int root);     // the lane owners on the root's host send each segment to the segment's owner
  void collect_pieces(int root);  // the reverse of send_pieces; adds each segment to the sum of the root's host
  void gather_at(int root);       // the lane owners on the root's host send their lanes to the root

 private:
  // Splits the vector evenly into lanes, and each lane evenly into one segment per host in `hosts_`.
  void own_evenly(std::int64_t count);
  // Splits the block of each rank evenly into one segment per lane that the rank owns. So every host owns its ranks' blocks.
  void own_blocks(const Blocks& blocks);
  int rank() const { return s_.problem().rank; }
  int rank_of(int local) const { return lanes_.ranks(lanes_.host())[static_cast<std::size_t>(local)]; }
  std::vector<int> neighbors() const;            // the local indices of this host's other ranks
  std::vector<Range> owned_by(int local) const;  // the elements of all lanes that the rank with this local index owns
  template <class Phase>
  void between(Range from, const Phase& phase);  // runs `phase` for each lane of this rank
  void move_lanes(int root, bool root_sends);
  template <class Visit>
  void each_piece_beyond(int root, const Visit& visit) const;  // visits all segments whose owner is not on the root's host

  Schedule& s_;
  const Lanes lanes_;
  std::vector<int> hosts_;                  // the hosts that own segments
  std::vector<std::vector<Range>> pieces_;  // `pieces_[i][lane]` holds the elements of lane `lane` that `hosts_[i]` owns
  Range whole_, summed_;                    // summed_: the range that holds the sums over this host's ranks
};

}  // namespace chorale
