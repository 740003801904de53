# SPDX-License-Identifier: Apache-2.0
"""The command line that all generators share (cmake/Generated.cmake calls it)."""
import argparse
import json
import os


def run(doc, inputs, outputs, render):
    """Lists or makes files, as the arguments say.

    Args:
        doc: what --help says.
        inputs: files that are read, relative to the tree.
        outputs: files that are made, relative to the folder of generated files.
        render: called with the tree's root; gives the text of each output, in their order.
    """
    parser = argparse.ArgumentParser(description=doc)
    parser.add_argument("--root", required=True)
    parser.add_argument("--list-inputs", action="store_true")
    parser.add_argument("--list-outputs", action="store_true")
    parser.add_argument("--out")
    args = parser.parse_args()
    if args.list_inputs:
        return print("\n".join(inputs))
    if args.list_outputs:
        return print("\n".join(outputs))
    for output, text in zip(outputs, render(args.root)):
        path = os.path.join(args.out, output)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text if isinstance(text, str) else "\n".join(text))


def load(root, path):
    """The content of a JSON file of the tree."""
    with open(os.path.join(root, path), encoding="utf-8") as file:
        return json.load(file)
