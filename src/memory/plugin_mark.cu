// A hash of the headers this plugin was compiled with. The program that loads the plugin checks it (device_plugin.hpp).
extern "C" const char* chorale_cuda_mark() {
  return
#include "plugin_mark.stamp"
      ;
}
