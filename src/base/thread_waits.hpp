// How OpenMP threads wait for one another at the end of a loop (parallel.hpp, and the loops of oneDNN).
//
// By default a thread of libgomp polls 300,000 times, about 10 ms, before it sleeps. If other programs use the machine, a
// polling thread often occupies the very core on which the awaited thread should run. On two cores that also ran two busy
// programs, two threads trained the model `tiny` at 41 tokens/s. They reach 6700 tokens/s if they sleep after 500 polls,
// about the time it takes to wake a thread. On an idle machine this costs little: `nano` is as fast as with 300,000 polls;
// `tiny`, whose loops last microseconds, is a fifth slower.
#pragma once
#include <string>
#include <vector>

namespace chorale {

// libgomp reads its settings from the environment before main(). So this function sets GOMP_SPINCOUNT=500 and executes the
// program again in the same process, with the arguments `words`. It does nothing if the environment already says how threads
// wait, because the user chose or because this is the second start. It returns if the program cannot be executed. Call
// it before anything is opened or printed.
void let_waiting_threads_sleep(const std::vector<std::string>& words);

}  // namespace chorale
