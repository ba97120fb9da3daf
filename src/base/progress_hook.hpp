// A message library moves data only inside its own calls. UCX and MPI may report a small send as complete while part of
// it is still in their buffers. This happens when the receiver is slow and its socket is full. If the sender then waits in
// another library, the rest of the message never leaves:
//
//   rank 0   sends over UCX: 3 KiB stay behind  │ waits in MPI for rank 1      3 KiB leave only if this wait moves UCX too
//   rank 1   slow ……………………………………………………………………………… receives …                 waits for those 3 KiB
//
// So each library in use registers a ProgressHook, and every wait in Chorale calls run_progress_hooks().
#pragma once
#include <functional>

namespace chorale {

// Registers a function with the calling thread. The function must not throw, and the same thread must destroy the hook.
class ProgressHook {
 public:
  explicit ProgressHook(std::function<void()> move);
  ~ProgressHook();
  ProgressHook(const ProgressHook&) = delete;
  ProgressHook& operator=(const ProgressHook&) = delete;

 private:
  friend void run_progress_hooks();
  std::function<void()> move_;
};

void run_progress_hooks();  // all hooks of this thread

}  // namespace chorale
