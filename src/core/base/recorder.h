// SPDX-License-Identifier: Apache-2.0
//
// What writes records inside somebody else's program shares: the injected library and the
// executor's own records. Nothing here allocates or throws.
#pragma once

#include <fcntl.h>
#include <signal.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <initializer_list>

namespace tracefire::recorder {

/// Holds back every signal of this thread while it lives, and takes the one that writing beyond
/// the limit of a file size would raise.
class QuietSignals {
 public:
  QuietSignals() {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old_);
  }
  ~QuietSignals() {
    if (!sigismember(&old_, SIGXFSZ)) {
      sigset_t limit;
      sigemptyset(&limit);
      sigaddset(&limit, SIGXFSZ);
      const timespec none{};
      while (sigtimedwait(&limit, nullptr, &none) > 0) {
      }
    }
    pthread_sigmask(SIG_SETMASK, &old_, nullptr);
  }
  QuietSignals(const QuietSignals&) = delete;
  QuietSignals& operator=(const QuietSignals&) = delete;

 private:
  sigset_t old_;
};

/// The user, besides this one and root, whose files root may use; -1 for none.
inline long trusted_owner() {
  const char* given = getenv("TRACEFIRE_PROVE_OWNER");
  if (geteuid() != 0 || given == nullptr || given[0] < '0' || given[0] > '9') return -1;
  return atol(given);
}

/// Why nothing may be written into the folder that TRACEFIRE_PROVE_DIR names, or null. `room` is
/// the size of the longest path.
inline const char* why_not_folder(const char* folder, size_t room) {
  if (getauxval(AT_SECURE) != 0) return "the program has more rights than its user";
  if (folder[0] != '/' || strlen(folder) >= room) {
    return "TRACEFIRE_PROVE_DIR is not an absolute path";
  }
  struct stat info {};
  if (lstat(folder, &info) != 0) return "TRACEFIRE_PROVE_DIR does not exist";
  if (!S_ISDIR(info.st_mode)) return "TRACEFIRE_PROVE_DIR is not a folder";
  if (info.st_uid != geteuid() && long{info.st_uid} != trusted_owner()) {
    return "TRACEFIRE_PROVE_DIR belongs to another user";
  }
  if ((info.st_mode & 077) != 0) return "TRACEFIRE_PROVE_DIR is open to others; expected mode 0700";
  return nullptr;
}

/// CRC-32 (IEEE 802.3), bit by bit over a table of 16.
inline uint32_t crc32(const void* data, size_t size) {
  static constexpr uint32_t kTable[16] = {0x00000000, 0x1db71064, 0x3b6e20c8, 0x26d930ac,
                                          0x76dc4190, 0x6b6b51f4, 0x4db26158, 0x5005713c,
                                          0xedb88320, 0xf00f9344, 0xd6d6a3e8, 0xcb61b38c,
                                          0x9b64c2b0, 0x86d3d2d4, 0xa00ae278, 0xbdbdf21c};
  const auto* bytes = static_cast<const unsigned char*>(data);
  uint32_t crc = 0xffffffffu;
  for (size_t i = 0; i < size; ++i) {
    crc = kTable[(crc ^ bytes[i]) & 15] ^ (crc >> 4);
    crc = kTable[(crc ^ (bytes[i] >> 4)) & 15] ^ (crc >> 4);
  }
  return ~crc;
}

/// Adds `file` to the list of files that processes of this host began to keep in `folder`: a file
/// that is lost later is missed. `owner` as in trusted_owner(), -1 for this user.
inline void list_record(const char* folder, const char* host, const char* file, long owner) {
  char path[4096 + 64];
  char line[256];
  const int length = snprintf(line, sizeof(line), "%s\n", file);
  snprintf(path, sizeof(path), "%s/processes-%08x.txt", folder, crc32(host, strlen(host)));
  const int list = open(path, O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW | O_CLOEXEC, 0600);
  if (list < 0) return;
  // One write: lines of several processes do not mix.
  bool good = write(list, line, static_cast<size_t>(length)) == length;
  if (owner >= 0) {
    good = fchown(list, static_cast<uid_t>(owner), static_cast<gid_t>(-1)) == 0 && good;
  }
  static_cast<void>(good);  // the records themselves tell more than their list
  close(list);
}

