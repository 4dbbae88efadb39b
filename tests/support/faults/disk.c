/* A disk under PostgreSQL that a test can watch, fill and break; loaded with LD_PRELOAD.
 *
 * Every call that changes a file below DISK_ROOT is carried out (a sync is not: no real disk loses
 * power here) and then appended to the journal DISK_JOURNAL, from which support/photograph.py rebuilds what a power cut would have left. The
 * shared memory DISK_CONTROL says how much space is left and how many calls of each kind are to
 * fail with an I/O error, and counts the failures.
 *
 * Not seen: memory-mapped files (PostgreSQL maps only dynamic shared memory, which no restart
 * reads) and io_uring (the servers of these tests have io_method=sync). What goes through stdio is
 * noted when the stream is closed. O_SYNC and sync_file_range count as no sync.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

enum kind { CREATE = 1, WRITE, ZEROS, EXTEND, TRUNCATE, SYNC_BEGIN, SYNC_END, RENAME, UNLINK, MKDIR, RMDIR };
enum fault { WAL_SYNC, DATA_SYNC, WAL_WRITE, DATA_WRITE, DATA_READ, FAULTS };

struct control { /* support/disk.py has the same layout */
    int64_t space;           /* bytes by which files may still grow; negative: no bound */
    int64_t loaded;          /* programs that this library was loaded into */
    int64_t full;            /* calls that failed because the space was used up */
    int64_t lies;            /* whether only writes to tables fail, and are answered as if done */
    int64_t left[FAULTS];    /* calls that are still to fail */
    int64_t failed[FAULTS];  /* calls that did fail */
};

struct header { uint32_t magic, kind; uint64_t inode, offset; uint32_t path_bytes, data_bytes; };
struct place { uint64_t inode; int64_t size; int is_wal, is_table; };

static const uint32_t MAGIC = 0x6b736964;
static const int JOURNAL_FD_MIN = 200; /* out of the way of the program's own files */
static char root[PATH_MAX];
static size_t root_bytes;
static int journal = -1;
static struct control *control;
static struct control nothing = {.space = -1};
static uint32_t syncs;

#define REAL(name) ((__typeof__(&name))real(#name, &(static_##name)))
#define NEXT(name) static void *static_##name

static void *real(const char *name, void **kept) {
    if (!*kept) *kept = dlsym(RTLD_NEXT, name);
    return *kept;
}

NEXT(open); NEXT(write); NEXT(pwrite); NEXT(pwritev); NEXT(read); NEXT(pread); NEXT(preadv);
NEXT(fsync); NEXT(fdatasync); NEXT(ftruncate); NEXT(truncate); NEXT(posix_fallocate);
NEXT(rename); NEXT(unlink); NEXT(mkdir); NEXT(rmdir); NEXT(fopen); NEXT(fclose);

__attribute__((constructor)) static void begin(void) {
    const char *at = getenv("DISK_ROOT"), *notes = getenv("DISK_JOURNAL");
    const char *shared = getenv("DISK_CONTROL");
    control = &nothing;
    if (!at || !shared) return;
    root_bytes = (size_t)snprintf(root, sizeof root, "%s/", at);
    int handle = REAL(open)(shared, O_RDWR | O_CLOEXEC);
    if (handle < 0) { perror("disk.c: control"); abort(); }
    control = mmap(NULL, sizeof *control, PROT_READ | PROT_WRITE, MAP_SHARED, handle, 0);
    if (control == MAP_FAILED) { perror("disk.c: control"); abort(); }
    close(handle);
    __atomic_add_fetch(&control->loaded, 1, __ATOMIC_SEQ_CST);
    if (!notes) return;
    handle = REAL(open)(notes, O_WRONLY | O_APPEND | O_CLOEXEC);
    journal = handle < 0 ? -1 : fcntl(handle, F_DUPFD_CLOEXEC, JOURNAL_FD_MIN);
    if (journal < 0) { perror("disk.c: journal"); abort(); }
    close(handle);
}

