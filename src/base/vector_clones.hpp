#pragma once

// Wider vector units where the processor has them; the bits do not depend on them.
#if defined(__x86_64__) && !defined(__SANITIZE_THREAD__) && !defined(__clang__)
#define LOCKSTEP_VECTOR_CLONES __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define LOCKSTEP_VECTOR_CLONES
#endif
