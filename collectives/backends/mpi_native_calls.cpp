#include "collectives/backends/mpi_native_calls.hpp"

namespace chorale {

void MpiNativeCalls::Comparison::start(MpiNativeCalls& among, std::uint64_t history) {
  among_ = &among;
  if (!marks_) marks_ = std::make_unique<Marks>();
  among.queue_.push_back(this);
  marks_->mine = marks_->all = {history, ~history};
  if (history == 0) return;
  Marks& marks = *marks_;
  const MPI_Comm comm = among.comparisons_.get();
  mpi::check(PMPI_Iallreduce(marks.mine.data(), marks.all.data(), 2, MPI_UINT64_T, MPI_MAX, comm, &marks.request));
}

bool MpiNativeCalls::Comparison::is_over() {
  int over = 1;
  if (marks_->request != MPI_REQUEST_NULL) mpi::check(PMPI_Test(&marks_->request, &over, MPI_STATUS_IGNORE));
  return over != 0;
}

MpiNativeCalls::Comparison::~Comparison() {
  if (among_) std::erase(among_->queue_, this);
  if (!marks_ || marks_->request == MPI_REQUEST_NULL) return;
  int over = 0;
  if (PMPI_Test(&marks_->request, &over, MPI_STATUS_IGNORE) != MPI_SUCCESS || !over) static_cast<void>(marks_.release());
}

}  // namespace chorale