/* One record in one call: the kernel appends the records of all processes one after another. */
static void note(enum kind kind, uint64_t inode, uint64_t offset, const char *path, size_t path_bytes,
                 const void *data, size_t data_bytes) {
    if (journal < 0) return;
    int error = errno;
    struct header head = {MAGIC, kind, inode, offset, (uint32_t)path_bytes, (uint32_t)data_bytes};
    struct iovec parts[3] = {{&head, sizeof head}, {(void *)path, path_bytes}, {(void *)data, data ? data_bytes : 0}};
    ssize_t wanted = (ssize_t)(sizeof head + path_bytes + parts[2].iov_len);
    if (writev(journal, parts, 3) != wanted) { perror("disk.c: journal"); abort(); }
    errno = error;
}

/* The path below the root, or NULL; PostgreSQL works in its data directory. */
static const char *below(const char *path) {
    char here[PATH_MAX];
    if (!root_bytes) return NULL;
    if (path[0] == '/') return strncmp(path, root, root_bytes) ? NULL : path + root_bytes;
    if (!getcwd(here, sizeof here - 1)) return NULL;
    if (strlen(here) + 1 != root_bytes || strncmp(here, root, root_bytes - 1)) return NULL;
    return strncmp(path, "./", 2) ? path : path + 2;
}

/* Whether a descriptor is a file (or directory) below the root. */
static int watched(int handle, struct place *place) {
    struct stat found;
    char link[64], path[PATH_MAX];
    int error = errno, is_ours = 0;
    if (root_bytes && handle != journal && !fstat(handle, &found) &&
        (S_ISREG(found.st_mode) || S_ISDIR(found.st_mode))) {
        snprintf(link, sizeof link, "/proc/self/fd/%d", handle);
        ssize_t length = readlink(link, path, sizeof path - 2);
        if (length > 0) {
            path[length] = S_ISDIR(found.st_mode) ? '/' : 0;
            path[length + 1] = 0;
            is_ours = !strncmp(path, root, root_bytes);
            const char *name = is_ours ? path + root_bytes : "";
            *place = (struct place){found.st_ino, found.st_size, !strncmp(name, "pg_wal", 6), !strncmp(name, "base/", 5)};
        }
    }
    errno = error;
    return is_ours;
}

static int strikes(enum fault fault) {
    if (__atomic_load_n(&control->left[fault], __ATOMIC_SEQ_CST) <= 0) return 0;
    if (__atomic_fetch_sub(&control->left[fault], 1, __ATOMIC_SEQ_CST) <= 0) return 0;
    __atomic_add_fetch(&control->failed[fault], 1, __ATOMIC_SEQ_CST);
    errno = EIO;
    return 1;
}

/* Whether a file cannot grow to an end, because the space is used up. */
static int is_full(const struct place *place, int64_t end) {
    int64_t more = end - place->size;
    if (more <= 0 || __atomic_load_n(&control->space, __ATOMIC_SEQ_CST) < 0) return 0;
    int64_t left = __atomic_sub_fetch(&control->space, more, __ATOMIC_SEQ_CST);
    if (left >= 0) return 0;
    __atomic_add_fetch(&control->space, more, __ATOMIC_SEQ_CST);
    __atomic_add_fetch(&control->full, 1, __ATOMIC_SEQ_CST);
    errno = ENOSPC;
    return 1;
}

static void wrote(const struct place *place, int64_t offset, const char *data, size_t bytes) {
    int is_zero = bytes && !data[0] && !memcmp(data, data + 1, bytes - 1);
    note(is_zero ? ZEROS : WRITE, place->inode, (uint64_t)offset, "", 0, is_zero ? NULL : data, bytes);
}

/* What a write is answered with instead of being done: an error, or a lie; 0 to do it. */
static ssize_t instead(const struct place *place, int64_t at, size_t bytes) {
    if (control->lies && !place->is_table) return 0;
    if (!strikes(place->is_wal ? WAL_WRITE : DATA_WRITE) && !is_full(place, at + (int64_t)bytes)) return 0;
    return control->lies ? (ssize_t)bytes : -1;
}

