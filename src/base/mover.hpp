// A message library moves data only inside its own calls. UCX and MPI may report a small send as complete while part of
// it is still in their buffers. This happens when the receiver is slow and its socket is full. If the sender then waits
// elsewhere, the rest never leaves:
//
//   rank 0   sends over UCX ── over, 3 KiB left │ waits in MPI for rank 1      3 KiB leave only if this wait moves UCX too
//   rank 1   slow ……………………………………………………………………………… receives …                 waits for those 3 KiB
//
// So each library in use registers a Mover, and every wait in Chorale calls move_all().
#pragma once
#include <functional>

namespace chorale {

// Registers a function with the calling thread. The function must not throw, and the same thread must destroy the Mover.
class Mover {
 public:
  explicit Mover(std::function<void()> move);
  ~Mover();
  Mover(const Mover&) = delete;
  Mover& operator=(const Mover&) = delete;

 private:
  friend void move_all();
  std::function<void()> move_;
};

void move_all();  // all movers of this thread

}  // namespace chorale
