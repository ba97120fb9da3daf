// A save that is written while the run trains on. The constructor copies the state; a thread writes the copy.
//
//   rank     step ─ create folder, copy ─ step ─ step ─ step ─ finish: manifest, rename ─ step
//   thread                             └ write, checksum, sync ┘
//
// Like save_checkpoint, it leaves the old or the new set at any moment. Cost: this rank's part of the state a second time
// in memory, and the thread shares the rank's cores.
#pragma once
#include <atomic>
#include <exception>
#include <thread>

#include "parallel/state/checkpoint_hosts.hpp"
#include "src/base/clock.hpp"

namespace chorale {

class BackgroundSave {
 public:
  // Collective. `mine` as for save_checkpoint; it may change after this call.
  BackgroundSave(const std::filesystem::path& folder, Metadata metadata, std::vector<StateTensor> mine, Peers peers,
                 const Clock& clock);
  ~BackgroundSave();  // waits for the thread; an unfinished set is ignored by loads and removed by the next save

  std::int64_t step() const { return metadata_.step; }
  bool is_written() const { return written_.load(std::memory_order_acquire); }  // on this rank, or failed
  SavedSet finish();                                 // collective: waits for all ranks; on failure every rank throws
  double hidden_seconds() const { return hidden_; }  // after finish(): writing for which this rank did not wait

 private:
  void write(const std::vector<StateTensor>& copies);  // the thread

  const Metadata metadata_;
  const Peers peers_;
  PartialSet set_;
  const Clock& clock_;
  int file_systems_;
  double hidden_ = 0;  // the thread's until written_ is set, as are share_ and failure_
  std::vector<std::byte> copies_;
  std::string share_;
  std::exception_ptr failure_;
  std::atomic<bool> written_ = false;
  std::thread thread_;
};

}  // namespace chorale