ssize_t write(int handle, const void *data, size_t bytes) {
    struct place place;
    if (!watched(handle, &place)) return REAL(write)(handle, data, bytes);
    off_t at = fcntl(handle, F_GETFL) & O_APPEND ? place.size : lseek(handle, 0, SEEK_CUR);
    ssize_t done = instead(&place, at, bytes);
    if (done) return done;
    done = REAL(write)(handle, data, bytes);
    if (done > 0) wrote(&place, lseek(handle, 0, SEEK_CUR) - done, data, (size_t)done);
    return done;
}

ssize_t pwrite(int handle, const void *data, size_t bytes, off_t at) {
    struct place place;
    if (!watched(handle, &place)) return REAL(pwrite)(handle, data, bytes, at);
    ssize_t done = instead(&place, at, bytes);
    if (done) return done;
    done = REAL(pwrite)(handle, data, bytes, at);
    if (done > 0) wrote(&place, at, data, (size_t)done);
    return done;
}

ssize_t pwritev(int handle, const struct iovec *parts, int count, off_t at) {
    struct place place;
    size_t bytes = 0;
    for (int part = 0; part < count; part++) bytes += parts[part].iov_len;
    if (!watched(handle, &place)) return REAL(pwritev)(handle, parts, count, at);
    ssize_t done = instead(&place, at, bytes);
    if (done) return done;
    done = REAL(pwritev)(handle, parts, count, at);
    ssize_t left = done;
    for (int part = 0; part < count && left > 0; part++) {
        size_t of_part = parts[part].iov_len < (size_t)left ? parts[part].iov_len : (size_t)left;
        wrote(&place, at + (done - left), parts[part].iov_base, of_part);
        left -= (ssize_t)of_part;
    }
    return done;
}

#define READING(call)                                                        \
    struct place place;                                                      \
    if (control->left[DATA_READ] > 0 && watched(handle, &place) && !place.is_wal && strikes(DATA_READ)) return -1; \
    return call

ssize_t read(int handle, void *data, size_t bytes) { READING(REAL(read)(handle, data, bytes)); }
ssize_t pread(int handle, void *data, size_t bytes, off_t at) { READING(REAL(pread)(handle, data, bytes, at)); }
ssize_t preadv(int handle, const struct iovec *parts, int count, off_t at) { READING(REAL(preadv)(handle, parts, count, at)); }

/* The journal is the disk: the machine's own disk is not waited for. */
static int synced(int handle, int (*sync)(int)) {
    struct place place;
    if (!watched(handle, &place)) return sync(handle);
    if (strikes(place.is_wal ? WAL_SYNC : DATA_SYNC)) return -1;
    uint64_t id = (uint64_t)getpid() << 32 | ++syncs;
    note(SYNC_BEGIN, place.inode, id, "", 0, NULL, 0); /* covers what was noted before */
    note(SYNC_END, place.inode, id, "", 0, NULL, 0);
    return 0;
}

int fsync(int handle) { return synced(handle, REAL(fsync)); }
int fdatasync(int handle) { return synced(handle, REAL(fdatasync)); }

int ftruncate(int handle, off_t size) {
    struct place place;
    if (!watched(handle, &place)) return REAL(ftruncate)(handle, size);
    if (is_full(&place, size)) return -1;
    int failed = REAL(ftruncate)(handle, size);
    if (!failed) note(TRUNCATE, place.inode, (uint64_t)size, "", 0, NULL, 0);
    return failed;
}

int truncate(const char *path, off_t size) {
    struct stat found;
    int failed = REAL(truncate)(path, size);
    if (!failed && below(path) && !stat(path, &found)) note(TRUNCATE, found.st_ino, (uint64_t)size, "", 0, NULL, 0);
    return failed;
}

int posix_fallocate(int handle, off_t at, off_t bytes) {
    struct place place;
    if (!watched(handle, &place)) return REAL(posix_fallocate)(handle, at, bytes);
    if (is_full(&place, at + bytes)) return ENOSPC;
    int error = REAL(posix_fallocate)(handle, at, bytes);
    if (!error) note(EXTEND, place.inode, (uint64_t)(at + bytes), "", 0, NULL, 0);
    return error;
}

