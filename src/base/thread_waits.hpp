// The way in which OpenMP threads wait for each other at the end of a loop (parallel.hpp, and the loops of oneDNN).
//
// By default, a thread of libgomp polls 300,000 times, about 10 ms, before it sleeps. If other programs use the machine, a
// polling thread often occupies the very core that the awaited thread needs. On two cores that also ran two busy programs,
// two threads trained the model `tiny` at 41 tokens/s. The two threads reach 6700 tokens/s if they sleep after 500 polls,
// which take about as long as waking a thread. On an idle machine, sleeping early costs little. The model `nano` is as fast
// as with 300,000 polls. The model `tiny`, whose loops last microseconds, is a fifth slower.
#pragma once
#include <string>
#include <vector>

namespace chorale {

// libgomp reads its settings from the environment before main(). Therefore this function sets GOMP_SPINCOUNT=500 and
// executes the program again in the same process, with the arguments `words`. The function does nothing if the environment
// already says how threads wait. This is the case if the user has set a variable, or if the program is already being
// executed again. The function returns only if it does nothing or the program cannot be executed. The function must be
// called before anything is opened or printed.
void let_waiting_threads_sleep(const std::vector<std::string>& words);

}  // namespace chorale
