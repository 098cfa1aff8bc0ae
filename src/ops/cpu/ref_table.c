/* The scalar oracle as a table. */
#include "ops/cpu/ref.h"

static const ops table = {
    .name = "scalar",
    .embed = ref_embed,
    .rms_norm = ref_rms_norm,
    .matmul = ref_matmul,
    .add = ref_add,
    .swiglu = ref_swiglu,
    .qkv_store = ref_qkv_store,
    .attention = ref_attention,
    .conv = ref_conv,
    .gdn = ref_gdn,
    .gdn_commit = ref_gdn_commit,
};

const ops *ops_cpu_scalar(void) { return &table; }