/* Whether a file is about to be made; what it was, once it is open. */
static void opened(const char *path, int handle, int was_there, int is_emptied) {
    const char *name = below(path);
    struct stat found;
    if (!name || fstat(handle, &found) || !S_ISREG(found.st_mode)) return;
    if (!was_there) note(CREATE, found.st_ino, 0, name, strlen(name), NULL, 0);
    else if (is_emptied) note(TRUNCATE, found.st_ino, 0, "", 0, NULL, 0);
}

int open(const char *path, int flags, ...) {
    va_list more;
    va_start(more, flags);
    mode_t mode = flags & (O_CREAT | __O_TMPFILE) ? va_arg(more, mode_t) : 0;
    va_end(more);
    int error = errno;
    int was_there = !(flags & O_CREAT) || !access(path, F_OK);
    errno = error;
    int handle = REAL(open)(path, flags, mode);
    if (handle >= 0 && (!was_there || flags & O_TRUNC)) opened(path, handle, was_there, flags & O_TRUNC);
    return handle;
}

FILE *fopen(const char *path, const char *mode) {
    int error = errno, was_there = !access(path, F_OK);
    errno = error;
    FILE *stream = REAL(fopen)(path, mode);
    if (stream && mode[0] != 'r') opened(path, fileno(stream), was_there, mode[0] == 'w');
    return stream;
}

int fclose(FILE *stream) {
    struct place place;
    int handle = fileno(stream);
    if (journal >= 0 && handle >= 0 && (fcntl(handle, F_GETFL) & O_ACCMODE) != O_RDONLY) {
        fflush(stream);
        char link[64];
        snprintf(link, sizeof link, "/proc/self/fd/%d", handle);
        int again = watched(handle, &place) ? REAL(open)(link, O_RDONLY | O_CLOEXEC) : -1;
        char *data = again >= 0 ? malloc((size_t)place.size + 1) : NULL;
        ssize_t bytes = data ? REAL(pread)(again, data, (size_t)place.size, 0) : 0;
        if (bytes > 0) wrote(&place, 0, data, (size_t)bytes);
        free(data);
        if (again >= 0) close(again);
    }
    return REAL(fclose)(stream);
}

int rename(const char *from, const char *to) {
    char both[2 * PATH_MAX];
    int failed = REAL(rename)(from, to);
    const char *old = below(from), *new = below(to);
    if (!failed && old && new) {
        int bytes = snprintf(both, sizeof both, "%s%c%s", old, 0, new);
        note(RENAME, 0, 0, both, (size_t)bytes, NULL, 0);
    }
    return failed;
}

static int renamed(int failed, enum kind kind, const char *path) {
    const char *name = failed ? NULL : below(path);
    if (name) note(kind, 0, 0, name, strlen(name), NULL, 0);
    return failed;
}

int unlink(const char *path) { return renamed(REAL(unlink)(path), UNLINK, path); }
int rmdir(const char *path) { return renamed(REAL(rmdir)(path), RMDIR, path); }
int mkdir(const char *path, mode_t mode) { return renamed(REAL(mkdir)(path, mode), MKDIR, path); }

/* A copy inside the kernel would go unseen; nothing that these tests do needs one. */
ssize_t copy_file_range(int from, off_t *from_at, int to, off_t *to_at, size_t bytes, unsigned flags) {
    (void)from; (void)from_at; (void)to; (void)to_at; (void)bytes; (void)flags;
    errno = ENOSYS;
    return -1;
}

#ifdef __GLIBC__ /* the same calls under the names that some builds use */
#define ALSO(name, of) extern __typeof__(name) name __attribute__((alias(#of)))
ALSO(open64, open);
ALSO(fopen64, fopen);
ALSO(pread64, pread);
ALSO(preadv64, preadv);
ALSO(pwrite64, pwrite);
ALSO(pwritev64, pwritev);
ALSO(ftruncate64, ftruncate);
ALSO(truncate64, truncate);
ALSO(posix_fallocate64, posix_fallocate);
#endif
