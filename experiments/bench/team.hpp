// The ranks that measure together. A team needs a barrier that does not depend on the backend, and a gather of the times.
// Ranks that are processes use MPI. Ranks that are threads spin on a shared counter. If these threads slept, some of them
// would leave the barrier long after the others, and the measured time would include this delay.
#pragma once
#include <atomic>
#include <vector>

#include "src/base/mpi.hpp"
#include "src/base/wait.hpp"

namespace chorale::bench {

class BenchTeam {
 public:
  virtual ~BenchTeam() = default;
  virtual int rank() const = 0;
  virtual int size() const = 0;
  virtual void barrier() = 0;
  virtual std::vector<double> gather(const std::vector<double>& mine) = 0;  // to rank 0, in rank order
  virtual double broadcast(double value) = 0;                               // returns rank 0's value
  bool any(bool mine);                                                      // whether at least one rank passes true
};

class ProcessTeam final : public BenchTeam {
 public:
  explicit ProcessTeam(const mpi::Runtime& runtime);
  int rank() const override { return runtime_.rank(); }
  int size() const override { return runtime_.size(); }
  void barrier() override;
  std::vector<double> gather(const std::vector<double>& mine) override;
  double broadcast(double value) override;

 private:
  const mpi::Runtime& runtime_;
  bool crowded_ = false;  // whether some ranks share cores
  bool one_host_ = true;
};

// The state that the threads of a team share.
struct Crew {
  Crew(int size, Clock& clock);
  Waiting waiting;
  std::atomic<std::int64_t> arrivals = 0;
  std::vector<std::vector<double>> places;
  std::atomic<bool> broken = false;  // a thread failed and will reach no further barrier
};

class ThreadTeam final : public BenchTeam {
 public:
  ThreadTeam(Crew& crew, int rank) : crew_(crew), rank_(rank) {}
  int rank() const override { return rank_; }
  int size() const override { return static_cast<int>(crew_.places.size()); }
  void barrier() override;
  std::vector<double> gather(const std::vector<double>& mine) override;
  double broadcast(double value) override;

 private:
  Crew& crew_;
  int rank_;
};

}  // namespace chorale::bench
