// A mark of the sources this plugin was compiled from; the program that loads it checks the mark (device_plugin.hpp).
extern "C" const char* chorale_cuda_mark() {
  return
#include "plugin_mark.stamp"
      ;
}
