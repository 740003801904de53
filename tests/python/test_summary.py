# SPDX-License-Identifier: Apache-2.0
"""Event files: what tf.summary's names write, read back from the formats and, where it is
installed, by TensorBoard itself."""

import math
import time

import event_files
import pytest

np = pytest.importorskip("numpy")
tf = pytest.importorskip("tracefire")


def only_file(folder):
    (path,) = folder.iterdir()
    assert path.name.startswith("events.out.tfevents.") and path.name.endswith(".v2")
    return path


@pytest.fixture
def written(tmp_path):
    """Runs a function with a default writer; gives the events behind the file's first."""

    def run(write):
        writer = tf.summary.create_file_writer(tmp_path / "logs")
        with writer.as_default():
            write()
        writer.close()
        first, *rest = event_files.events(only_file(tmp_path / "logs"))
        assert first["version"] == "brain.Event:2"
        assert abs(first["wall"] - time.time()) < 60
        return rest

    return run


def test_crc32c_vectors():
    # RFC 3720, appendix B.4.
    assert event_files.crc32c(bytes(32)) == 0x8A9136AA
    assert event_files.crc32c(bytes(range(32))) == 0x46DD794E
    assert event_files.crc32c(b"123456789") == 0xE3069283


def test_scalars(written):
    def write():
        for step in range(3):
            assert tf.summary.scalar("loss", 0.5**step, step=step, description="the *loss*")
        tf.summary.scalar("tensor", tf.tensor(2.5), step=2**40)

    events = written(write)
    assert [(e["tag"], e["step"], e["tensor"]) for e in events] == [
        ("loss", 0, ("f", [], [1.0])),
        ("loss", 1, ("f", [], [0.5])),
        ("loss", 2, ("f", [], [0.25])),
        ("tensor", 2**40, ("f", [], [2.5])),
    ]
    assert {(e["plugin"], e["class"]) for e in events} == {("scalars", 1)}
    assert events[0]["description"] == "the *loss*"


def test_histograms_agree_with_numpy(written):
    values = np.random.default_rng(1).normal(size=(20, 50)).astype("float32")

    def write():
        tf.summary.histogram("normal", values, step=1)
        tf.summary.histogram("few", tf.tensor([1.0, 2.0, 2.0, 4.0]), step=1, buckets=3)
        tf.summary.histogram("same", np.full(7, 3.0), step=1, buckets=2)
        tf.summary.histogram("none", np.zeros(0), step=1, buckets=2)

    normal, few, same, none = [np.array(e["tensor"][2]).reshape(e["tensor"][1]) for e in written(write)]
    counts, edges = np.histogram(values.astype("float64"), bins=30)
    assert normal.shape == (30, 3)
    np.testing.assert_allclose(normal[:, 0], edges[:-1], rtol=1e-12)
    np.testing.assert_allclose(normal[:, 1], edges[1:], rtol=1e-12)
    assert (normal[:, 2] == counts).all()
    assert few.tolist() == [[1, 2, 1], [2, 3, 2], [3, 4, 1]]
    assert same[:, 2].tolist() == [0, 7] and same[-1, :2].tolist() == [3, 3]
    assert (none == 0).all()


def test_images_are_png_files_of_the_same_pixels(written):
    pixels = np.random.default_rng(2).integers(0, 256, (5, 4, 6, 3)).astype("uint8")
    grey = np.array([[0.0, 0.5], [1.0, 2.0]]).reshape(1, 2, 2, 1)

    def write():
        tf.summary.image("rgb", pixels, step=0)
        tf.summary.image("grey", grey, step=0)
        tf.summary.image("rgba", np.zeros((1, 2, 3, 4), "uint8"), step=0, max_outputs=9)

    rgb, grey_event, rgba = written(write)
    assert (rgb["plugin"], rgb["class"]) == ("images", 3)
    _, shape, (width, height, *images) = rgb["tensor"]
    assert (shape, width, height, len(images)) == ([5], b"6", b"4", 3)
    for i, image in enumerate(images):
        assert event_files.png(image) == (6, 4, [row.tobytes() for row in pixels[i]])
    # Floats are scaled as TensorFlow scales them: 0.5 is 127.
    assert event_files.png(grey_event["tensor"][2][2]) == (2, 2, [bytes([0, 127]), bytes([255, 255])])
    assert event_files.png(rgba["tensor"][2][2])[:2] == (3, 2)


