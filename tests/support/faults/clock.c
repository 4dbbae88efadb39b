/* The clock of a node that is wrong; loaded with LD_PRELOAD.
 *
 * CLOCK_SHIFT_S is added to the wall clock. All clocks run CLOCK_DRIFT_PPM millionths too fast (or
 * too slow, if negative) since the instant CLOCK_BASE_S of the clock since boot, so that all
 * processes of the node agree.
 */
#define _GNU_SOURCE
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define SECOND 1000000000LL

static long long number(const char *name) {
    const char *text = getenv(name);
    return text ? atoll(text) : 0;
}
static long long real(clockid_t clock) {
    struct timespec now;
    syscall(SYS_clock_gettime, clock, &now);
    return now.tv_sec * SECOND + now.tv_nsec;
}
int clock_gettime(clockid_t clock, struct timespec *now) {
    long long ns = real(clock);
    if (clock == CLOCK_REALTIME || clock == CLOCK_MONOTONIC || clock == CLOCK_BOOTTIME) {
        long long lived = real(CLOCK_BOOTTIME) - number("CLOCK_BASE_S") * SECOND;
        ns += lived / 1000000 * number("CLOCK_DRIFT_PPM");
        if (clock == CLOCK_REALTIME) ns += number("CLOCK_SHIFT_S") * SECOND;
    }
    now->tv_sec = ns / SECOND;
    now->tv_nsec = ns % SECOND;
    return 0;
}
