// A communication library transfers data only while the program calls the library. UCX and MPI can report a small send as
// complete while part of its data is still in their buffers. Data stays in the buffers if the receiver is slow and its
// socket is full. If the sender then waits in another library, the rest of the message is never sent:
//
//   rank 0   sends over UCX: 3 KiB stay behind  │ waits in MPI for rank 1      must also progress UCX to send the 3 KiB
//   rank 1   slow ……………………………………………………………………………… receives …                 waits for those 3 KiB
//
// Therefore each library in use registers a ProgressHook, and every wait in Chorale calls run_progress_hooks().
#pragma once
#include <functional>

namespace chorale {

// Registers a function with the calling thread. The function must not throw, and the hook must be destroyed by the same
// thread.
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

void run_progress_hooks();  // runs all hooks of this thread

}  // namespace chorale
