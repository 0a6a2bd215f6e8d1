#include "cupti/cupti_backend.h"

const struct gpu_backend *gpu_backends[GPU_BACKENDS_MOST] = {&cupti_backend};
