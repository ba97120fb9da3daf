#include "src/base/mover.hpp"

#include <vector>

namespace chorale {
namespace {

thread_local std::vector<Mover*> movers;

}  // namespace

Mover::Mover(std::function<void()> move) : move_(std::move(move)) { movers.push_back(this); }

Mover::~Mover() { std::erase(movers, this); }

void move_all() {
  for (const Mover* mover : movers) mover->move_();
}

}  // namespace chorale
