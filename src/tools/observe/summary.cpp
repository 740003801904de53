// SPDX-License-Identifier: Apache-2.0
// Event and Summary messages (tensorboard/compat/proto/event.proto, summary.proto, tensor.proto),
// as TensorFlow 2 writes them: every value is a tensor with the metadata of a plugin.
#include "tracefire/summary.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <mutex>
#include <utility>

#include "core/base/path.h"
#include "tools/observe/event_file.h"
#include "tools/report/wire.h"
#include "tracefire/error.h"
#include "tracefire/shape.h"

namespace tracefire::summary {
namespace {

using report::Message;

// Field numbers.
constexpr int kWallTime = 1, kStep = 2, kFileVersion = 3, kGraphDef = 4, kSummary = 5;
constexpr int kSourceMetadata = 10, kSourceWriter = 1;
constexpr int kSummaryValue = 1, kTag = 1, kTensor = 8, kMetadata = 9;
constexpr int kPluginData = 1, kDescription = 3, kDataClass = 4, kPluginName = 1;
constexpr int kPluginContent = 2;
constexpr int kDType = 1, kTensorShape = 2, kTensorContent = 4, kStringValue = 8;
constexpr int kShapeDim = 2, kDimSize = 1;
constexpr int kNode = 1, kNodeName = 1, kNodeOp = 2, kNodeInput = 3, kNodeDevice = 4;
constexpr int kNodeAttr = 5, kMapKey = 1, kMapValue = 2, kAttrText = 2, kVersions = 4;
constexpr int kProducer = 1;
constexpr uint64_t kFloat = 1, kDouble = 2, kString = 7;  // DataType
constexpr uint64_t kGraphProducer = 22;

double wall_time() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

Message tensor_of(uint64_t dtype, const std::vector<int64_t>& shape) {
  Message dims;
  for (const int64_t size : shape) {
    Message dim;
    dim.number(kDimSize, static_cast<uint64_t>(size));
    dims.message(kShapeDim, dim);
  }
  Message tensor;
  tensor.number(kDType, dtype);
  tensor.message(kTensorShape, dims);
  return tensor;
}

template <class Number>
Message numbers(uint64_t dtype, const std::vector<int64_t>& shape,
                const std::vector<Number>& values) {
  Message tensor = tensor_of(dtype, shape);
  tensor.text(kTensorContent, std::string_view(reinterpret_cast<const char*>(values.data()),
                                               values.size() * sizeof(Number)));
  return tensor;
}

Message strings(const std::vector<int64_t>& shape, const std::vector<std::string>& values) {
  Message tensor = tensor_of(kString, shape);
  for (const std::string& value : values) tensor.text(kStringValue, value);
  return tensor;
}

/// Rows (left, right, count) of equal width, as TensorBoard's histogram plugin wants them.
std::vector<double> bucketed(const std::vector<double>& values, int64_t buckets) {
  const auto count = static_cast<size_t>(buckets);
  std::vector<double> rows(3 * count, 0.0);
  if (values.empty()) return rows;
  const auto [least, greatest] = std::minmax_element(values.begin(), values.end());
  const double from = *least, to = *greatest;
  // Nothing here overflows, whatever the values: to - from would.
  const double width = to / static_cast<double>(buckets) - from / static_cast<double>(buckets);
  const auto edge = [&](size_t i) {
    const double share = static_cast<double>(i) / static_cast<double>(buckets);
    return i == 0 ? from : i == count ? to : from * (1 - share) + to * share;
  };
  for (size_t i = 0; i < count; ++i) {
    rows[3 * i] = edge(i);
    rows[3 * i + 1] = edge(i + 1);
  }
  for (const double value : values) {
    // One value only: TensorBoard expects it in the last bucket.
    const double place = width > 0 ? value / width - from / width : -1;
    const bool inside = place >= 0 && place < static_cast<double>(count);
    rows[3 * (inside ? static_cast<size_t>(place) : count - 1) + 2] += 1;
  }
  return rows;
}

/// The state of a writer that was not moved from.
template <class State>
State& present(const std::unique_ptr<State>& state) {
  if (!state) {
    error(ErrorCode::kBadUsage,
          "a FileWriter was used after it was moved from; use the one it "
          "went to")
        .throw_if_error();
  }
  return *state;
}

int64_t product(const std::vector<int64_t>& sizes) { return Shape::of(sizes).elements().value(); }

void check_texts(const std::string& tag, const std::vector<std::string>& texts,
                 const std::vector<int64_t>& shape) {
  const bool possible =
      std::all_of(shape.begin(), shape.end(), [](int64_t size) { return size >= 0; });
  if (possible && product(shape) == static_cast<int64_t>(texts.size())) return;
  error(ErrorCode::kShapeMismatch, "'", tag, "' got ", texts.size(), " texts for shape ",
        Shape::of(shape).str())
      .throw_if_error();
}

constexpr int64_t kMostBuckets = int64_t{1} << 20;

}  // namespace

struct FileWriter::State {
  std::mutex mutex;
  FileWriterOptions options;
  std::string path;
  std::FILE* file = nullptr;
  int64_t waiting = 0;
  double last_flush = wall_time();

