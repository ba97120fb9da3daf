// How threads wait for one another at the end of a loop (parallel.hpp). They are OpenMP's, and oneDNN's loops use them too.
//
// By default libgomp polls 300,000 times before it sleeps: about 10 ms per loop. Beside other programs a thread often waits
// for one that has no core, and keeps a core from it. Two threads beside two busy loops then trained the model `tiny` at 41
// tokens/s. They reach 6700 if they sleep after 500 polls, which takes as long as it takes to wake a thread. An idle machine
// pays little: with 500 polls, `nano` is as fast as before. `tiny`, with its loops of microseconds, is a fifth slower.
#pragma once
#include <string>
#include <vector>

namespace chorale {

// libgomp reads its settings from the environment before main(). So this sets GOMP_SPINCOUNT and starts the program again,
// as the same process. It returns if the environment says already how threads wait: the user chose, or this is the new
// start. It also returns if the program cannot be started again. Call it before anything is opened or printed.
void let_waiting_threads_sleep(const std::vector<std::string>& words);

}  // namespace chorale
