// Runs ranks as threads of one process, so that tests can have many ranks without a launcher. Every rank can access all
// memory.
//
//   ThreadWorld world(7);
//   on each of 7 threads:  Communicator c = open_world(world.transport(rank), clock);
#pragma once
#include <atomic>
#include <memory>
#include <vector>

#include "collectives/transport/transport.hpp"

namespace chorale {

namespace mapped {
class FlagPages;
}

// A ThreadWorld must outlive its transports.
class ThreadWorld {
 public:
  explicit ThreadWorld(int size);
  ~ThreadWorld();
  std::shared_ptr<Transport> transport(int rank);
  int size() const { return static_cast<int>(numbers_.size()); }

 private:
  class ThreadReach;
  class ThreadTransport;
  void meet();

  std::vector<std::int64_t> numbers_;
  std::atomic<int> arrivals_{0};
  std::vector<std::shared_ptr<mapped::FlagPages>> pages_;
};

}  // namespace chorale
