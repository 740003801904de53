// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "tracefire/export.h"
#include "tracefire/function.h"

/// Event files for TensorBoard, as TensorFlow 2's tf.summary writes them.
namespace tracefire::summary {

struct TRACEFIRE_API FileWriterOptions {
  int64_t max_queue = 10;      ///< events that wait before they go to the file
  double flush_seconds = 120;  ///< oldest that one of them may get, checked at each event
  std::string filename_suffix = ".v2";
};

/// Pixels of several images, row by row: [count, height, width, channels] with 1 (grey), 2 (grey
/// and alpha), 3 (RGB) or 4 (RGBA) channels.
struct TRACEFIRE_API Images {
  int64_t count = 0, height = 0, width = 0, channels = 0;
  std::vector<uint8_t> pixels;
};

/// Kinds of data as TensorBoard's DataClass numbers them.
enum class DataClass : uint8_t { kUnknown = 0, kScalar = 1, kTensor = 2, kBlobSequence = 3 };

/// Appends to one file events.out.tfevents.… in `logdir`, which is made where it is missing.
/// Thread-safe. Every member throws kCannotWrite where the file cannot be written, and kBadUsage
/// once it is closed or was moved from. `step` is TensorBoard's horizontal axis; times are wall clock.
class TRACEFIRE_API FileWriter {
 public:
  explicit FileWriter(const std::string& logdir, const FileWriterOptions& options = {});
  /// Writes what waits; a failure is said on stderr.
  ~FileWriter();
  FileWriter(FileWriter&&) noexcept;
  FileWriter& operator=(FileWriter&&) noexcept;

  void scalar(const std::string& tag, double value, int64_t step,
              const std::string& description = "");
  /// Counts of `values` in `buckets` of equal width from the least to the greatest; NaN and
  /// infinities are an error (kBadUsage), as TensorBoard cannot show them.
  void histogram(const std::string& tag, const std::vector<double>& values, int64_t step,
                 int64_t buckets = 30, const std::string& description = "");
  /// The first `max_outputs` images, as PNG.
  void image(const std::string& tag, const Images& images, int64_t step, int64_t max_outputs = 3,
             const std::string& description = "");
  /// Markdown: one text, or an array of `shape`.
  void text(const std::string& tag, const std::vector<std::string>& texts,
            const std::vector<int64_t>& shape, int64_t step, const std::string& description = "");
  void text(const std::string& tag, const std::string& markdown, int64_t step);
  /// A graph for the graph view, as Function::nodes() gives it.
  void graph(const std::vector<GraphNode>& nodes);
  /// Texts for any plugin.
  void write(const std::string& tag, const std::vector<std::string>& texts,
             const std::vector<int64_t>& shape, int64_t step, const std::string& plugin,
             const std::string& content, DataClass data_class);

  void flush();
  /// Further writing is an error; closing again is none.
  void close();
  std::string path() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// A record of a TFRecord file: length, its masked CRC32C, the data, their masked CRC32C.
TRACEFIRE_API std::string tfrecord(const std::string& data);

}  // namespace tracefire::summary
