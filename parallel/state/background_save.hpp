// Saves a checkpoint while training continues. The constructor copies the state, and a thread writes the copy.
//
//   rank     step ─ create folder, copy ─ step ─ step ─ step ─ finish: manifest, rename ─ step
//   thread                             └ write, checksum, sync ┘
//
// At any moment, the old or the new set is complete, as with save_checkpoint. The copy takes as much memory as this rank's
// part of the state, and plans do not include this memory. The thread shares the rank's cores.
#pragma once
#include <atomic>
#include <exception>
#include <memory>
#include <thread>

#include <chorale/clock.hpp>
#include "parallel/state/checkpoint_hosts.hpp"

namespace chorale {

class BackgroundSave {
 public:
  // All ranks must call this constructor. `mine` has the same meaning as in save_checkpoint. The caller can change the
  // tensors after this call. The clock must outlive the BackgroundSave.
  BackgroundSave(const std::filesystem::path& folder, Metadata metadata, std::vector<StateTensor> mine, Peers peers,
                 const Clock& clock);
  ~BackgroundSave();  // leaves an unfinished set incomplete: loads ignore the set, and the next save removes it

  std::int64_t step() const { return metadata_.step; }
  bool is_written() const { return written_.load(std::memory_order_acquire); }  // this rank's write has ended or failed
  SavedSet finish();  // collective; waits for all ranks; if a rank fails, all ranks throw
  double hidden_seconds() const {
    return hidden_;
  }  // after finish(): the time, in seconds, of writing for which this rank
     // did not wait

 private:
  void write(const std::vector<StateTensor>& copies);  // runs in the thread
  void wait_until_written() const;

  const Metadata metadata_;
  const Peers peers_;
  PartialSet set_;
  const Clock& clock_;
  int file_systems_;
  std::unique_ptr<std::byte[]> copies_;
  std::atomic<bool> dropped_ = false, written_ = false;
  std::atomic<std::int64_t> pieces_ = 0;  // number of blocks written so far
  // Until written_ is set, only the thread is allowed to access these members.
  std::string share_;
  std::exception_ptr failure_;
  double hidden_ = 0;
  std::jthread thread_;  // the last member, so that it is joined before the other members are destroyed
};

}  // namespace chorale
