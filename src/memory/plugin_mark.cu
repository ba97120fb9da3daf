// What this plugin was compiled from, for the program that loads it (device_plugin.hpp).
extern "C" const char* chorale_cuda_mark() {
  return
#include "plugin_mark.stamp"
      ;
}