  ~State() {
    if (file != nullptr) std::fclose(file);
  }

  void fail() { error(ErrorCode::kCannotWrite, path, ": ", std::strerror(errno)).throw_if_error(); }

  void flush() {
    waiting = 0;
    last_flush = wall_time();
    if (std::fflush(file) != 0) fail();
  }

  void add(const Message& event) {
    const std::string record = tfrecord(event.bytes());
    const std::lock_guard<std::mutex> lock(mutex);
    if (file == nullptr) {
      error(ErrorCode::kBadUsage, "the event file ", path, " is closed; make a new FileWriter")
          .throw_if_error();
    }
    if (std::fwrite(record.data(), 1, record.size(), file) != record.size()) fail();
    ++waiting;
    if (waiting > options.max_queue || wall_time() - last_flush > options.flush_seconds) flush();
  }

  void add_value(const std::string& tag, int64_t step, const Message& tensor,
                 const std::string& plugin, const std::string& content, DataClass data_class,
                 const std::string& description) {
    Message plugin_data;
    plugin_data.text(kPluginName, plugin);
    if (!content.empty()) plugin_data.text(kPluginContent, content);
    Message metadata;
    metadata.message(kPluginData, plugin_data);
    if (!description.empty()) metadata.text(kDescription, description);
    if (data_class != DataClass::kUnknown) {
      metadata.number(kDataClass, static_cast<uint64_t>(data_class));
    }
    Message value;
    value.text(kTag, tag);
    value.message(kTensor, tensor);
    value.message(kMetadata, metadata);
    Message summary;
    summary.message(kSummaryValue, value);
    Message event;
    event.real(kWallTime, wall_time());
    if (step != 0) event.number(kStep, static_cast<uint64_t>(step));
    event.message(kSummary, summary);
    add(event);
  }
};

FileWriter::FileWriter(const std::string& logdir, const FileWriterOptions& options)
    : state_(std::make_unique<State>()) {
  static std::atomic<int> files{0};
  check_path(logdir, ErrorCode::kCannotWrite).throw_if_error();
  check_path(options.filename_suffix, ErrorCode::kCannotWrite).throw_if_error();
  state_->options = options;
  state_->path = logdir;
  std::error_code failed;
  std::filesystem::create_directories(logdir, failed);
  if (failed) error(ErrorCode::kCannotWrite, logdir, ": ", failed.message()).throw_if_error();
  char host[256] = "localhost";
  gethostname(host, sizeof(host) - 1);
  char name[512];
  std::snprintf(name, sizeof name, "/events.out.tfevents.%010lld.%s.%d.%d",
                static_cast<long long>(wall_time()), host, static_cast<int>(getpid()), files++);
  state_->path += name + options.filename_suffix;
  state_->file = std::fopen(state_->path.c_str(), "wbxe");  // never somebody else's file
  if (state_->file == nullptr) state_->fail();
  Message source;
  source.text(kSourceWriter, "tracefire.summary");
  Message event;
  event.real(kWallTime, wall_time());
  event.text(kFileVersion, "brain.Event:2");
  event.message(kSourceMetadata, source);
  state_->add(event);
  flush();
}

FileWriter::FileWriter(FileWriter&&) noexcept = default;
FileWriter& FileWriter::operator=(FileWriter&&) noexcept = default;

FileWriter::~FileWriter() {
  if (!state_) return;
  try {
    close();
  } catch (const Error& failure) {
    std::fprintf(stderr, "tracefire: %s\n", failure.what());
  }
}

void FileWriter::scalar(const std::string& tag, double value, int64_t step,
                        const std::string& description) {
  present(state_).add_value(tag, step, numbers<float>(kFloat, {}, {static_cast<float>(value)}),
                            "scalars", "", DataClass::kScalar, description);
}

void FileWriter::histogram(const std::string& tag, const std::vector<double>& values, int64_t step,
                           int64_t buckets, const std::string& description) {
  if (buckets < 1 || buckets > kMostBuckets) {
    error(ErrorCode::kBadUsage, "histogram '", tag, "' got ", buckets,
          " buckets; there must be 1 to ", kMostBuckets)
        .throw_if_error();
  }
  for (const double value : values) {
    if (std::isfinite(value)) continue;
    error(ErrorCode::kBadUsage, "histogram '", tag, "' got ", value,
          "; finite numbers are needed. Leave out or replace NaN and infinities")
        .throw_if_error();
  }
  present(state_).add_value(tag, step,
                            numbers<double>(kDouble, {buckets, 3}, bucketed(values, buckets)),
                            "histograms", "", DataClass::kTensor, description);
}

void FileWriter::image(const std::string& tag, const Images& images, int64_t step,
                       int64_t max_outputs, const std::string& description) {
  const auto& [count, height, width, channels, pixels] = images;
  const auto bytes = static_cast<int64_t>(pixels.size());
  if (channels < 1 || channels > 4 || height < 1 || width < 1 || count < 0 ||
      bytes != product({count, height, width, channels})) {
    error(ErrorCode::kShapeMismatch, "image '", tag, "' is (", count, ", ", height, ", ", width,
          ", ", channels, ") with ", bytes,
          " bytes; [count, height, width, 1 to 4 channels] of bytes is needed")
        .throw_if_error();
  }
  std::vector<std::string> values = {std::to_string(width), std::to_string(height)};
  for (int64_t i = 0; i < std::min(count, max_outputs); ++i) {
    values.push_back(png(pixels.data() + i * height * width * channels, height, width, channels));
  }
  present(state_).add_value(tag, step, strings({static_cast<int64_t>(values.size())}, values),
                            "images", "", DataClass::kBlobSequence, description);
}

void FileWriter::text(const std::string& tag, const std::vector<std::string>& texts,
                      const std::vector<int64_t>& shape, int64_t step,
                      const std::string& description) {
  check_texts(tag, texts, shape);
  present(state_).add_value(tag, step, strings(shape, texts), "text", "", DataClass::kTensor,
                            description);
}

void FileWriter::text(const std::string& tag, const std::string& markdown, int64_t step) {
  text(tag, {markdown}, {}, step);
}

void FileWriter::write(const std::string& tag, const std::vector<std::string>& texts,
                       const std::vector<int64_t>& shape, int64_t step, const std::string& plugin,
                       const std::string& content, DataClass data_class) {
  check_texts(tag, texts, shape);
  present(state_).add_value(tag, step, strings(shape, texts), plugin, content, data_class, "");
}

void FileWriter::graph(const std::vector<GraphNode>& nodes) {
  Message graph;
  const auto attribute = [](Message* node, const char* name, const std::string& text) {
    if (text.empty()) return;
    Message value;
    value.text(kAttrText, text);
    Message entry;
    entry.text(kMapKey, name);
    entry.message(kMapValue, value);
    node->message(kNodeAttr, entry);
  };
  for (const GraphNode& described : nodes) {
    Message node;
    node.text(kNodeName, described.name);
    node.text(kNodeOp, described.op);
    for (const std::string& input : described.inputs) node.text(kNodeInput, input);
    if (!described.device.empty()) node.text(kNodeDevice, "/device:" + described.device.substr(1));
    attribute(&node, "type", described.type);
    attribute(&node, "location", described.location);
    graph.message(kNode, node);
  }
  Message versions;
  versions.number(kProducer, kGraphProducer);
  graph.message(kVersions, versions);
  Message event;
  event.real(kWallTime, wall_time());
  event.text(kGraphDef, graph.bytes());
  present(state_).add(event);
}

void FileWriter::flush() {
  const std::lock_guard<std::mutex> lock(present(state_).mutex);
  if (state_->file != nullptr) state_->flush();
}

void FileWriter::close() {
  const std::lock_guard<std::mutex> lock(present(state_).mutex);
  if (state_->file == nullptr) return;
  std::FILE* file = std::exchange(state_->file, nullptr);
  if (std::fclose(file) != 0) state_->fail();
}

std::string FileWriter::path() const { return present(state_).path; }

}  // namespace tracefire::summary