def test_texts(written):
    def write():
        tf.summary.text("one", "**bold** é", step=3)
        tf.summary.text("table", np.array([["a", "b"], ["c", "d"]]), step=3)

    one, table = written(write)
    assert one["tensor"] == ("string", [], ["**bold** é".encode()])
    assert table["tensor"] == ("string", [2, 2], [b"a", b"b", b"c", b"d"])
    assert (one["plugin"], one["class"]) == ("text", 2)


def test_graphs(written):
    with tf._core.TraceScope("f") as trace:
        x = trace.parameter((None, 3), "float32", "x")
        function = trace.finish([tf._core.ops.relu(x + 1.0)])
    (event,) = written(lambda: tf.summary.graph(function))
    nodes = {node["name"]: node for node in event["graph"]}
    assert any(n["op"] == "Placeholder" for n in nodes.values())
    relu = next(n for n in nodes.values() if n["op"] == "relu")
    assert nodes[relu["inputs"][0]]["op"] == "add"
    assert all(i in nodes for n in nodes.values() for i in n["inputs"])


def test_steps_and_conditions(written):
    def write():
        with pytest.raises(ValueError, match="No step set"):
            tf.summary.scalar("a", 1.0)
        step = tf.Variable(7, dtype="int64")
        tf.summary.experimental.set_step(step)
        tf.summary.scalar("a", 1.0)
        step.assign(8)
        tf.summary.scalar("a", 2.0)
        assert tf.summary.experimental.get_step() is step
        with tf.summary.record_if(False):
            assert not tf.summary.should_record_summaries()
            assert not tf.summary.scalar("never", 1.0)
        with tf.summary.record_if(lambda: True):
            assert tf.summary.scalar("a", 3.0, step=9)

    try:
        assert [(e["tag"], e["step"]) for e in written(write)] == [("a", 7), ("a", 8), ("a", 9)]
    finally:
        tf.summary.experimental.set_step(None)


def test_without_a_writer_nothing_is_written():
    assert not tf.summary.scalar("a", 1.0, step=1)
    assert not tf.summary.text("a", "b", step=1)
    with tf.summary.create_noop_writer().as_default():
        tf.summary.scalar("a", 1.0, step=1)


def test_inside_a_function_each_run_writes(written):
    def write():
        with tf._core.TraceScope("f") as trace:
            x = trace.parameter((2,), "float32", "x")
            tf.summary.scalar("sum", tf._core.ops.reduce_sum(x, axes=[0]), step=5)
            function = trace.finish([x * 2.0])
        function(tf.tensor([1.0, 2.0]))
        function(tf.tensor([3.0, 4.0]))
        tf._core.synchronize()

    assert [e["tensor"][2] for e in written(write)] == [[3.0], [7.0]]


def test_what_cannot_be_written_is_an_error(tmp_path):
    writer = tf.summary.create_file_writer(tmp_path / "logs")
    with writer.as_default():
        with pytest.raises(ValueError, match="one number"):
            tf.summary.scalar("a", [1.0, 2.0], step=0)
        with pytest.raises(tf.errors.Error, match="finite"):
            tf.summary.histogram("a", [1.0, math.nan], step=0)
        with pytest.raises(ValueError, match="count, height, width"):
            tf.summary.image("a", np.zeros((2, 2)), step=0)
        with pytest.raises(ValueError, match="strings"):
            tf.summary.text("a", 3, step=0)
        with pytest.raises(TypeError, match="traced function"):
            tf.summary.graph("graph")
    writer.close()
    writer.close()
    with pytest.raises(RuntimeError, match="closed"), writer.as_default():
        tf.summary.scalar("a", 1.0, step=0)
    with pytest.raises(tf.errors.Error):
        tf.summary.create_file_writer("/proc/none/logs")


def test_tensorboard_reads_it(tmp_path):
    event_accumulator = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    writer = tf.summary.create_file_writer(tmp_path)
    with writer.as_default():
        tf.summary.scalar("loss", 0.25, step=3)
        tf.summary.image("image", np.zeros((1, 2, 2, 1)), step=3)
    writer.close()
    accumulator = event_accumulator.EventAccumulator(str(tmp_path))
    accumulator.Reload()
    (event,) = accumulator.Tensors("loss")
    assert (event.step, event.tensor_proto.dtype) == (3, 1)
    assert set(accumulator.Tags()["tensors"]) == {"loss", "image"}
