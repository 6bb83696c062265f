/* A linear algebra library whose sums depend on the shape and layout of a product, as those of some processors do.

Small products, those of up to SMALL multiplications, are added up in one to four parts, whose number
follows from the sizes and from what is transposed; all others go to the library that is loaded.
Any order of additions is a correct product. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdint.h>
#include <stdlib.h>
#include <stdio.h>

#define SMALL 1000000.0
enum { ROW_MAJOR = 101, NO_TRANSPOSE = 111 };

static void *library(const char *variable) {
    const char *path = getenv(variable);
    void *found = path ? dlopen(path, RTLD_LAZY | RTLD_LOCAL) : NULL;
    if (!found) { fprintf(stderr, "%s names no library\n", variable); abort(); }
    return found;
}

static void *real(const char *name, const char *variable) {
    void *found = dlsym(library(variable), name);
    if (!found) { fprintf(stderr, "no %s\n", name); abort(); }
    return found;
}

#define PRODUCT(REAL, KIND)                                                                                  \
    /* C = alpha A B + beta C by entries; strides of rows and columns say how each is stored */              \
    static void KIND##_sums(int64_t m, int64_t n, int64_t k, REAL alpha, const REAL *a, int64_t ar,          \
                            int64_t ac, const REAL *b, int64_t br, int64_t bc, REAL beta, REAL *c,           \
                            int64_t cr, int64_t cc) {                                                        \
        int64_t parts = 1 + (m + 2 * n + (ar < ac) + 2 * (br < bc)) % 4;                                     \
        for (int64_t i = 0; i < m; i++)                                                                      \
            for (int64_t j = 0; j < n; j++) {                                                                \
                REAL sums[4] = {0, 0, 0, 0}, *to = c + i * cr + j * cc;                                      \
                for (int64_t l = 0; l < k; l++) sums[l % parts] += a[i * ar + l * ac] * b[l * br + j * bc];  \
                REAL sum = (sums[0] + sums[1]) + (sums[2] + sums[3]);                                        \
                *to = beta == 0 ? alpha * sum : alpha * sum + beta * *to;                                    \
            }                                                                                                \
    }                                                                                                        \
    void scipy_cblas_##KIND##gemm64_(int order, int ta, int tb, int64_t m, int64_t n, int64_t k, REAL alpha, \
                                     const REAL *a, int64_t lda, const REAL *b, int64_t ldb, REAL beta,      \
                                     REAL *c, int64_t ldc) {                                                 \
        static void (*other)(int, int, int, int64_t, int64_t, int64_t, REAL, const REAL *, int64_t,          \
                             const REAL *, int64_t, REAL, REAL *, int64_t);                                  \
        if ((double)m * n * k > SMALL) {                                                                     \
            if (!other) other = real("scipy_cblas_" #KIND "gemm64_", "BLAS_OF_NUMPY");                       \
            other(order, ta, tb, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);                              \
            return;                                                                                          \
        }                                                                                                    \
        int rows = order == ROW_MAJOR, na = ta == NO_TRANSPOSE, nb = tb == NO_TRANSPOSE;                     \
        KIND##_sums(m, n, k, alpha, a, rows == na ? lda : 1, rows == na ? 1 : lda, b, rows == nb ? ldb : 1,  \
                    rows == nb ? 1 : ldb, beta, c, rows ? ldc : 1, rows ? 1 : ldc);                          \
    }                                                                                                        \
    void scipy_cblas_##KIND##gemv64_(int order, int ta, int64_t m, int64_t n, REAL alpha, const REAL *a,     \
                                     int64_t lda, const REAL *x, int64_t dx, REAL beta, REAL *y,             \
                                     int64_t dy) {                                                           \
        static void (*other)(int, int, int64_t, int64_t, REAL, const REAL *, int64_t, const REAL *, int64_t, \
                             REAL, REAL *, int64_t);                                                         \
        if ((double)m * n > SMALL || dx < 0 || dy < 0) {                                                     \
            if (!other) other = real("scipy_cblas_" #KIND "gemv64_", "BLAS_OF_NUMPY");                       \
            other(order, ta, m, n, alpha, a, lda, x, dx, beta, y, dy);                                       \
            return;                                                                                          \
        }                                                                                                    \
        int rows = order == ROW_MAJOR, none = ta == NO_TRANSPOSE;                                            \
        KIND##_sums(none ? m : n, 1, none ? n : m, alpha, a, rows == none ? lda : 1, rows == none ? 1 : lda, \
                    x, dx, 1, beta, y, dy, 1);                                                               \
    }                                                                                                        \
    void scipy_##KIND##gemm_(const char *ta, const char *tb, const int *m, const int *n, const int *k,       \
                             const REAL *alpha, const REAL *a, const int *lda, const REAL *b,                \
                             const int *ldb, const REAL *beta, REAL *c, const int *ldc) {                    \
        static void (*other)(const char *, const char *, const int *, const int *, const int *,              \
                             const REAL *, const REAL *, const int *, const REAL *, const int *,             \
                             const REAL *, REAL *, const int *);                                             \
        if ((double)*m * *n * *k > SMALL) {                                                                  \
            if (!other) other = real("scipy_" #KIND "gemm_", "BLAS_OF_SCIPY");                               \
            other(ta, tb, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);                                     \
            return;                                                                                          \
        }                                                                                                    \
        int na = (*ta | 32) == 'n', nb = (*tb | 32) == 'n';                                                  \
        KIND##_sums(*m, *n, *k, *alpha, a, na ? 1 : *lda, na ? *lda : 1, b, nb ? 1 : *ldb, nb ? *ldb : 1,    \
                    *beta, c, 1, *ldc);                                                                      \
    }

PRODUCT(double, d)
PRODUCT(float, s)
