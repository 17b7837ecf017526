"""A library between the agent and NVML that makes the calls about one GPU fail or hang, on request.

It defines the functions that begin with `nvmlDevice`; all others are found in NVML, which it is linked with.
"""

import ctypes
import os
import re
import subprocess

SOURCE = r"""
#include <dlfcn.h>
#include <stdio.h>
#include <unistd.h>

typedef int (*function)(void *, void *, void *, void *, void *, void *);
static void *real, *faulty;

__attribute__((constructor)) static void open_real(void) { real = dlopen("@LIBRARY@", RTLD_NOW | RTLD_LOCAL); }

static int mode(void) {
    FILE *file = fopen("@SWITCH@", "r");
    int first = file ? fgetc(file) : EOF;
    if (file) fclose(file);
    return first;
}

/* NVML_ERROR_UNKNOWN while the GPU fails; waits while it hangs. */
static int trouble(void *device) {
    if (!device || device != faulty) return 0;
    while (mode() == 'h') usleep(10000);
    return mode() == 'f' ? 999 : 0;
}

#define FORWARD(name) \
    int name(void *a, void *b, void *c, void *d, void *e, void *f) { \
        static function next; \
        if (!next) next = (function)dlsym(real, #name); \
        int code = trouble(a); \
        return code ? code : next(a, b, c, d, e, f); \
    }

#define LOOKUP(name) \
    int name(void *key, void **device, void *c, void *d, void *e, void *f) { \
        function next = (function)dlsym(real, #name), index_of = (function)dlsym(real, "nvmlDeviceGetIndex"); \
        int code = next(key, device, c, d, e, f); \
        unsigned index = ~0u; \
        if (code) return code; \
        if (!index_of(*device, &index, 0, 0, 0, 0) && index == @INDEX@) faulty = *device; \
        return trouble(*device); \
    }

"""


class FaultyDriver:
    def __init__(self, library, switch_file):
        self.library, self.switch_file = library, switch_file

    def switch(self, mode):
        """`fail`, `hang`, or nothing."""
        temporary = self.switch_file + ".new"
        with open(temporary, "w") as file:
            file.write(mode)
        os.replace(temporary, self.switch_file)


def build(context, index):
    """Builds the library for the GPU with this index."""
    folder = context.folder("faulty-driver")
    path = real_path(context)
    with open(path, "rb") as file:
        names = sorted(set(re.findall(rb"(?<=\0)nvmlDevice[A-Za-z0-9_]+(?=\0)", file.read())))
    loaded = ctypes.CDLL(path)
    names = [name.decode() for name in names if hasattr(loaded, name.decode())]
    switch_file = os.path.join(folder, "switch")
    source = SOURCE.replace("@LIBRARY@", path).replace("@SWITCH@", switch_file).replace("@INDEX@", str(index))
    for name in names:
        if name.startswith("nvmlDeviceGetHandleBy"):
            source += f"LOOKUP({name})\n"
        elif not name.startswith("nvmlDeviceGetCount"):
            source += f"FORWARD({name})\n"
    # These two ask a GPU as well.
    source += "FORWARD(nvmlGpmSampleGet)\nFORWARD(nvmlGpmQueryDeviceSupport)\n"
    source_file, library = os.path.join(folder, "faulty.c"), os.path.join(folder, "libnvidia-ml-faulty.so")
    with open(source_file, "w") as file:
        file.write(source)
    link = ["-Wl,--no-as-needed", path, f"-Wl,-rpath,{os.path.dirname(path)}", "-ldl"]
    subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-w", "-o", library, source_file, *link], check=True)
    driver = FaultyDriver(library, switch_file)
    driver.switch("")
    return driver


def real_path(context):
    """Where the library is that the loader finds."""
    if context.library:
        return os.path.realpath(context.library)
    ctypes.CDLL("libnvidia-ml.so.1")
    with open("/proc/self/maps") as file:
        return next(line.split()[-1] for line in file if "libnvidia-ml" in line)
