// Has syncs of PostgreSQL wait as long as the file FLAG exists: a device that is throttled.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <unistd.h>
#define SYNC(name) int name(int file) { while (access(FLAG, F_OK) == 0) usleep(1000); \
    return ((int (*)(int)) dlsym(RTLD_NEXT, #name))(file); }
SYNC(fsync)
SYNC(fdatasync)
