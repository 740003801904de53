// SPDX-License-Identifier: Apache-2.0
// What libstdc++.a and our objects use of a C library newer than the one that a wheel is linked
// for, in terms of what the older one has. scripts/older_glibc.py links it into each product, and
// with TRACEFIRE_START into each program; nothing of it is visible outside of them. For x86-64,
// where struct stat has one form (version 1).
#include <errno.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#if !defined(__x86_64__)
#error "the version of struct stat is known for x86-64 only"
#endif

#ifndef TRACEFIRE_START
namespace {

constexpr int kStatVersion = 1;

int64_t nanoseconds(const timespec& time) { return time.tv_sec * 1'000'000'000LL + time.tv_nsec; }

int64_t now(clockid_t clock) {
  timespec time{};
  clock_gettime(clock, &time);
  return nanoseconds(time);
}

}  // namespace

extern "C" {

int __xstat(int version, const char* path, struct stat* out);
int __lxstat(int version, const char* path, struct stat* out);
int __fxstat(int version, int file, struct stat* out);
int __fxstatat(int version, int folder, const char* path, struct stat* out, int flags);

// Since 2.32: whether atomic operations may be left out. Never, which is right in any process.
extern char __libc_single_threaded;
char __libc_single_threaded = 0;

// Functions since 2.33, macros before.
int stat(const char* path, struct stat* out) { return __xstat(kStatVersion, path, out); }
int lstat(const char* path, struct stat* out) { return __lxstat(kStatVersion, path, out); }
int fstat(int file, struct stat* out) { return __fxstat(kStatVersion, file, out); }
int fstatat(int folder, const char* path, struct stat* out, int flags) {
  return __fxstatat(kStatVersion, folder, path, out, flags);
}
int stat64(const char* path, struct stat64* out) {
  return stat(path, reinterpret_cast<struct stat*>(out));
}
int lstat64(const char* path, struct stat64* out) {
  return lstat(path, reinterpret_cast<struct stat*>(out));
}
int fstat64(int file, struct stat64* out) {
  return fstat(file, reinterpret_cast<struct stat*>(out));
}

// Since 2.30.
pid_t gettid() noexcept { return static_cast<pid_t>(syscall(SYS_gettid)); }

// Since 2.30. Older ones wait by the real-time clock only, which may be set meanwhile: a wait that
// ends early goes on, and waits are cut into pieces, so that none ends much too late.
int pthread_cond_clockwait(pthread_cond_t* condition, pthread_mutex_t* mutex, clockid_t clock,
                           const timespec* end) {
  if (clock == CLOCK_REALTIME) return pthread_cond_timedwait(condition, mutex, end);
  if (clock != CLOCK_MONOTONIC || end->tv_nsec < 0 || end->tv_nsec >= 1'000'000'000) return EINVAL;
  constexpr int64_t kPiece = 1'000'000'000;
  for (;;) {
    const int64_t left = nanoseconds(*end) - now(CLOCK_MONOTONIC);
    if (left <= 0) return ETIMEDOUT;
    const int64_t until = now(CLOCK_REALTIME) + (left < kPiece ? left : kPiece);
    const timespec time{until / 1'000'000'000, until % 1'000'000'000};
    const int outcome = pthread_cond_timedwait(condition, mutex, &time);
    if (outcome != ETIMEDOUT) return outcome;
  }
}

// Since 2.36; std::random_device takes it.
uint32_t arc4random() noexcept {
  uint32_t value = 0;
  if (getentropy(&value, sizeof value) != 0) abort();
  return value;
}

}  // extern "C"
#else
extern "C" {

// Since 2.34 a program's start leaves its constructors to the C library; older ones want a function
// that calls them. Programs are linked with --wrap=__libc_start_main.
using Main = int (*)(int, char**, char**);
using Init = void (*)(int, char**, char**);
int __real___libc_start_main(Main main, int argc, char** argv, Init init, void (*fini)(),
                             void (*rtld_fini)(), void* stack_end);
extern Init __preinit_array_start[] __attribute__((weak, visibility("hidden")));
extern Init __preinit_array_end[] __attribute__((weak, visibility("hidden")));
extern Init __init_array_start[] __attribute__((weak, visibility("hidden")));
extern Init __init_array_end[] __attribute__((weak, visibility("hidden")));

static void call_constructors(int argc, char** argv, char** environment) {
  for (Init* f = __preinit_array_start; f < __preinit_array_end; ++f) (*f)(argc, argv, environment);
  for (Init* f = __init_array_start; f < __init_array_end; ++f) (*f)(argc, argv, environment);
}

int __wrap___libc_start_main(Main main, int argc, char** argv, Init, void (*fini)(),
                             void (*rtld_fini)(), void* stack_end) {
  return __real___libc_start_main(main, argc, argv, call_constructors, fini, rtld_fini, stack_end);
}

}  // extern "C"
#endif
