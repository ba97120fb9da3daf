// Returns a hash of the headers that this plugin was compiled with. The program that loads the plugin checks the hash
// (device_plugin.hpp).
extern "C" const char* chorale_cuda_mark() {
  return
#include "plugin_mark.stamp"
      ;
}
