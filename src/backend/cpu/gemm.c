// The one file that knows OpenBLAS. It is kept to one thread: our own pool splits the work into
// fixed blocks, so that a result does not depend on the number of threads, and runs side by side do
// not fight over a pool of OpenBLAS's own.
#include "backend/cpu/cpu.h"

#include <cblas.h>
#include <pthread.h>

static void one_thread(void) {
    openblas_set_num_threads(1);
}

void dc_gemm(bool a_t, bool b_t, int m, int n, int k, const dc_real *a, int lda, const dc_real *b,
             int ldb, dc_real beta, dc_real *c, int ldc) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, one_thread);
    CBLAS_TRANSPOSE ta = a_t ? CblasTrans : CblasNoTrans, tb = b_t ? CblasTrans : CblasNoTrans;
#ifdef DC_DOUBLE
    cblas_dgemm(CblasRowMajor, ta, tb, m, n, k, 1, a, lda, b, ldb, beta, c, ldc);
#else
    cblas_sgemm(CblasRowMajor, ta, tb, m, n, k, 1, a, lda, b, ldb, beta, c, ldc);
#endif
}
