#include "src/simulation/engine.hpp"

#include <algorithm>

#include "src/base/error.hpp"

namespace chorale {

void Engine::begin(Activity activity) {
  require(static_cast<bool>(sharing_), "an activity needs a sharing that sets its rate");
  activities_.push_back(std::move(activity));
  changed_ = true;
}

// Between two changes of the rates, `left` is what was left at the first of them.
void Engine::share() {
  for (Activity& activity : activities_) activity.left = std::max(0.0, activity.left - activity.rate * (now_ - shared_at_));
  shared_at_ = now_;
  changed_ = false;
  next_ = forever;
  if (activities_.empty()) return;
  sharing_(activities_);
  for (const Activity& activity : activities_) next_ = std::min(next_, end_of(activity));
}

void Engine::run(const std::function<void(int id)>& over, const std::function<void()>& settle) {
  for (settle();; settle()) {
    if (changed_) share();
    const double time = times_.empty() ? forever : times_.top().first;
    if (std::min(time, next_) == forever) return;
    now_ = std::min(time, next_);
    if (next_ <= time) {
      std::vector<int> ended;
      for (const Activity& activity : activities_)
        if (end_of(activity) <= now_) ended.push_back(activity.id);
      std::erase_if(activities_, [&](const Activity& activity) { return end_of(activity) <= now_; });
      changed_ = true;
      std::ranges::sort(ended);
      for (const int id : ended) over(id);
    }
    while (!times_.empty() && times_.top().first <= now_) {
      const int id = times_.top().second;
      times_.pop();
      over(id);
    }
  }
}

}  // namespace chorale
