// A message library moves data only inside its own calls. UCX and MPI report a small send as over while part of it may still be in
// their buffers, because the receiver is slow and its socket is full. If the sender then waits somewhere else, the rest never leaves:
//
//   rank 0   sends over UCX ── over, 3 KiB left │ waits in MPI for rank 1      3 KiB leave only if this wait moves UCX too
//   rank 1   slow ……………………………………………………………………………… receives …                 waits for those 3 KiB
//
// So each library in use registers a Mover, and every wait of ours calls move_all(), whatever it waits for.
#pragma once
#include <functional>

namespace chorale {

// Registers a function, which must not throw, with the thread that makes it. The same thread must destroy it.
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
