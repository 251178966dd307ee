/* Loaded before the C library (LD_PRELOAD): the k-th write to, or sync of, a file of the store fails once. A failing
   write leaves half of its bytes behind, as a full disk does. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

static int left[2], seen[2]; /* 0: writes, 1: syncs */

void faults_arm(int kind, int k) { left[kind] = k, seen[kind] = 0; }
int faults_seen(int kind) { return seen[kind]; }

static int fails(int kind, int fd) {
    char link[64], path[4096];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t length = readlink(link, path, sizeof path - 1);
    if (length < 0) return 0;
    path[length] = 0;
    if (!strstr(path, "labels.db")) return 0;
    seen[kind]++;
    return left[kind] > 0 && --left[kind] == 0;
}

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

ssize_t pwrite(int fd, const void *bytes, size_t count, off_t at) {
    if (!fails(0, fd)) return REAL(pwrite)(fd, bytes, count, at);
    REAL(pwrite)(fd, bytes, count / 2, at);
    errno = ENOSPC;
    return -1;
}

ssize_t pwrite64(int fd, const void *bytes, size_t count, off64_t at) {
    if (!fails(0, fd)) return REAL(pwrite64)(fd, bytes, count, at);
    REAL(pwrite64)(fd, bytes, count / 2, at);
    errno = ENOSPC;
    return -1;
}

ssize_t write(int fd, const void *bytes, size_t count) {
    if (!fails(0, fd)) return REAL(write)(fd, bytes, count);
    if (REAL(write)(fd, bytes, count / 2) < 0) return -1;
    errno = ENOSPC;
    return -1;
}

int fsync(int fd) {
    if (!fails(1, fd)) return REAL(fsync)(fd);
    errno = EIO;
    return -1;
}

int fdatasync(int fd) {
    if (!fails(1, fd)) return REAL(fdatasync)(fd);
    errno = EIO;
    return -1;
}