/// Which of several processes of one job this is; -1: unknown.
struct Rank {
  int64_t rank = -1, ranks = -1, local = -1;
};

/// The first of these variables that holds a number.
inline int64_t number_of(std::initializer_list<const char*> names) {
  for (const char* name : names) {
    const char* value = getenv(name);
    if (value == nullptr || value[0] < '0' || value[0] > '9') continue;
    const long long number = atoll(value);
    if (number >= 0 && number < 1 << 24) return number;
  }
  return -1;
}

namespace detail {

/// What follows `"key":` in JSON text, blanks skipped; null where the key is not there.
inline const char* after_key(const char* text, const char* key) {
  const size_t length = strlen(key);
  for (const char* at = strchr(text, '"'); at != nullptr; at = strchr(at + 1, '"')) {
    if (strncmp(at + 1, key, length) != 0 || at[length + 1] != '"') continue;
    const char* next = at + length + 2;
    next += strspn(next, " \t\r\n");
    if (*next != ':') continue;
    return next + 1 + strspn(next + 1, " \t\r\n");
  }
  return nullptr;
}

/// Texts of the list after `"key":`.
inline int64_t listed(const char* text, const char* key) {
  const char* at = after_key(text, key);
  if (at == nullptr || *at != '[') return 0;
  int64_t quotes = 0;
  for (; *at != '\0' && *at != ']'; ++at) quotes += *at == '"' ? 1 : 0;
  return quotes / 2;
}

}  // namespace detail

/// TensorFlow's cluster: {"cluster": {"chief": […], "worker": […]}, "task": {"type": "worker",
/// "index": 1}}. The chief comes before the workers.
inline Rank rank_of_tf_config(const char* text) {
  Rank found;
  const char* task = detail::after_key(text, "task");
  if (task == nullptr) return found;
  const char* index = detail::after_key(task, "index");
  const char* type = detail::after_key(task, "type");
  if (index != nullptr && *index == '"') ++index;
  if (index == nullptr || *index < '0' || *index > '9' || type == nullptr) return found;
  const int64_t chiefs = detail::listed(text, "chief");
  const bool worker = strncmp(type, "\"worker\"", 8) == 0;
  if (!worker && strncmp(type, "\"chief\"", 7) != 0 && strncmp(type, "\"master\"", 8) != 0) {
    return found;  // a parameter server or evaluator has no rank
  }
  found.rank = atol(index) % (1 << 24) + (worker ? chiefs : 0);
  const int64_t all = chiefs + detail::listed(text, "worker");
  if (all > found.rank) found.ranks = all;
  return found;
}

/// By what torchrun, mpirun, srun, jax.distributed and TF_CONFIG set.
inline Rank rank_of_process() {
  Rank r;
  r.rank = number_of({"RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK",
                      "MV2_COMM_WORLD_RANK", "JAX_PROCESS_ID"});
  r.ranks = number_of({"WORLD_SIZE", "OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "MV2_COMM_WORLD_SIZE",
                       "JAX_NUM_PROCESSES"});
  r.local = number_of(
      {"LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID", "MV2_COMM_WORLD_LOCAL_RANK"});
  const char* cluster = getenv("TF_CONFIG");
  if (r.rank < 0 && cluster != nullptr) {
    const Rank of_cluster = rank_of_tf_config(cluster);
    r.rank = of_cluster.rank;
    r.ranks = of_cluster.ranks;
  }
  // Slurm sets its variables for every step, also above torchrun and mpirun: they come last.
  if (r.rank < 0) {
    r.rank = number_of({"SLURM_PROCID"});
    r.ranks = number_of({"SLURM_NTASKS", "SLURM_STEP_NUM_TASKS"});
    r.local = number_of({"SLURM_LOCALID"});
  }
  return r;
}

}  // namespace tracefire::recorder
